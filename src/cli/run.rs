//! `portcullis run`: a scenario or a recorded transcript, taken to its end (SPEC 14).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::attended::attend;
use super::configuration::with;
use super::consent::Consent;
use super::exit::{Exit, Problem};
use super::histories::{Histories, HistoryFile, not_stored};
use super::live::Live;
use super::origin::{Origin, Pace};
use super::performance::{Again, failed, point_to_errors, remark, say, show, watch, worse};
use super::place::{Place, refused};
use super::screen::Screen;
use super::staging::Staging;
use crate::adapters::scenario::{Opening, Real, Scenario, Setting, Stage};
use crate::adapters::stores::memory::MemoryStore;
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::execution::Error;
use crate::runtime::store::{Store, StoreError};
use crate::runtime::{Outcome, VirtualClock};
use crate::vocabulary::ids::RunId;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A scenario (an object with `spec`) or a recorded chat transcript.
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Keep the run in memory alone.
    #[arg(long, conflicts_with = "store")]
    no_store: bool,
    /// Let waits take as long as they say, instead of no time.
    #[arg(long)]
    real_time: bool,
    /// Where the history goes as well: a file; a folder when FILE holds several runs.
    #[arg(long, value_name = "OUT")]
    history: Option<PathBuf>,
    /// Replace a history that is there.
    #[arg(long, requires = "history")]
    force: bool,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let path = &arguments.file;
    let staging = Staging::read(path)?;
    for note in staging.notes() {
        say(path, &note);
    }
    // A scenario is one run; the turns of a transcript have no real parts.
    let scenario = staging.scenario(0);
    if scenario.as_ref().is_some_and(|scenario| !scenario.spec.tool_sources.is_empty() && scenario.real.is_empty()) {
        say(path, "nothing in it is real, so that its tool_sources are not used");
    }
    let mut live = scenario.map(|scenario| arguments.consent.ports(path, &scenario)).transpose()?.unwrap_or_default();
    let (out, force) = (arguments.history.as_ref(), arguments.force);
    let histories = out.map(|out| Histories::prepare(out, &staging.runs, force)).transpose()?;
    let show = Show { arguments, screen: Arc::new(Screen::new(json)), store: store(arguments)? };
    let mut worst = Exit::Success;
    for (index, run) in staging.runs.iter().enumerate() {
        let Some(scenario) = staging.scenario(index) else { continue };
        if staging.runs.len() > 1 && !json {
            show.screen.write(|out| writeln!(out, "== {run}"))?;
        }
        let history = histories.as_ref().map(|histories| histories.open(run)).transpose()?;
        let live = std::mem::take(&mut live);
        worst = worse(worst, show.perform(run, scenario, live, staging.written(), history).await?);
    }
    show.screen.finish()?;
    Ok(worst)
}

fn store(arguments: &Arguments) -> Result<Arc<dyn Store>, Problem> {
    if arguments.no_store {
        return Ok(Arc::new(MemoryStore::new()));
    }
    Ok(Arc::new(arguments.place.make()?))
}

struct Show<'a> {
    arguments: &'a Arguments,
    screen: Arc<Screen>,
    store: Arc<dyn Store>,
}

impl Show<'_> {
    /// Takes one run to its end. What is released is shown when it is durable, and not before.
    async fn perform(
        &self,
        run: &RunId,
        scenario: Scenario,
        live: Live,
        written: Option<&str>,
        history: Option<HistoryFile>,
    ) -> Result<Exit, Problem> {
        let path = &self.arguments.file;
        let expect = scenario.expect.clone();
        self.screen.begin();
        let is_real = !scenario.real.is_empty();
        let (stage, run, outcome) = self.play(run, scenario, live, written).await?;
        if let Some(history) = history {
            keep(&*self.store, &run, history).await?;
        }
        let (store, with) = (self.arguments.place.again(), if is_real { with(path) } else { String::new() });
        let again = (!self.arguments.no_store).then_some(Again { store: &store, with: &with });
        if matches!(outcome, Outcome::Awaiting(_)) && again.is_none() {
            say(path, "the run is not kept, so that nobody can answer: leave --no-store out");
        }
        show(&self.screen, &outcome, &run, &*self.store, again.as_ref()).await?;
        if is_real {
            point_to_errors(&outcome, &run, again.as_ref());
        }
        Ok(remark(path, &stage, &run, &outcome, expect.as_ref()))
    }

    /// Plays a run, and ends what was started for it.
    async fn play(
        &self,
        run: &RunId,
        scenario: Scenario,
        live: Live,
        written: Option<&str>,
    ) -> Result<(Stage, RunId, Outcome), Problem> {
        let is_real = !scenario.real.is_empty();
        let played = async {
            let (mut stage, run) = self.begin(run, scenario, live.real.clone(), written).await?;
            let outcome =
                if is_real { attend(&mut stage, &run, &self.screen).await? } else { watch(&mut stage, &run).await? };
            Ok((stage, run, outcome))
        }
        .await;
        live.close().await;
        played
    }

    /// Begins a run under its own id, or the next one that is free.
    async fn begin(
        &self,
        named: &RunId,
        scenario: Scenario,
        real: Real,
        written: Option<&str>,
    ) -> Result<(Stage, RunId), Problem> {
        let is_real = !scenario.real.is_empty();
        let pace = if self.arguments.real_time || is_real { Pace::Real } else { Pace::Virtual };
        let clock: Arc<dyn Clock> = match pace {
            Pace::Real => Arc::new(SystemClock::new()),
            Pace::Virtual => Arc::new(VirtualClock::starting_at(SystemClock::new().now_ms())),
        };
        let origin = Origin { pace, scenario: written.map(str::to_owned) };
        let origin = serde_json::to_vec(&origin).map_err(|error| Problem::new(Exit::Unexpected, error.to_string()))?;
        let audience = Some(Arc::clone(&self.screen) as _);
        let setting = Setting { store: Arc::clone(&self.store), clock, audience, takes_over: false, real };
        let wall_time = match pace {
            Pace::Real => humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            Pace::Virtual => Opening::timeless(named.clone()).wall_time,
        };
        // What happens only once has jitter of its own.
        let nonce = if is_real { uuid::Uuid::new_v4().simple().to_string() } else { named.to_string() };
        let mut nth = 1_u32;
        loop {
            let run = if nth == 1 { named.clone() } else { next(named, nth) };
            let (origin, wall_time, nonce) = (Some(origin.clone()), wall_time.clone(), nonce.clone());
            let opening = Opening { run: run.clone(), origin, wall_time, nonce };
            match Stage::begin(scenario.clone(), opening, &setting).await {
                Ok(stage) => return Ok((stage, run)),
                Err(Error::Commit(StoreError::RunExists { .. })) => nth = nth.saturating_add(1),
                Err(error @ Error::Resolution { .. }) => {
                    return Err(Problem::usage(format!("{}: {error}", self.arguments.file.display())));
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}

/// The id with a number behind it.
fn next(named: &RunId, nth: u32) -> RunId {
    let suffix = format!("-{nth}");
    let kept = named.as_str().get(..RunId::BYTES_MAX.saturating_sub(suffix.len())).unwrap_or(named.as_str());
    format!("{kept}{suffix}").parse().unwrap_or_else(|_| named.clone())
}

/// Writes the run's history into a file of its own.
async fn keep(store: &dyn Store, run: &RunId, mut history: HistoryFile) -> Result<(), Problem> {
    let mut source = store.read(run).await.map_err(|error| refused(&error))?;
    let place = history.place().to_owned();
    let kept = std::io::copy(&mut source, &mut history).and_then(|_| history.keep());
    kept.map_err(|error| not_stored(&place, &error))
}
