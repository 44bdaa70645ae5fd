//! `portcullis export`: a history out of the store, byte for byte or redacted (SPEC 13, 14).

use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::exit::{Exit, Problem, note};
use super::histories::{Histories, HistoryFile};
use super::output::Output;
use super::place::Place;
use super::source::{Source, damaged};
use crate::history::redaction::Redactor;
use crate::history::{Lines, Next, Replay, Replayed};
use crate::vocabulary::ids::RunId;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The run.
    run: RunId,
    /// Where it goes; standard output when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leaves out everything that was written in the run: payloads become keyed digests.
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Exported<'a> {
    run: &'a RunId,
    out: String,
    redacted: bool,
    bytes: u64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let run = &arguments.run;
    let source = Source::of(&arguments.place.read()?, run)?;
    let Some(out) = &arguments.out else {
        let mut out = Output::new(BufWriter::new(io::stdout().lock()));
        let copied = copy(source, arguments.redact, &mut out);
        out.finish()?;
        return copied.map(|_| Exit::Success);
    };
    let file = Histories::beside(out)?;
    let unwritten = |error: &io::Error| Problem::new(Exit::Persistence, format!("{}: {error}", out.display()));
    let mut writer = BufWriter::new(file);
    let bytes = copy(source, arguments.redact, &mut writer)?;
    let file: HistoryFile = writer.into_inner().map_err(|error| unwritten(error.error()))?;
    file.keep().map_err(|error| unwritten(&error))?;
    let mut said = Output::stdout();
    if json {
        let out = out.display().to_string();
        said.json(&Exported { run, out, redacted: arguments.redact, bytes })?;
    } else {
        note!("portcullis: {run}: {bytes} bytes in {}", super::exit::printable(&out.display().to_string()));
    }
    said.finish()?;
    Ok(Exit::Success)
}

/// Copies a history and gives the number of bytes. What is redacted is stepped first, line by line, so that no
/// export stands for what no engine would have written.
fn copy(source: Source, redact: bool, out: &mut impl Write) -> Result<u64, Problem> {
    let Source { name, lines, .. } = source;
    let unwritten = |error: io::Error| Problem::new(Exit::Persistence, format!("export of {name}: {error}"));
    if !redact {
        return plain(&name, lines, out);
    }
    let (mut lines, mut replay, mut redactor) = (Lines::new(lines), <Replay>::default(), Redactor::new());
    let mut bytes = 0;
    while let Next::Line(line) = lines.next_line().map_err(|fault| damaged(&name, &fault))? {
        if let Replayed::Diverged(found) = replay.take(line).map_err(|fault| damaged(&name, &fault))? {
            let reason = format!("{name}: record {} diverges in {}: it is not redacted", found.seq, found.field);
            return Err(Problem::new(Exit::Divergence, reason));
        }
        let redacted = redactor.redact(line).map_err(|fault| damaged(&name, &fault))?;
        bytes += redacted.len() as u64;
        out.write_all(redacted).map_err(unwritten)?;
    }
    let closing = redactor.close();
    bytes += closing.len() as u64;
    out.write_all(closing).map_err(unwritten)?;
    Ok(bytes)
}

/// Copies without a look: what is damaged may be rescued so.
fn plain(name: &str, mut lines: Box<dyn BufRead + Send>, out: &mut impl Write) -> Result<u64, Problem> {
    let mut bytes = 0;
    loop {
        let unread = |error: io::Error| Problem::new(Exit::Corrupt, format!("{name}: cannot be read: {error}"));
        let chunk = lines.fill_buf().map_err(unread)?;
        if chunk.is_empty() {
            return Ok(bytes);
        }
        let length = chunk.len();
        let unwritten = |error: io::Error| Problem::new(Exit::Persistence, format!("export of {name}: {error}"));
        out.write_all(chunk).map_err(unwritten)?;
        lines.consume(length);
        bytes += length as u64;
    }
}
