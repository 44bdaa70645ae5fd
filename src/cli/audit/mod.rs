//! `portcullis audit`: what recorded runs would have ended in, and what is odd about them (docs/audit.md).

mod page;
mod text;
mod total;

use std::io::{BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::exit::{Exit, Problem, note, printable};
use super::histories::Histories;
use super::logs::{self, Log, Place};
use super::output::Output;
use super::rules::Rules;
use super::timeline::Timeline;
use crate::adapters::audit::{Audit, Audited};
use crate::adapters::recording::Recording;
use crate::adapters::transcripts::Format;
use crate::vocabulary::spec::Settings;

use page::Page;
use total::Total;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of recorded runs, and folders of them. A format is told by its shape.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    rules: Rules,
    /// The format of every file.
    #[arg(long, value_parser = logs::format)]
    format: Option<Format>,
    /// Also writes one self-contained page, to be opened in a browser.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Also says what was guessed or left out of each recording, on standard error.
    #[arg(long)]
    notes: bool,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let rules = arguments.rules.read()?;
    let files = logs::files(&arguments.paths)?;
    if files.is_empty() {
        return Err(Problem::usage("no file in these folders"));
    }
    let place = arguments.html.as_deref().map(Histories::beside).transpose()?;
    let mut auditor = Auditor {
        rules: &rules,
        notes: arguments.notes,
        out: Output::new(BufWriter::new(std::io::stdout().lock())),
        json,
        page: place.map(|place| Page::begin(place, &rules)).transpose()?,
        total: Total::default(),
    };
    if !json {
        auditor.out.write_all(text::HEAD.as_bytes())?;
    }
    let bar = bar(files.len());
    for path in &files {
        auditor.file(path, arguments.format)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    auditor.finish()
}

fn bar(files: usize) -> ProgressBar {
    let bar = ProgressBar::new(files as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} files, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// One run, as it is reported.
#[derive(Serialize)]
struct RunLine<'a> {
    is: &'static str,
    file: &'a str,
    format: Format,
    conversation: usize,
    #[serde(flatten)]
    audited: &'a Audited,
}

/// One conversation, as it is reported before its runs.
#[derive(Serialize)]
struct ConversationLine<'a> {
    is: &'static str,
    file: &'a str,
    format: Format,
    conversation: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    runs: usize,
    /// What was guessed or left out.
    notes: &'a [String],
}

#[derive(Serialize)]
struct Unreadable<'a> {
    is: &'static str,
    file: &'a str,
    reason: &'a str,
}

/// What goes out while files are read: nothing of a run is kept but counts.
struct Auditor<'a> {
    rules: &'a Settings,
    notes: bool,
    out: Output<BufWriter<StdoutLock<'static>>>,
    json: bool,
    page: Option<Page>,
    total: Total,
}

impl Auditor<'_> {
    /// Audits one file. What cannot be read is said and counted, and stops nothing.
    fn file(&mut self, path: &Path, format: Option<Format>) -> Result<(), Problem> {
        let name = path.display().to_string();
        match Log::read(path, format) {
            Ok(Log::Recordings(recordings)) => match logs::places(path, &recordings) {
                Ok(places) => self.recordings(&name, &recordings, &places),
                Err(reason) => self.unreadable(&name, &reason),
            },
            Ok(Log::History(_)) => {
                self.unreadable(&name, "a history of this engine has its ending already: `portcullis replay` tells it")
            }
            Err(reason) => self.unreadable(&name, &reason),
        }
    }

    fn recordings(&mut self, name: &str, recordings: &[Recording], places: &[Place]) -> Result<(), Problem> {
        self.total.files += 1;
        for (conversation, recording) in recordings.iter().enumerate() {
            self.conversation(name, conversation, recording)?;
            let mut audit = Audit::new(recording, self.rules);
            for place in places.iter().filter(|place| place.conversation == conversation) {
                let mut lines = Vec::new();
                let mut timeline = self.page.is_some().then(Timeline::default);
                let audited = audit.turn(&place.run, |step, engine| {
                    if let Some(timeline) = &mut timeline {
                        // Writing to memory cannot fail.
                        let _ = timeline.step(step, engine, &mut lines);
                    }
                });
                match audited {
                    Some(Ok(audited)) => self.run(name, recording, conversation, &audited, &lines)?,
                    Some(Err(fault)) => return Err(Problem::usage(format!("{name}: {}: {fault}", place.run))),
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn conversation(&mut self, file: &str, conversation: usize, recording: &Recording) -> Result<(), Problem> {
        let (transcript, notes) = (recording.transcript(), recording.notes());
        self.total.notes += notes.len() as u64;
        if self.notes {
            for note in notes {
                note!("{}", printable(&format!("portcullis: {file}: {note}")));
            }
        }
        if self.json {
            self.out.json(&ConversationLine {
                is: "conversation",
                file,
                format: transcript.format,
                conversation: conversation + 1,
                id: transcript.id.as_deref(),
                model: transcript.model.as_deref(),
                runs: recording.runs(),
                notes,
            })?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        file: &str,
        recording: &Recording,
        conversation: usize,
        audited: &Audited,
        timeline: &[u8],
    ) -> Result<(), Problem> {
        let format = recording.transcript().format;
        self.total.take(format, audited);
        if let Some(page) = &mut self.page {
            page.run(file, format, audited, timeline)?;
        }
        if self.json {
            self.out.json(&RunLine { is: "run", file, format, conversation: conversation + 1, audited })?;
        } else {
            writeln!(self.out, "{}", printable(&text::line(audited)))?;
        }
        Ok(())
    }

    fn unreadable(&mut self, file: &str, reason: &str) -> Result<(), Problem> {
        self.total.unreadable += 1;
        if let Some(page) = &mut self.page {
            page.unreadable(file, reason);
        }
        if self.json {
            self.out.json(&Unreadable { is: "unreadable", file, reason })?;
        } else {
            note!("{}", printable(&format!("portcullis: {file}: {reason}")));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Exit, Problem> {
        if self.json {
            self.out.json(&total::TotalLine::new(&self.total))?;
        } else {
            writeln!(self.out, "\n{}", printable(&text::total(&self.total)))?;
        }
        if let Some(page) = self.page {
            page.finish(&self.total)?;
        }
        self.out.finish()?;
        Ok(if self.total.unreadable > 0 { Exit::Corrupt } else { Exit::Success })
    }
}
