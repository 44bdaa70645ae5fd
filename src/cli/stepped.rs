//! A history, stepped again (SPEC 13).

use std::io::BufRead;

use indicatif::ProgressBar;

use super::exit::{Exit, Problem};
use super::source::damaged;
use crate::engine::{Engine, Step};
use crate::history::{Divergence, Lines, Next, Replay, Replayed, Tail};
use crate::runtime::store::Listed;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

/// Records from which on a terminal is shown how far a replay has come.
const LONG: u64 = 2_000;

/// What a history leads to.
pub(crate) struct Stepped {
    /// The engine as the last record left it.
    pub(crate) engine: Engine,
    /// The run.
    pub(crate) run: RunId,
    /// How many records.
    pub(crate) records: u64,
    /// The hash of the last.
    pub(crate) head: Digest,
    /// A cut last line.
    pub(crate) tail: Option<Tail>,
}

/// Steps through a history; `each` sees every step, with the engine after it.
pub(crate) fn step_through(
    name: &str,
    lines: impl BufRead,
    bar: &ProgressBar,
    mut each: impl FnMut(&Step, &Engine) -> Result<(), Problem>,
) -> Result<Stepped, Problem> {
    let mut lines = Lines::new(lines);
    let mut replay = Replay::<Engine>::default();
    let tail = loop {
        match lines.next_line().map_err(|fault| damaged(name, &fault))? {
            Next::End => break None,
            Next::Tail(tail) => break Some(tail),
            Next::Line(line) => match replay.take(line).map_err(|fault| damaged(name, &fault))? {
                Replayed::Reproduced(step) => each(&step, replay.stepper())?,
                Replayed::Diverged(divergence) => return Err(diverged(name, &divergence)),
            },
        }
        bar.inc(1);
    };
    bar.finish_and_clear();
    let records = replay.records();
    let (engine, recorder) = replay.into_parts();
    let Some(run) = engine.run_id().cloned() else {
        return Err(Problem::new(Exit::Corrupt, format!("{name}: corrupt: not one whole record")));
    };
    Ok(Stepped { run, records, head: recorder.head(), tail, engine })
}

/// Says where, and leaves it to `replay` to show what: both sides may hold text.
fn diverged(name: &str, found: &Divergence) -> Problem {
    let Divergence { seq, field, .. } = found;
    Problem::new(
        Exit::Divergence,
        format!(
            "{name}: record {seq} diverges in {field}; `portcullis export` and `portcullis replay` show both sides"
        ),
    )
}

/// Whether a run's history is what the store says of it. It may have grown since.
pub(crate) fn agrees(listed: &Listed, run: &RunId, records: u64, head: Digest) -> Result<(), String> {
    if listed.run != *run {
        return Err(format!("the records belong to run {run}"));
    }
    if records < listed.records {
        return Err(format!("{records} records are there, {} were stored", listed.records));
    }
    if records == listed.records && head != listed.head {
        return Err(format!("the last record is {head}, {} was stored", listed.head));
    }
    Ok(())
}

/// Shows on a terminal how far a long history has been read. It keeps quiet where the result itself shows it.
pub(crate) fn progress(records: Option<u64>, quiet: bool) -> ProgressBar {
    match records {
        Some(records) if records >= LONG && !quiet => ProgressBar::new(records),
        None if !quiet => ProgressBar::no_length(),
        Some(_) | None => ProgressBar::hidden(),
    }
}
