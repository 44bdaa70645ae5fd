//! The end of a run: the batch is closed and published, the row chosen, the release offered (SPEC 3).

use std::sync::Arc;

use super::core::{Core, drive, offer};
use super::outbox::{Outbox, Raised};
use super::outstanding::Detail;
use super::table::{self, Cause};
use crate::machines::batch::call::{self, Event as CallEvent};
use crate::machines::batch::{Closing, Remark};
use crate::machines::collection::{self, Collection};
use crate::machines::consultation;
use crate::machines::inference::{self, Inference};
use crate::machines::release::{self, Releasing};
use crate::machines::run::Run;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::outcome::RunStatus;
use crate::vocabulary::signal::{BudgetLimit, Signal};
use crate::vocabulary::tool::ObservationCode;

impl Core {
    /// Ends the run. The first end wins: a run that has ended stays as it is.
    pub(crate) fn end(&mut self, cause: Cause, out: &mut Outbox) {
        if self.run.is_terminal() {
            return;
        }
        let in_flight = cause.interrupts() && self.has_work_in_flight();
        // Before the batch is closed: what that gives back would clear the mark that the cause has met.
        let cause = self.weigh(cause, out);
        if let consultation::State::Asking { open } = self.consultation.clone() {
            self.drop_held(&open.then, out);
        }
        self.close_batch(out);
        if matches!(cause, Cause::Budget) {
            // A collection that has stopped keeps its reason.
            offer::<Collection>(&mut self.collection, &collection::Event::BudgetExhausted, out);
        }
        // An idle model has nothing to drop.
        offer::<Inference>(&mut self.inference, &inference::Event::Dropped, out);
        let resolved = self.tools.toolbox.is_some();
        let stop_reason = if resolved { self.collection.stop_reason() } else { None };
        let verdict = table::decide(&self.charter.run, cause, stop_reason, &self.facts);
        self.clock.resume();
        self.context.clear();
        // What the last round staged takes effect only if the run came to its own end.
        if verdict.ending.run_state == RunStatus::Success {
            self.commit_state(out);
        } else {
            self.roll_back_state(out);
        }
        drive::<Run>(&mut self.run, &verdict.event, out);
        let decided = release::Event::Decided(verdict.ending.outcome, verdict.release.key());
        drive::<Releasing>(&mut self.release, &decided, out);
        out.note(Signal::ReleaseDecided { row: verdict.ending.row, outcome: verdict.ending.outcome });
        out.note(Signal::RunEnded { state: verdict.ending.run_state });
        self.ending = Some((verdict.ending, Arc::new(verdict.release)));
        if in_flight {
            out.request(Effect::AbortInFlight);
        }
        self.tell_end(out);
        out.effects.extend(self.release_effect());
    }

    /// An internal failure in a run whose budget is marked is a budget stop (SPEC 3, precedence).
    fn weigh(&self, cause: Cause, out: &mut Outbox) -> Cause {
        if self.ledger.marked && matches!(&cause, Cause::Failed(Failure::Internal)) {
            out.note(Signal::BudgetExhausted { limit: BudgetLimit::ToolCalls });
            return Cause::Budget;
        }
        cause
    }

    /// Closes what is open of the batch and publishes it: what was entered is indeterminate, the rest was
    /// not dispatched. No call stays without its observation.
    fn close_batch(&mut self, out: &mut Outbox) {
        let Some(batch) = &mut self.tools.batch else {
            return;
        };
        batch.announced.clear();
        let open: Vec<ToolCallId> = batch.calls.iter().filter(|call| !call.is_closed()).map(|call| call.id).collect();
        for id in open {
            let phase = self.call_of(id).map(|call| call.phase.clone());
            match phase {
                Some(call::State::Executing { .. }) => self.lose_call(id, out),
                Some(call::State::Indeterminate) => self.leave_unknown(id, out),
                Some(
                    call::State::Requested
                    | call::State::Asking { .. }
                    | call::State::Ticketed { .. }
                    | call::State::Ready
                    | call::State::Completed
                    | call::State::Failed { .. },
                )
                | None => {
                    self.close_call(id, Closing::coded(ObservationCode::NotDispatched, Remark::default()), out);
                }
            }
        }
        self.publish_batch(out);
    }

    /// A call that was entered and whose end nobody will see here.
    pub(crate) fn lose_call(&mut self, id: ToolCallId, out: &mut Outbox) {
        self.interrupt_call(id, out);
        self.leave_unknown(id, out);
    }

    /// It is not known what the call did: from now on a repetition needs a person (SPEC 7.6).
    pub(crate) fn interrupt_call(&mut self, id: ToolCallId, out: &mut Outbox) {
        self.close_nested(id, out);
        if let Some(plan) = self.plan_of(id) {
            self.tools.unknowns.note(plan.digest);
        }
        self.move_call(id, &CallEvent::Interrupted, out);
        out.note(Signal::CallIndeterminate { call: id });
    }

    /// The model and the transcript are told that the outcome is unknown; the call stays indeterminate.
    pub(crate) fn leave_unknown(&mut self, id: ToolCallId, out: &mut Outbox) {
        let remark = Remark { effect: Some("unknown"), ..Remark::default() };
        if let Some(call) = self.call_of_mut(id) {
            call.closing = Some(Closing::coded(ObservationCode::OutcomeUnknown, remark).into());
            out.note(Signal::CallClosed { call: id, code: Some(ObservationCode::OutcomeUnknown) });
        }
    }

    /// Whether a model, a tool, a gate or a judge is at work.
    fn has_work_in_flight(&self) -> bool {
        self.waits(Detail::Kind).iter().any(|effect| match effect {
            Effect::ResolveEnvironment
            | Effect::CallModel { .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::PerformAction { .. }
            | Effect::DispatchTools { .. }
            | Effect::InvokeTool { .. }
            | Effect::AdmitNested { .. }
            | Effect::JudgeSemantics { .. } => true,
            Effect::StartTimer { .. }
            | Effect::DenyNested { .. }
            | Effect::AwaitDecision { .. }
            | Effect::ReconcileTool { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => false,
        })
    }

    /// Acts on a failure beyond recovery.
    pub(crate) fn failed(&mut self, failure: Failure, out: &mut Outbox) {
        self.end(Cause::Failed(failure), out);
    }

    /// Hands a raised signal to the machine that acts on it (SPEC 4, 9).
    pub(crate) fn route(&mut self, raised: Raised, out: &mut Outbox) {
        if self.run.is_terminal() {
            return;
        }
        match raised {
            Raised::EnvironmentFixed(_) | Raised::BatchClosed { .. } => self.open_round(out),
            Raised::BatchOpened { .. } => self.advance_batch(out),
            Raised::BudgetExhausted(_) => self.end(Cause::Budget, out),
            Raised::ViolationLimitReached => self.end(Cause::ViolationLimit, out),
            Raised::CollectionStopped => self.end(Cause::CollectionStopped, out),
            Raised::DraftCompleted(candidate) => self.guard_evidence(candidate, out),
            Raised::DraftConcludesNothing(_, cited) => self.end(Cause::NoConclusion(cited), out),
            Raised::DraftInvalid(bad, purpose) => self.draft_invalid(bad, purpose, out),
            Raised::RepairFailed(_, reason) => self.repair_failed(reason, out),
            Raised::ExecutionFailed(failure) => self.failed(failure, out),
            Raised::EvidenceHeld(evidenced) => self.judge(evidenced, out),
            Raised::EvidenceViolated(kind) => self.evidence_violated(kind, out),
            Raised::SemanticsHeld(verified) => self.verified(verified, out),
            Raised::SemanticsRefused(evidenced, kind) => self.end(Cause::SemanticsRefused(evidenced, kind), out),
            Raised::ReleaseBlocked(gate) => self.end(Cause::Blocked(gate), out),
        }
    }
}
