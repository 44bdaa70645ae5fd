//! What if: the reports of a history under other rules (SPEC 13.20).
//!
//! A history holds questions and answers: each effect is a question, each report that comes of it an answer. The
//! supposed run steps a new engine, with the same task and other rules, and gives each of its questions the
//! answer that the same question got, after the same time. What was asked under no rule of the history has no
//! answer there: the supposed run says so at that place and stops.
//!
//! | a question is the same | when |
//! |---|---|
//! | to the model | the same request in the same place: the same digest of everything that the model is shown |
//! | to a tool, a gate, a hook, a person, the judge | it has the same ids and is about the same |
//!
//! Timers belong to the rules, not to the world. As long as the supposed run is the recorded one they fire when
//! they were recorded; from the first difference on they fire when they are due.

mod question;
mod recorded;

use std::collections::BTreeMap;
use std::io::BufRead;

use super::fault::Fault;
use super::reader::{Lines, Next};
use super::replay::{Divergence, Replay, Replayed};
use crate::engine::{Ending, Engine, Request, Step};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::Refusal;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::{Settings, SettingsFault};

use question::{asked, timer};
use recorded::{Recorded, Reported};

/// Steps of a supposed run, at most: a bound for histories that were made to loop.
const STEPS_MAX: u64 = 1_000_000;

/// A history, read for supposing.
#[derive(Debug)]
pub struct Supposable {
    run: RunId,
    /// How it began.
    start: Input,
    recorded: Recorded,
    /// What each record did, to compare with.
    steps: Vec<Done>,
    ending: Option<Ending>,
}

/// What a step did, without what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Done {
    at_ms: u64,
    input: &'static str,
    signals: Vec<Signal>,
    effects: Vec<Request>,
}

impl Done {
    fn of(step: &Step) -> Self {
        let Step { at_ms, input, signals, effects, .. } = step;
        Self { at_ms: *at_ms, input: input.tag(), signals: signals.clone(), effects: effects.clone() }
    }
}

/// Why a history cannot be supposed about.
#[derive(Debug, thiserror::Error)]
pub enum Unsupposable {
    /// It is damaged.
    #[error("corrupt: {0}")]
    Damaged(Fault),
    /// It does not replay, so that nothing follows from it.
    #[error("record {} diverges in {}", .0.seq, .0.field)]
    Diverged(Box<Divergence>),
    /// It holds not one whole record.
    #[error("not one whole record")]
    Empty,
}

/// Why a supposed run could not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfounded {
    /// The settings do not fit its spec.
    #[error(transparent)]
    Settings(#[from] SettingsFault),
    /// No run begins under these rules.
    #[error("no run begins under these rules: {0}")]
    Refused(Refusal),
}

/// How a supposed run came out.
#[derive(Debug)]
pub struct Supposition {
    /// The run that was recorded.
    pub run: RunId,
    /// How it ended; `None` while it is open.
    pub recorded: Option<Ending>,
    /// How the supposed run came out.
    pub supposed: Supposed,
    /// Where it first did something else; `None` when it never did.
    pub change: Option<Change>,
    /// How many steps it took.
    pub steps: u64,
    /// Model requests that differ from the recorded one and were given its answer all the same, by their place.
    pub assumed: Vec<u64>,
}

/// The end of a supposed run.
#[derive(Debug)]
pub enum Supposed {
    /// In this row.
    Ended(Ending),
    /// It asks the world something that the history does not answer.
    Unanswered {
        /// The supposed record that asks, from 0.
        seq: u64,
        /// When, in milliseconds since the run started.
        at_ms: u64,
        /// What.
        question: Box<Request>,
        /// Whether something was asked in this place, but not this.
        differs: bool,
    },
    /// The history ends, and the run goes on.
    Open {
        /// What it waits for.
        waits: Vec<Request>,
    },
}

/// The first difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The record, from 0, in both runs.
    pub seq: u64,
    /// When, in milliseconds since the run started.
    pub at_ms: u64,
}

/// What to do where a model would have been shown something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherRequest {
    /// Stop: nobody knows what it would have answered.
    #[default]
    Stop,
    /// Suppose that it would have answered the same, and say so.
    AssumeSameAnswer,
}

impl Supposable {
    /// Reads a history, stepping through it. What a cut last line held is not known.
    ///
    /// # Errors
    /// When it is damaged, or does not replay.
    pub fn read(source: impl BufRead) -> Result<Self, Unsupposable> {
        let mut lines = Lines::new(source);
        let mut replay = Replay::<Engine>::default();
        let (mut recorded, mut steps) = (Recorded::default(), Vec::new());
        while let Next::Line(line) = lines.next_line().map_err(Unsupposable::Damaged)? {
            match replay.take(line).map_err(Unsupposable::Damaged)? {
                Replayed::Reproduced(step) => {
                    recorded.take(&step);
                    steps.push(Done::of(&step));
                }
                Replayed::Diverged(divergence) => return Err(Unsupposable::Diverged(Box::new(divergence))),
            }
        }
        let engine = replay.stepper();
        let (run, start) = engine.run_id().cloned().zip(recorded.start.take()).ok_or(Unsupposable::Empty)?;
        Ok(Self { run, start, recorded, steps, ending: engine.ending().cloned() })
    }

    /// Steps the recorded reports through a run under other rules. `each` sees every step of it.
    ///
    /// # Errors
    /// When no run begins under these rules.
    pub fn under(
        &self,
        settings: &Settings,
        other: OtherRequest,
        mut each: impl FnMut(&Step, &Engine),
    ) -> Result<Supposition, Unfounded> {
        let mut play = Play::new(self, other);
        let mut engine = Engine::new();
        let supposed = play.run(&mut engine, settings, &mut each)?;
        let (run, recorded) = (self.run.clone(), self.ending.clone());
        Ok(Supposition { run, recorded, supposed, change: play.change, steps: play.steps, assumed: play.assumed })
    }
}

/// When a report comes: its time, then its place in the history, then the order in which it was lined up. Timers of
/// the supposed run's own come after what was recorded for the same time.
type Moment = (u64, u64, u64);

/// Where a report comes from that is lined up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The history.
    Recorded,
    /// A timer of the history.
    RecordedTimer,
    /// A timer of the supposed run.
    OwnTimer,
}

/// A supposed run under way.
struct Play<'a> {
    of: &'a Supposable,
    other: OtherRequest,
    queue: BTreeMap<Moment, (Origin, Input)>,
    lined_up: u64,
    /// Timers of its own that were due before the first difference.
    held: Vec<(u64, Input)>,
    /// How often each question was asked.
    times: BTreeMap<question::Question, usize>,
    change: Option<Change>,
    steps: u64,
    assumed: Vec<u64>,
}

impl<'a> Play<'a> {
    fn new(of: &'a Supposable, other: OtherRequest) -> Self {
        let (queue, times) = (BTreeMap::new(), BTreeMap::new());
        let (held, assumed) = (Vec::new(), Vec::new());
        Self { of, other, queue, lined_up: 0, held, times, change: None, steps: 0, assumed }
    }

    fn run(
        &mut self,
        engine: &mut Engine,
        settings: &Settings,
        each: &mut impl FnMut(&Step, &Engine),
    ) -> Result<Supposed, Unfounded> {
        let mut start = self.of.start.clone();
        if let Input::RunStarted { spec, .. } = &mut start {
            **spec = settings.apply(spec)?;
        }
        let mut next = engine.step(0, start).map_err(Unfounded::Refused)?;
        let Recorded { outside, timers, .. } = &self.of.recorded;
        for (origin, reports) in [(Origin::Recorded, outside), (Origin::RecordedTimer, timers)] {
            for Reported { seq, at_ms, input } in reports {
                self.line_up(*at_ms, *seq, origin, input.clone());
            }
        }
        loop {
            each(&next, engine);
            self.compare(&next);
            self.steps += 1;
            if let Some(ending) = engine.ending() {
                return Ok(Supposed::Ended(ending.clone()));
            }
            if let Some(unanswered) = self.ask(&next) {
                return Ok(unanswered);
            }
            let Some(step) = self.advance(engine) else {
                return Ok(Supposed::Open { waits: engine.outstanding() });
            };
            next = step;
        }
    }

    fn line_up(&mut self, at_ms: u64, seq: u64, origin: Origin, input: Input) {
        self.lined_up += 1;
        self.queue.insert((at_ms, seq, self.lined_up), (origin, input));
    }

    /// The next report that the engine accepts. What it refuses was recorded under other rules.
    ///
    /// Up to the first difference timers are the recorded ones, from there on the run's own.
    fn advance(&mut self, engine: &mut Engine) -> Option<Step> {
        while let Some(((at_ms, ..), (origin, input))) = self.queue.pop_first() {
            match (origin, self.change) {
                (Origin::OwnTimer, None) => self.held.push((at_ms, input)),
                (Origin::RecordedTimer, Some(_)) => {}
                (Origin::Recorded, _) | (Origin::RecordedTimer, None) | (Origin::OwnTimer, Some(_)) => {
                    if let Ok(step) = engine.step(at_ms, input) {
                        return Some(step).filter(|_| self.steps < STEPS_MAX);
                    }
                }
            }
        }
        None
    }

    /// Notes the first step that differs from the recorded one.
    fn compare(&mut self, step: &Step) {
        let at = usize::try_from(self.steps).unwrap_or(usize::MAX);
        if self.change.is_none() && self.of.steps.get(at) != Some(&Done::of(step)) {
            self.change = Some(Change { seq: step.seq, at_ms: step.at_ms });
            for (due_ms, input) in std::mem::take(&mut self.held) {
                self.line_up(due_ms, u64::MAX, Origin::OwnTimer, input);
            }
        }
    }

    /// Lines up the recorded answers to what a step asks, and the timers that it starts.
    fn ask(&mut self, step: &Step) -> Option<Supposed> {
        for effect in &step.effects {
            if let Some((due_ms, report)) = timer(effect) {
                self.line_up(due_ms, u64::MAX, Origin::OwnTimer, report);
            }
            let Some(question) = asked(effect) else { continue };
            let nth = self.times.entry(question.clone()).or_default();
            let of = self.of;
            let found = of.recorded.questions.get(&question).and_then(|asked| asked.get(*nth));
            *nth += 1;
            let differs = found.is_some_and(|asked| asked.effect != *effect);
            match found {
                Some(asked) if !differs || self.assumes(effect) => {
                    if differs {
                        self.assumed.push(step.seq);
                    }
                    for Reported { seq, at_ms, input } in &asked.answers {
                        let after = at_ms.saturating_sub(asked.at_ms);
                        self.line_up(step.at_ms.saturating_add(after), *seq, Origin::Recorded, input.clone());
                    }
                }
                Some(_) | None => {
                    let question = Box::new(effect.clone());
                    return Some(Supposed::Unanswered { seq: step.seq, at_ms: step.at_ms, question, differs });
                }
            }
        }
        None
    }

    /// Whether the answer to another request may stand for the answer to this one.
    fn assumes(&self, effect: &Request) -> bool {
        self.other == OtherRequest::AssumeSameAnswer && matches!(effect, Request::CallModel { .. })
    }
}
