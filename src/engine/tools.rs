//! Tool batches: triage, gates and people, waves, results (SPEC 7).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::core::{Core, drive};
use super::outbox::{Outbox, Raised};
use crate::machines::batch::call::{self, Event};
use crate::machines::batch::{
    Batch, Call, Closing, Confirm, Plan, Remark, Triage, TriagedCall, Verdict, Waits, after_failure, after_success,
    is_held, plan_edited, shorter,
};
use crate::machines::collection::{self, Collection};
use crate::machines::run::{self, Run};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::{Effect, ToolOffer};
use crate::vocabulary::environment::GateOf;
use crate::vocabulary::ids::{Ask, Ticket, ToolCallId};
use crate::vocabulary::input::{Decision, GateAnswer};
use crate::vocabulary::llm::{FinishReason, ToolRequest};
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Assessment;
use crate::vocabulary::tool::{ObservationCode, ToolError, ToolOutput};

impl Core {
    /// Triage of a response, in model order, all before any dispatch. If one call ends the loop, none is
    /// dispatched or charged (SPEC 3, precedence).
    pub(crate) fn triage(
        &mut self,
        requests: &[ToolRequest],
        finish: FinishReason,
        tools: ToolOffer,
        out: &mut Outbox,
    ) {
        let (Some(toolbox), spec) = (self.tools.toolbox.clone(), Arc::clone(&self.charter.spec)) else {
            return;
        };
        let required = spec.collection.assessment == Assessment::Required;
        let triage = Triage {
            spec: &spec,
            toolbox: &toolbox,
            finish,
            tools,
            stop_delivered: matches!(self.collection, collection::State::StopDelivered { .. }),
            assessment_due: required && self.collection.assessment_due(),
            scopes: &self.tools.scopes,
        };
        let mut calls = triage.read(requests);
        if calls.iter().any(|call| matches!(call.verdict, Verdict::CollectionStopped)) {
            drive::<Collection>(&mut self.collection, &collection::Event::EvidenceAsked, out);
            self.open_batch(undispatched(calls), out);
            return out.raise(Raised::CollectionStopped);
        }
        if required && !keeps_protocol(&mut self.collection, spec.collection.violation_limit, &calls, out) {
            self.open_batch(undispatched(calls), out);
            return out.raise(Raised::ViolationLimitReached);
        }
        if triage.admit(&mut calls, &mut self.ledger).is_some() {
            out.note(Signal::BudgetMarked);
        }
        let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.open_batch(calls, out);
        out.raise(Raised::BatchOpened { round: self.tools.rounds, calls: count });
    }

    /// Closes every call of a response as not dispatched (SPEC 10, answers to repairs).
    pub(crate) fn refuse_calls(&mut self, requests: &[ToolRequest], out: &mut Outbox) {
        let calls = requests.iter().map(|_| not_dispatched()).collect();
        self.open_batch(calls, out);
        self.publish_batch(out);
    }

    /// Opens the batch: closed calls get their observation, admitted ones meet gates and people.
    fn open_batch(&mut self, triaged: Vec<TriagedCall>, out: &mut Outbox) {
        let round = self.tools.rounds;
        let mut calls = Vec::with_capacity(triaged.len());
        let mut admitted = Vec::new();
        for (TriagedCall { plan, verdict }, index) in triaged.into_iter().zip(0..) {
            let id = ToolCallId { round, index };
            let mut call =
                Call { id, phase: call::State::Requested, plan, confirm: None, cleared: None, closing: None };
            match verdict {
                Verdict::Closed(code, remark) => close(&mut call, Closing::coded(code, remark), out),
                Verdict::Admitted | Verdict::CollectionStopped => admitted.push(id),
            }
            calls.push(call);
        }
        self.tools.batch = Some(Batch { round, calls, announced: Vec::new() });
        for id in admitted {
            self.ask_gate_or_person(id, 0, out);
        }
    }

    /// The call's next question: the gate in that place, else a person where one must confirm, else none.
    fn ask_gate_or_person(&mut self, id: ToolCallId, gate: usize, out: &mut Outbox) {
        let ask = Ask(self.asks.saturating_add(1));
        let Some(plan) = self.plan_of(id) else { return };
        let (wanted, decided) = self.call_of(id).map_or((None, None), |call| (call.confirm, call.cleared));
        if plan.tool.gates.get(gate).is_some() {
            self.asks = ask.0;
            let gate = u32::try_from(gate).unwrap_or(u32::MAX);
            self.move_call(id, &Event::GateAsked { ask, gate }, out);
        } else if decided.is_none()
            && (wanted.is_some() || plan.tool.spec.confirm || is_held(&plan, &self.tools.unknowns, None))
        {
            let expires = shorter(wanted.and_then(|confirm| confirm.expires_ms), plan.tool.spec.confirm_expires_ms);
            return self.ask_person(id, &plan, expires, out);
        } else {
            return self.move_call(id, &Event::Admitted, out);
        }
        self.request_of_call(id, out);
    }

    fn ask_person(&mut self, id: ToolCallId, plan: &Plan, expires_ms: Option<u64>, out: &mut Outbox) {
        let ordinal = self.next_ask();
        let ticket = ticket(self.charter.run.as_str(), id, plan, ordinal);
        let until_ms = expires_ms.map(|delay| self.clock.at_ms().saturating_add(delay));
        self.move_call(id, &Event::DecisionAsked { ticket, until_ms }, out);
        self.request_of_call(id, out);
    }

    /// A gate answered about a tool call.
    pub(crate) fn tool_gate_answered(&mut self, id: ToolCallId, answer: &GateAnswer, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        let Some(call::State::Asking { gate, .. }) = self.call_of(id).map(|call| call.phase.clone()) else {
            return;
        };
        match answer {
            GateAnswer::Allow => self.ask_gate_or_person(id, gate as usize + 1, out),
            GateAnswer::Confirm { expires_ms } => {
                self.want_confirmation(id, *expires_ms);
                self.ask_gate_or_person(id, gate as usize + 1, out);
            }
            GateAnswer::Block { reason } => {
                let name = plan.tool.gates.get(gate as usize).cloned().unwrap_or_default();
                out.note(Signal::GateBlocked { gate: name, of: GateOf::Tool });
                let remark = Remark { note: reason.clone(), ..Remark::default() };
                self.close_call(id, Closing::coded(ObservationCode::Blocked, remark), out);
            }
            GateAnswer::SetResult { content } => {
                self.close_call(id, Closing::set_by_gate(content.clone()), out);
            }
        }
        self.advance_batch(out);
    }

    /// A gate wants a person to confirm the call. They are asked after the last gate, so that this one lets
    /// nothing past the others; a decision that was given already is their confirmation.
    fn want_confirmation(&mut self, id: ToolCallId, expires_ms: Option<u64>) {
        if let Some(call) = self.tools.batch.as_mut().and_then(|batch| batch.call_mut(id)) {
            let wanted = call.confirm.map_or(Confirm { expires_ms }, |confirm| confirm.and(expires_ms));
            call.confirm = Some(wanted);
        }
    }

    /// A gate before a tool call failed: it blocks.
    pub(crate) fn tool_gate_failed(&mut self, id: ToolCallId, out: &mut Outbox) {
        let reason = Some("the gate failed".to_owned());
        self.tool_gate_answered(id, &GateAnswer::Block { reason }, out);
    }

    /// The call that asks this question.
    pub(crate) fn asking(&self, ask: Ask) -> Option<ToolCallId> {
        self.tools.batch.as_ref().and_then(|batch| batch.asking(ask)).map(|call| call.id)
    }

    /// The call that waits for this ticket.
    pub(crate) fn ticketed(&self, ticket: &Ticket) -> Option<ToolCallId> {
        self.tools.batch.as_ref().and_then(|batch| batch.ticketed(ticket)).map(|call| call.id)
    }

    /// A person decided on a tool call.
    pub(crate) fn decided(&mut self, id: ToolCallId, decision: &Decision, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        match decision {
            Decision::Allow => {
                self.clear(id, &plan.digest);
                self.move_call(id, &Event::Admitted, out);
            }
            Decision::AllowWith { arguments } => {
                let others = self.open_scopes(id);
                match plan_edited(self.spec(), &plan.tool, arguments.clone(), &self.tools.scopes, &others) {
                    Ok(edited) => {
                        self.clear(id, &edited.digest);
                        if let Some(call) = self.tools.batch.as_mut().and_then(|batch| batch.call_mut(id)) {
                            call.plan = Some(Arc::new(edited));
                        }
                        self.ask_gate_or_person(id, 0, out);
                    }
                    Err((code, remark)) => self.close_call(id, Closing::coded(code, remark), out),
                }
            }
            Decision::Deny { note } => {
                let remark = Remark { note: note.clone(), ..Remark::default() };
                self.close_call(id, Closing::coded(ObservationCode::Denied, remark), out);
            }
        }
        self.advance_batch(out);
    }

    /// Nobody decided in time.
    pub(crate) fn decision_expired(&mut self, id: ToolCallId, out: &mut Outbox) {
        self.close_call(id, Closing::coded(ObservationCode::DecisionExpired, Remark::default()), out);
        self.advance_batch(out);
    }

    /// A person allowed the call, knowing the effects that are unknown now.
    fn clear(&mut self, id: ToolCallId, plan: &Digest) {
        let known = self.tools.unknowns.of(plan);
        if let Some(call) = self.tools.batch.as_mut().and_then(|batch| batch.call_mut(id)) {
            call.cleared = Some(known);
        }
    }

    /// What the batch's other open evidence calls look at.
    fn open_scopes(&self, id: ToolCallId) -> BTreeSet<Digest> {
        let calls = self.tools.batch.iter().flat_map(|batch| &batch.calls);
        let open = calls.filter(|call| call.id != id && !call.is_closed());
        open.filter_map(|call| call.plan.as_ref()).map(|plan| plan.scope).collect()
    }

    /// Moves the batch on: the next question, the next wave, or its end.
    pub(crate) fn advance_batch(&mut self, out: &mut Outbox) {
        self.hold_unknown(out);
        let Some(batch) = &mut self.tools.batch else {
            return;
        };
        let round = batch.round;
        let event = match batch.waits() {
            Waits::Gates => run::Event::GateConsulted,
            Waits::Person => run::Event::PersonAwaited(round),
            Waits::Tools => run::Event::ToolsCalled(round),
            Waits::Dispatch => {
                batch.announced = batch.next_wave();
                out.request(Effect::DispatchTools { calls: batch.announced.clone() });
                run::Event::ToolsCalled(round)
            }
            Waits::Nothing => {
                self.publish_batch(out);
                return out.raise(Raised::BatchClosed { round });
            }
        };
        let awaiting = matches!(event, run::Event::PersonAwaited(_));
        drive::<Run>(&mut self.run, &event, out);
        if awaiting && self.spec().deadline_pauses_while_awaiting {
            self.clock.pause();
        } else if self.clock.resume() {
            out.effects.extend(self.deadline_effect());
        }
    }

    /// Before each wave: a call that repeats one whose effect became unknown needs a person (SPEC 7.6).
    fn hold_unknown(&mut self, out: &mut Outbox) {
        let Some(batch) = self.tools.batch.as_ref().filter(|batch| batch.waits() == Waits::Dispatch) else {
            return;
        };
        let held = |call: &&Call| {
            let plan = call.plan.as_ref();
            matches!(call.phase, call::State::Ready)
                && plan.is_some_and(|plan| is_held(plan, &self.tools.unknowns, call.cleared))
        };
        let held: Vec<ToolCallId> = batch.calls.iter().filter(held).map(|call| call.id).collect();
        for id in held {
            if let Some(plan) = self.plan_of(id) {
                let wanted = self.call_of(id).and_then(|call| call.confirm).and_then(|confirm| confirm.expires_ms);
                self.ask_person(id, &plan, shorter(wanted, plan.tool.spec.confirm_expires_ms), out);
            }
        }
    }

    /// The dispatch of a wave is durable: its calls are entered.
    pub(crate) fn tools_dispatched(&mut self, out: &mut Outbox) {
        let wave = self.tools.batch.as_mut().map(|batch| std::mem::take(&mut batch.announced)).unwrap_or_default();
        for id in wave {
            self.enter(id, 1, out);
        }
    }

    /// Enters a call, for the first time or again.
    pub(crate) fn enter(&mut self, id: ToolCallId, attempt: u32, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
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
        let code =
            if nothing_happened { ObservationCode::ToolUnavailable } else { ObservationCode::ToolExecutionError };
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

    /// Closes a call; one that was never entered gives its reservation back.
    pub(crate) fn close_call(&mut self, id: ToolCallId, closing: Closing, out: &mut Outbox) {
        let Some(call) = self.tools.batch.as_mut().and_then(|batch| batch.call_mut(id)) else {
            return;
        };
        let reserved = call.phase.is_reserved();
        close(call, closing, out);
        let tool = call.plan.as_ref().map(|plan| Arc::clone(&plan.tool.name));
        if let Some(tool) = tool.filter(|_| reserved)
            && self.ledger.give_back(&self.charter.spec.budgets, &tool)
        {
            out.note(Signal::BudgetUnmarked);
        }
    }

    pub(crate) fn move_call(&mut self, id: ToolCallId, event: &Event, out: &mut Outbox) {
        if let Some(call) = self.tools.batch.as_mut().and_then(|batch| batch.call_mut(id)) {
            drive::<call::Call>(&mut call.phase, event, out);
        }
    }

    pub(crate) fn call_of(&self, id: ToolCallId) -> Option<&Call> {
        self.tools.batch.as_ref().and_then(|batch| batch.call(id))
    }

    pub(crate) fn plan_of(&self, id: ToolCallId) -> Option<Arc<Plan>> {
        self.call_of(id).and_then(|call| call.plan.clone())
    }

    /// Requests what the call has outstanding now.
    pub(crate) fn request_of_call(&mut self, id: ToolCallId, out: &mut Outbox) {
        if let Some(call) = self.call_of(id) {
            out.effects.extend(self.call_effects(call));
        }
    }
}

/// Moves a call to its end and stages its observation.
pub(crate) fn close(call: &mut Call, closing: Closing, out: &mut Outbox) {
    let event = closing.code.map_or(Event::Completed, Event::Rejected);
    drive::<call::Call>(&mut call.phase, &event, out);
    out.note(Signal::CallClosed { call: call.id, code: closing.code });
    call.closing = Some(closing.into());
}

fn not_dispatched() -> TriagedCall {
    TriagedCall { plan: None, verdict: Verdict::Closed(ObservationCode::NotDispatched, Remark::default()) }
}

/// The loop ends with this response: calls that triage closed keep their code, the others are not dispatched.
fn undispatched(calls: Vec<TriagedCall>) -> Vec<TriagedCall> {
    let closed = |call: TriagedCall| match call.verdict {
        Verdict::Closed(..) => call,
        Verdict::Admitted | Verdict::CollectionStopped => not_dispatched(),
    };
    calls.into_iter().map(closed).collect()
}

/// Counts at most one violation for the response; false when too many in a row end the loop (SPEC 7.4).
fn keeps_protocol(collection: &mut collection::State, limit: u32, calls: &[TriagedCall], out: &mut Outbox) -> bool {
    let broken = |call: &TriagedCall| matches!(call.verdict, Verdict::Closed(ObservationCode::ProtocolViolation, _));
    let evidence = |call: &TriagedCall| {
        matches!(call.verdict, Verdict::Admitted) && call.plan.as_ref().is_some_and(|plan| plan.tool.spec.evidence)
    };
    if calls.iter().any(broken) {
        let before = collection.progress().map_or(0, |progress| progress.violations);
        drive::<Collection>(collection, &collection::Event::ProtocolBroken { limit }, out);
        out.note(Signal::ProtocolViolated { in_a_row: before.saturating_add(1) });
    } else if calls.iter().any(evidence) {
        drive::<Collection>(collection, &collection::Event::ProtocolKept, out);
    }
    !matches!(collection, collection::State::Stopped { .. })
}

/// Bound to run, call and exact arguments; the ordinal makes it single use.
fn ticket(run: &str, id: ToolCallId, plan: &Plan, ordinal: Ask) -> Ticket {
    let call = id.to_string();
    let parts: [&[u8]; 4] = [run.as_bytes(), call.as_bytes(), plan.digest.as_bytes(), &ordinal.0.to_le_bytes()];
    let digest = Digest::of("portcullis.ticket.1", &parts);
    Ticket(format!("{call}-{}", digest.hex().as_str().get(..16).unwrap_or_default()))
}
