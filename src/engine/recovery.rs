//! After a crash: what was outstanding is asked for again, and nothing is entered twice that must not be
//! (SPEC 7, "After a crash").

use super::core::{Core, drive};
use super::outbox::Outbox;
use super::outstanding::Detail;
use super::table::Cause;
use crate::machines::batch::call::{self, Event as CallEvent};
use crate::machines::batch::{Call, Closing, Remark, after_success};
use crate::machines::inference::{self, Inference};
use crate::machines::release::{self, Releasing};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::{LiveTool, Reconciliation};
use crate::vocabulary::tool::{ObservationCode, OnIndeterminate, Recovery};

/// Recoveries in a row that find work under way and see no report: the one after these ends the run.
pub(crate) const CRASHES_MAX: u32 = 5;

impl Core {
    /// A driver took the run over.
    pub(crate) fn recovered(&mut self, epoch: u64, live: &[LiveTool], out: &mut Outbox) {
        self.recoveries.epoch = epoch;
        if self.run.is_terminal() {
            return out.effects.extend(self.outstanding());
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
        self.waits(Detail::Kind).iter().any(|effect| match effect {
            Effect::AwaitDecision { .. } | Effect::ReconcileTool { .. } => false,
            Effect::StartTimer { kind, .. } => *kind != crate::vocabulary::effect::TimerKind::TicketExpiry,
            Effect::ResolveEnvironment
            | Effect::CallModel { .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::PerformAction { .. }
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

    /// Calls that were entered follow their recovery mode. True when one of them ends the run: then the others
    /// are left to the end, which closes them all.
    fn recover_calls(&mut self, live: &[LiveTool], out: &mut Outbox) -> bool {
        let calls = self.tools.batch.iter().flat_map(|batch| &batch.calls);
        let fates: Vec<(ToolCallId, Fate)> = calls.filter_map(|call| Some((call.id, fate(call, live)?))).collect();
        if fates.iter().any(|(_, fate)| *fate == Fate::Lost(OnIndeterminate::End)) {
            return true;
        }
        for (id, fate) in fates {
            match fate {
                Fate::Again { attempt } => self.enter_again(id, attempt, out),
                Fate::Lost(OnIndeterminate::Observe) => self.lose_call(id, out),
                Fate::Lost(OnIndeterminate::Await | OnIndeterminate::End) => self.interrupt_call(id, out),
            }
        }
        false
    }

    /// Enters a call once more; its effect is asked for with everything that is outstanding.
    fn enter_again(&mut self, id: ToolCallId, attempt: u32, out: &mut Outbox) {
        self.close_nested(id, out);
        let timeout_ms = self.plan_of(id).and_then(|plan| plan.tool.spec.timeout_ms);
        let due_ms = timeout_ms.map(|timeout| self.clock.at_ms().saturating_add(timeout));
        self.ledger.tool_attempts = self.ledger.tool_attempts.saturating_add(1);
        self.move_call(id, &CallEvent::Dispatched { attempt, due_ms }, out);
        if let Some(call) = self.call_of_mut(id) {
            call.attempt_lost = true;
        }
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

/// What a crash makes of a call that was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It may run again.
    Again {
        /// The next attempt.
        attempt: u32,
    },
    /// Nobody knows what it did.
    Lost(OnIndeterminate),
}

/// `None` for a call that was not entered, or that is closed. It runs again only if its mode allows that, every
/// live declaration of the tool still says so, and attempts are left.
fn fate(call: &Call, live: &[LiveTool]) -> Option<Fate> {
    let call::State::Executing { attempt, .. } = call.phase else { return None };
    let tool = &call.plan.as_ref()?.tool;
    let mode = tool.spec.recovery_mode();
    let mut declared = live.iter().filter(|declared| *declared.name == *tool.name).peekable();
    let still_declared = declared.peek().is_some() && declared.all(|declared| declared.recovery == mode);
    let again = mode != Recovery::NeverReplay && still_declared && attempt < tool.spec.attempts_max;
    Some(if again {
        Fate::Again { attempt: attempt.saturating_add(1) }
    } else {
        Fate::Lost(tool.spec.on_indeterminate)
    })
}
