//! A scenario on stage: the runtime drives it, the script plays the world.

use std::fmt;
use std::sync::Arc;

use super::Scenario;
use super::playing::Playing;
use super::real::Real;
use crate::engine::{Engine, Step};
use crate::machines::batch::Plan;
use crate::runtime::clock::Clock;
use crate::runtime::execution::{Error, Trouble};
use crate::runtime::store::Store;
use crate::runtime::witness::Witness;
use crate::runtime::{Outcome, RunHandle, Runtime, Start, Taken};
use crate::vocabulary::ids::{RunId, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::Refusal;

/// How long the next process takes to find a lost run, in milliseconds.
const RESTART_MS: u64 = 1_000;

/// Whoever watches a scenario being played.
pub trait Audience: Send + Sync + 'static {
    /// Something has happened.
    fn see(&self, scene: Scene<'_>);
}

/// What an audience sees.
#[derive(Debug)]
pub enum Scene<'a> {
    /// The engine took a step, and its record is durable.
    Stepped {
        /// The engine after the step, or after the dispatch that was committed with it.
        engine: &'a Engine,
        /// The step.
        step: &'a Step,
    },
    /// A report was refused: it came too late or does not fit. Nothing has changed.
    Refused {
        /// When, in milliseconds since the run started.
        at_ms: u64,
        /// The type of the report.
        report: &'static str,
        /// Why.
        refusal: &'a Refusal,
    },
    /// The process died.
    Lost {
        /// When, in milliseconds since the run started.
        at_ms: u64,
    },
}

/// Where a scenario is played.
#[derive(Clone)]
pub struct Setting {
    /// Where its records go.
    pub store: Arc<dyn Store>,
    /// Its time: virtual, or the machine's.
    pub clock: Arc<dyn Clock>,
    /// Who watches.
    pub audience: Option<Arc<dyn Audience>>,
    /// Whether a run is taken from a living session that drives it.
    pub takes_over: bool,
    /// The ports of the parts that a scenario calls real.
    pub real: Real,
}

/// A scenario on stage.
pub struct Stage {
    runtime: Runtime,
    handle: RunHandle,
    playing: Arc<Playing>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stage").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// Where a run is played on.
#[derive(Debug)]
pub enum Resumed {
    /// Here.
    Here(Box<Stage>),
    /// In the living session that drives it, which has taken the report.
    There,
}

/// What a record 0 needs beside the scenario.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The run's id.
    pub run: RunId,
    /// The seed of jitter.
    pub nonce: String,
    /// When it begins, for people.
    pub wall_time: String,
    /// What is kept beside the run in its store, so that another process can play on.
    pub origin: Option<Vec<u8>>,
}

impl Opening {
    /// An opening without a wall time: the same scenario then gives the same bytes.
    #[must_use]
    pub fn timeless(run: RunId) -> Self {
        let (nonce, wall_time) = (run.to_string(), "1970-01-01T00:00:00Z".to_owned());
        Self { run, nonce, wall_time, origin: None }
    }
}

impl Stage {
    /// Begins a scenario.
    ///
    /// # Errors
    /// As [`Runtime::start`]; `Unequipped` when a part is to be real whose port the setting does not have.
    pub async fn begin(scenario: Scenario, opening: Opening, setting: &Setting) -> Result<Self, Error> {
        let Opening { run, nonce, wall_time, origin } = opening;
        let playing = playing(&scenario, setting)?;
        let runtime = runtime(setting, &playing);
        let handle = runtime.begin(Start { run, spec: scenario.spec, nonce, wall_time, origin }).await?;
        Ok(Self { runtime, handle, playing, clock: Arc::clone(&setting.clock) })
    }

    /// Goes on with a run of the store: the script is where the history left it. `report` is what somebody from
    /// outside says first.
    ///
    /// # Errors
    /// As [`Runtime::attach`], and `Unequipped` as there; with a report also when it is refused.
    pub async fn resume(
        scenario: &Scenario,
        run: &RunId,
        setting: &Setting,
        report: Option<Input>,
    ) -> Result<Resumed, Error> {
        let playing = playing(scenario, setting)?;
        let source = setting.store.read(run).await?;
        let (named, rehearsed) = (run.clone(), Arc::clone(&playing));
        let rehearsal = tokio::task::spawn_blocking(move || rehearsed.rehearse(source)).await;
        match rehearsal {
            Ok(rehearsed) => rehearsed.map_err(|fault| Trouble::Damaged { run: named, fault })?,
            Err(_) => return Err(Trouble::Stopped(named).into()),
        }
        let runtime = runtime(setting, &playing);
        let handle = match report {
            None => runtime.attach(run).await?,
            Some(report) => {
                let handle = runtime.hold(run);
                match runtime.report(run, report).await {
                    Ok(Taken::Here) => handle,
                    Ok(Taken::There) => return Ok(Resumed::There),
                    Err(error) => {
                        // The run is given back before anybody ends the process.
                        handle.left().await;
                        return Err(error);
                    }
                }
            }
        };
        Ok(Resumed::Here(Box::new(Self { runtime, handle, playing, clock: Arc::clone(&setting.clock) })))
    }

    /// Waits until the run has ended or waits for a person whom the script does not play. A process that the
    /// script lets die is followed by the next one.
    ///
    /// # Errors
    /// As [`RunHandle::outcome`].
    pub async fn outcome(&mut self) -> Result<Outcome, Error> {
        loop {
            match self.handle.outcome().await {
                Err(Error::Execution(Trouble::Stopped(_))) if self.playing.has_died() => {
                    let busy = self.clock.busy();
                    self.clock.sleep_until(self.clock.now_ms().saturating_add(RESTART_MS)).await;
                    self.playing.revive();
                    self.handle = self.runtime.attach(self.handle.run()).await?;
                    drop(busy);
                }
                outcome => return outcome,
            }
        }
    }

    /// Comes back when the scenario is over: the run has ended and every scripted moment and late report has
    /// come, or a person is awaited.
    ///
    /// # Errors
    /// As [`RunHandle::outcome`].
    pub async fn curtain(&mut self) -> Result<Outcome, Error> {
        loop {
            let outcome = self.outcome().await?;
            match outcome {
                Outcome::Awaiting(_) => return Ok(outcome),
                Outcome::Ended(_) if self.handle.rested().await => return Ok(outcome),
                Outcome::Ended(_) => {}
            }
        }
    }

    /// The run.
    #[must_use]
    pub const fn handle(&self) -> &RunHandle {
        &self.handle
    }

    /// Reports something from outside: what a person says who is not in the script.
    ///
    /// # Errors
    /// `Execution` with the refusal when it does not fit.
    pub async fn report(&self, input: Input) -> Result<(), Error> {
        self.runtime.report(self.handle.run(), input).await.map(|_| ())
    }

    /// The exact tool and arguments of an open call: what a person has to see before they decide. Privileged.
    ///
    /// # Errors
    /// As [`Runtime::plan`].
    pub async fn plan(&self, call: ToolCallId) -> Result<Option<Arc<Plan>>, Error> {
        self.runtime.plan(self.handle.run(), call).await
    }

    /// Goes on with a run that waits for a person, since a timer of it has come due.
    ///
    /// # Errors
    /// As [`Runtime::attach`].
    pub async fn wake(&mut self) -> Result<(), Error> {
        self.handle = self.runtime.attach(self.handle.run()).await?;
        Ok(())
    }

    /// From now on what is under way when the run ends is given up, as ports are, instead of being played to its
    /// late report.
    pub fn cut_short(&self) {
        self.playing.cut_short();
    }

    /// Questions to people that the script does not answer.
    #[must_use]
    pub fn people(&self) -> Vec<String> {
        self.playing.people()
    }

    /// Other questions that the script does not answer; each ended the run as `execution_crashed`.
    #[must_use]
    pub fn questions(&self) -> Vec<String> {
        self.playing.questions()
    }

    /// What the script holds and the run did not come to, for people.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        self.playing.unused()
    }
}

fn playing(scenario: &Scenario, setting: &Setting) -> Result<Arc<Playing>, Error> {
    Ok(Arc::new(Playing::new(scenario, Arc::clone(&setting.clock), setting.real.of(scenario)?)))
}

fn runtime(setting: &Setting, playing: &Arc<Playing>) -> Runtime {
    let witness = setting.audience.clone().map(|audience| Arc::new(Usher(audience)) as Arc<dyn Witness>);
    let (store, clock) = (Arc::clone(&setting.store), Arc::clone(&setting.clock));
    Runtime::scripted(store, clock, Arc::clone(playing) as _, witness, setting.takes_over)
}

/// Shows an audience what the driver does.
struct Usher(Arc<dyn Audience>);

impl Witness for Usher {
    fn stepped(&self, engine: &Engine, step: &Step) {
        self.0.see(Scene::Stepped { engine, step });
    }

    fn refused(&self, at_ms: u64, report: &'static str, refusal: &Refusal) {
        self.0.see(Scene::Refused { at_ms, report, refusal });
    }

    fn lost(&self, at_ms: u64) {
        self.0.see(Scene::Lost { at_ms });
    }
}
