//! `portcullis fork`: a run of its own that begins with the first records of another (SPEC 13.13, 14).

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::exit::{Exit, Problem, note, printable};
use super::histories::{Histories, HistoryFile};
use super::output::Output;
use super::place::{Place, quoted};
use super::source::{Source, damaged};
use crate::history::fork::{Fork, ForkError, Prefix};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Parent;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A history, or a run of the store. A file of that name is taken before a run.
    #[arg(value_name = "RUN|FILE")]
    history: String,
    /// It is a run, even if there is a file of that name.
    #[arg(long)]
    run: bool,
    /// The last record that the fork takes over.
    #[arg(long, value_name = "SEQ")]
    at: u64,
    /// The fork's id; the parent's with `-fork-SEQ` behind it when absent.
    #[arg(long = "as", value_name = "ID")]
    id: Option<RunId>,
    /// Where the fork's history goes; standard output when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Forked<'a> {
    run: &'a RunId,
    forked_from: &'a Parent,
    records: u64,
    head: Digest,
    out: String,
    waits_for: Vec<&'static str>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let Source { name, lines, .. } = Source::named(&arguments.history, arguments.run, &arguments.place)?;
    let refused = |error: ForkError| refused(&name, &error);
    let prefix = Prefix::read(lines, arguments.at).map_err(refused)?;
    let id = match &arguments.id {
        Some(id) => id.clone(),
        None => usual(prefix.parent())?,
    };
    let wall_time = began(prefix.wall_time(), prefix.at_ms());
    let fork = prefix.fork(&id, wall_time).map_err(refused)?;
    match &arguments.out {
        Some(out) => keep(&fork, &id, out, json)?,
        None => {
            note!("portcullis: privileged: a history holds what was not released");
            let mut out = Output::new(BufWriter::new(io::stdout().lock()));
            out.write_all(&fork.lines)?;
            out.finish()?;
        }
    }
    Ok(Exit::Success)
}

/// The parent's id, and where it was left.
fn usual(parent: &Parent) -> Result<RunId, Problem> {
    let id = format!("{}-fork-{}", parent.run, parent.seq);
    id.parse().map_err(|error| Problem::usage(format!("{error}; name the fork with --as ID")))
}

/// When the fork began: so that no time has passed since its last record. What says nothing, as the beginning of a
/// run in virtual time, stays as it is.
fn began(parents: &str, at_ms: u64) -> String {
    let said = humantime::parse_rfc3339(parents).ok().filter(|began| *began > UNIX_EPOCH);
    let began = said.and_then(|_| SystemTime::now().checked_sub(Duration::from_millis(at_ms)));
    began.map_or_else(|| parents.to_owned(), |began| humantime::format_rfc3339_millis(began).to_string())
}

fn keep(fork: &Fork, id: &RunId, out: &Path, json: bool) -> Result<(), Problem> {
    let unwritten = |error: io::Error| Problem::new(Exit::Persistence, format!("{}: {error}", out.display()));
    let mut file: HistoryFile = Histories::beside(out)?;
    file.write_all(&fork.lines).map_err(unwritten)?;
    file.keep().map_err(unwritten)?;
    let (place, Fork { parent, records, head, engine, .. }) = (out.display().to_string(), fork);
    let mut said = Output::stdout();
    if json {
        let (out, waits_for) = (place, engine.expected());
        said.json(&Forked { run: id, forked_from: parent, records: *records, head: *head, out, waits_for })?;
    } else {
        let line = format!("{place}: run {id}, forked from {} after record {}", parent.run, parent.seq);
        writeln!(said, "{}", printable(&format!("{line}, {records} records, head {head}")))?;
        writeln!(said, "it goes on after `portcullis import {}`", printable(&quoted(&place)))?;
    }
    said.finish()?;
    Ok(())
}

fn refused(name: &str, error: &ForkError) -> Problem {
    let exit = match error {
        ForkError::Damaged(fault) => return damaged(name, fault),
        ForkError::Diverged(_) => Exit::Divergence,
        ForkError::BeyondTheEnd { .. }
        | ForkError::Ended { .. }
        | ForkError::SameRun(_)
        | ForkError::Untranslatable { .. } => Exit::Usage,
    };
    Problem::new(exit, format!("{name}: {error}"))
}
