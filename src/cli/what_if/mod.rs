//! `portcullis what-if`: recorded runs under other rules (SPEC 13.20).

mod detail;
mod several;
mod supposed;

use std::path::{Path, PathBuf};

use super::exit::{Exit, Problem, note, printable};
use super::histories::{Histories, HistoryFile, not_stored};
use super::logs::{self, Log};
use super::output::Output;
use super::place::Place;
use super::rules::Rules;
use super::source::Source;
use crate::adapters::transcripts::Format;
use crate::history::{OtherRequest, Supposable, Unsupposable};
use crate::vocabulary::spec::Settings;

use several::Several;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Histories, recorded runs of other runtimes, folders of them, or runs of the store.
    #[arg(required = true, value_name = "RUN|FILE")]
    runs: Vec<String>,
    #[command(flatten)]
    rules: Rules,
    /// Only this turn of a recorded conversation, from 1.
    #[arg(long, value_name = "N")]
    turn: Option<usize>,
    /// Where the model would have been shown something else, suppose that it would have answered the same.
    #[arg(long)]
    assume_same_answers: bool,
    /// Writes the supposed steps of one run, one JSON a line. It is no history, and says so in every line.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The format of every recording.
    #[arg(long, value_parser = logs::format)]
    format: Option<Format>,
    #[command(flatten)]
    place: Place,
}

/// A run to suppose about, and what it is called.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) history: Supposable,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let rules = arguments.rules.read()?;
    let other = if arguments.assume_same_answers { OtherRequest::AssumeSameAnswer } else { OtherRequest::Stop };
    let out = arguments.out.as_deref().map(Histories::beside).transpose()?;
    let mut found = Found { so_far: SoFar::Nothing, rules: &rules, other, json, worst: Exit::Success };
    found.read(arguments)?;
    let worst = found.worst;
    match found.so_far {
        SoFar::Nothing => Err(Problem::usage("nothing to suppose about: no run could be read")),
        SoFar::One(one) => suppose(&one, &rules, other, out, json).map(|()| worst),
        SoFar::Several(_) if out.is_some() => {
            Err(Problem::usage("--out takes the steps of one run: name one, with --turn if need be"))
        }
        SoFar::Several(several) => several.finish().map(|()| worst),
    }
}

/// One run: how it changes, and from where on.
fn suppose(
    subject: &Subject,
    rules: &Settings,
    other: OtherRequest,
    out: Option<HistoryFile>,
    json: bool,
) -> Result<(), Problem> {
    let mut stdout = Output::stdout();
    let mut steps = Vec::new();
    let told = detail::tell(subject, rules, other, |step| steps.push(supposed::StepLine::json(&subject.name, step)))?;
    if json {
        stdout.json(&supposed::Line::new(&subject.name, rules, &told.supposition))?;
    } else {
        std::io::Write::write_all(&mut stdout, told.text.as_bytes())?;
    }
    stdout.finish()?;
    if let Some(mut file) = out {
        let place = file.place().to_owned();
        let written = steps.iter().try_for_each(|line| std::io::Write::write_all(&mut file, line.as_bytes()));
        written.and_then(|()| file.keep()).map_err(|error| not_stored(&place, &error))?;
    }
    Ok(())
}

/// What was found so far. Of several runs none is kept.
enum SoFar<'a> {
    Nothing,
    One(Subject),
    Several(Several<'a>),
}

/// The runs that were named, and the worst of what could not be read.
struct Found<'a> {
    so_far: SoFar<'a>,
    rules: &'a Settings,
    other: OtherRequest,
    json: bool,
    worst: Exit,
}

impl<'a> Found<'a> {
    fn read(&mut self, arguments: &Arguments) -> Result<(), Problem> {
        for name in &arguments.runs {
            let path = Path::new(name);
            if path.symlink_metadata().is_ok() {
                for file in logs::files(&[path.to_owned()])? {
                    self.file(&file, arguments)?;
                }
            } else {
                let Source { name, lines, .. } = Source::named(name, true, &arguments.place)?;
                self.history(name, lines)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, arguments: &Arguments) -> Result<(), Problem> {
        let name = path.display().to_string();
        let recordings = match Log::read(path, arguments.format) {
            Ok(Log::History(bytes)) => return self.history(name, bytes.as_slice()),
            Ok(Log::Recordings(recordings)) => recordings,
            Err(reason) => {
                self.failed(Exit::Corrupt, &name, &reason);
                return Ok(());
            }
        };
        let places = match logs::places(path, &recordings) {
            Ok(places) => places,
            Err(reason) => {
                self.failed(Exit::Usage, &name, &reason);
                return Ok(());
            }
        };
        for (conversation, recording) in recordings.iter().enumerate() {
            let runs: Vec<_> = places
                .iter()
                .filter(|place| place.conversation == conversation)
                .map(|place| place.run.clone())
                .collect();
            let histories = match logs::histories(recording, &runs) {
                Ok(histories) => histories,
                Err(reason) => {
                    self.failed(Exit::Usage, &name, &reason);
                    return Ok(());
                }
            };
            for (turn, (run, history)) in (1..).zip(runs.iter().zip(histories)) {
                if arguments.turn.is_none_or(|wanted| wanted == turn) {
                    self.history(run.to_string(), history.as_slice())?;
                }
            }
        }
        Ok(())
    }

    fn history(&mut self, name: String, lines: impl std::io::BufRead) -> Result<(), Problem> {
        let subject = match Supposable::read(lines) {
            Ok(history) => Subject { name, history },
            Err(error) => {
                let exit = match &error {
                    Unsupposable::Diverged(_) => Exit::Divergence,
                    Unsupposable::Damaged(_) | Unsupposable::Empty => Exit::Corrupt,
                };
                self.failed(exit, &name, &error.to_string());
                return Ok(());
            }
        };
        self.so_far = match std::mem::replace(&mut self.so_far, SoFar::Nothing) {
            SoFar::Nothing => SoFar::One(subject),
            SoFar::One(first) => {
                let mut several = Several::new(self.rules, self.other, self.json);
                several.take(&first)?;
                several.take(&subject)?;
                SoFar::Several(several)
            }
            SoFar::Several(mut several) => {
                several.take(&subject)?;
                SoFar::Several(several)
            }
        };
        Ok(())
    }

    /// One bad file stops nothing.
    fn failed(&mut self, exit: Exit, name: &str, reason: &str) {
        note!("{}", printable(&format!("portcullis: {name}: {reason}")));
        self.worst = self.worst.max(exit);
    }
}
