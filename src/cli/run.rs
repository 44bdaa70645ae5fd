//! `portcullis run`: a scenario or a recorded transcript, taken to its end (SPEC 14).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ending::{EndingLine, OpenLine, describe, exit};
use super::exit::{Exit, Problem, printable};
use super::histories::{Histories, HistoryFile, not_stored};
use super::output::Output;
use super::staging::Staging;
use super::timeline::Timeline;
use crate::adapters::scenario::{Expectation, Play, PlayError, Scenario};
use crate::machines::release::{Body, Citation, Release};
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::RunId;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A scenario (an object with `spec`) or a recorded chat transcript.
    file: PathBuf,
    /// Where the history goes: a file; a folder when FILE holds several runs.
    #[arg(long, value_name = "OUT")]
    history: Option<PathBuf>,
    /// Replace a history that is there.
    #[arg(long, requires = "history")]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let path = &arguments.file;
    let staging = Staging::read(path)?;
    for note in staging.notes() {
        say(path, note);
    }
    let (out, force) = (arguments.history.as_ref(), arguments.force);
    let histories = out.map(|out| Histories::prepare(out, &staging.runs, force)).transpose()?;
    let mut worst = Exit::Success;
    let mut out = Output::new(io::BufWriter::new(io::stdout().lock()));
    for (index, run) in staging.runs.iter().enumerate() {
        let Some(scenario) = staging.scenario(index) else { continue };
        if staging.runs.len() > 1 && !json {
            writeln!(out, "== {run}")?;
        }
        let history = histories.as_ref().map(|histories| histories.open(run)).transpose()?;
        worst = worse(worst, perform(path, run, scenario, history, json, &mut out)?);
        out.flush()?;
    }
    out.finish()?;
    Ok(worst)
}

/// Remarks go to standard error: they are about the file, not the result.
fn say(path: &Path, remark: &str) {
    eprintln!("portcullis: {}: {}", path.display(), printable(remark));
}

/// The one that is reported when several runs end (SPEC 14.8).
fn worse(one: Exit, other: Exit) -> Exit {
    const ORDER: [Exit; 6] =
        [Exit::Unexpected, Exit::Awaiting, Exit::Cancelled, Exit::Failed, Exit::Fallback, Exit::Success];
    ORDER.into_iter().find(|exit| *exit == one || *exit == other).unwrap_or(one)
}

/// Where records go: into a history, or nowhere.
struct Store(Option<HistoryFile>);

impl Store {
    /// Makes the history durable.
    fn keep(&mut self) -> Result<(), Problem> {
        let Some(history) = self.0.take() else {
            return Ok(());
        };
        let place = history.place().to_owned();
        history.keep().map_err(|error| not_stored(&place, &error))
    }

    /// The problem of a record that was not stored.
    fn refused(&self, error: &io::Error) -> Problem {
        not_stored(self.0.as_ref().map_or(Path::new("history"), HistoryFile::place), error)
    }
}

impl Write for Store {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Takes one run to its end. What is released is shown when the history is durable, and not before.
fn perform(
    path: &Path,
    run: &RunId,
    scenario: Scenario,
    history: Option<HistoryFile>,
    json: bool,
    out: &mut impl Write,
) -> Result<Exit, Problem> {
    let expect = scenario.expect.clone();
    let mut play = Play::new(scenario, run.clone(), Store(history));
    let mut timeline = Timeline::default();
    loop {
        match play.advance() {
            Ok(Some(event)) if !json => timeline.show(&event, play.engine(), out)?,
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(PlayError::Spec(refusal)) => return Err(Problem::usage(format!("{}: {refusal}", path.display()))),
            Err(PlayError::Store(error)) => return Err(play.store_mut().refused(&error)),
        }
    }
    play.store_mut().keep()?;
    show_end(&play, run, json, out)?;
    Ok(remark(path, &play, run, expect.as_ref()))
}

/// The ending and its release, or that there is none.
fn show_end(play: &Play<Store>, run: &RunId, json: bool, out: &mut impl Write) -> Result<(), Problem> {
    let (ledger, records, head) = (play.engine().ledger(), play.records(), play.head());
    match (play.engine().ending(), json) {
        (Some(ending), true) => write_json(&EndingLine::new(run, ending, ledger, records, head), out)?,
        (None, true) => write_json(&OpenLine::new(run, ledger, records, head), out)?,
        (Some(ending), false) => {
            writeln!(out, "{}", printable(&describe(ending)))?;
            if let Some(release) = play.engine().release() {
                write!(out, "{}", printable(&released(release)))?;
            }
        }
        (None, false) => writeln!(out, "open: the run awaits a person")?,
    }
    Ok(())
}

fn write_json(value: &impl serde::Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Says on standard error what the file left open or expected otherwise, and gives the exit code.
fn remark(path: &Path, play: &Play<Store>, run: &RunId, expect: Option<&Expectation>) -> Exit {
    for question in play.questions() {
        say(path, &format!("{run}: the file leaves open: {question}"));
    }
    for unused in play.unused() {
        say(path, &format!("{run}: the file holds {unused}"));
    }
    for person in play.people() {
        say(path, &format!("{run}: {person}"));
    }
    let Some(ending) = play.engine().ending() else {
        if let Some(expected) = expect {
            say(path, &format!("{run}: expected an ending in row {}, but the run awaits a person", expected.row));
        }
        return if expect.is_some() { Exit::Unexpected } else { Exit::Awaiting };
    };
    let differences = expect.map(|expected| expected.differences(ending)).unwrap_or_default();
    for difference in &differences {
        say(path, &format!("{run}: the ending differs in {difference}"));
    }
    if differences.is_empty() { exit(ending) } else { Exit::Unexpected }
}

/// What the reader of the run gets, for people. Every line of it is indented, so that no released text looks
/// like a line of ours.
fn released(release: &Release) -> String {
    let mut text = String::new();
    let mut say = |indent: &str, line: &str| {
        for line in line.lines() {
            text.push_str(indent);
            text.push_str(line);
            text.push('\n');
        }
    };
    match release.body() {
        Body::Success { statement, data, citations, judged, .. } => {
            say("  ", statement);
            for Citation { fact, quote } in citations {
                say("    ", &told(fact));
                if let Some(quote) = quote {
                    say("      ", &format!("quoted: {quote}"));
                }
            }
            if let Some(data) = data {
                say("    ", &format!("data: {}", data.to_text()));
            }
            if !judged {
                say("  ", "(no judge was asked: the spec switched it off)");
            }
        }
        Body::Fallback { facts, .. } => {
            say("  ", "No report could be verified. This was observed:");
            for fact in facts {
                say("    ", &told(fact));
            }
        }
        Body::Failed { message, .. } | Body::Cancelled { message, .. } => say("  ", message),
    }
    text
}

fn told(fact: &Fact) -> String {
    format!("[{}] {}: {}", fact.id, fact.tool, fact.statement)
}
