//! `portcullis import`: histories into the store, whole and verified or not at all (SPEC 13, 14).

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::exit::{Exit, Problem, printable};
use super::output::Output;
use super::place::{Place, wait};
use super::source::{Source, history};
use super::stepped::{Stepped, progress, step_through};
use crate::adapters::stores::sqlite::SqliteStore;
use crate::runtime::store::{Beginning, Standing, Store, StoreError};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Histories, one record a line.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// A history that was found good.
struct Verified {
    path: PathBuf,
    lines: Vec<u8>,
    stepped: Stepped,
    started_ms: u64,
}

#[derive(Serialize)]
struct Imported<'a> {
    run: &'a RunId,
    file: String,
    records: u64,
    head: Digest,
    /// Whether the store had these bytes already.
    already: bool,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    // Everything is verified before anything is stored, and before a store is made.
    let verified = arguments.files.iter().map(|path| verify(path)).collect::<Result<Vec<_>, _>>()?;
    let store = arguments.place.make()?;
    let mut out = Output::stdout();
    for one in verified {
        let path = one.path.display().to_string();
        let (run, records, head) = (one.stepped.run.clone(), one.stepped.records, one.stepped.head);
        let already = import(&store, one)?;
        if json {
            out.json(&Imported { run: &run, file: path, records, head, already })?;
        } else {
            let done = if already { "was there already, byte for byte" } else { "imported" };
            let line = format!("{path}: run {run} {done}, {records} records, head {head}");
            std::io::Write::write_all(&mut out, format!("{}\n", printable(&line)).as_bytes())?;
        }
    }
    out.finish()?;
    Ok(Exit::Success)
}

/// Reads a history and steps through it.
fn verify(path: &Path) -> Result<Verified, Problem> {
    let Source { name, lines: mut source, .. } = Source::file(path)?;
    let mut lines = Vec::new();
    source.read_to_end(&mut lines).map_err(|error| Problem::unreadable(Exit::Corrupt, path, &error))?;
    let mut wall_time = None;
    let stepped = step_through(&name, &*lines, &progress(None, lines.len() < 1 << 22), |step, _| {
        if let Input::RunStarted { wall_time: said, .. } = &step.input {
            wall_time = humantime::parse_rfc3339(said).ok();
        }
        Ok(())
    })?;
    if let Some(tail) = &stepped.tail {
        return Err(Problem::new(
            Exit::Corrupt,
            format!(
                "{name}: the last line is cut ({} bytes from byte {}): what it held is not known. To go on without it, \
                 import a copy of the first {} bytes: `head -c {} FILE`",
                tail.bytes, tail.offset, tail.offset, tail.offset
            ),
        ));
    }
    let started_ms = started(wall_time, &stepped);
    Ok(Verified { path: path.to_owned(), lines, stepped, started_ms })
}

/// When the run began in wall time. Record 0 says it for people only, so it may say nothing of use: then the run
/// goes on from now as if no time had passed since its last record.
fn started(wall_time: Option<SystemTime>, stepped: &Stepped) -> u64 {
    let at_ms = stepped.engine.decider().clock().map_or(0, crate::machines::clock::Clock::at_ms);
    // A run in virtual time says 1970.
    let began = wall_time
        .filter(|began| *began > UNIX_EPOCH)
        .or_else(|| SystemTime::now().checked_sub(Duration::from_millis(at_ms)));
    let since = began.and_then(|began| began.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Stores one history; true when the store had it already.
fn import(store: &SqliteStore, one: Verified) -> Result<bool, Problem> {
    let Stepped { run, records, head, engine, .. } = one.stepped;
    let beginning = Beginning {
        run: run.clone(),
        started_ms: one.started_ms,
        lines: one.lines.clone(),
        records,
        head,
        standing: Standing::of(&engine, one.started_ms),
        origin: None,
    };
    let created = wait(async {
        match store.create(beginning).await {
            Ok(lease) => store.release(lease).await.map(|()| true),
            Err(StoreError::RunExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    })?;
    if created {
        return Ok(false);
    }
    let mut stored = Vec::new();
    let mut source = history(store, &run)?
        .map_err(|reason| Problem::new(Exit::Corrupt, format!("{run}: the store has it already, damaged: {reason}")))?;
    source
        .read_to_end(&mut stored)
        .map_err(|error| Problem::new(Exit::Corrupt, format!("{run}: the store has it already, damaged: {error}")))?;
    if stored == one.lines {
        return Ok(true);
    }
    let (have, bring) = (count(&stored), records);
    let reason = if one.lines.starts_with(&stored) {
        format!(
            "the store has its first {have} records, and this file goes on to {bring}: nothing is appended to a run but by its driver"
        )
    } else if stored.starts_with(&one.lines) {
        format!(
            "the store has it with {have} records, of which these are the first {bring}: there is nothing to import"
        )
    } else {
        format!("the store has another history under that id, with {have} records")
    };
    Err(Problem::usage(format!(
        "{}: run {run}: {reason}; a store of its own (--store) can take it",
        one.path.display()
    )))
}

fn count(lines: &[u8]) -> usize {
    lines.iter().filter(|byte| **byte == b'\n').count()
}
