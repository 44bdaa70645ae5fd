//! Calls that a running tool makes of its own: they ask first and count, and a person is never asked about them
//! (SPEC 6, 7).

use std::sync::Arc;

use crate::engine::core::{Core, drive};
use crate::engine::outbox::{Outbox, Request};
use crate::machines::batch::{Plan, call, is_held};
use crate::machines::ledger::Admission;
use crate::machines::nested::{Event, NESTED_MAX, NestedCall, State};
use crate::vocabulary::effect::{Effect, GateSubject};
use crate::vocabulary::environment::GateOf;
use crate::vocabulary::ids::{NestedCallId, ToolCallId};
use crate::vocabulary::input::GateAnswer;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::Usage;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::tool::ObservationCode;

impl Core {
    /// A running tool asks for a call of its own: of a tool with arguments, or else of a model.
    pub(crate) fn nested_requested(&mut self, id: NestedCallId, wanted: Option<(&str, &Json)>, out: &mut Outbox) {
        let Some((name, arguments)) = wanted else {
            self.tools.nested.request(id, None);
            return self.ask_model_gate(id, out);
        };
        let planned = self.plan_nested(name, arguments);
        self.tools.nested.request(id, planned.as_ref().ok().cloned());
        match planned.and_then(|plan| self.reserve_nested(&plan, out)) {
            Ok(()) => self.ask_nested_gate(id, 0, out),
            Err(code) => self.deny_nested(id, code, out),
        }
    }

    /// The gate before every model call, for one that a tool makes. What is kept back for the answer is not
    /// spent on it. A denial is no budget stop: the loop has not asked.
    fn ask_model_gate(&mut self, id: NestedCallId, out: &mut Outbox) {
        let budgets = &self.charter.spec.budgets;
        if self.ledger.model_gate(budgets).is_some() || self.ledger.only_reserve_left(budgets) {
            return self.deny_nested(id, ObservationCode::BudgetExhausted, out);
        }
        self.ledger.model_calls = self.ledger.model_calls.saturating_add(1);
        self.ledger.model_attempts = self.ledger.model_attempts.saturating_add(1);
        self.admit_nested(id, out);
    }

    /// Rules 1 and 3: the tool and its arguments.
    fn plan_nested(&self, name: &str, arguments: &Json) -> Result<Arc<Plan>, ObservationCode> {
        let toolbox = self.tools.toolbox.as_ref();
        let tool = toolbox.and_then(|toolbox| toolbox.tool(name)).ok_or(ObservationCode::UnknownTool)?;
        tool.schema.check(arguments).map_err(|_| ObservationCode::InvalidArguments)?;
        Ok(Arc::new(Plan::new(tool, arguments.clone())))
    }

    /// Rules 6 and 7, and of rule 8 what the tool's own declaration says: where a person would be asked, the call
    /// is denied, and nothing is reserved for it.
    fn reserve_nested(&mut self, plan: &Plan, out: &mut Outbox) -> Result<(), ObservationCode> {
        if is_held(plan, &self.tools.unknowns, None) {
            return Err(ObservationCode::Denied);
        }
        match self.ledger.admit(&self.charter.spec.budgets, &plan.tool.name) {
            Admission::Admitted => {}
            Admission::OverallLimit { first } => {
                if first {
                    out.note(Signal::BudgetMarked);
                }
                return Err(ObservationCode::BudgetExhausted);
            }
            Admission::ToolLimit => return Err(ObservationCode::BudgetExhausted),
        }
        if plan.tool.spec.confirm {
            self.give_back(&plan.tool.name, out);
            return Err(ObservationCode::Denied);
        }
        Ok(())
    }

    /// Asks the gate in that place; behind the last one the call is admitted.
    fn ask_nested_gate(&mut self, id: NestedCallId, gate: usize, out: &mut Outbox) {
        let plan = self.tools.nested.get(id).and_then(|nested| nested.plan.clone());
        if plan.is_some_and(|plan| plan.tool.gates.get(gate).is_some()) {
            let (ask, gate) = (self.next_ask(), u32::try_from(gate).unwrap_or(u32::MAX));
            self.move_nested(id, &Event::GateAsked { ask, gate }, out);
            return out.effects.extend(self.nested_effect(id));
        }
        self.ledger.tool_attempts = self.ledger.tool_attempts.saturating_add(1);
        self.admit_nested(id, out);
    }

    /// A gate answered about a nested call. One that wants a person to confirm it turns it down.
    pub(crate) fn nested_gate_answered(&mut self, id: NestedCallId, answer: &GateAnswer, out: &mut Outbox) {
        let Some(nested) = self.tools.nested.get(id).cloned() else { return };
        let (State::Asking { gate, .. }, Some(plan)) = (nested.phase, nested.plan) else { return };
        let code = match answer {
            GateAnswer::Allow => return self.ask_nested_gate(id, gate as usize + 1, out),
            GateAnswer::Block { .. } => {
                let gate = plan.tool.gate(gate);
                out.note(Signal::GateBlocked { gate, of: GateOf::Tool });
                ObservationCode::Blocked
            }
            GateAnswer::SetResult { .. } => ObservationCode::SetByGate,
            GateAnswer::Confirm { .. } => ObservationCode::Denied,
        };
        self.give_back(&plan.tool.name, out);
        self.deny_nested(id, code, out);
    }

    fn admit_nested(&mut self, id: NestedCallId, out: &mut Outbox) {
        self.move_nested(id, &Event::Admitted, out);
        out.effects.extend(self.nested_effect(id));
    }

    fn deny_nested(&mut self, id: NestedCallId, code: ObservationCode, out: &mut Outbox) {
        self.move_nested(id, &Event::Rejected(code), out);
        out.request(Effect::DenyNested { nested: id, code });
    }

    /// A nested call is over. What a model call used is charged at the price of the model that the run asks,
    /// since the report names none; what a tool call says that it used counts too.
    pub(crate) fn nested_completed(&mut self, id: NestedCallId, usage: Option<Usage>, out: &mut Outbox) {
        if usage.is_some() || self.is_model_call(id) {
            let spec = Arc::clone(&self.charter.spec);
            let model = spec.model_at(self.model).map_or("", |model| model.name.as_str());
            self.ledger.charge(&spec.budgets, model, usage);
        }
        self.move_nested(id, &Event::Completed, out);
    }

    /// Whether this is an open nested model call.
    fn is_model_call(&self, id: NestedCallId) -> bool {
        self.tools.nested.get(id).is_some_and(|nested| nested.plan.is_none())
    }

    /// The parent's attempt is over, and its nested calls with it. What was not let through gives its reservation
    /// back; of what was, nobody knows the outcome (SPEC 7.6).
    pub(crate) fn close_nested(&mut self, parent: ToolCallId, out: &mut Outbox) {
        let open = self.tools.nested.of(parent).map(|(id, nested)| (id, nested.clone()));
        for (id, nested) in open.collect::<Vec<_>>() {
            let admitted = matches!(nested.phase, State::Admitted);
            match nested.plan {
                Some(plan) if admitted => self.tools.unknowns.note(plan.digest),
                Some(plan) => self.give_back(&plan.tool.name, out),
                None => self.ledger.usage_unknown = self.ledger.usage_unknown.saturating_add(1),
            }
            if admitted {
                out.note(Signal::NestedLost { nested: id });
            }
            self.move_nested(id, &Event::ParentClosed, out);
        }
    }

    fn move_nested(&mut self, id: NestedCallId, event: &Event, out: &mut Outbox) {
        if let Some(phase) = self.tools.nested.phase_mut(id) {
            drive::<NestedCall>(phase, event, out);
        }
        self.tools.nested.moved(id);
    }

    /// Whether any call runs that may ask for a nested one.
    pub(crate) fn may_ask_nested(&self) -> bool {
        let mut calls = self.tools.batch.iter().flat_map(|batch| &batch.calls);
        calls.any(|call| {
            let runs = matches!(call.phase, call::State::Executing { .. });
            runs && self.tools.nested.requested(call.id) < NESTED_MAX
        })
    }

    /// What the nested calls of a call have outstanding.
    pub(crate) fn nested_effects(&self, parent: ToolCallId) -> Vec<Request> {
        self.tools.nested.of(parent).filter_map(|(id, _)| self.nested_effect(id)).collect()
    }

    fn nested_effect(&self, id: NestedCallId) -> Option<Request> {
        let nested = self.tools.nested.get(id)?;
        match &nested.phase {
            State::Asking { ask, gate } => {
                let gate = nested.plan.as_ref().map(|plan| plan.tool.gate(*gate)).unwrap_or_default();
                Some(Effect::AskGate { ask: *ask, gate, about: GateSubject::Nested { nested: id } })
            }
            State::Admitted => Some(Effect::AdmitNested { nested: id }),
            State::Requested | State::Completed | State::Denied { .. } | State::Dropped | State::Lost => None,
        }
    }
}
