//! What may be told of a run while it goes on: committed facts, never text that was not released (SPEC 3.U4).

use std::sync::Arc;

use crate::engine::{Ending, Engine, Step};
use crate::machines::release::Progress;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::{OperationId, RunId, Ticket, ToolCallId};
use crate::vocabulary::message::Message;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::tool::ObservationCode;

/// A committed fact of a run: its record is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The run began.
    Started {
        /// The run.
        run: RunId,
    },
    /// What it is doing now.
    Progress(Progress),
    /// The model called a tool.
    ToolCalled {
        /// The call.
        call: ToolCallId,
        /// The tool; `None` when there is none of that name, for then the name is the model's own text.
        tool: Option<Arc<str>>,
    },
    /// A call got its closing observation.
    ToolResult {
        /// The call.
        call: ToolCallId,
        /// Why it is not an ordinary success.
        code: Option<ObservationCode>,
    },
    /// A person is asked.
    Awaiting(Question),
    /// The run failed.
    Failed(Failure),
    /// The run has ended, and its release is there to be taken.
    Finished(Ending),
    /// So many events were forgotten: their reader was too slow for a very long run.
    Missed {
        /// How many.
        count: u64,
    },
}

/// What a person is asked. It names the call; what the model wrote in it is in the history, which is
/// privileged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// May this call run? Answered by [`RunHandle::decide`](super::RunHandle::decide).
    Decision {
        /// Names the question.
        ticket: Ticket,
        /// The call.
        call: ToolCallId,
        /// The tool.
        tool: Option<Arc<str>>,
    },
    /// What did this interrupted call do? Answered by [`RunHandle::reconcile`](super::RunHandle::reconcile).
    Reconciliation {
        /// The call.
        call: ToolCallId,
        /// Its idempotency key, to be looked up on the other side.
        operation_id: OperationId,
        /// The tool.
        tool: Option<Arc<str>>,
    },
}

/// The events of one step. `progress` is what was told last, and is kept up to date.
pub(super) fn events(engine: &Engine, step: &Step, progress: &mut Option<Progress>) -> Vec<Event> {
    let mut events = Vec::new();
    if step.seq == 0 {
        events.extend(engine.run_id().map(|run| Event::Started { run: run.clone() }));
    }
    let calls = step.messages.iter().flat_map(|message| match &**message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        Message::Instructions { .. }
        | Message::Prior { .. }
        | Message::Task { .. }
        | Message::Imported { .. }
        | Message::Context { .. }
        | Message::Observation(_)
        | Message::Notice { .. } => &[],
    });
    events.extend(calls.map(|call| {
        let tool = engine.tool(&call.request.name).map(|tool| Arc::clone(&tool.name));
        Event::ToolCalled { call: call.call, tool }
    }));
    for signal in &step.signals {
        if let Signal::CallClosed { call, code } = signal {
            events.push(Event::ToolResult { call: *call, code: *code });
        }
    }
    let now = engine.progress();
    if engine.ending().is_none() && progress.replace(now) != Some(now) {
        events.push(Event::Progress(now));
    }
    events.extend(step.effects.iter().filter_map(|effect| question(engine, effect)).map(Event::Awaiting));
    if let Some(ending) = engine.ending().filter(|_| ends(step)) {
        events.extend(ending.failure.clone().map(Event::Failed));
        events.push(Event::Finished(ending.clone()));
    }
    events
}

/// Whether the run has ended with this step.
pub(super) fn ends(step: &Step) -> bool {
    step.signals.iter().any(|signal| matches!(signal, Signal::RunEnded { .. }))
}

/// What a person is asked by this effect, if it asks a person.
pub(crate) fn question<R>(engine: &Engine, effect: &Effect<R>) -> Option<Question> {
    let tool = |call| engine.plan(call).map(|plan| Arc::clone(&plan.tool.name));
    match effect {
        Effect::AwaitDecision { ticket, call } => {
            Some(Question::Decision { ticket: ticket.clone(), call: *call, tool: tool(*call) })
        }
        Effect::ReconcileTool { call, operation_id } => {
            Some(Question::Reconciliation { call: *call, operation_id: operation_id.clone(), tool: tool(*call) })
        }
        Effect::ResolveEnvironment
        | Effect::CallModel { .. }
        | Effect::StartTimer { .. }
        | Effect::AskGate { .. }
        | Effect::CallHook { .. }
        | Effect::PerformAction { .. }
        | Effect::DispatchTools { .. }
        | Effect::InvokeTool { .. }
        | Effect::AdmitNested { .. }
        | Effect::DenyNested { .. }
        | Effect::JudgeSemantics { .. }
        | Effect::AbortInFlight
        | Effect::Publish { .. } => None,
    }
}
