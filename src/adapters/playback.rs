//! A recorded turn, taken through the engine at once: its replies are the model, its results the tools.
//!
//! No runtime, no store, no clock: a reply comes a second after the request, results a tenth of a second after
//! their dispatch. Where the recording holds no answer, the playback stops and says what was asked.

use std::collections::{BTreeMap, VecDeque};

use super::recording::{arguments_and_finish, output};
use super::transcripts::{Claim, Turn};
use crate::engine::{Engine, Request, Step};
use crate::vocabulary::effect::{Effect, Purpose};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::ids::{ModelCallId, RunId, ToolCallId};
use crate::vocabulary::input::{CancelOrigin, Input};
use crate::vocabulary::llm;
use crate::vocabulary::message::Message;
use crate::vocabulary::refusal::Refusal;
use crate::vocabulary::spec::Spec;
use crate::vocabulary::tool::ToolError;

/// How long a model takes, in milliseconds.
const MODEL_MS: u64 = 1_000;
/// How long a tool takes, in milliseconds.
const TOOL_MS: u64 = 100;

/// Where a playback came to.
#[derive(Debug)]
pub struct Played {
    /// The engine as it was left.
    pub engine: Engine,
    /// The first question that the recording does not answer; `None` when the run has ended.
    pub unanswered: Option<Request>,
}

/// Reads an answer before it is given: what the engine should see in its place.
pub type Reading<'r> = &'r dyn Fn(&str, &Engine) -> String;

/// Takes a turn through the engine. `reading` sees every text that is no commentary; `each` sees every step.
///
/// # Errors
/// When no run begins with this spec.
pub fn play(
    run: &RunId,
    spec: Spec,
    turn: &Turn,
    reading: Reading<'_>,
    mut each: impl FnMut(&Step, &Engine),
) -> Result<Played, Refusal> {
    let environment = Environment { tools: spec.tools.clone(), ..Environment::default() };
    let start = Input::RunStarted {
        run_id: run.clone(),
        spec: Box::new(spec),
        nonce: run.to_string(),
        wall_time: "1970-01-01T00:00:00Z".to_owned(),
        forked_from: None,
    };
    let mut engine = Engine::new();
    let mut step = engine.step(0, start)?;
    let mut world = World { turn, environment, reading, given: 0, calls: BTreeMap::new(), due: VecDeque::new() };
    let mut unanswered = None;
    loop {
        each(&step, &engine);
        world.learn(&step);
        for effect in &step.effects {
            if !world.perform(step.at_ms, effect, &engine) {
                unanswered.get_or_insert_with(|| effect.clone());
            }
        }
        // A report that comes too late for an ended run is refused, as it would be there.
        let next =
            std::iter::from_fn(|| world.due.pop_front()).find_map(|(at_ms, input)| engine.step(at_ms, input).ok());
        match next {
            Some(next) => step = next,
            None => break,
        }
    }
    let unanswered = unanswered.filter(|_| engine.ending().is_none());
    Ok(Played { engine, unanswered })
}

/// The recording, as the world that answers.
struct World<'a> {
    turn: &'a Turn,
    environment: Environment,
    reading: Reading<'a>,
    /// How many replies were given.
    given: usize,
    /// Which recorded call a call of the run is: the reply, and the place in it.
    calls: BTreeMap<ToolCallId, (usize, usize)>,
    /// Reports to come, in order.
    due: VecDeque<(u64, Input)>,
}

impl World<'_> {
    /// Remembers which calls the last reply made.
    fn learn(&mut self, step: &Step) {
        let Some(reply) = self.given.checked_sub(1) else { return };
        for message in &step.messages {
            if let Message::Assistant { calls, .. } = &**message {
                self.calls.extend(calls.iter().enumerate().map(|(place, call)| (call.call, (reply, place))));
            }
        }
    }

    /// Lines up what comes of an effect; false when the recording does not say.
    fn perform(&mut self, at_ms: u64, effect: &Request, engine: &Engine) -> bool {
        let (at_ms, input) = match effect {
            Effect::ResolveEnvironment => {
                let environment = Box::new(std::mem::take(&mut self.environment));
                (at_ms, Input::EnvironmentResolved { environment })
            }
            Effect::CallModel { call, attempt, purpose: Purpose::Step, .. } => {
                match self.next_reply(*call, *attempt, engine) {
                    Some(input) => (at_ms.saturating_add(MODEL_MS), input),
                    None => return false,
                }
            }
            Effect::DispatchTools { calls } => (at_ms, Input::ToolsDispatched { calls: calls.clone() }),
            Effect::InvokeTool { call, attempt, .. } => match self.result(*call, *attempt) {
                Some(input) => (at_ms.saturating_add(TOOL_MS), input),
                None => return false,
            },
            Effect::StartTimer { kind, of, due_ms } => {
                use crate::vocabulary::effect::TimerKind;
                match kind {
                    TimerKind::Backoff => match kind.report(of) {
                        Some(input) => (*due_ms, input),
                        None => return false,
                    },
                    // Nothing takes longer here than it may.
                    TimerKind::Deadline | TimerKind::ToolTimeout | TimerKind::TicketExpiry => return true,
                }
            }
            Effect::Publish { key, .. } => (at_ms, Input::ReleaseDelivered { receipt: key.hex().as_str().to_owned() }),
            Effect::AbortInFlight | Effect::DenyNested { .. } => return true,
            Effect::CallModel { purpose: Purpose::DraftRepair | Purpose::EvidenceRepair, .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::PerformAction { .. }
            | Effect::AdmitNested { .. }
            | Effect::AwaitDecision { .. }
            | Effect::ReconcileTool { .. }
            | Effect::JudgeSemantics { .. } => return false,
        };
        self.due.push_back((at_ms, input));
        true
    }

    /// The next reply, or what the recording says that came in its place.
    fn next_reply(&mut self, call: ModelCallId, attempt: u32, engine: &Engine) -> Option<Input> {
        let Some(reply) = self.turn.replies.get(self.given) else {
            return match &self.turn.claim {
                Claim::ModelFailed { error } => {
                    Some(Input::ModelFailed { call, attempt, error: error.clone(), usage: None })
                }
                Claim::Cancelled => {
                    Some(Input::CancelRequested { by: "recording".to_owned(), origin: CancelOrigin::Caller })
                }
                Claim::Unsaid | Claim::Success | Claim::LimitReached { .. } | Claim::Failed { .. } => None,
            };
        };
        self.given += 1;
        let (calls, finish) = arguments_and_finish(reply);
        let text =
            reply.text.as_ref().map(|text| if calls.is_empty() { (self.reading)(text, engine) } else { text.clone() });
        let content = llm::Content { text, calls, opaque: None };
        Some(Input::ModelResponded { call, attempt, content, finish, usage: reply.usage })
    }

    /// What a call gave back. A call without a recorded result has failed when the loop went on without it.
    fn result(&self, call: ToolCallId, attempt: u32) -> Option<Input> {
        let (reply, place) = *self.calls.get(&call)?;
        let recorded = self.turn.replies.get(reply)?.calls.get(place)?;
        match &recorded.result {
            Some(result) => Some(Input::ToolCompleted { call, attempt, output: output(result) }),
            None if reply + 1 < self.turn.replies.len() => {
                let error = ToolError::Execution { message: "no result was recorded".to_owned() };
                Some(Input::ToolFailed { call, attempt, error })
            }
            None => None,
        }
    }
}
