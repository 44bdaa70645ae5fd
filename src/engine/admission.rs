//! Whether an input is accepted: decided completely before anything changes (SPEC 4, refusals).

use super::core::Core;
use super::form;
use crate::machines::batch::{Waits, call};
use crate::machines::{inference, nested, release, run};
use crate::vocabulary::ids::{Ask, ModelCallId, NestedCallId, Ticket, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::RefusalKind;

use RefusalKind::{NotDue, Stale, Terminal, Unexpected};

/// Why an input is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Objection {
    pub(crate) kind: RefusalKind,
    pub(crate) machine: &'static str,
    pub(crate) reason: Option<String>,
}

pub(crate) type Admission = Result<(), Objection>;

fn object(kind: RefusalKind, machine: &'static str) -> Admission {
    Err(Objection { kind, machine, reason: None })
}

/// Accepts, or objects with the kind.
fn require(holds: bool, kind: RefusalKind, machine: &'static str) -> Admission {
    if holds { Ok(()) } else { object(kind, machine) }
}

impl Core {
    /// Whether `input` is accepted at `at_ms`.
    pub(crate) fn admit(&self, at_ms: u64, input: &Input) -> Admission {
        form::check(&self.spec().limits, input)?;
        if self.run.is_terminal() {
            return self.admit_after_end(input);
        }
        match input {
            Input::RunStarted { .. } => object(RefusalKind::AlreadyStarted, "run"),
            Input::EnvironmentResolved { .. } | Input::ResolutionFailed { .. } => {
                require(self.run == run::State::Resolving, Unexpected, "run")
            }
            Input::ModelResponded { call, attempt, .. } | Input::ModelFailed { call, attempt, .. } => {
                self.admit_model_report(*call, *attempt)
            }
            Input::BackoffElapsed { call, attempt } => self.admit_backoff(at_ms, *call, *attempt),
            Input::ToolsDispatched { calls } => self.admit_dispatch(calls),
            Input::ToolCompleted { call, attempt, .. } | Input::ToolFailed { call, attempt, .. } => {
                self.admit_tool_report(*call, *attempt).map(|_| ())
            }
            Input::ToolTimedOut { call, attempt } => match self.admit_tool_report(*call, *attempt)? {
                Some(due_ms) => require(at_ms >= due_ms, NotDue, "tool_call"),
                None => object(Unexpected, "tool_call"),
            },
            Input::GateAnswered { ask, .. } | Input::GateFailed { ask } => self.admit_gate(*ask),
            Input::DecisionGiven { ticket, .. } => match self.admit_ticket(ticket)? {
                Some(until_ms) => require(at_ms < until_ms, Stale, "tool_call"),
                None => Ok(()),
            },
            Input::TicketExpired { ticket } => match self.admit_ticket(ticket)? {
                Some(until_ms) => require(at_ms >= until_ms, NotDue, "tool_call"),
                None => object(Unexpected, "tool_call"),
            },
            Input::SemanticsJudged { call, attempt, draft, .. }
            | Input::SemanticsFailed { call, attempt, draft, .. } => match &self.release {
                release::State::Judging { call: asked, attempt: open, evidenced } => {
                    let fits = call == asked && attempt == open && *draft == evidenced.digest();
                    require(fits, Stale, "release")
                }
                release::State::Waiting
                | release::State::RepairingDraft { .. }
                | release::State::RepairingEvidence { .. }
                | release::State::Verified { .. }
                | release::State::Gating { .. }
                | release::State::Decided { .. }
                | release::State::Delivered { .. } => object(Unexpected, "release"),
            },
            Input::CancelRequested { .. } | Input::ExecutionCrashed { .. } => Ok(()),
            Input::DeadlineElapsed { .. } => match self.clock.deadline_ms() {
                Some(deadline_ms) => require(at_ms >= deadline_ms, NotDue, "run"),
                None => object(Unexpected, "run"),
            },
            Input::RunRecovered { epoch, .. } => require(*epoch > self.recoveries.epoch, Stale, "run"),
            Input::ToolReconciled { call, .. } => self.admit_reconciliation(*call),
            Input::ReleaseDelivered { .. } => object(Unexpected, "release"),
            Input::TailRepaired { ordinal, .. } => require(*ordinal == self.seq, Stale, "run"),
            Input::HookAnswered { ask, .. } | Input::HookFailed { ask } => match self.hook_ask() {
                Some(open) => require(open == *ask, Stale, "consultation"),
                None => object(Unexpected, "consultation"),
            },
            Input::NestedCallRequested { parent, attempt, nested, .. } => {
                self.admit_tool_report(*parent, *attempt)?;
                require(nested.index == self.tools.nested.requested(*parent), Stale, "nested_call")
            }
            Input::NestedCompleted { nested, .. } => self.admit_nested_completion(*nested),
        }
    }

    /// A run that has ended accepts three inputs, and none of them changes its ending.
    fn admit_after_end(&self, input: &Input) -> Admission {
        let undelivered = matches!(self.release, release::State::Decided { .. });
        match input {
            Input::ReleaseDelivered { .. } => require(undelivered, Terminal, "release"),
            Input::RunRecovered { epoch, .. } => {
                require(undelivered, Terminal, "run")?;
                require(*epoch > self.recoveries.epoch, Stale, "run")
            }
            Input::TailRepaired { ordinal, .. } => require(*ordinal == self.seq, Stale, "run"),
            Input::RunStarted { .. } => object(RefusalKind::AlreadyStarted, "run"),
            Input::EnvironmentResolved { .. }
            | Input::ResolutionFailed { .. }
            | Input::ModelResponded { .. }
            | Input::ModelFailed { .. }
            | Input::BackoffElapsed { .. }
            | Input::ToolsDispatched { .. }
            | Input::ToolCompleted { .. }
            | Input::ToolFailed { .. }
            | Input::ToolTimedOut { .. }
            | Input::NestedCallRequested { .. }
            | Input::NestedCompleted { .. }
            | Input::GateAnswered { .. }
            | Input::GateFailed { .. }
            | Input::HookAnswered { .. }
            | Input::HookFailed { .. }
            | Input::DecisionGiven { .. }
            | Input::TicketExpired { .. }
            | Input::SemanticsJudged { .. }
            | Input::SemanticsFailed { .. }
            | Input::CancelRequested { .. }
            | Input::DeadlineElapsed { .. }
            | Input::ExecutionCrashed { .. }
            | Input::ToolReconciled { .. } => object(Terminal, "run"),
        }
    }

    fn admit_model_report(&self, call: ModelCallId, attempt: u32) -> Admission {
        match &self.inference {
            inference::State::InFlight { request } => {
                require(request.call == call && request.attempt == attempt, Stale, "inference")
            }
            inference::State::Idle | inference::State::BackingOff { .. } => object(Unexpected, "inference"),
        }
    }

    fn admit_backoff(&self, at_ms: u64, call: ModelCallId, attempt: u32) -> Admission {
        match &self.inference {
            inference::State::BackingOff { request, until_ms } => {
                require(request.call == call && request.attempt == attempt, Stale, "inference")?;
                require(at_ms >= *until_ms, NotDue, "inference")
            }
            inference::State::Idle | inference::State::InFlight { .. } => object(Unexpected, "inference"),
        }
    }

    fn admit_dispatch(&self, calls: &[ToolCallId]) -> Admission {
        match &self.tools.batch {
            Some(batch) if !batch.announced.is_empty() => require(batch.announced == calls, Stale, "tool_batch"),
            Some(_) | None => object(Unexpected, "tool_batch"),
        }
    }

    /// A report of an invocation must fit a call that is executing; its due time comes back.
    fn admit_tool_report(&self, id: ToolCallId, attempt: u32) -> Result<Option<u64>, Objection> {
        let stale = Objection { kind: Stale, machine: "tool_call", reason: None };
        let Some(batch) = &self.tools.batch else {
            return Err(Objection { kind: Unexpected, machine: "tool_batch", reason: None });
        };
        match batch.call(id).map(|call| &call.phase) {
            Some(call::State::Executing { attempt: open, due_ms }) if *open == attempt => Ok(*due_ms),
            Some(
                call::State::Executing { .. }
                | call::State::Requested
                | call::State::Asking { .. }
                | call::State::Ticketed { .. }
                | call::State::Ready
                | call::State::Indeterminate
                | call::State::Completed
                | call::State::Failed { .. },
            )
            | None => Err(stale),
        }
    }

    /// A nested call completes once it is admitted. One that is over, or that nobody asked for, fits nothing.
    fn admit_nested_completion(&self, id: NestedCallId) -> Admission {
        match self.tools.nested.get(id).map(|open| &open.phase) {
            Some(nested::State::Admitted) => Ok(()),
            Some(nested::State::Requested | nested::State::Asking { .. }) => object(Unexpected, "nested_call"),
            Some(
                nested::State::Completed | nested::State::Denied { .. } | nested::State::Dropped | nested::State::Lost,
            )
            | None => object(Stale, "nested_call"),
        }
    }

    fn admit_gate(&self, ask: Ask) -> Admission {
        let in_batch = self.tools.batch.as_ref().is_some_and(|batch| batch.asking(ask).is_some());
        if in_batch || self.tools.nested.asking(ask).is_some() || self.release_ask() == Some(ask) {
            return Ok(());
        }
        let batch_asks = self.tools.batch.as_ref().is_some_and(|batch| batch.waits() == Waits::Gates);
        let asked = batch_asks || self.tools.nested.any_asks();
        object(if asked || self.release_ask().is_some() { Stale } else { Unexpected }, "gate")
    }

    /// The ticket must be open; its expiry comes back.
    fn admit_ticket(&self, ticket: &Ticket) -> Result<Option<u64>, Objection> {
        let kind = |kind| Objection { kind, machine: "tool_call", reason: None };
        let Some(batch) = &self.tools.batch else {
            return Err(kind(Unexpected));
        };
        let mut any = false;
        for call in &batch.calls {
            if let call::State::Ticketed { ticket: open, until_ms } = &call.phase {
                any = true;
                if open == ticket {
                    return Ok(*until_ms);
                }
            }
        }
        Err(kind(if any { Stale } else { Unexpected }))
    }

    fn admit_reconciliation(&self, id: ToolCallId) -> Admission {
        let Some(batch) = &self.tools.batch else {
            return object(Unexpected, "tool_batch");
        };
        let open =
            |call: &crate::machines::batch::Call| !call.is_closed() && matches!(call.phase, call::State::Indeterminate);
        if batch.call(id).is_some_and(open) {
            return Ok(());
        }
        object(if batch.calls.iter().any(open) { Stale } else { Unexpected }, "tool_batch")
    }
}
