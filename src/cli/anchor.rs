//! `portcullis anchor`: the heads of runs, to be kept where the store cannot reach (SPEC 13, 14).

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::exit::{Exit, Problem, printable};
use super::histories::Histories;
use super::output::Output;
use super::place::{Place, wait};
use super::source::{Source, history};
use super::stepped::agrees;
use crate::adapters::stores::sqlite::SqliteStore;
use crate::history::{Chain, Lines, Next};
use crate::runtime::store::{Filter, Listed, Store};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The runs; all of them when absent.
    runs: Vec<RunId>,
    /// Where the anchors go; standard output when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// That a run had so many records, and the hash of the last of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Anchor {
    run: RunId,
    records: u64,
    head: Digest,
}

/// Anchors are lines of JSON with or without `--json`. Nothing is anchored when one chain is not whole: an anchor
/// of a damaged run would vouch for the damage.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Problem> {
    let store = arguments.place.read()?;
    let runs = if arguments.runs.is_empty() {
        wait(store.list(Filter::All))?.into_iter().map(|listed| listed.run).collect()
    } else {
        arguments.runs.clone()
    };
    let mut lines = Vec::new();
    for run in &runs {
        let Source { name, listed, lines: source, .. } = Source::of(&store, run)?;
        let chain = follow(source, |_| {}).map_err(|reason| damaged(&name, &reason))?;
        if let Some(listed) = &listed {
            agrees(listed, chain.run().unwrap_or(run), chain.records(), chain.head())
                .map_err(|reason| damaged(&name, &reason))?;
        }
        let anchor = Anchor { run: run.clone(), records: chain.records(), head: chain.head() };
        serde_json::to_writer(&mut lines, &anchor).map_err(std::io::Error::from)?;
        lines.push(b'\n');
    }
    match &arguments.out {
        Some(out) => write(out, &lines)?,
        None => {
            let mut out = Output::stdout();
            out.write_all(&lines)?;
            out.finish()?;
        }
    }
    Ok(Exit::Success)
}

fn damaged(name: &str, reason: &str) -> Problem {
    Problem::new(Exit::Corrupt, format!("{name}: damaged, so nothing is anchored: {reason}"))
}

fn write(out: &Path, lines: &[u8]) -> Result<(), Problem> {
    let unwritten = |error: &std::io::Error| Problem::new(Exit::Persistence, format!("{}: {error}", out.display()));
    let mut writer = BufWriter::new(Histories::beside(out)?);
    writer.write_all(lines).map_err(|error| unwritten(&error))?;
    let file = writer.into_inner().map_err(|error| unwritten(error.error()))?;
    file.keep().map_err(|error| unwritten(&error))
}

/// Follows a whole chain and tells `each` how far it has come, or why it is not whole.
pub(super) fn follow(source: impl BufRead, mut each: impl FnMut(&Chain)) -> Result<Chain, String> {
    let (mut lines, mut chain) = (Lines::new(source), Chain::new());
    loop {
        match lines.next_line().map_err(|fault| fault.to_string())? {
            Next::Line(line) => chain.take(line).map(drop).map_err(|fault| fault.to_string())?,
            Next::Tail(tail) => {
                return Err(format!("the last line is cut ({} bytes from byte {})", tail.bytes, tail.offset));
            }
            Next::End if chain.records() == 0 => return Err("not one whole record".to_owned()),
            Next::End => return Ok(chain),
        }
        each(&chain);
    }
}

/// What became of an anchored run.
#[derive(Debug, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
enum Found {
    /// It is there: the same record in that place, and a whole chain around it.
    Holds {
        /// How many records it has now.
        now: u64,
    },
    /// The store does not have it.
    Missing,
    /// It has fewer records than were anchored.
    Shorter {
        /// How many.
        now: u64,
    },
    /// Another record stands in that place.
    OtherHead {
        /// Its hash.
        got: Digest,
    },
    /// Its chain is not whole.
    Damaged {
        /// How.
        reason: String,
    },
}

#[derive(Serialize)]
struct Checked<'a> {
    run: &'a RunId,
    records: u64,
    head: Digest,
    #[serde(flatten)]
    found: &'a Found,
}

/// `portcullis verify --anchor`: whether the store still holds what was anchored.
pub(crate) fn check(path: &Path, place: &Place, json: bool) -> Result<Exit, Problem> {
    let anchors = read(path)?;
    let store = place.read()?;
    let mut out = Output::stdout();
    let mut exit = Exit::Success;
    for anchor in &anchors {
        let found = look(&store, anchor)?;
        if !matches!(found, Found::Holds { .. }) {
            exit = Exit::Corrupt;
        }
        let Anchor { run, records, head } = anchor;
        if json {
            out.json(&Checked { run, records: *records, head: *head, found: &found })?;
        } else {
            writeln!(out, "{}", printable(&format!("{run}: {}", describe(anchor, &found))))?;
        }
    }
    out.finish()?;
    Ok(exit)
}

fn describe(anchor: &Anchor, found: &Found) -> String {
    let Anchor { records, head, .. } = anchor;
    match found {
        Found::Holds { now } => format!("holds: {records} records were anchored, {now} are there"),
        Found::Missing => format!("missing: {records} records were anchored, and the store has no such run"),
        Found::Shorter { now } => format!("shorter: {records} records were anchored, {now} are there"),
        Found::OtherHead { got } => {
            format!("another history: record {} is {got}, {head} was anchored", records.saturating_sub(1))
        }
        Found::Damaged { reason } => format!("damaged: {reason}"),
    }
}

/// The whole chain is followed, past the anchored record too: what was added must continue it.
fn look(store: &SqliteStore, anchor: &Anchor) -> Result<Found, Problem> {
    let Some(listed) = wait(store.find(&anchor.run))? else {
        return Ok(Found::Missing);
    };
    let lines = match history(store, &anchor.run)? {
        Ok(lines) => lines,
        Err(reason) => return Ok(Found::Damaged { reason }),
    };
    Ok(compare(lines, anchor, &listed).unwrap_or_else(|reason| Found::Damaged { reason }))
}

fn compare(source: impl BufRead, anchor: &Anchor, listed: &Listed) -> Result<Found, String> {
    let mut got = None;
    let chain = follow(source, |chain| {
        if chain.records() == anchor.records {
            got = Some(chain.head());
        }
    })?;
    let now = chain.records();
    Ok(match got {
        None => Found::Shorter { now },
        Some(got) if got != anchor.head => Found::OtherHead { got },
        Some(_) => {
            agrees(listed, chain.run().unwrap_or(&anchor.run), now, chain.head())?;
            Found::Holds { now }
        }
    })
}

/// Reads anchors. A file without one would verify nothing and say that all is well.
fn read(path: &Path) -> Result<Vec<Anchor>, Problem> {
    let unreadable = |error| Problem::unreadable(Exit::Usage, path, &error);
    let file = BufReader::new(fs::File::open(path).map_err(unreadable)?);
    let mut anchors = Vec::new();
    for (number, line) in (1_u64..).zip(file.lines()) {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |reason: String| Problem::usage(format!("{}: line {number}: no anchor: {reason}", path.display()));
        let anchor: Anchor = serde_json::from_str(&line).map_err(|error| bad(error.to_string()))?;
        if anchor.records == 0 {
            return Err(bad("it holds no record".to_owned()));
        }
        anchors.push(anchor);
    }
    if anchors.is_empty() {
        return Err(Problem::usage(format!("{}: holds no anchor; `portcullis anchor` makes them", path.display())));
    }
    Ok(anchors)
}
