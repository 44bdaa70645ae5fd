//! Scripted ports whose effects are entries in the parent's ledger. They hold no state: what they answer follows
//! from what they are asked, so a script plays on in any process.

use std::sync::Arc;

use portcullis::runtime::ports::{
    GateFailure, GateQuestion, Gates, Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall,
    ModelFailure, Tools,
};
use portcullis::vocabulary::effect::Purpose;
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::input::{GateAnswer, LiveTool, Verdict};
use portcullis::vocabulary::llm::{Error, ToolRequest};
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, ObservationCode, OnIndeterminate, Recovery, ToolError, ToolOutput};

use crate::points::Points;
use crate::wire::{Entry, Reply, Said};

/// A script: the rounds of calls that the model makes before it answers.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    rounds: &'static [&'static [(&'static str, &'static str)]],
    /// Rows in which its runs may end, whatever dies in between, but for the crash budget's.
    pub(crate) rows: &'static [u8],
}

const LOOK: (&str, &str) = ("look", "the pump");
const LOOK_AGAIN: (&str, &str) = ("look", "the valve");

/// Every script.
pub(crate) const SCRIPTS: &[Script] = &[
    // Evidence in parallel, and then once more alone.
    Script { name: "looks", rounds: &[&[LOOK, LOOK_AGAIN], &[("look", "the tank")]], rows: &[1] },
    // One of each recovery mode, side by side.
    Script { name: "effects", rounds: &[&[("pay", "rent"), ("put", "row 1"), ("job", "import"), LOOK]], rows: &[1] },
    // Waves, one after the other.
    Script { name: "waves", rounds: &[&[("pay_alone", "rent"), LOOK, ("put_alone", "row 1"), LOOK_AGAIN]], rows: &[1] },
    // An outcome that stays unknown: told to the model.
    Script { name: "observes", rounds: &[&[("mail", "the owner"), LOOK]], rows: &[1] },
    // An outcome that stays unknown: the end.
    Script { name: "ends", rounds: &[&[LOOK], &[("wipe", "the log")]], rows: &[1, 19] },
    // People: a confirmation; gates before the tool and the release.
    Script { name: "people", rounds: &[&[("order", "a part"), LOOK]], rows: &[1] },
    // A model without room, a tool that is away at first, a bad draft, bad evidence.
    Script { name: "troubles", rounds: &[&[("away", "a ticket")], &[LOOK]], rows: &[1] },
    // A call that waits for ever, once a person has allowed it. Not part of the enumeration.
    Script { name: "hangs", rounds: &[&[("hang", "on")]], rows: &[15] },
];

/// The script of that name.
pub(crate) fn script(name: &str) -> &'static Script {
    SCRIPTS.iter().find(|script| script.name == name).unwrap()
}

/// The spec of a run that follows that script.
pub(crate) fn spec(name: &str) -> Spec {
    let mut spec = Spec::new(name, "scripted");
    spec.deadline_ms = None;
    spec.retry.base_ms = 1;
    spec.retry.overloaded_base_ms = 1;
    spec.retry.delay_ms_max = 1;
    spec.draft.repairs = 1;
    spec
}

/// Every tool.
pub(crate) fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, recovery, on_indeterminate| ToolSpec {
        recovery: Some(recovery),
        on_indeterminate,
        timeout_ms: None,
        ..ToolSpec::new(name)
    };
    let serial = |spec: ToolSpec| ToolSpec { concurrency: Concurrency::Serial, ..spec };
    use OnIndeterminate::{Await, End, Observe};
    vec![
        ToolSpec { timeout_ms: None, ..ToolSpec::evidence("look") },
        tool("pay", Recovery::NeverReplay, Await),
        serial(tool("pay_alone", Recovery::NeverReplay, Await)),
        tool("mail", Recovery::NeverReplay, Observe),
        tool("wipe", Recovery::NeverReplay, End),
        tool("put", Recovery::Idempotent, Await),
        serial(tool("put_alone", Recovery::Idempotent, Await)),
        tool("job", Recovery::DurableRequest, Await),
        ToolSpec { confirm: true, ..tool("order", Recovery::NeverReplay, Await) },
        tool("away", Recovery::NeverReplay, Await),
        ToolSpec { confirm: true, ..tool("hang", Recovery::NeverReplay, Await) },
    ]
}

/// The tool of that name.
pub(crate) fn tool(name: &str) -> ToolSpec {
    tools().into_iter().find(|tool| tool.name == name).unwrap()
}

/// What a tool returns for arguments.
pub(crate) fn output(tool: &str, arguments: &str) -> ToolOutput {
    if tool == "look" {
        let fact = format!("what was seen: {arguments}");
        return ToolOutput::facts(fact.clone(), [Statement::new(fact)]);
    }
    ToolOutput::text(format!("done: {arguments}"))
}

/// All ports in one.
#[derive(Clone)]
pub(crate) struct World(pub(crate) Arc<Points>);

impl Model for World {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        self.0.pass("model.before");
        let answer = answer(&call);
        tokio::task::yield_now().await;
        self.0.pass("model.after");
        answer
    }
}

/// What the model answers.
pub(crate) fn answer(call: &ModelCall) -> Result<ModelAnswer, ModelFailure> {
    let task = call.messages.iter().find_map(|message| match &**message {
        Message::Task { text } => Some(text.as_str()),
        _ => None,
    });
    let script = script(task.unwrap());
    let troubled = script.name == "troubles";
    let draft = |id: &str| {
        let draft = serde_json::json!({"conclusion": {"statement": "All is well."}, "citations": [id]});
        Ok(ModelAnswer::text(draft.to_string()))
    };
    match call.purpose {
        Purpose::DraftRepair => return draft("f9"),
        Purpose::EvidenceRepair => return draft("f1"),
        Purpose::Step => {}
    }
    let (done, again) = progress(&call.messages);
    if !again.is_empty() {
        return Ok(ModelAnswer::calls(again));
    }
    if troubled && done == 1 && call.attempt == 1 {
        return Err(Error::Overloaded { message: "no room".to_owned(), retry_after_ms: None }.into());
    }
    match script.rounds.get(done) {
        Some(calls) => Ok(ModelAnswer::calls(calls.iter().map(|(tool, of)| request(tool, of)))),
        None if troubled => Ok(ModelAnswer::text("this is no draft")),
        None => draft("f1"),
    }
}

/// How many rounds are done, and what of the last one a person found not to have happened: that is asked again.
fn progress(messages: &[Arc<Message>]) -> (usize, Vec<ToolRequest>) {
    let (mut done, mut asked, mut again) = (0, Vec::new(), Vec::new());
    for message in messages {
        match &**message {
            Message::Assistant { calls, .. } if !calls.is_empty() => {
                done += usize::from(!asked.is_empty() && again.is_empty());
                (asked, again) = (calls.clone(), Vec::new());
            }
            Message::Observation(seen) if seen.code == Some(ObservationCode::NotApplied) => {
                again.extend(asked.iter().filter(|call| call.call == seen.call).map(|call| call.request.clone()));
            }
            _ => {}
        }
    }
    (done + usize::from(!asked.is_empty() && again.is_empty()), again)
}

fn request(tool: &str, of: &str) -> ToolRequest {
    let arguments = serde_json::json!({ "of": of }).to_string();
    ToolRequest { name: tool.to_owned(), arguments, provider_id: None }
}

impl Tools for World {
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        self.0.pass("resolve.before");
        let gates = if spec.task == "people" {
            let gate = |id: &str, of, tools| Gate { id: id.to_owned(), of, tools };
            vec![gate("door", GateOf::Tool, vec!["order".to_owned()]), gate("exit", GateOf::Release, Vec::new())]
        } else {
            Vec::new()
        };
        self.0.pass("resolve.after");
        Ok(Environment { tools: tools(), gates, ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = invocation.tool().name.clone();
        self.0.pass("tool.before");
        if tool == "away" && invocation.attempt == 1 {
            return Err(ToolError::UnavailableBeforeDispatch { message: "not there yet".to_owned() });
        }
        let arguments = invocation.arguments().to_text();
        let entry = Entry {
            run: invocation.run.to_string(),
            call: invocation.call.to_string(),
            operation: invocation.operation_id.to_string(),
            attempt: invocation.attempt,
            tool: tool.clone(),
            arguments: arguments.clone(),
        };
        if self.0.line().ask(&Said::Enter(entry)) == Reply::Void {
            return Err(ToolError::UnavailableBeforeDispatch { message: "struck off".to_owned() });
        }
        self.0.pass("tool.done");
        if tool == "hang" {
            std::future::pending::<()>().await;
        }
        // Calls of one wave return in another order than they were entered.
        for _ in 0..arguments.len() % 3 {
            tokio::task::yield_now().await;
        }
        self.0.pass("tool.after");
        Ok(output(&tool, &arguments))
    }

    async fn live(&self) -> Vec<LiveTool> {
        self.0.pass("live");
        let live = |tool: &ToolSpec| LiveTool { name: tool.name.clone(), recovery: tool.recovery_mode() };
        tools().iter().map(live).collect()
    }
}

impl Judge for World {
    async fn judge(&self, _question: JudgeQuestion) -> Result<Judgement, Error> {
        self.0.pass("judge.before");
        tokio::task::yield_now().await;
        self.0.pass("judge.after");
        Ok(Judgement { verdict: Verdict::Supported, usage: None })
    }
}

impl Gates for World {
    async fn ask(&self, _question: GateQuestion) -> Result<GateAnswer, GateFailure> {
        self.0.pass("gate.before");
        tokio::task::yield_now().await;
        self.0.pass("gate.after");
        Ok(GateAnswer::Allow)
    }
}
