//! The Agent Trajectory Interchange Format.
//!
//! | of the run | in the trajectory |
//! |---|---|
//! | instructions, notices, imported facts | a step of `system` |
//! | the task, earlier user messages | a step of `user` |
//! | an answer | a step of `agent` with its calls, their observation and its metrics |
//! | arguments that are no JSON object | `{"text":".."}`, since the format wants an object |
//! | an observation that is no ordinary success | `extra.is_error` and `extra.code` of the result |
//! | a request that failed | a step of `system` that names the code |
//! | the ending | `extra`: `success`, `row`, `run_state`, `outcome` |

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::conversation::{Answer, Called, Conversation, Exchange, Said};
use super::time::stamp;
use crate::engine::Ending;
use crate::vocabulary::outcome::{ReleaseOutcome, RunStatus};
use crate::vocabulary::tool::ObservationCode;

#[derive(Serialize)]
struct Trajectory<'a> {
    schema_version: &'static str,
    session_id: String,
    agent: Agent<'a>,
    steps: Vec<Step<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Extra>,
}

#[derive(Serialize)]
struct Agent<'a> {
    name: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<&'a str>,
}

#[derive(Serialize)]
struct Step<'a> {
    step_id: usize,
    timestamp: String,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<&'a str>,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
}

/// The arguments keep their text: a number that no float holds stays what it is.
#[derive(Serialize)]
struct Call<'a> {
    tool_call_id: &'a str,
    function_name: &'a str,
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct Observation<'a> {
    results: Vec<Result<'a>>,
}

#[derive(Serialize)]
struct Result<'a> {
    source_call_id: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Coded>,
}

#[derive(Serialize)]
struct Coded {
    is_error: bool,
    code: ObservationCode,
}

#[derive(Serialize)]
struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens: Option<u64>,
}

#[derive(Serialize)]
struct Extra {
    success: bool,
    row: u8,
    run_state: RunStatus,
    outcome: ReleaseOutcome,
}

impl Extra {
    fn of(ending: &Ending) -> Self {
        let Ending { row, run_state, outcome, .. } = *ending;
        Self { success: outcome == ReleaseOutcome::Success, row, run_state, outcome }
    }
}

pub(super) fn document(conversation: &Conversation) -> serde_json::Result<String> {
    let mut steps = Vec::new();
    for exchange in &conversation.exchanges {
        let asked = stamp(conversation, exchange.from_ms);
        steps.extend(exchange.told.iter().map(|said| told(said, asked.clone())));
        steps.extend(answer(exchange, stamp(conversation, exchange.to_ms)));
    }
    let last = stamp(conversation, conversation.last_ms);
    steps.extend(conversation.unasked.iter().map(|said| told(said, last.clone())));
    (1..).zip(&mut steps).for_each(|(step_id, step)| step.step_id = step_id);
    let model_name = conversation.exchanges.first().map(|exchange| exchange.model.as_str());
    serde_json::to_string(&Trajectory {
        schema_version: "ATIF-v1.4",
        session_id: conversation.run.as_ref().map(ToString::to_string).unwrap_or_default(),
        agent: Agent { name: "portcullis", version: env!("CARGO_PKG_VERSION"), model_name },
        steps,
        extra: conversation.ending.as_ref().map(Extra::of),
    })
}

/// A step that says something and nothing else. It is numbered once all are there.
fn step<'a>(source: &'static str, message: String, timestamp: String) -> Step<'a> {
    let (tool_calls, observation, metrics) = (Vec::new(), None, None);
    Step { step_id: 0, timestamp, source, model_name: None, message, tool_calls, observation, metrics }
}

fn told<'a>(said: &Said, stamp: String) -> Step<'a> {
    match said {
        Said::System(text) => step("system", text.clone(), stamp),
        Said::User(text) => step("user", text.clone(), stamp),
        Said::Assistant(text) => step("agent", text.clone(), stamp),
    }
}

fn answer(exchange: &Exchange, stamp: String) -> Option<Step<'_>> {
    let (text, calls, usage) = match &exchange.answer {
        Answer::Open => return None,
        Answer::Failed(error) => {
            return Some(step("system", format!("the request to the model failed: {}", error.code()), stamp));
        }
        Answer::Replied { text, calls, usage, .. } => (text, calls, usage),
    };
    let results: Vec<_> = calls.iter().filter_map(result).collect();
    let metrics = Metrics { prompt_tokens: usage.input_tokens, completion_tokens: usage.output_tokens };
    let is_known = metrics.prompt_tokens.or(metrics.completion_tokens).is_some();
    Some(Step {
        model_name: Some(&exchange.model),
        tool_calls: calls.iter().map(call).collect(),
        observation: (!results.is_empty()).then_some(Observation { results }),
        metrics: is_known.then_some(metrics),
        ..step("agent", text.clone().unwrap_or_default(), stamp)
    })
}

fn call(called: &Called) -> Call<'_> {
    let is_object = called.arguments.trim_start().starts_with('{');
    let object = if is_object { serde_json::from_str(&called.arguments).ok() } else { None };
    let arguments = object.unwrap_or_else(|| as_text(&called.arguments));
    Call { tool_call_id: &called.id, function_name: &called.name, arguments }
}

fn as_text(arguments: &str) -> Box<RawValue> {
    let object = json!({ "text": arguments }).to_string();
    RawValue::from_string(object).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn result(called: &Called) -> Option<Result<'_>> {
    let outcome = called.outcome.as_ref()?;
    let extra = outcome.code.map(|code| Coded { is_error: outcome.is_error(), code });
    Some(Result { source_call_id: &called.id, content: &outcome.text, extra })
}
