//! `portcullis export`: a history out of the store, byte for byte or redacted, or what was said in it in a format
//! of others (SPEC 13, 14).

use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;

use indicatif::ProgressBar;
use serde::Serialize;

use super::exit::{Exit, Problem, note};
use super::histories::{Histories, HistoryFile};
use super::output::Output;
use super::place::Place;
use super::source::{Source, damaged};
use super::stepped::step_through;
use crate::adapters::exporters::{Conversation, ExportFormat};
use crate::history::redaction::Redactor;
use crate::history::{Lines, Next, Replay, Replayed};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The run, or a history. A file of that name is taken before a run.
    #[arg(value_name = "RUN|FILE")]
    history: String,
    /// It is a run, even if there is a file of that name.
    #[arg(long)]
    run: bool,
    /// Where it goes; standard output when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leaves out everything that was written in the run: payloads become keyed digests.
    #[arg(long)]
    redact: bool,
    /// What was said and done in a format of others. Privileged, as the history is.
    #[arg(long, value_name = "FORMAT", value_parser = format, conflicts_with = "redact")]
    format: Option<ExportFormat>,
    #[command(flatten)]
    place: Place,
}

fn format(word: &str) -> Result<ExportFormat, String> {
    let found = ExportFormat::ALL.iter().find(|format| format.word() == word);
    let words = ExportFormat::ALL.iter().map(|format| format.word()).collect::<Vec<_>>();
    found.copied().ok_or_else(|| format!("one of {}", words.join(", ")))
}

#[derive(Serialize)]
struct Exported<'a> {
    run: &'a str,
    out: String,
    redacted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<ExportFormat>,
    bytes: u64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let run = arguments.history.as_str();
    let source = Source::named(run, arguments.run, &arguments.place)?;
    let Some(out) = &arguments.out else {
        let mut out = Output::new(BufWriter::new(io::stdout().lock()));
        let copied = copy(source, arguments, &mut out);
        out.finish()?;
        return copied.map(|_| Exit::Success);
    };
    let file = Histories::beside(out)?;
    let unwritten = |error: &io::Error| Problem::new(Exit::Persistence, format!("{}: {error}", out.display()));
    let mut writer = BufWriter::new(file);
    let bytes = copy(source, arguments, &mut writer)?;
    let file: HistoryFile = writer.into_inner().map_err(|error| unwritten(error.error()))?;
    file.keep().map_err(|error| unwritten(&error))?;
    let mut said = Output::stdout();
    if json {
        let out = out.display().to_string();
        let Arguments { redact: redacted, format, .. } = *arguments;
        said.json(&Exported { run, out, redacted, format, bytes })?;
    } else {
        let run = super::exit::printable(run);
        note!("portcullis: {run}: {bytes} bytes in {}", super::exit::printable(&out.display().to_string()));
    }
    said.finish()?;
    Ok(Exit::Success)
}

/// Copies a history and gives the number of bytes. What is redacted is stepped first, line by line, so that no
/// export stands for what no engine would have written.
fn copy(source: Source, arguments: &Arguments, out: &mut impl Write) -> Result<u64, Problem> {
    if let Some(format) = arguments.format {
        return told(source, format, out);
    }
    let Source { name, lines, .. } = source;
    let unwritten = |error: io::Error| Problem::new(Exit::Persistence, format!("export of {name}: {error}"));
    if !arguments.redact {
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

/// Writes what was said in a format of others. The history is stepped for it, so that no export stands for what no
/// engine would have written.
fn told(source: Source, format: ExportFormat, out: &mut impl Write) -> Result<u64, Problem> {
    let Source { name, lines, .. } = source;
    let mut conversation = Conversation::default();
    let stepped = step_through(&name, lines, &ProgressBar::hidden(), |step, engine| {
        conversation.take(step, engine);
        Ok(())
    })?;
    if let Some(tail) = stepped.tail {
        note!("portcullis: the last line is cut at byte {}: it is not exported", tail.offset);
    }
    let unformed = |error| Problem::new(Exit::Unexpected, format!("export of {name}: {error}"));
    let document = format.write(&conversation).map_err(unformed)?;
    let unwritten = |error: io::Error| Problem::new(Exit::Persistence, format!("export of {name}: {error}"));
    out.write_all(document.as_bytes()).map_err(unwritten)?;
    Ok(document.len() as u64)
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
