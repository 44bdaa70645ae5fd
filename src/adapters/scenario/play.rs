//! The driver of a scenario: one report at a time, in virtual time. A step's record is stored before its
//! effects are performed (SPEC 1, 4).

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Scenario;
use super::agenda::{Agenda, Entry};
use super::interruption::{EffectKind, Interruption, Moment, Point};
use super::world::{Reaction, World};
use crate::engine::{Engine, Request, Step};
use crate::history::Recorder;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::{Effect, TimerKind};
use crate::vocabulary::ids::{RunId, Ticket};
use crate::vocabulary::input::Input;
use crate::vocabulary::llm;
use crate::vocabulary::refusal::{Refusal, RefusalKind};
use crate::vocabulary::tool::ToolError;

/// How long the next process takes to find a lost run, in milliseconds.
const RESTART_MS: u64 = 1_000;
/// What stands where a wall time would stand: a virtual run has none.
const WALL_TIME: &str = "1970-01-01T00:00:00Z";

/// A scenario on stage. Records go to `S`, one line a write, before what they ask for is done.
#[derive(Debug)]
pub struct Play<S> {
    engine: Engine,
    recorder: Recorder,
    store: S,
    world: World,
    agenda: Agenda,
    placed: Vec<Placed>,
    performed: BTreeMap<EffectKind, u32>,
    people: Vec<String>,
    questions: Vec<String>,
    records: u64,
    epoch: u64,
}

/// An interruption that waits for its effect.
#[derive(Debug)]
struct Placed {
    effect: EffectKind,
    nth: u32,
    what: Moment,
}

/// What happened next.
#[derive(Debug)]
pub enum Event {
    /// The engine took a step, and its record is stored.
    Stepped(Step),
    /// A report was refused: it came too late or does not fit. Nothing has changed.
    Refused {
        /// When, in virtual milliseconds.
        at_ms: u64,
        /// The type of the report.
        report: &'static str,
        /// Why.
        refusal: Refusal,
    },
    /// The process died.
    Lost {
        /// When, in virtual milliseconds.
        at_ms: u64,
    },
}

/// Why a scenario cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The run cannot begin: its spec is not one.
    #[error("the run cannot begin: {0}")]
    Spec(Refusal),
    /// A record could not be stored, so nothing that it asks for was done.
    #[error("a record could not be stored: {0}")]
    Store(io::Error),
}

impl<S: Write> Play<S> {
    /// Puts a scenario on stage; `run` is its id unless the scenario names one.
    pub fn new(scenario: Scenario, run: RunId, store: S) -> Self {
        let world = World::new(&scenario);
        let run_id = scenario.run_id.unwrap_or(run);
        let mut agenda = Agenda::default();
        let start = Input::RunStarted {
            nonce: run_id.to_string(),
            run_id,
            spec: scenario.spec,
            wall_time: WALL_TIME.to_owned(),
        };
        agenda.enter(0, Entry::Report(start));
        let mut placed = Vec::new();
        for Interruption { point, what } in scenario.script.interruptions {
            match point {
                Point::At { at_ms } => agenda.enter(at_ms, Entry::Interruption(what)),
                Point::Before { effect, nth } => placed.push(Placed { effect, nth, what }),
            }
        }
        Self {
            engine: Engine::new(),
            recorder: Recorder::new(),
            store,
            world,
            agenda,
            placed,
            performed: BTreeMap::new(),
            people: Vec::new(),
            questions: Vec::new(),
            records: 0,
            epoch: 0,
        }
    }

    /// The engine, to be asked where the run stands.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The hash of the last record.
    pub fn head(&self) -> Digest {
        self.recorder.head()
    }

    /// How many records there are.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Questions to people that the script does not answer: while there are any and nothing else is due, the
    /// run stays awaiting.
    pub fn people(&self) -> &[String] {
        &self.people
    }

    /// Other questions that the script does not answer; each ended the run as `execution_crashed`.
    pub fn questions(&self) -> &[String] {
        &self.questions
    }

    /// What the script holds and the run did not come to, for people.
    pub fn unused(&self) -> Vec<String> {
        let mut unused = self.world.unused();
        let never =
            |placed: &Placed| format!("an interruption before {} {}, which never came", placed.effect, placed.nth);
        unused.extend(self.placed.iter().map(never));
        unused
    }

    /// The store.
    pub const fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Gives the store back.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Goes on until something happens. `None` when nothing more will: the run has ended, or awaits a person.
    ///
    /// # Errors
    /// A spec that is not one, or a record that could not be stored.
    pub fn advance(&mut self) -> Result<Option<Event>, PlayError> {
        loop {
            if !self.people.is_empty() && self.agenda.holds_only_timers() {
                return Ok(None);
            }
            let Some((at_ms, entry)) = self.agenda.take() else {
                self.name_the_silent();
                return Ok(None);
            };
            match entry {
                Entry::Timer(input) => {
                    // A timer that is not wanted any more stays silent.
                    if let Ok(step) = self.engine.step(at_ms, input) {
                        return self.stepped(step).map(Some);
                    }
                }
                Entry::Report(input) => return self.report(at_ms, input).map(Some),
                Entry::Interruption(Moment::Cancel(origin)) => {
                    let by = "the scenario".to_owned();
                    return self.report(at_ms, Input::CancelRequested { by, origin }).map(Some);
                }
                Entry::Interruption(Moment::Fault(origin)) => {
                    return self.report(at_ms, Input::ExecutionCrashed { origin }).map(Some);
                }
                Entry::Interruption(Moment::Restart(restart)) => {
                    self.agenda.lose();
                    self.people.clear();
                    self.epoch += 1;
                    let tools = restart.live(self.world.environment());
                    let input = Input::RunRecovered { epoch: self.epoch, tools };
                    self.agenda.enter(at_ms.saturating_add(RESTART_MS), Entry::Report(input));
                    return Ok(Some(Event::Lost { at_ms }));
                }
            }
        }
    }

    /// Nothing is due any more, and the run goes on: it waits for people of whom the script says that they never
    /// answer.
    fn name_the_silent(&mut self) {
        let waiting = self.engine.outstanding().into_iter().filter_map(|effect| {
            let Effect::AwaitDecision { ticket, call } = effect else {
                return None;
            };
            Some(format!("{call} waits under ticket {ticket} for a decision that never comes, and nothing expires"))
        });
        self.people.extend(waiting);
    }

    fn report(&mut self, at_ms: u64, input: Input) -> Result<Event, PlayError> {
        match self.engine.step(at_ms, input.clone()) {
            Ok(step) => self.stepped(step),
            Err(refusal) if matches!(input, Input::RunStarted { .. }) => Err(PlayError::Spec(refusal)),
            Err(refusal) => {
                if refusal.kind == RefusalKind::Malformed {
                    let reason = refusal.reason.clone().unwrap_or_default();
                    self.agenda.enter(at_ms, Entry::Report(instead_of(&input, reason)));
                }
                Ok(Event::Refused { at_ms, report: input.tag(), refusal })
            }
        }
    }

    /// Stores the record, then performs what it asks for.
    fn stepped(&mut self, step: Step) -> Result<Event, PlayError> {
        let record = self.recorder.record(&self.engine, &step);
        if let Err(error) = self.store.write_all(record).and_then(|()| self.store.flush()) {
            // What is not stored did not happen: no release of it may be seen, and nothing follows from it.
            (self.engine, self.agenda) = (Engine::new(), Agenda::default());
            return Err(PlayError::Store(error));
        }
        self.records += 1;
        if self.engine.ending().is_some() {
            self.people.clear();
        }
        for effect in &step.effects {
            if !self.perform(step.at_ms, effect) {
                break;
            }
        }
        Ok(Event::Stepped(step))
    }

    /// Performs one effect; false when the process dies before it does.
    fn perform(&mut self, at_ms: u64, effect: &Request) -> bool {
        let mut dies = false;
        for moment in self.interruptions_before(effect) {
            dies |= matches!(moment, Moment::Restart(_));
            self.agenda.enter(at_ms, Entry::Interruption(moment));
        }
        if dies {
            return false;
        }
        if let Some((due_ms, timer)) = timer(effect) {
            self.agenda.enter(due_ms, Entry::Timer(timer));
            return true;
        }
        match self.world.perform(effect) {
            Reaction::Report { after_ms, input } => {
                self.agenda.enter(at_ms.saturating_add(after_ms), Entry::Report(input));
            }
            Reaction::Silence => {}
            Reaction::PersonNeeded(question) => self.people.push(question),
            Reaction::Open(question) => {
                let origin = format!("the script leaves open: {question}");
                self.questions.push(question);
                self.agenda.enter(at_ms, Entry::Report(Input::ExecutionCrashed { origin }));
            }
        }
        true
    }

    /// Takes the interruptions that come before this effect.
    fn interruptions_before(&mut self, effect: &Request) -> Vec<Moment> {
        let Some(kind) = kind(effect) else {
            return Vec::new();
        };
        let count = self.performed.entry(kind).or_default();
        *count += 1;
        let (here, later) = self.placed.drain(..).partition(|placed| placed.effect == kind && placed.nth == *count);
        self.placed = later;
        Vec::into_iter(here).map(|placed| placed.what).collect()
    }
}

/// What stands in the place of a report that breaks a limit, so that its call does not stay open (SPEC 4.D4).
fn instead_of(report: &Input, reason: String) -> Input {
    match report {
        Input::ModelResponded { call, attempt, .. } => {
            let error = llm::Error::Provider { message: reason };
            Input::ModelFailed { call: *call, attempt: *attempt, error, usage: None }
        }
        Input::ToolCompleted { call, attempt, .. } => {
            let error = ToolError::Execution { message: reason };
            Input::ToolFailed { call: *call, attempt: *attempt, error }
        }
        Input::GateAnswered { ask, .. } => Input::GateFailed { ask: *ask },
        Input::RunStarted { .. }
        | Input::EnvironmentResolved { .. }
        | Input::ResolutionFailed { .. }
        | Input::ModelFailed { .. }
        | Input::BackoffElapsed { .. }
        | Input::ToolsDispatched { .. }
        | Input::ToolFailed { .. }
        | Input::ToolTimedOut { .. }
        | Input::NestedCallRequested { .. }
        | Input::NestedCompleted { .. }
        | Input::GateFailed { .. }
        | Input::HookAnswered { .. }
        | Input::HookFailed { .. }
        | Input::DecisionGiven { .. }
        | Input::TicketExpired { .. }
        | Input::SemanticsJudged { .. }
        | Input::SemanticsFailed { .. }
        | Input::CancelRequested { .. }
        | Input::DeadlineElapsed { .. }
        | Input::ExecutionCrashed { .. }
        | Input::RunRecovered { .. }
        | Input::ToolReconciled { .. }
        | Input::ReleaseDelivered { .. }
        | Input::TailRepaired { .. } => Input::ExecutionCrashed { origin: format!("a scripted {}", report.tag()) },
    }
}

/// When a timer fires, and what it reports then.
fn timer(effect: &Request) -> Option<(u64, Input)> {
    let Effect::StartTimer { kind, of, due_ms } = effect else {
        return None;
    };
    let input = match kind {
        TimerKind::Deadline => Input::DeadlineElapsed { displaced: None },
        TimerKind::Backoff => {
            let (call, attempt) = of.split_once('/')?;
            Input::BackoffElapsed { call: call.parse().ok()?, attempt: attempt.parse().ok()? }
        }
        TimerKind::ToolTimeout => {
            let (call, attempt) = of.split_once('/')?;
            Input::ToolTimedOut { call: call.parse().ok()?, attempt: attempt.parse().ok()? }
        }
        TimerKind::TicketExpiry => Input::TicketExpired { ticket: Ticket(of.clone()) },
    };
    Some((*due_ms, input))
}

const fn kind(effect: &Request) -> Option<EffectKind> {
    Some(match effect {
        Effect::ResolveEnvironment => EffectKind::ResolveEnvironment,
        Effect::CallModel { .. } => EffectKind::CallModel,
        Effect::AskGate { .. } => EffectKind::AskGate,
        Effect::DispatchTools { .. } => EffectKind::DispatchTools,
        Effect::InvokeTool { .. } => EffectKind::InvokeTool,
        Effect::AwaitDecision { .. } => EffectKind::AwaitDecision,
        Effect::ReconcileTool { .. } => EffectKind::ReconcileTool,
        Effect::JudgeSemantics { .. } => EffectKind::JudgeSemantics,
        Effect::Publish { .. } => EffectKind::Publish,
        Effect::StartTimer { .. }
        | Effect::CallHook { .. }
        | Effect::AdmitNested { .. }
        | Effect::DenyNested { .. }
        | Effect::AbortInFlight => return None,
    })
}
