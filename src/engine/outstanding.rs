//! What a run waits for, derived from its state: recovery asks for it again, refusals name it, and no run
//! is ever without it (SPEC 7, 13.I11).

use super::core::Core;
use super::outbox::Request;
use crate::machines::batch::Call;
use crate::machines::batch::call;
use crate::machines::{release, run};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::{Effect, GateSubject, TimerKind};
use crate::vocabulary::ids::{OperationId, ToolCallId};

/// How much of an effect is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All of it.
    Whole,
    /// Which it is and what it is about. Operation ids and digests of requests are left blank: each costs a hash,
    /// and a refusal names only what would be accepted.
    Kind,
}

impl Core {
    /// Every effect that has not been answered.
    pub(crate) fn outstanding(&self) -> Vec<Request> {
        self.waits(Detail::Whole)
    }

    /// The same, in as much detail as is wanted.
    pub(crate) fn waits(&self, detail: Detail) -> Vec<Request> {
        let mut effects = self.asks(detail);
        if self.offers() {
            effects.extend(self.release_effect());
        }
        effects
    }

    /// Whether the release waits for its receipt.
    const fn offers(&self) -> bool {
        matches!(self.release, release::State::Decided { .. })
    }

    /// The same without a release on offer, which is a copy of all its text.
    fn asks(&self, detail: Detail) -> Vec<Request> {
        let mut effects = Vec::new();
        if self.run == run::State::Resolving {
            effects.push(Effect::ResolveEnvironment);
        }
        effects.extend(self.inference_effect(detail));
        if let Some(batch) = &self.tools.batch {
            if !batch.announced.is_empty() {
                effects.push(Effect::DispatchTools { calls: batch.announced.clone() });
            }
            for call in &batch.calls {
                effects.extend(self.call_effects(call, detail));
                effects.extend(self.nested_effects(call.id));
            }
        }
        if !self.run.is_terminal() || self.offers() {
            effects.extend(self.consultation_effects());
        }
        if !self.offers() {
            effects.extend(self.release_effect());
        }
        effects
    }

    /// The deadline's timer, while it runs.
    pub(crate) fn deadline_effect(&self) -> Option<Request> {
        let due_ms = self.clock.deadline_ms()?;
        Some(Effect::StartTimer { kind: TimerKind::Deadline, of: "run".to_owned(), due_ms })
    }

    /// What one call has outstanding.
    pub(crate) fn call_effects(&self, call: &Call, detail: Detail) -> Vec<Request> {
        if call.is_closed() {
            return Vec::new();
        }
        let timer = |kind, of, due: &Option<u64>| due.map(|due_ms| Effect::StartTimer { kind, of, due_ms });
        match &call.phase {
            call::State::Asking { ask, gate } => {
                let gate = call.plan.as_ref().map(|plan| plan.tool.gate(*gate)).unwrap_or_default();
                vec![Effect::AskGate { ask: *ask, gate, about: GateSubject::Tool { call: call.id } }]
            }
            call::State::Ticketed { ticket, until_ms } => {
                let ask = Effect::AwaitDecision { ticket: ticket.clone(), call: call.id };
                let expiry = timer(TimerKind::TicketExpiry, ticket.0.clone(), until_ms);
                std::iter::once(ask).chain(expiry).collect()
            }
            call::State::Executing { attempt, due_ms } => {
                let operation_id = self.operation_id(call.id, detail);
                let enter = Effect::InvokeTool { call: call.id, attempt: *attempt, operation_id };
                let timeout = timer(TimerKind::ToolTimeout, format!("{}/{attempt}", call.id), due_ms);
                std::iter::once(enter).chain(timeout).collect()
            }
            call::State::Indeterminate => {
                vec![Effect::ReconcileTool { call: call.id, operation_id: self.operation_id(call.id, detail) }]
            }
            call::State::Requested | call::State::Ready | call::State::Completed | call::State::Failed { .. } => {
                Vec::new()
            }
        }
    }

    /// Derived from run, call and nothing that a crash changes (SPEC 7).
    fn operation_id(&self, call: ToolCallId, detail: Detail) -> OperationId {
        if detail == Detail::Kind {
            return OperationId(String::new());
        }
        let call = call.to_string();
        let digest = Digest::of("portcullis.operation.1", &[self.charter.run.as_str().as_bytes(), call.as_bytes()]);
        OperationId(digest.hex().as_str().get(..32).unwrap_or_default().to_owned())
    }

    /// The types of input that would be accepted now.
    pub(crate) fn expected(&self) -> Vec<&'static str> {
        // Each refusal names them: room for the most that a state expects spares it three copies.
        let mut expected = Vec::with_capacity(16);
        for effect in self.asks(Detail::Kind) {
            expected.extend(effect.answers());
        }
        if self.may_ask_nested() {
            expected.push("nested_call_requested");
        }
        if !self.run.is_terminal() {
            if self.clock.deadline_ms().is_some() {
                expected.push("deadline_elapsed");
            }
            expected.extend(["cancel_requested", "execution_crashed", "run_recovered"]);
        }
        if self.offers() {
            expected.extend(["release_delivered", "run_recovered"]);
        }
        expected.push("tail_repaired");
        expected.dedup();
        expected
    }
}
