//! `portcullis verify`: does what is kept still hold? Files by their chain, the store by replay or against
//! anchors (SPEC 13, 14).

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::anchor::{self, follow};
use super::ending::describe;
use super::exit::{Exit, Problem, printable};
use super::output::Output;
use super::place::{Place, wait};
use super::source::{Source, history};
use super::stepped::{agrees, progress};
use crate::engine::Ending;
use crate::history::{self, Policy, redaction};
use crate::runtime::store::{Filter, Listed, Store};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Histories or redacted exports: their chain is verified, without stepping.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Anchors (of `portcullis anchor`): the store must still hold what they name. Without this and without FILE
    /// every run of the store is replayed.
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    anchor: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    if let Some(anchors) = &arguments.anchor {
        return anchor::check(anchors, &arguments.place, json);
    }
    let mut out = Output::stdout();
    let exit = if arguments.files.is_empty() {
        store(&arguments.place, json, &mut out)?
    } else {
        let mut exit = Exit::Success;
        for path in &arguments.files {
            exit = exit.max(file(path, json, &mut out)?);
        }
        exit
    };
    out.finish()?;
    Ok(exit)
}

/// What a file turned out to be.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum File {
    /// A history, with a whole chain.
    History { file: String, run: RunId, records: u64, head: Digest },
    /// A redacted export, whole, and what it says it was made of.
    RedactedExport { file: String, run: RunId, records: u64, head: Digest },
    /// Neither, or not whole.
    Corrupt { file: String, reason: String },
}

fn file(path: &Path, json: bool, out: &mut impl Write) -> Result<Exit, Problem> {
    let Source { name, lines, .. } = Source::file(path)?;
    let found = verified(name, lines);
    if json {
        serde_json::to_writer(&mut *out, &found).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let line = match &found {
            File::History { file, run, records, head } => {
                format!("{file}: a history of run {run}: whole chain, {records} records, head {head}")
            }
            File::RedactedExport { file, run, records, head } => {
                format!("{file}: a redacted export of run {run}: whole, made of {records} records with head {head}")
            }
            File::Corrupt { file, reason } => format!("{file}: corrupt: {reason}"),
        };
        writeln!(out, "{}", printable(&line))?;
    }
    Ok(if matches!(found, File::Corrupt { .. }) { Exit::Corrupt } else { Exit::Success })
}

/// Its first line says what a file means to be.
fn verified(file: String, mut lines: Box<dyn BufRead + Send>) -> File {
    let mut begin = Vec::new();
    if let Err(error) = lines.by_ref().take(32).read_to_end(&mut begin) {
        return File::Corrupt { file, reason: format!("cannot be read: {error}") };
    }
    let redacted = redaction::is_marked(&begin);
    let lines = BufReader::new(std::io::Cursor::new(begin).chain(lines));
    if redacted {
        return match redaction::verify(lines) {
            Ok(redaction::Origin { run, records, head }) => File::RedactedExport { file, run, records, head },
            Err(fault) => File::Corrupt { file, reason: format!("as a redacted export: {fault}") },
        };
    }
    match follow(lines, |_| {}) {
        Ok(chain) => match chain.run().cloned() {
            Some(run) => File::History { file, run, records: chain.records(), head: chain.head() },
            None => File::Corrupt { file, reason: "not one whole record".to_owned() },
        },
        Err(reason) => File::Corrupt { file, reason },
    }
}

/// A run of the store, replayed.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum Replayed {
    Reproduced { run: RunId, records: u64, head: Digest, ending: Option<Ending> },
    Diverged { run: RunId, seq: u64, field: String },
    Damaged { run: RunId, reason: String },
}

fn store(place: &Place, json: bool, out: &mut impl Write) -> Result<Exit, Problem> {
    let store = place.read()?;
    let runs = wait(store.list(Filter::All))?;
    let records = runs.iter().map(|listed| listed.records).sum();
    let bar = progress(Some(records), false);
    let mut exit = Exit::Success;
    for listed in runs {
        let (run, steps) = (listed.run.clone(), listed.records);
        let found = match history(&store, &run)? {
            Ok(lines) => replayed(listed, lines),
            Err(reason) => Replayed::Damaged { run, reason },
        };
        bar.inc(steps);
        exit = exit.max(match &found {
            Replayed::Reproduced { .. } => Exit::Success,
            Replayed::Diverged { .. } => Exit::Divergence,
            Replayed::Damaged { .. } => Exit::Corrupt,
        });
        if json {
            serde_json::to_writer(&mut *out, &found).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            bar.suspend(|| writeln!(out, "{}", printable(&said(&found))))?;
        }
    }
    bar.finish_and_clear();
    Ok(exit)
}

fn said(found: &Replayed) -> String {
    match found {
        Replayed::Reproduced { run, records, ending: Some(ending), .. } => {
            format!("{run}: reproduced, {records} records: {}", describe(ending))
        }
        Replayed::Reproduced { run, records, ending: None, .. } => {
            format!("{run}: reproduced, {records} records: open")
        }
        Replayed::Diverged { run, seq, field } => format!("{run}: record {seq} diverges in {field}"),
        Replayed::Damaged { run, reason } => format!("{run}: damaged: {reason}"),
    }
}

fn replayed(listed: Listed, lines: impl BufRead) -> Replayed {
    let run = listed.run.clone();
    let summary = match history::replay(lines, Policy::Stop) {
        Ok(summary) => summary,
        Err(fault) => return Replayed::Damaged { run, reason: fault.to_string() },
    };
    if let Some(found) = summary.divergences.into_iter().next() {
        return Replayed::Diverged { run, seq: found.seq, field: found.field };
    }
    match agrees(&listed, &summary.run, summary.records, summary.head) {
        Ok(()) => Replayed::Reproduced { run, records: summary.records, head: summary.head, ending: summary.ending },
        Err(reason) => Replayed::Damaged { run, reason },
    }
}
