//! `portcullis resume` and `portcullis wake`: runs whose driver died, or whose timer has come due (SPEC 7, 14).

use super::carry_on::{Carrier, Reason};
use super::configuration::Configuration;
use super::exit::{Exit, Problem, note};
use super::performance::worse;
use super::place::{Place, refused};
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::store::{Filter, Listed, Store};
use crate::vocabulary::ids::RunId;

/// What is carried on.
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The run; every run whose driver died when none is named.
    run: Option<RunId>,
    /// Take the run from the living process that drives it. What that process does from then on is refused.
    #[arg(long, requires = "run")]
    take_over: bool,
    #[command(flatten)]
    live: Configuration,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Wake {
    #[command(flatten)]
    place: Place,
}

pub(crate) async fn resume(arguments: &Resume, json: bool) -> Result<Exit, Problem> {
    let carrier = Carrier::new(&arguments.place, &arguments.live, json, arguments.take_over)?;
    if let Some(run) = &arguments.run {
        let exit = carrier.carry(run, Reason::Resumed).await?;
        carrier.screen.finish()?;
        return Ok(exit);
    }
    let lost = carrier.store().list(Filter::Lost).await.map_err(|error| refused(&error))?;
    carry_all(&carrier, lost, || Reason::Resumed, "no run has lost its driver").await
}

pub(crate) async fn wake(arguments: &Wake, json: bool) -> Result<Exit, Problem> {
    let carrier = Carrier::new(&arguments.place, &Configuration::default(), json, false)?;
    let now_ms = SystemClock::new().now_ms();
    let due = carrier.store().list(Filter::Due { now_ms }).await.map_err(|error| refused(&error))?;
    carry_all(&carrier, due, || Reason::Woken, "no run has a timer that is due").await
}

/// Carries on one run after the other. One that cannot go on does not hold up the others.
async fn carry_all(
    carrier: &Carrier,
    runs: Vec<Listed>,
    reason: impl Fn() -> Reason,
    none: &str,
) -> Result<Exit, Problem> {
    if runs.is_empty() {
        note!("portcullis: {none}");
    }
    let several = runs.len() > 1 && !carrier.screen.is_json();
    let (mut worst, mut problem) = (Exit::Success, None);
    for Listed { run, .. } in runs {
        if several {
            carrier.screen.write(|out| writeln!(out, "== {run}"))?;
        }
        match carrier.carry(&run, reason()).await {
            Ok(exit) => worst = worse(worst, exit),
            // Whoever interrupts twice wants none of the others either.
            Err(error) if error.exit() == Exit::Open => return Err(error),
            Err(error) => {
                note!("portcullis: {run}: {}", super::exit::printable(&error.to_string()));
                problem.get_or_insert(error);
            }
        }
    }
    carrier.screen.finish()?;
    problem.map_or(Ok(worst), |problem| Ok(problem.exit()))
}
