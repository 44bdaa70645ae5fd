//! After a crash: what was outstanding is asked for again, and nothing is entered twice that must not be
//! (SPEC 7, "After a crash").

use super::core::{Core, drive};
use super::outbox::Outbox;
use super::table::Cause;
use crate::machines::batch::call::{self, Event as CallEvent};
use crate::machines::batch::{Closing, Remark, after_success};
use crate::machines::inference::{self, Inference};
use crate::machines::release::{self, Releasing};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::{LiveTool, Reconciliation};
use crate::vocabulary::signal::Signal;
use crate::vocabulary::tool::{ObservationCode, OnIndeterminate, Recovery};

/// Recoveries in a row that find work under way and see no report: the one after these ends the run.
pub(crate) const CRASHES_MAX: u32 = 5;

impl Core {
    /// A driver took the run over.
    pub(crate) fn recovered(&mut self, epoch: u64, live: &[LiveTool], out: &mut Outbox) {
        self.recoveries.epoch = epoch;
        if self.run.is_terminal() {
            return out.effects.extend(self.release_effect());
        }
        if self.work_outstanding() {
            self.recoveries.crashes = self.recoveries.crashes.saturating_add(1);
        }
        if self.recoveries.crashes > CRASHES_MAX {
            return self.end(Cause::Indeterminate, out);
        }
        self.restart_attempts(out);
        if self.recover_calls(live, out) {
            return self.end(Cause::Indeterminate, out);
        }
        out.effects.extend(self.deadline_effect());
        out.effects.extend(self.outstanding());
        self.settle_batch(out);
    }

    /// Whether anything but a person's answer is outstanding.
    fn work_outstanding(&self) -> bool {
        self.outstanding().iter().any(|effect| match effect {
            Effect::AwaitDecision { .. } | Effect::ReconcileTool { .. } => false,
            Effect::StartTimer { kind, .. } => *kind != crate::vocabulary::effect::TimerKind::TicketExpiry,
            Effect::ResolveEnvironment
            | Effect::CallModel { .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::DispatchTools { .. }
            | Effect::InvokeTool { .. }
            | Effect::AdmitNested { .. }
            | Effect::DenyNested { .. }
            | Effect::JudgeSemantics { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => true,
        })
    }

    /// A model or judge attempt in flight is lost: the next one is not charged to the retry policy. What the
    /// lost one used is unknown.
    fn restart_attempts(&mut self, out: &mut Outbox) {
        if matches!(self.inference, inference::State::InFlight { .. }) {
            drive::<Inference>(&mut self.inference, &inference::Event::Interrupted, out);
            self.ledger.usage_unknown = self.ledger.usage_unknown.saturating_add(1);
            self.ledger.model_attempts = self.ledger.model_attempts.saturating_add(1);
        }
        if matches!(self.release, release::State::Judging { .. }) {
            drive::<Releasing>(&mut self.release, &release::Event::Interrupted, out);
            self.ledger.usage_unknown = self.ledger.usage_unknown.saturating_add(1);
        }
    }

    /// Calls that were entered follow their recovery mode. True when one of them ends the run.
    fn recover_calls(&mut self, live: &[LiveTool], out: &mut Outbox) -> bool {
        let executing: Vec<(ToolCallId, u32)> = self
            .tools
            .batch
            .iter()
            .flat_map(|batch| &batch.calls)
            .filter_map(|call| match call.phase {
                call::State::Executing { attempt, .. } => Some((call.id, attempt)),
                call::State::Requested
                | call::State::Asking { .. }
                | call::State::Ticketed { .. }
                | call::State::Ready
                | call::State::Indeterminate
                | call::State::Completed
                | call::State::Failed { .. } => None,
            })
            .collect();
        let mut ends = false;
        for (id, attempt) in executing {
            let Some(plan) = self.plan_of(id) else {
                continue;
            };
            let mode = plan.tool.spec.recovery_mode();
            let declared = live.iter().any(|tool| *tool.name == *plan.tool.name && tool.recovery == mode);
            if mode != Recovery::NeverReplay && declared && attempt < plan.tool.spec.attempts_max {
                let due_ms = plan.tool.spec.timeout_ms.map(|timeout| self.clock.at_ms().saturating_add(timeout));
                self.ledger.tool_attempts = self.ledger.tool_attempts.saturating_add(1);
                let event = CallEvent::Dispatched { attempt: attempt.saturating_add(1), due_ms };
                self.move_call(id, &event, out);
                continue;
            }
            match plan.tool.spec.on_indeterminate {
                OnIndeterminate::Observe => self.lose_call(id, out),
                on_indeterminate @ (OnIndeterminate::Await | OnIndeterminate::End) => {
                    self.tools.unknowns.note(plan.digest);
                    self.move_call(id, &CallEvent::Interrupted, out);
                    out.note(Signal::CallIndeterminate { call: id });
                    ends |= on_indeterminate == OnIndeterminate::End;
                }
            }
        }
        ends
    }

    /// The batch may have come to a halt or to its end while it was recovered.
    fn settle_batch(&mut self, out: &mut Outbox) {
        use crate::machines::batch::Waits;
        let waits = self.tools.batch.as_ref().map(crate::machines::batch::Batch::waits);
        match waits {
            Some(Waits::Person | Waits::Dispatch | Waits::Nothing) => self.advance_batch(out),
            Some(Waits::Gates | Waits::Tools) | None => {}
        }
    }

    /// A person found out what an interrupted call did.
    pub(crate) fn reconciled(&mut self, id: ToolCallId, outcome: &Reconciliation, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        match outcome {
            Reconciliation::Applied { output } => {
                self.tools.unknowns.settle(&plan.digest);
                let closing = after_success(&plan, &self.spec().limits, output);
                self.close_call(id, closing, out);
            }
            Reconciliation::NotApplied => {
                self.tools.unknowns.settle(&plan.digest);
                self.close_call(id, Closing::coded(ObservationCode::NotApplied, Remark::default()), out);
            }
            Reconciliation::Unknown => {
                let remark = Remark { effect: Some("unknown"), ..Remark::default() };
                self.close_call(id, Closing::coded(ObservationCode::OutcomeUnknown, remark), out);
            }
        }
        self.advance_batch(out);
    }
}
