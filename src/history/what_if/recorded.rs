//! What a history holds for another run: the questions that were asked, and how each was answered.

use std::collections::BTreeMap;

use super::question::{Question, Report, answered, asked};
use crate::engine::{Request, Step};
use crate::vocabulary::input::Input;

/// A report of the history, by its place.
#[derive(Debug, Clone)]
pub(super) struct Reported {
    pub(super) seq: u64,
    pub(super) at_ms: u64,
    pub(super) input: Input,
}

/// One time that a question was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) at_ms: u64,
    pub(super) effect: Request,
    /// What came of it; nothing when the work was lost or the history ends before.
    pub(super) answers: Vec<Reported>,
}

/// A history, as answers to questions.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) start: Option<Input>,
    /// Each question, as often as it was asked.
    pub(super) questions: BTreeMap<Question, Vec<Asked>>,
    /// Timers that fired, and what came from outside, at its time.
    pub(super) timers: Vec<Reported>,
    pub(super) outside: Vec<Reported>,
}

impl Recorded {
    /// Takes in one step of the history, in order.
    pub(super) fn take(&mut self, step: &Step) {
        let Step { seq, at_ms, input, effects, .. } = step;
        // A report that the deadline displaced would have been an answer, had there been time.
        let displaced = if let Input::DeadlineElapsed { displaced } = input { displaced.as_deref() } else { None };
        let report = displaced.unwrap_or(input).clone();
        let reported = |input| Reported { seq: *seq, at_ms: *at_ms, input };
        match answered(input) {
            Report::Start => self.start = Some(report),
            Report::Timer => self.timers.push(reported(report)),
            Report::Outside => self.outside.push(reported(report)),
            Report::Answer(question) => match self.questions.get_mut(&question).and_then(|asked| asked.last_mut()) {
                Some(asked) => asked.answers.push(reported(report)),
                // A displaced report need not have been asked for.
                None => self.outside.push(reported(report)),
            },
        }
        for effect in effects {
            if let Some(question) = asked(effect) {
                let asked = Asked { at_ms: *at_ms, effect: effect.clone(), answers: Vec::new() };
                self.questions.entry(question).or_default().push(asked);
            }
        }
    }
}
