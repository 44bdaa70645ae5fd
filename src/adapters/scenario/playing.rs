//! The script as the runtime's world.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use super::Scenario;
use super::interruption::{EffectKind, Interruption, Moment, Point, Restart};
use super::real::Real;
use super::world::{Reaction, World as Script};
use crate::engine::{Engine, Request};
use crate::history::{Fault, Lines, Next, Replay, Replayed};
use crate::runtime::Traces;
use crate::runtime::clock::Clock;
use crate::runtime::ports::{Advisers, Line};
use crate::runtime::world::{self, Performed, World};
use crate::vocabulary::effect::{Effect, TimerKind};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{Ticket, ToolCallId};
use crate::vocabulary::input::{Input, LiveTool};

/// A script while it is played.
pub(super) struct Playing {
    clock: Arc<dyn Clock>,
    /// The plugins that are ready to be registered: a spec that names one gets the real one.
    advisers: Advisers,
    real: Real,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    script: Script,
    placed: Vec<Placed>,
    performed: BTreeMap<EffectKind, u32>,
    moments: BTreeMap<usize, (u64, Moment)>,
    people: BTreeMap<ToolCallId, String>,
    /// Those of whom the script says that they never answer, while a timer runs.
    silent: BTreeMap<ToolCallId, String>,
    questions: Vec<String>,
    /// Whether the rest of it is of no interest to anybody.
    cut_short: bool,
    /// Whether the run has ended: until then nothing is left over.
    over: bool,
    /// How the next process finds the world, once one has died.
    restart: Option<Restart>,
}

/// An interruption that waits for its effect.
#[derive(Debug)]
struct Placed {
    effect: EffectKind,
    nth: u32,
    what: Moment,
}

impl std::fmt::Debug for Playing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state().fmt(out)
    }
}

impl Playing {
    pub(super) fn new(scenario: &Scenario, clock: Arc<dyn Clock>, real: Real) -> Self {
        let (mut placed, mut moments) = (Vec::new(), BTreeMap::new());
        for (index, Interruption { point, what }) in scenario.script.interruptions.iter().cloned().enumerate() {
            match point {
                Point::At { at_ms } => {
                    moments.insert(index, (at_ms, what));
                }
                Point::Before { effect, nth } => placed.push(Placed { effect, nth, what }),
            }
        }
        let state = State {
            script: Script::new(scenario),
            placed,
            performed: BTreeMap::new(),
            moments,
            people: BTreeMap::new(),
            silent: BTreeMap::new(),
            questions: Vec::new(),
            cut_short: false,
            over: false,
            restart: None,
        };
        let advisers = Advisers { gates: None, plugins: super::company(), traces: Traces::Outline };
        Self { clock, advisers, real, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the script has let the process die.
    pub(super) fn has_died(&self) -> bool {
        self.state().restart.is_some()
    }

    /// What is under way when the run ends is given up.
    pub(super) fn cut_short(&self) {
        self.state().cut_short = true;
    }

    /// Another process begins: what was lent to the dead one comes back.
    pub(super) fn revive(&self) {
        let mut state = self.state();
        state.script.take_back();
        state.people.clear();
        state.silent.clear();
        if let Some(restart) = state.restart.take() {
            state.script.declare(restart);
        }
    }

    /// Goes through a history, so that the script is where it ended. What the dead process was waiting for is
    /// answered again.
    pub(super) fn rehearse(&self, source: impl BufRead) -> Result<(), Fault> {
        let mut lines = Lines::new(source);
        let mut replay = Replay::<Engine>::default();
        while let Next::Line(line) = lines.next_line()? {
            let Replayed::Reproduced(step) = replay.take(line)? else { break };
            let mut state = self.state();
            if matches!(step.input, Input::RunRecovered { .. }) {
                state.script.take_back();
            }
            state.script.settle(&step.input);
            state.moments.retain(|_, (at_ms, _)| *at_ms > step.at_ms);
            for effect in &step.effects {
                state.interruptions_before(effect);
                state.script.perform(effect);
            }
        }
        self.state().script.take_back();
        Ok(())
    }

    pub(super) fn people(&self) -> Vec<String> {
        let state = self.state();
        // A deadline that stands still while a person is awaited may leave nothing that expires.
        let asked = if state.people.is_empty() { &state.silent } else { &state.people };
        asked.values().cloned().collect()
    }

    pub(super) fn questions(&self) -> Vec<String> {
        self.state().questions.clone()
    }

    pub(super) fn unused(&self) -> Vec<String> {
        let state = self.state();
        if !state.over {
            return Vec::new();
        }
        let mut unused = state.script.unused();
        let never =
            |placed: &Placed| format!("an interruption before {} {}, which never came", placed.effect, placed.nth);
        unused.extend(state.placed.iter().map(never));
        unused
    }

    /// A report after a delay, used up when it is given.
    fn later(&self, after_ms: u64, input: Input) -> Performed {
        let due_ms = self.clock.now_ms().saturating_add(after_ms);
        let (clock, state) = (Arc::clone(&self.clock), Arc::clone(&self.state));
        Performed::Reports(Box::pin(async move {
            clock.sleep_until(due_ms).await;
            state.lock().unwrap_or_else(PoisonError::into_inner).script.settle(&input);
            input
        }))
    }

    /// What resolution finds, with what the plugins of the spec contribute. Tools of real sources are looked for
    /// when the script says that it resolves.
    fn resolve(&self, engine: &Engine, after_ms: u64, scripted: Environment) -> Performed {
        let Some(spec) = engine.spec().cloned() else { return self.later(after_ms, resolved(Ok(scripted))) };
        let plugins = self.advisers.plugins.clone();
        match self.real.resolve(&spec, &scripted) {
            None => self.later(after_ms, resolved(plugins.merge(&spec, scripted))),
            Some(found) => Performed::Reports(Box::pin(async move {
                let merged = found.await.and_then(|host| plugins.merge(&spec, host));
                resolved(merged)
            })),
        }
    }

    /// A person of whom the script says that they never answer: the run waits for its timers. When nothing
    /// expires, it waits for a person.
    fn silence(&self, engine: &Engine, ticket: &Ticket, call: ToolCallId) -> Performed {
        let expires = |effect: &Request| matches!(effect, Effect::StartTimer { kind: TimerKind::TicketExpiry, of, .. } if *of == ticket.0);
        let deadline = engine.decider().clock().is_some_and(|clock| clock.deadline_ms().is_some());
        let waits = deadline || engine.outstanding().iter().any(expires);
        let person = format!("{call} waits under ticket {ticket} for a decision that never comes, and nothing expires");
        if waits {
            self.state().silent.insert(call, person);
            return Performed::Unheard;
        }
        self.state().people.insert(call, person);
        Performed::HandedOn
    }
}

fn resolved(merged: Result<Environment, ResolutionError>) -> Input {
    match merged {
        Ok(environment) => Input::EnvironmentResolved { environment: Box::new(environment) },
        Err(error) => Input::ResolutionFailed { error },
    }
}

impl World for Playing {
    fn perform(&self, engine: &Engine, effect: &Request, line: &Line) -> Performed {
        if matches!(effect, Effect::Publish { .. }) {
            let mut state = self.state();
            state.people.clear();
            state.silent.clear();
            state.over = true;
        }
        let elsewhere = self.advisers.ask_registered(engine, effect);
        if let Some(performed) = elsewhere.or_else(|| self.real.perform(engine, effect, line)) {
            return performed;
        }
        let reaction = self.state().script.perform(effect);
        match (reaction, effect) {
            (Reaction::Report { after_ms, input: Input::EnvironmentResolved { environment } }, _) => {
                self.resolve(engine, after_ms, *environment)
            }
            (Reaction::Report { after_ms, input }, _) => self.later(after_ms, input),
            (Reaction::Silence, Effect::AwaitDecision { ticket, call }) => self.silence(engine, ticket, *call),
            (Reaction::Silence, _) => Performed::HandedOn,
            (Reaction::PersonNeeded { call, question }, _) => {
                self.state().people.insert(call, question);
                Performed::HandedOn
            }
            (Reaction::Open(question), _) => {
                let origin = format!("the script leaves open: {question}");
                self.state().questions.push(question);
                self.later(0, Input::ExecutionCrashed { origin })
            }
        }
    }

    fn live(&self, _engine: &Engine) -> BoxFuture<'static, Vec<LiveTool>> {
        let (scripted, real) = (self.state().script.live(), self.real.live());
        Box::pin(async move { real.await.into_iter().chain(scripted).collect() })
    }

    fn before(&self, effect: &Request) -> Vec<world::Interruption> {
        let mut state = self.state();
        let moments = state.interruptions_before(effect);
        moments.into_iter().map(|moment| state.interrupt(moment)).collect()
    }

    fn interrupts_dispatch(&self) -> bool {
        self.state().placed.iter().any(|placed| placed.effect == EffectKind::DispatchTools)
    }

    fn gives_up(&self) -> bool {
        self.state().cut_short || !self.real.is_nothing()
    }

    fn moments(&self) -> Vec<world::Moment> {
        let state = self.state();
        state.moments.iter().map(|(index, (at_ms, _))| world::Moment { index: *index, at_ms: *at_ms }).collect()
    }

    fn strike(&self, moment: world::Moment) -> Option<world::Interruption> {
        let mut state = self.state();
        let (_, what) = state.moments.remove(&moment.index)?;
        Some(state.interrupt(what))
    }
}

impl State {
    fn interrupt(&mut self, moment: Moment) -> world::Interruption {
        match moment {
            Moment::Cancel(origin) => {
                world::Interruption::Report(Input::CancelRequested { by: "the scenario".to_owned(), origin })
            }
            Moment::Fault(origin) => world::Interruption::Report(Input::ExecutionCrashed { origin }),
            Moment::Restart(restart) => {
                self.restart = Some(restart);
                world::Interruption::Death
            }
        }
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

const fn kind(effect: &Request) -> Option<EffectKind> {
    Some(match effect {
        Effect::ResolveEnvironment => EffectKind::ResolveEnvironment,
        Effect::CallModel { .. } => EffectKind::CallModel,
        Effect::AskGate { .. } => EffectKind::AskGate,
        Effect::CallHook { .. } => EffectKind::CallHook,
        Effect::PerformAction { .. } => EffectKind::PerformAction,
        Effect::DispatchTools { .. } => EffectKind::DispatchTools,
        Effect::InvokeTool { .. } => EffectKind::InvokeTool,
        Effect::AwaitDecision { .. } => EffectKind::AwaitDecision,
        Effect::ReconcileTool { .. } => EffectKind::ReconcileTool,
        Effect::JudgeSemantics { .. } => EffectKind::JudgeSemantics,
        Effect::Publish { .. } => EffectKind::Publish,
        Effect::StartTimer { .. } | Effect::AdmitNested { .. } | Effect::DenyNested { .. } | Effect::AbortInFlight => {
            return None;
        }
    })
}
