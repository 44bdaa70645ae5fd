//! Invocations: waves that are entered, and how they end (SPEC 7.9, results).

use crate::engine::core::Core;
use crate::engine::outbox::Outbox;
use crate::machines::batch::call::Event;
use crate::machines::batch::{Plan, after_failure, after_success, is_held};
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::tool::{ObservationCode, ToolError, ToolOutput};

impl Core {
    /// The dispatch of a wave is durable: its calls are entered.
    pub(crate) fn tools_dispatched(&mut self, out: &mut Outbox) {
        let wave = self.tools.batch.as_mut().map(|batch| std::mem::take(&mut batch.announced)).unwrap_or_default();
        for id in wave {
            self.enter(id, 1, out);
        }
    }

    /// Enters a call, for the first time or again. What an earlier attempt had asked for is over with it.
    pub(crate) fn enter(&mut self, id: ToolCallId, attempt: u32, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        self.close_nested(id, out);
        let due_ms = plan.tool.spec.timeout_ms.map(|timeout| self.clock.at_ms().saturating_add(timeout));
        self.ledger.tool_attempts = self.ledger.tool_attempts.saturating_add(1);
        self.move_call(id, &Event::Dispatched { attempt, due_ms }, out);
        self.request_of_call(id, out);
    }

    /// An invocation returned.
    pub(crate) fn tool_completed(&mut self, id: ToolCallId, output: &ToolOutput, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        let closing = after_success(&plan, &self.spec().limits, output);
        self.close_call(id, closing, out);
        self.advance_batch(out);
    }

    /// An invocation failed. The proof that nothing happened lets it be tried again, whatever its mode, unless
    /// the effect of its twin has become unknown meanwhile (SPEC 7.6).
    pub(crate) fn tool_failed(&mut self, id: ToolCallId, attempt: u32, error: &ToolError, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        let nothing_happened = matches!(error, ToolError::UnavailableBeforeDispatch { .. });
        let known = self.call_of(id).and_then(|call| call.cleared);
        let held = is_held(&plan, &self.tools.unknowns, known);
        if nothing_happened && !held && attempt < plan.tool.spec.attempts_max {
            return self.enter(id, attempt.saturating_add(1), out);
        }
        let lost = self.call_of(id).is_some_and(|call| call.attempt_lost);
        let code = match (nothing_happened, lost) {
            (true, false) => ObservationCode::ToolUnavailable,
            // The proof covers the attempts that gave it, not the one that a crash took.
            (true, true) => ObservationCode::OutcomeUnknown,
            (false, _) => ObservationCode::ToolExecutionError,
        };
        self.fail_call(id, &plan, code, Some(error), out);
    }

    /// An invocation took too long.
    pub(crate) fn tool_timed_out(&mut self, id: ToolCallId, out: &mut Outbox) {
        if let Some(plan) = self.plan_of(id) {
            self.fail_call(id, &plan, ObservationCode::ToolTimeout, None, out);
        }
    }

    fn fail_call(
        &mut self,
        id: ToolCallId,
        plan: &Plan,
        code: ObservationCode,
        error: Option<&ToolError>,
        out: &mut Outbox,
    ) {
        if code != ObservationCode::ToolUnavailable {
            self.tools.unknowns.note(plan.digest);
        }
        let closing = after_failure(plan, &self.spec().limits, code, error);
        self.close_call(id, closing, out);
        self.advance_batch(out);
    }
}
