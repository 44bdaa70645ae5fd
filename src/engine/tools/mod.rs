//! Tool batches: opened after triage, moved on call by call, closed together (SPEC 7).

mod invocation;
mod nested;
mod permission;
mod triage;

use std::collections::VecDeque;
use std::sync::Arc;

use super::core::{Core, drive};
use super::outbox::{Outbox, Raised};
use super::outstanding::Detail;
use crate::machines::batch::call::{self, Event};
use crate::machines::batch::{Batch, Call, Closing, Plan, TriagedCall, Verdict, Waits};
use crate::machines::consultation::Then;
use crate::machines::run::{self, Run};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::StagedCommand;
use crate::vocabulary::signal::Signal;

impl Core {
    /// Opens the batch: closed calls get their observation, admitted ones meet gates and people.
    fn open_batch(&mut self, triaged: Vec<TriagedCall>, out: &mut Outbox) {
        let round = self.tools.rounds;
        let mut calls = Vec::with_capacity(triaged.len());
        let mut admitted = Vec::new();
        for (TriagedCall { plan, verdict }, index) in triaged.into_iter().zip(0..) {
            let id = ToolCallId { round, index };
            let mut call = Call {
                id,
                phase: call::State::Requested,
                plan,
                confirm: None,
                cleared: None,
                attempt_lost: false,
                closing: None,
            };
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

    /// Moves the batch on: the next question, the next wave, or its end.
    pub(crate) fn advance_batch(&mut self, out: &mut Outbox) {
        self.hold_unknown(out);
        // Once every call is closed, plugins are asked, and nothing else moves the batch.
        if self.hook_ask().is_some() {
            return;
        }
        let Some(batch) = &mut self.tools.batch else {
            return;
        };
        let round = batch.round;
        let event = match batch.waits() {
            Waits::Gates => run::Event::Consulted,
            Waits::Person => run::Event::PersonAwaited(round),
            Waits::Tools => run::Event::ToolsCalled(round),
            Waits::Dispatch => {
                batch.announced = batch.next_wave();
                out.request(Effect::DispatchTools { calls: batch.announced.clone() });
                run::Event::ToolsCalled(round)
            }
            Waits::Nothing => return self.close_round(out),
        };
        let awaiting = matches!(event, run::Event::PersonAwaited(_));
        drive::<Run>(&mut self.run, &event, out);
        if awaiting && self.spec().deadline_pauses_while_awaiting {
            self.clock.pause();
        } else if self.clock.resume() {
            out.effects.extend(self.deadline_effect());
        }
    }

    /// Every call is closed. What the tools staged is staged in model order, whichever returned first; then the
    /// plugins hear of each call and of the round's end.
    fn close_round(&mut self, out: &mut Outbox) {
        if self.clock.resume() {
            out.effects.extend(self.deadline_effect());
        }
        let calls = self.tools.batch.iter().flat_map(|batch| &batch.calls);
        let closed: Vec<(ToolCallId, Option<Arc<str>>, Vec<StagedCommand>)> = calls.map(staged).collect();
        let mut questions = VecDeque::new();
        for (call, tool, commands) in closed {
            match self.stage_of_tool(tool.as_deref().unwrap_or_default(), &commands, out) {
                Ok(actions) => questions.extend(actions),
                Err(failure) => return out.raise(Raised::ExecutionFailed(failure)),
            }
            questions.extend(self.hooks_at(HookPoint::AfterTool, Some(call)));
        }
        self.ask_next(questions, Then::EndRound, out);
    }

    /// The round ends: what it staged is committed, and its observations are published, in one step.
    pub(crate) fn finish_batch(&mut self, out: &mut Outbox) {
        let round = self.tools.rounds;
        self.commit_state(out);
        self.publish_batch(out);
        out.raise(Raised::BatchClosed { round });
    }

    /// Closes a call, and with it the calls that it makes; one that was never entered gives its reservation back.
    pub(crate) fn close_call(&mut self, id: ToolCallId, closing: Closing, out: &mut Outbox) {
        self.close_nested(id, out);
        let Some(call) = self.call_of_mut(id) else {
            return;
        };
        let reserved = call.phase.is_reserved();
        close(call, closing, out);
        let tool = call.plan.as_ref().map(|plan| Arc::clone(&plan.tool.name));
        if let Some(tool) = tool.filter(|_| reserved) {
            self.give_back(&tool, out);
        }
    }

    /// Gives a reservation back.
    fn give_back(&mut self, tool: &Arc<str>, out: &mut Outbox) {
        if self.ledger.give_back(&self.charter.spec.budgets, tool) {
            out.note(Signal::BudgetUnmarked);
        }
    }

    pub(crate) fn move_call(&mut self, id: ToolCallId, event: &Event, out: &mut Outbox) {
        if let Some(call) = self.call_of_mut(id) {
            drive::<call::Call>(&mut call.phase, event, out);
        }
    }

    pub(crate) fn call_of(&self, id: ToolCallId) -> Option<&Call> {
        self.tools.batch.as_ref().and_then(|batch| batch.call(id))
    }

    pub(crate) fn call_of_mut(&mut self, id: ToolCallId) -> Option<&mut Call> {
        self.tools.batch.as_mut().and_then(|batch| batch.call_mut(id))
    }

    pub(crate) fn plan_of(&self, id: ToolCallId) -> Option<Arc<Plan>> {
        self.call_of(id).and_then(|call| call.plan.clone())
    }

    /// Requests what the call has outstanding now.
    pub(crate) fn request_of_call(&mut self, id: ToolCallId, out: &mut Outbox) {
        if let Some(call) = self.call_of(id) {
            out.effects.extend(self.call_effects(call, Detail::Whole));
        }
    }
}

/// What the tool of a closed call stages.
fn staged(call: &Call) -> (ToolCallId, Option<Arc<str>>, Vec<StagedCommand>) {
    let tool = call.plan.as_ref().map(|plan| Arc::clone(&plan.tool.name));
    let commands = call.closing.as_ref().map(|staged| staged.closing.commands.clone()).unwrap_or_default();
    (call.id, tool, commands)
}

/// Moves a call to its end and stages its observation.
pub(crate) fn close(call: &mut Call, closing: Closing, out: &mut Outbox) {
    let event = closing.code.map_or(Event::Completed, Event::Rejected);
    drive::<call::Call>(&mut call.phase, &event, out);
    out.note(Signal::CallClosed { call: call.id, code: closing.code });
    call.closing = Some(closing.into());
}
