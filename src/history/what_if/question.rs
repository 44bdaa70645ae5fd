//! Which question a report answers, and which one an effect asks: how a recorded answer finds the same
//! question in another run.

use crate::engine::Request;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, Ticket, ToolCallId};
use crate::vocabulary::input::Input;

/// A question to the world, by its ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    Resolution,
    Model(ModelCallId, u32),
    Plugin(Ask),
    Wave(Vec<ToolCallId>),
    Tool(ToolCallId, u32),
    Nested(NestedCallId),
    Decision(Ticket),
    Reconciliation(ToolCallId),
    Judge(JudgeCallId, u32),
    Publication,
}

/// Where a report comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// It begins the run.
    Start,
    /// It answers a question, or comes from what the question began.
    Answer(Question),
    /// A timer fired.
    Timer,
    /// Somebody outside, whom nobody asked.
    Outside,
}

/// The question that an effect asks; `None` for timers and for effects that nothing answers.
pub(super) fn asked(effect: &Request) -> Option<Question> {
    Some(match effect {
        Effect::ResolveEnvironment => Question::Resolution,
        Effect::CallModel { call, attempt, .. } => Question::Model(*call, *attempt),
        Effect::CallHook { point: HookPoint::RunEnd, .. } => return None,
        Effect::AskGate { ask, .. } | Effect::CallHook { ask, .. } | Effect::PerformAction { ask, .. } => {
            Question::Plugin(*ask)
        }
        Effect::DispatchTools { calls } => Question::Wave(calls.clone()),
        Effect::InvokeTool { call, attempt, .. } => Question::Tool(*call, *attempt),
        Effect::AdmitNested { nested } => Question::Nested(*nested),
        Effect::AwaitDecision { ticket, .. } => Question::Decision(ticket.clone()),
        Effect::ReconcileTool { call, .. } => Question::Reconciliation(*call),
        Effect::JudgeSemantics { call, attempt, .. } => Question::Judge(*call, *attempt),
        Effect::Publish { .. } => Question::Publication,
        Effect::StartTimer { .. } | Effect::DenyNested { .. } | Effect::AbortInFlight => return None,
    })
}

/// The question that a report answers.
pub(super) fn answered(input: &Input) -> Report {
    Report::Answer(match input {
        Input::RunStarted { .. } => return Report::Start,
        Input::EnvironmentResolved { .. } | Input::ResolutionFailed { .. } => Question::Resolution,
        Input::ModelResponded { call, attempt, .. } | Input::ModelFailed { call, attempt, .. } => {
            Question::Model(*call, *attempt)
        }
        Input::ToolsDispatched { calls } => Question::Wave(calls.clone()),
        Input::ToolCompleted { call, attempt, .. } | Input::ToolFailed { call, attempt, .. } => {
            Question::Tool(*call, *attempt)
        }
        // The running tool asks; it is part of what entering it came to.
        Input::NestedCallRequested { parent, attempt, .. } => Question::Tool(*parent, *attempt),
        Input::NestedCompleted { nested, .. } => Question::Nested(*nested),
        Input::GateAnswered { ask, .. }
        | Input::GateFailed { ask }
        | Input::HookAnswered { ask, .. }
        | Input::HookFailed { ask } => Question::Plugin(*ask),
        Input::DecisionGiven { ticket, .. } => Question::Decision(ticket.clone()),
        Input::ToolReconciled { call, .. } => Question::Reconciliation(*call),
        Input::SemanticsJudged { call, attempt, .. } | Input::SemanticsFailed { call, attempt, .. } => {
            Question::Judge(*call, *attempt)
        }
        Input::ReleaseDelivered { .. } => Question::Publication,
        Input::BackoffElapsed { .. } | Input::ToolTimedOut { .. } | Input::TicketExpired { .. } => {
            return Report::Timer;
        }
        Input::DeadlineElapsed { displaced } => match displaced {
            Some(report) => return answered(report),
            None => return Report::Timer,
        },
        Input::CancelRequested { .. }
        | Input::ExecutionCrashed { .. }
        | Input::RunRecovered { .. }
        | Input::TailRepaired { .. } => return Report::Outside,
    })
}

/// When a timer fires, and what it reports.
pub(super) fn timer(effect: &Request) -> Option<(u64, Input)> {
    let Effect::StartTimer { kind, of, due_ms } = effect else { return None };
    Some((*due_ms, kind.report(of)?))
}
