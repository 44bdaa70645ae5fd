//! The reports that a state must refuse: malformed, out of phase, for calls that are not there, repeated,
//! early, or too late.

use super::Report;
use super::answers::lapsed;
use crate::engine::{Engine, Request};
use crate::machines::nested::NESTED_MAX;
use crate::testkit::world::World;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::{Effect, GateSubject, TimerKind};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, Ticket, ToolCallId};
use crate::vocabulary::input::{CancelOrigin, Decision, GateAnswer, Input, NestedKind, Reconciliation, Verdict};
use crate::vocabulary::llm::{self, Content, FinishReason, Usage};
use crate::vocabulary::spec::Spec;
use crate::vocabulary::tool::{ToolError, ToolOutput};

const NO_MODEL_CALL: ModelCallId = ModelCallId(9_999);
const NO_JUDGE_CALL: JudgeCallId = JudgeCallId(9_999);
const NO_TOOL_CALL: ToolCallId = ToolCallId { round: 9_999, index: 0 };
const NO_ASK: Ask = Ask(9_999);
const NO_INDEX: u32 = NESTED_MAX - 1;

/// More reports than a state is given as a rule.
const ROOM: usize = 48;

/// Reports that the engine must refuse now, in a fixed order. `last` is the report that led here: it must be
/// refused when it comes again, and when it comes again with another body.
#[must_use]
pub fn foreign(engine: &Engine, world: &World, last: Option<&Report>) -> Vec<Report> {
    let at_ms = engine.decider().clock().map_or(0, |clock| clock.at_ms());
    let outstanding = engine.outstanding();
    let mut reports = Vec::with_capacity(ROOM);
    let mut offer = |input| reports.push(Report { at_ms, input });
    nowhere().for_each(&mut offer);
    neighbours(engine, &outstanding, at_ms).into_iter().for_each(&mut offer);
    malformed(world).for_each(&mut offer);
    let under_way = engine.run_id().is_some();
    if under_way && !engine.run_state().is_terminal() {
        before_the_end(&outstanding).into_iter().for_each(&mut offer);
    } else {
        outside_a_run().for_each(&mut offer);
    }
    if under_way {
        start("another").into_iter().for_each(&mut offer);
    } else {
        offer(early_receipt());
    }
    reports.extend(early_timers(engine, &outstanding, at_ms));
    reports.extend(last.into_iter().flat_map(repetitions));
    reports
}

/// One of each kind, about something that no run here has.
fn nowhere() -> impl Iterator<Item = Input> {
    let (call, attempt) = (NO_MODEL_CALL, 1);
    let error = || llm::Error::Provider { message: "late".to_owned() };
    let nested = NestedCallId { parent: NO_TOOL_CALL, index: 0 };
    [
        answer(call, attempt),
        Input::ModelFailed { call, attempt, error: error(), usage: None },
        Input::BackoffElapsed { call, attempt },
        Input::ToolsDispatched { calls: vec![NO_TOOL_CALL] },
        Input::ToolCompleted { call: NO_TOOL_CALL, attempt, output: ToolOutput::text("late") },
        Input::ToolFailed { call: NO_TOOL_CALL, attempt, error: ToolError::Execution { message: "late".to_owned() } },
        Input::ToolTimedOut { call: NO_TOOL_CALL, attempt },
        nested_call(NO_TOOL_CALL, attempt, nested),
        Input::NestedCompleted { nested, usage: None },
        Input::GateAnswered { ask: NO_ASK, answer: GateAnswer::Allow },
        Input::GateFailed { ask: NO_ASK },
        Input::HookAnswered { ask: NO_ASK, commands: Vec::new(), context: None },
        Input::HookFailed { ask: NO_ASK },
        decision("nobody's"),
        Input::TicketExpired { ticket: Ticket("nobody's".to_owned()) },
        Input::SemanticsJudged {
            call: NO_JUDGE_CALL,
            attempt,
            draft: Digest::ZERO,
            verdict: Verdict::Supported,
            usage: None,
        },
        Input::SemanticsFailed { call: NO_JUDGE_CALL, attempt, draft: Digest::ZERO, error: error() },
        Input::RunRecovered { epoch: 0, tools: Vec::new() },
        Input::ToolReconciled { call: NO_TOOL_CALL, by: "a person".to_owned(), outcome: Reconciliation::NotApplied },
        Input::TailRepaired { ordinal: u64::MAX, bytes: 1, digest: Digest::ZERO },
    ]
    .into_iter()
}

/// The outstanding calls, under an attempt that is not open, and tickets whose time is up.
fn neighbours(engine: &Engine, outstanding: &[Request], at_ms: u64) -> Vec<Input> {
    let mut inputs = Vec::new();
    inputs.extend(lapsed(outstanding, at_ms).iter().map(|ticket| decision(ticket)));
    for effect in outstanding {
        match effect {
            Effect::CallModel { call, attempt, .. } => inputs.push(answer(*call, attempt.saturating_add(1))),
            Effect::InvokeTool { call, attempt, .. } => {
                let attempt = attempt.saturating_add(1);
                inputs.push(Input::ToolCompleted { call: *call, attempt, output: ToolOutput::text("late") });
                inputs.extend(nested_neighbours(engine.next_nested(*call), attempt));
            }
            Effect::JudgeSemantics { call, attempt, .. } => {
                let (call, attempt, draft, verdict) = (*call, *attempt, Digest::ZERO, Verdict::Supported);
                inputs.push(Input::SemanticsJudged { call, attempt, draft, verdict, usage: None });
            }
            Effect::DispatchTools { calls } => {
                let calls = calls.iter().copied().chain([NO_TOOL_CALL]).collect();
                inputs.push(Input::ToolsDispatched { calls });
            }
            // A gate's answer to a plugin's question, and a plugin's to the next one.
            Effect::CallHook { ask, .. } | Effect::PerformAction { ask, .. } => {
                inputs.push(Input::GateAnswered { ask: *ask, answer: GateAnswer::Allow });
                inputs.push(Input::HookFailed { ask: Ask(ask.0.saturating_add(1)) });
            }
            Effect::AskGate { about: GateSubject::Nested { nested }, .. } => {
                inputs.push(Input::NestedCompleted { nested: *nested, usage: None });
            }
            // And a hook's to a gate's.
            Effect::AskGate { ask, about: GateSubject::Tool { .. } | GateSubject::Release { .. }, .. } => {
                inputs.push(Input::HookFailed { ask: *ask });
            }
            Effect::AdmitNested { nested } => {
                let nested = NestedCallId { index: NO_INDEX, ..*nested };
                inputs.push(Input::NestedCompleted { nested, usage: None });
            }
            Effect::ResolveEnvironment
            | Effect::StartTimer { .. }
            | Effect::DenyNested { .. }
            | Effect::AwaitDecision { .. }
            | Effect::ReconcileTool { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => {}
        }
    }
    inputs
}

/// The next nested call of a running tool, asked for by an attempt that is not open, and one that leaves a gap.
fn nested_neighbours(next: NestedCallId, late: u32) -> Vec<Input> {
    let asked = |nested: NestedCallId, attempt| nested_call(nested.parent, attempt, nested);
    let gap = NestedCallId { index: next.index.saturating_add(1), ..next };
    vec![asked(next, late), asked(gap, late.saturating_sub(1))]
}

fn nested_call(parent: ToolCallId, attempt: u32, nested: NestedCallId) -> Input {
    Input::NestedCallRequested { parent, attempt, nested, kind: NestedKind::Model, tool: None, arguments: None }
}

/// Reports that break a limit of the spec.
fn malformed(world: &World) -> impl Iterator<Item = Input> {
    let long = usize::try_from(world.spec.limits.note_bytes_max.saturating_add(1)).unwrap_or(0);
    [
        Input::CancelRequested { by: "x".repeat(long), origin: CancelOrigin::Caller },
        Input::DeadlineElapsed { displaced: Some(Box::new(Input::DeadlineElapsed { displaced: None })) },
        nested_call(NO_TOOL_CALL, 1, NestedCallId { parent: NO_TOOL_CALL, index: NESTED_MAX }),
        nested_call(NO_TOOL_CALL, 1, NestedCallId { parent: ToolCallId { index: 1, ..NO_TOOL_CALL }, index: 0 }),
    ]
    .into_iter()
    .chain(start(""))
}

/// A run's beginning with that nonce; without one it is malformed.
fn start(nonce: &str) -> Option<Input> {
    let spec = Box::new(Spec::new("another", "model"));
    let (nonce, wall_time) = (nonce.to_owned(), String::new());
    Some(Input::RunStarted { run_id: "another".parse().ok()?, spec, nonce, wall_time, forked_from: None })
}

/// What any run may get at any time, and no run before its beginning or after its end.
fn outside_a_run() -> impl Iterator<Item = Input> {
    [
        Input::CancelRequested { by: "a person".to_owned(), origin: CancelOrigin::Caller },
        Input::ExecutionCrashed { origin: "driver".to_owned() },
        Input::DeadlineElapsed { displaced: None },
        Input::EnvironmentResolved { environment: Box::default() },
        Input::ResolutionFailed { error: ResolutionError::DependencyCycle { plugins: Vec::new() } },
    ]
    .into_iter()
}

fn before_the_end(outstanding: &[Request]) -> Vec<Input> {
    let mut inputs = vec![early_receipt()];
    let waits = |effect: &Request| matches!(effect, Effect::ResolveEnvironment);
    if !outstanding.iter().any(waits) {
        inputs.push(Input::EnvironmentResolved { environment: Box::new(Environment::default()) });
        inputs.push(Input::ResolutionFailed { error: ResolutionError::DependencyCycle { plugins: Vec::new() } });
    }
    inputs
}

fn early_receipt() -> Input {
    Input::ReleaseDelivered { receipt: "early".to_owned() }
}

/// Every armed timer, and the deadline, a millisecond too soon.
fn early_timers(engine: &Engine, outstanding: &[Request], at_ms: u64) -> Vec<Report> {
    let mut timers: Vec<(u64, Input)> = Vec::new();
    for effect in outstanding {
        if let Effect::StartTimer { kind, of, due_ms } = effect {
            timers.extend(kind.report(of).map(|input| (*due_ms, input)));
        }
    }
    let deadline_ms = engine.decider().clock().and_then(|clock| clock.deadline_ms());
    if let (Some(due_ms), false) = (deadline_ms, engine.run_state().is_terminal()) {
        timers.extend(TimerKind::Deadline.report("run").map(|input| (due_ms, input)));
    }
    let early = |(due_ms, input): (u64, Input)| {
        let soon = due_ms.checked_sub(1).filter(|soon| *soon >= at_ms)?;
        let late = deadline_ms.is_some_and(|deadline| soon >= deadline);
        (!late).then_some(Report { at_ms: soon, input })
    };
    timers.into_iter().filter_map(early).collect()
}

/// The same report again, and the same with another body; none for reports that may come again.
fn repetitions(last: &Report) -> Vec<Report> {
    let other = match &last.input {
        Input::ModelResponded { call, attempt, .. } => Some(answer(*call, *attempt)),
        Input::ToolCompleted { call, attempt, .. } => {
            Some(Input::ToolCompleted { call: *call, attempt: *attempt, output: ToolOutput::text("another") })
        }
        Input::DecisionGiven { ticket, .. } => Some(decision(&ticket.0)),
        Input::ReleaseDelivered { .. } => Some(Input::ReleaseDelivered { receipt: "another".to_owned() }),
        Input::HookAnswered { ask, .. } => {
            let context = Some("another".to_owned());
            Some(Input::HookAnswered { ask: *ask, commands: Vec::new(), context })
        }
        Input::NestedCallRequested { parent, attempt, nested, .. } => {
            Some(nested_call(*parent, attempt.saturating_add(1), *nested))
        }
        Input::NestedCompleted { nested, usage } => {
            let usage = if usage.is_some() { None } else { Some(Usage::default()) };
            Some(Input::NestedCompleted { nested: *nested, usage })
        }
        Input::CancelRequested { .. } | Input::ExecutionCrashed { .. } | Input::DeadlineElapsed { .. } => None,
        Input::RunStarted { .. }
        | Input::EnvironmentResolved { .. }
        | Input::ResolutionFailed { .. }
        | Input::ModelFailed { .. }
        | Input::BackoffElapsed { .. }
        | Input::ToolsDispatched { .. }
        | Input::ToolFailed { .. }
        | Input::ToolTimedOut { .. }
        | Input::GateAnswered { .. }
        | Input::GateFailed { .. }
        | Input::HookFailed { .. }
        | Input::TicketExpired { .. }
        | Input::SemanticsJudged { .. }
        | Input::SemanticsFailed { .. }
        | Input::RunRecovered { .. }
        | Input::ToolReconciled { .. }
        | Input::TailRepaired { .. } => None,
    };
    let at_ms = last.at_ms;
    std::iter::once(last.input.clone()).chain(other).map(|input| Report { at_ms, input }).collect()
}

fn answer(call: ModelCallId, attempt: u32) -> Input {
    let content = Content { text: Some("late".to_owned()), ..Content::default() };
    Input::ModelResponded { call, attempt, content, finish: FinishReason::Stop, usage: Usage::default() }
}

fn decision(ticket: &str) -> Input {
    let ticket = Ticket(ticket.to_owned());
    Input::DecisionGiven { ticket, by: "somebody else".to_owned(), decision: Decision::Allow }
}
