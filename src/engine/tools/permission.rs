//! Permission to call: gates first, then a person (SPEC 7.6, 7.8).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::outbox::Outbox;
use crate::machines::batch::call::{self, Event};
use crate::machines::batch::{Call, Closing, Confirm, Plan, Remark, Waits, is_held, plan_edited, shorter};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::environment::GateOf;
use crate::vocabulary::ids::{Ask, Ticket, ToolCallId};
use crate::vocabulary::input::{Decision, GateAnswer};
use crate::vocabulary::signal::Signal;
use crate::vocabulary::tool::ObservationCode;

impl Core {
    /// The call's next question: the gate in that place, else a person where one must confirm, else none.
    pub(super) fn ask_gate_or_person(&mut self, id: ToolCallId, gate: usize, out: &mut Outbox) {
        let Some(plan) = self.plan_of(id) else { return };
        let (wanted, decided) = self.call_of(id).map_or((None, None), |call| (call.confirm, call.cleared));
        if plan.tool.gates.get(gate).is_some() {
            let ask = self.next_ask();
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
                let name = plan.tool.gate(gate);
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
        if let Some(call) = self.call_of_mut(id) {
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
                        if let Some(call) = self.call_of_mut(id) {
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
        if let Some(call) = self.call_of_mut(id) {
            call.cleared = Some(known);
        }
    }

    /// What the batch's other open evidence calls look at.
    fn open_scopes(&self, id: ToolCallId) -> BTreeSet<Digest> {
        let calls = self.tools.batch.iter().flat_map(|batch| &batch.calls);
        let open = calls.filter(|call| call.id != id && !call.is_closed());
        open.filter_map(|call| call.plan.as_ref()).map(|plan| plan.scope).collect()
    }

    /// Before each wave: a call that repeats one whose effect became unknown needs a person (SPEC 7.6).
    pub(super) fn hold_unknown(&mut self, out: &mut Outbox) {
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
}

/// Bound to run, call and exact arguments; the ordinal makes it single use.
fn ticket(run: &str, id: ToolCallId, plan: &Plan, ordinal: Ask) -> Ticket {
    let call = id.to_string();
    let parts: [&[u8]; 4] = [run.as_bytes(), call.as_bytes(), plan.digest.as_bytes(), &ordinal.0.to_le_bytes()];
    let digest = Digest::of("portcullis.ticket.1", &parts);
    Ticket(format!("{call}-{}", digest.hex().as_str().get(..16).unwrap_or_default()))
}
