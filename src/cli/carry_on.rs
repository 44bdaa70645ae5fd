//! A run of the store, carried on by this process.

use std::sync::Arc;

use super::attended::attend;
use super::configuration::Configuration;
use super::exit::{Exit, Problem, note};
use super::interrupts::Interrupts;
use super::live::Live;
use super::origin::{Origin, Pace};
use super::performance::{Again, failed, left, point_to_errors, remark, show, watch};
use super::place::{Place, refused};
use super::screen::Screen;
use super::stepped::{progress, step_through};
use crate::adapters::scenario::{Real, Resumed, Scenario, Setting, Stage};
use crate::adapters::stores::sqlite::SqliteStore;
use crate::engine::Engine;
use crate::runtime::VirtualClock;
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::execution::{Error, Trouble};
use crate::runtime::store::{Listed, Standing, Store, StoreError};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;

/// Carries runs on.
pub(crate) struct Carrier {
    place: Place,
    live: Configuration,
    store: Arc<SqliteStore>,
    pub(crate) screen: Arc<Screen>,
    /// Whether a run is taken from a living session that drives it.
    takes_over: bool,
}

/// Why a run is carried on.
pub(crate) enum Reason {
    /// Its driver died, or it is asked whether it can go on.
    Resumed,
    /// A timer of it has come due.
    Woken,
    /// Somebody says something about it.
    Told(Input),
}

impl Carrier {
    pub(crate) fn new(place: &Place, live: &Configuration, json: bool, takes_over: bool) -> Result<Self, Problem> {
        let store = Arc::new(place.write()?);
        Ok(Self { place: place.clone(), live: live.clone(), store, screen: Arc::new(Screen::new(json)), takes_over })
    }

    pub(crate) fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// Carries a run on to its end, or to where it waits for a person.
    pub(crate) async fn carry(&self, run: &RunId, reason: Reason) -> Result<Exit, Problem> {
        let found = self.store.find(run).await.map_err(|error| refused(&error))?;
        let listed = found.ok_or_else(|| refused(&StoreError::UnknownRun { run: run.clone() }))?;
        let origin = self.store.origin(run).await.map_err(|error| refused(&error))?;
        let bad = |reason: String| Problem::new(Exit::Corrupt, format!("run {run}: {reason}"));
        let origin = Origin::read(origin.as_deref()).map_err(bad)?;
        let scenario = origin.scenario().map_err(bad)?;
        let report = match reason {
            Reason::Told(ref input) => Some(input.clone()),
            Reason::Resumed | Reason::Woken => None,
        };
        self.screen.begin();
        let engine = self.rehearse(run).await?;
        let (scenario, live) = match (scenario, &report) {
            (Some(scenario), _) if scenario.real.is_empty() => {
                self.live.is_not_wanted(run.as_str())?;
                (scenario, Live::default())
            }
            // Whoever is only told of a cancellation asks the world nothing more.
            (_, Some(Input::CancelRequested { .. })) => (Origin::silence(), Live::default()),
            (Some(began), Some(_) | None) => {
                let recorded = engine.spec().ok_or_else(|| bad("it has no spec".to_owned()))?;
                self.live.read(run.as_str(), &began, recorded)?
            }
            (None, _) => return Err(unplayable(run, &self.place.again())),
        };
        let at_ms = engine.decider().clock().map_or(0, crate::machines::clock::Clock::at_ms);
        let real = live.real.clone();
        let setting = Setting { real, ..self.setting(origin.pace, &listed, at_ms, &reason) };
        let carried = self.play(run, &scenario, &setting, report, &reason).await;
        live.close().await;
        carried
    }

    async fn play(
        &self,
        run: &RunId,
        scenario: &Scenario,
        setting: &Setting,
        report: Option<Input>,
        reason: &Reason,
    ) -> Result<Exit, Problem> {
        // Tool servers may be asked what they declare, which can take its time.
        let mut interrupts = Interrupts::listen();
        let resumed = tokio::select! {
            biased;
            resumed = Stage::resume(scenario, run, setting, report) => resumed,
            _ = interrupts.next() => return Err(left(run)),
        };
        match resumed {
            Ok(Resumed::There) => {
                note!("portcullis: the session that drives {run} has taken it");
                if self.screen.is_json() {
                    self.screen.write(|out| writeln!(out, "{{\"run\":\"{run}\",\"taken\":true}}"))?;
                }
                Ok(Exit::Success)
            }
            Ok(Resumed::Here(mut stage)) => self.see_through(&mut stage, run, scenario).await,
            // Another process was first, and that is as good.
            Err(Error::Execution(Trouble::Driven { by, .. })) if matches!(reason, Reason::Woken) => {
                note!("portcullis: run {run} is being driven by {by}");
                Ok(Exit::Success)
            }
            Err(error) => Err(failed(&error)),
        }
    }

    async fn see_through(&self, stage: &mut Stage, run: &RunId, scenario: &Scenario) -> Result<Exit, Problem> {
        let outcome =
            if scenario.real.is_empty() { watch(stage, run).await? } else { attend(stage, run, &self.screen).await? };
        let with = if scenario.real.is_empty() { String::new() } else { self.live.again() };
        let again = Again { store: &self.place.again(), with: &with };
        show(&self.screen, &outcome, run, &*self.store, Some(&again)).await?;
        if !scenario.real.is_empty() {
            point_to_errors(&outcome, run, Some(&again));
        }
        Ok(remark(&self.place.path(), stage, run, &outcome, scenario.expect.as_ref()))
    }

    /// Steps through what is there, so that the timeline knows its calls.
    async fn rehearse(&self, run: &RunId) -> Result<Engine, Problem> {
        let lines = self.store.read(run).await.map_err(|error| refused(&error))?;
        let stepped = step_through(run.as_str(), lines, &progress(None, true), |step, engine| {
            self.screen.remember(step, engine);
            Ok(())
        })?;
        Ok(stepped.engine)
    }

    /// In virtual time nothing passes between two processes, but for a run that is woken: it goes on when its
    /// timer is due.
    fn setting(&self, pace: Pace, listed: &Listed, at_ms: u64, reason: &Reason) -> Setting {
        let left_ms = listed.started_ms.saturating_add(at_ms);
        let clock: Arc<dyn Clock> = match (pace, reason, listed.standing) {
            (Pace::Real, _, _) => Arc::new(SystemClock::new()),
            (Pace::Virtual, Reason::Woken, Standing::Awaiting { due_ms: Some(due_ms) }) => {
                Arc::new(VirtualClock::starting_at(due_ms.max(left_ms)))
            }
            (Pace::Virtual, _, _) => Arc::new(VirtualClock::starting_at(left_ms)),
        };
        let audience = Some(Arc::clone(&self.screen) as _);
        Setting {
            store: Arc::clone(&self.store) as _,
            clock,
            audience,
            takes_over: self.takes_over,
            real: Real::default(),
        }
    }
}

fn unplayable(run: &RunId, store: &str) -> Problem {
    Problem::usage(format!(
        "run {run} has no scenario beside it: only the program that has its model and tools can carry it on, and takes \
         decisions for it; here it can be shown, exported and cancelled: portcullis cancel {run}{store}"
    ))
}
