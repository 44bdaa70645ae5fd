//! A recorded conversation as scenarios, one a user turn: its assistant messages are the model, its recorded
//! results are the tools (SPEC 14.1).
//!
//! A recording says what another loop did, not under which rules. What it leaves open is chosen here, once:
//!
//! - Every tool that is called somewhere in the file is declared, and takes any object. Its successful
//!   results are evidence, and each is one fact. A tool whose results are all blank states nothing: it is
//!   declared without evidence, so that a scratchpad neither saturates collecting nor is held to its rules.
//! - Evidence tools are repeatable: the other loop did ask again, and its second result may differ from the
//!   first. A result that brings nothing new still counts towards saturation (SPEC 8), and evidence after
//!   that ends the run in row 9. That is a finding about the recording and is kept.
//! - An answer is a text without citations, so no run of a recording can end in row 1 (SPEC 10.4). Nothing
//!   is asked again (no repairs, no retries) and no judge is asked, for the recording holds no answer to either.
//! - A model request that is said to have failed fails; a turn that is said to have been cancelled is cancelled.
//! - Budgets are unlimited, and the deadline is a year: time is virtual.
//! - Earlier turns are prior messages.

use std::collections::BTreeMap;

use super::scenario::{
    EffectKind, Interruption, ModelReply, ModelSays, Moment, Point, Scenario, Script, ScriptedCall, ToolReply,
};
use super::transcripts::{Call, Claim, Reply, Said, ToolResult, Transcript, Turn};
use crate::vocabulary::input::CancelOrigin;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{FinishReason, ToolRequest, Usage};
use crate::vocabulary::spec::{
    Budgets, DraftFormat, DraftSpec, JudgePolicy, Limits, PriorMessage, PriorRole, Projection, ReleaseSpec, Retry,
    Spec, ToolSpec,
};
use crate::vocabulary::tool::ToolOutput;

/// A year, in milliseconds: a deadline that no recording meets.
const DEADLINE_MS: u64 = 365 * 24 * 3_600_000;
/// The model's name: a recording does not say which it was.
const MODEL: &str = "recorded";

/// The runs of a recording. Each is made when it is asked for, since each holds everything before it.
#[derive(Debug)]
pub struct Recording {
    transcript: Transcript,
    tools: Vec<ToolSpec>,
    notes: Vec<String>,
}

impl Recording {
    /// Decides what the transcript leaves open.
    #[must_use]
    pub fn new(transcript: Transcript) -> Self {
        let (tools, mut notes) = declared(&transcript);
        notes.extend(transcript.notes.iter().map(ToString::to_string));
        Self { transcript, tools, notes }
    }

    /// How many runs there are: one a user turn.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.transcript.turns.len()
    }

    /// What was guessed or left out, for people.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What was recorded.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The spec of the run in that place, from 0.
    #[must_use]
    pub fn spec(&self, index: usize) -> Option<Spec> {
        let turn = self.transcript.turns.get(index)?;
        Some(spec(&self.transcript, index, turn, &self.tools))
    }

    /// The same without what was said before the turn, which decides nothing.
    pub(super) fn rules(&self, index: usize) -> Option<Spec> {
        Some(rules(self.transcript.turns.get(index)?, &self.tools))
    }

    /// The run in that place, from 0.
    #[must_use]
    pub fn scenario(&self, index: usize) -> Option<Scenario> {
        let turn = self.transcript.turns.get(index)?;
        Some(Scenario::new(self.spec(index)?, script(turn)))
    }

    /// Every run, in order.
    pub fn scenarios(&self) -> impl Iterator<Item = Scenario> {
        (0..self.runs()).filter_map(|index| self.scenario(index))
    }
}

/// What the file shows of one tool.
#[derive(Default)]
struct Seen {
    results: u32,
    stating: u32,
}

/// Every tool that is called in the file, and how it was declared.
fn declared(transcript: &Transcript) -> (Vec<ToolSpec>, Vec<String>) {
    let mut seen: BTreeMap<&str, Seen> = BTreeMap::new();
    let replies = transcript.opening.iter().chain(transcript.turns.iter().flat_map(|turn| &turn.replies));
    for call in replies.flat_map(|reply| &reply.calls) {
        let tool = seen.entry(&call.name).or_default();
        if let Some(result) = &call.result {
            tool.results += 1;
            tool.stating += u32::from(!result.text.trim().is_empty());
        }
    }
    let (mut tools, mut notes) = (Vec::new(), Vec::new());
    for (name, seen) in seen {
        let silent = seen.results > 0 && seen.stating == 0;
        if silent {
            notes.push(format!("{name:?} never states anything: taken as a tool without evidence"));
        }
        if ToolSpec::is_name(name) {
            tools.push(tool(name, !silent));
        } else {
            notes.push(format!("{name:?} is no tool name here: calls of it come to UNKNOWN_TOOL"));
        }
    }
    let evidence: Vec<&str> = tools.iter().filter(|tool| tool.evidence).map(|tool| tool.name.as_str()).collect();
    if !evidence.is_empty() {
        notes.insert(0, format!("taken as evidence tools, a result a fact: {}", evidence.join(", ")));
    }
    (tools, notes)
}

fn tool(name: &str, evidence: bool) -> ToolSpec {
    ToolSpec {
        evidence,
        repeatable: true,
        projection: Projection::Text,
        result_bytes_max: Limits::default().line_bytes_max,
        timeout_ms: None,
        ..ToolSpec::new(name)
    }
}

fn spec(transcript: &Transcript, index: usize, turn: &Turn, tools: &[ToolSpec]) -> Spec {
    Spec {
        instructions: transcript.system.clone().unwrap_or_default(),
        prior_messages: transcript.prior(index).flat_map(prior).collect(),
        ..rules(turn, tools)
    }
}

fn rules(turn: &Turn, tools: &[ToolSpec]) -> Spec {
    let usual = Limits::default();
    Spec {
        tools: tools.to_vec(),
        retry: Retry { retries_max: 0, ..Retry::default() },
        budgets: Budgets { model_calls: None, tool_calls: None, ..Budgets::default() },
        deadline_ms: Some(DEADLINE_MS),
        draft: DraftSpec { format: DraftFormat::Text, ..DraftSpec::default() },
        release: ReleaseSpec { evidence_repairs: 0, judge: JudgePolicy::Off, judge_model: None },
        limits: Limits {
            response_bytes_max: usual.line_bytes_max,
            statement_bytes_max: usual.line_bytes_max,
            calls_in_response_max: 1_024,
            transcript_bytes_max: 1 << 30,
            ..usual
        },
        ..Spec::new(turn.task.clone(), MODEL)
    }
}

/// What was said before, as the model saw it: calls as lines of their message, results as messages.
fn prior(said: Said<'_>) -> Vec<PriorMessage> {
    let reply = match said {
        Said::User(text) => return vec![PriorMessage { role: PriorRole::User, text: text.to_owned() }],
        Said::Assistant(reply) => reply,
    };
    let calls = reply.calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
    let lines: Vec<String> = reply.text.iter().cloned().chain(calls).collect();
    let results = reply.calls.iter().filter_map(|call| call.result.as_ref());
    let results = results.map(|result| PriorMessage { role: PriorRole::Tool, text: result.text.clone() });
    std::iter::once(PriorMessage { role: PriorRole::Assistant, text: lines.join("\n") }).chain(results).collect()
}

/// What the world answers: the replies and, after them, what the recording says of the end.
fn script(turn: &Turn) -> Script {
    let mut script = Script { model: turn.replies.iter().map(reply).collect(), ..Script::default() };
    match &turn.claim {
        Claim::ModelFailed { error } => {
            let failure = ModelReply { says: ModelSays::Error(error.clone()), ..ModelReply::new(None, Vec::new()) };
            script.model.push(failure);
        }
        Claim::Cancelled => {
            let nth = u32::try_from(turn.replies.len()).unwrap_or(u32::MAX).saturating_add(1);
            let point = Point::Before { effect: EffectKind::CallModel, nth };
            script.interruptions.push(Interruption { point, what: Moment::Cancel(CancelOrigin::Caller) });
        }
        Claim::Unsaid | Claim::Success | Claim::LimitReached { .. } | Claim::Failed { .. } => {}
    }
    script
}

/// Why a reply stopped: as recorded, or as one of its kind does.
fn finish(recorded: &Reply) -> FinishReason {
    let usual = if recorded.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    recorded.finish.unwrap_or(usual)
}

/// The calls of a reply as a model makes them, and why it stopped.
pub(super) fn arguments_and_finish(recorded: &Reply) -> (Vec<ToolRequest>, FinishReason) {
    let request = |call: &Call| ToolRequest {
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        provider_id: call.provider_id.clone(),
    };
    (recorded.calls.iter().map(request).collect(), finish(recorded))
}

/// A recorded result as a tool returns it.
pub(super) fn output(result: &ToolResult) -> ToolOutput {
    let text = result.text.clone();
    if result.is_error { ToolOutput::error(text) } else { ToolOutput::text(text) }
}

fn reply(recorded: &Reply) -> ModelReply {
    let calls: Vec<_> = recorded.calls.iter().map(call).collect();
    let finish = finish(recorded);
    ModelReply {
        says: ModelSays::Answer { text: recorded.text.clone(), calls, finish },
        usage: (recorded.usage != Usage::default()).then_some(recorded.usage),
        ..ModelReply::new(None, Vec::new())
    }
}

fn call(recorded: &Call) -> ScriptedCall {
    let result = recorded.result.as_ref().map(|result| ToolReply::returned(output(result)));
    ScriptedCall {
        arguments: Json::String(recorded.arguments.clone()),
        provider_id: recorded.provider_id.clone(),
        result,
        ..ScriptedCall::new(recorded.name.clone())
    }
}
