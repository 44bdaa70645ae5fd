//! Hooks: the points at which plugins are asked, one after the other, and what the run goes on with (SPEC 12).

use std::collections::VecDeque;
use std::sync::Arc;

use super::core::{Core, drive, offer};
use super::outbox::{Outbox, Raised, Request};
use crate::machines::consultation::{Consultation, Event, Held, Open, Question, State, Then};
use crate::machines::run::{self, Run};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::{Ask, ToolCallId};
use crate::vocabulary::input::StagedCommand;
use crate::vocabulary::message::Message;

impl Core {
    /// Asks the hooks of a point, then goes on.
    pub(crate) fn consult(&mut self, point: HookPoint, then: Then, out: &mut Outbox) {
        let questions = self.hooks_at(point, None).into();
        self.ask_next(questions, then, out);
    }

    /// The hooks of a point, in the environment's order.
    pub(crate) fn hooks_at(&self, point: HookPoint, call: Option<ToolCallId>) -> Vec<Question> {
        let toolbox = self.tools.toolbox.iter();
        let plugins = toolbox.flat_map(|toolbox| toolbox.hooks(point));
        plugins.map(|plugin| Question::Hook { plugin: plugin.to_owned(), point, call }).collect()
    }

    /// Asks the first of `questions`; with none left, the run goes on.
    pub(crate) fn ask_next(&mut self, mut questions: VecDeque<Question>, then: Then, out: &mut Outbox) {
        let Some(question) = questions.pop_front() else {
            return self.go_on(then, out);
        };
        let open = Open { ask: self.next_ask(), question, pending: questions, then };
        drive::<Consultation>(&mut self.consultation, &Event::Asked(Box::new(open)), out);
        drive::<Run>(&mut self.run, &run::Event::Consulted, out);
        out.effects.extend(self.consultation_effects());
    }

    fn go_on(&mut self, then: Then, out: &mut Outbox) {
        match then {
            Then::OpenRound => self.ask_step(out),
            Then::CallModel(purpose) => self.call_model(purpose, out),
            Then::ReadResponse(held) => {
                let Held { content, finish, request } = *held;
                self.read_response(&content, finish, &request, out);
            }
            Then::EndRound => self.consult(HookPoint::RoundEnd, Then::CloseBatch, out),
            Then::CloseBatch => self.finish_batch(out),
            Then::AskReleaseGates => self.ask_first_gate(out),
        }
    }

    /// A hook answered, or a plugin performed an action. What it schedules is performed before anybody else is
    /// asked.
    pub(crate) fn hook_answered(&mut self, commands: &[StagedCommand], context: Option<&str>, out: &mut Outbox) {
        let State::Asking { open } = self.consultation.clone() else {
            return;
        };
        let Open { question, mut pending, then, .. } = *open;
        drive::<Consultation>(&mut self.consultation, &Event::Answered, out);
        let actions = match self.stage(question.plugin(), commands, out) {
            Ok(actions) => actions,
            Err(failure) => {
                self.drop_held(&then, out);
                return out.raise(Raised::ExecutionFailed(failure));
            }
        };
        if let Some(text) = context {
            self.context.push(Arc::new(Message::Context { by: question.plugin().to_owned(), text: text.to_owned() }));
        }
        for action in actions.into_iter().rev() {
            pending.push_front(action);
        }
        self.ask_next(pending, then, out);
    }

    /// A hook failed: nobody knows what it would have held back.
    pub(crate) fn hook_failed(out: &mut Outbox) {
        out.raise(Raised::ExecutionFailed(Failure::Internal));
    }

    /// The question that a hook or an action has open.
    pub(crate) const fn hook_ask(&self) -> Option<Ask> {
        if let State::Asking { open } = &self.consultation { Some(open.ask) } else { None }
    }

    /// The run ends: nobody's answer is wanted any more, and the hooks at its end are told.
    pub(crate) fn tell_end(&mut self, out: &mut Outbox) {
        // Where no question is open there is nothing to take back.
        offer::<Consultation>(&mut self.consultation, &Event::Answered, out);
        let hooks = self.hooks_at(HookPoint::RunEnd, None).len();
        if hooks > 0 {
            let first = self.next_ask();
            self.asks = self.asks.saturating_add(u32::try_from(hooks).unwrap_or(u32::MAX)).saturating_sub(1);
            drive::<Consultation>(&mut self.consultation, &Event::Told(first), out);
        }
        out.effects.extend(self.consultation_effects());
    }

    /// What plugins have outstanding.
    pub(crate) fn consultation_effects(&self) -> Vec<Request> {
        match &self.consultation {
            State::Silent => Vec::new(),
            State::Asking { open } => vec![match &open.question {
                Question::Hook { plugin, point, .. } => {
                    Effect::CallHook { ask: open.ask, point: *point, plugin: plugin.clone() }
                }
                Question::Action { plugin, action, .. } => {
                    Effect::PerformAction { ask: open.ask, action: action.clone(), plugin: plugin.clone() }
                }
            }],
            State::Telling { first } => {
                let hooks = self.hooks_at(HookPoint::RunEnd, None);
                let told = |(question, place): (Question, u32)| Effect::CallHook {
                    ask: Ask(first.0.saturating_add(place)),
                    point: HookPoint::RunEnd,
                    plugin: question.plugin().to_owned(),
                };
                hooks.into_iter().zip(0..).map(told).collect()
            }
        }
    }
}
