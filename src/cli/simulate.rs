//! `portcullis simulate`: raw inputs in, records or refusals out (SPEC 14).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::exit::{Exit, Problem};
use super::output::Output;
use crate::engine::Engine;
use crate::history::Recorder;
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::{Refusal, RefusalKind};
use crate::vocabulary::wire::object;

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The script: one `{"at_ms":..,"input":{..}}` a line, `run_started` first; `-` is standard input.
    script: PathBuf,
}

object! {
    /// One line of a script.
    #[allow(unreachable_pub)]
    pub struct Report {
        /// When.
        pub at_ms: u64,
        /// What.
        pub input: Input,
    }
}

#[derive(Serialize)]
struct Refused<'a> {
    refused: &'a Refusal,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Problem> {
    let script: Box<dyn BufRead> = if arguments.script.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(&arguments.script);
        Box::new(BufReader::new(opened.map_err(|error| Problem::unreadable(Exit::Usage, &arguments.script, &error))?))
    };
    let mut out = Output::new(io::BufWriter::new(io::stdout().lock()));
    let outcome = simulate(script, &mut out).map_err(|failure| match failure {
        Failure::Script(line, error) => {
            Problem::usage(format!("{}: line {line}: cannot be read: {error}", arguments.script.display()))
        }
        Failure::Output(error) => Problem::from(error),
    });
    out.finish()?;
    outcome.map(|()| Exit::Success)
}

enum Failure {
    Script(u64, io::Error),
    Output(io::Error),
}

fn simulate(mut script: impl BufRead, out: &mut impl Write) -> Result<(), Failure> {
    let (mut engine, mut recorder) = (Engine::new(), Recorder::new());
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = script.by_ref().take(LINE_BYTES_MAX);
        let bytes = limited.read_until(b'\n', &mut line).map_err(|error| Failure::Script(number, error))?;
        if bytes == 0 {
            break;
        }
        if bytes as u64 == LINE_BYTES_MAX {
            let error = io::Error::other(format!("longer than {LINE_BYTES_MAX} bytes"));
            return Err(Failure::Script(number, error));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        answer(&mut engine, &mut recorder, number, &line, out).map_err(Failure::Output)?;
    }
    Ok(())
}

/// One line out for one line in.
fn answer(
    engine: &mut Engine,
    recorder: &mut Recorder,
    number: u64,
    line: &[u8],
    out: &mut impl Write,
) -> io::Result<()> {
    let result = serde_json::from_slice::<Report>(line)
        .map_err(|error| unreadable(engine, number, &error))
        .and_then(|report| engine.step(report.at_ms, report.input));
    match result {
        Ok(step) => out.write_all(recorder.record(engine, &step)),
        Err(refusal) => {
            serde_json::to_writer(&mut *out, &Refused { refused: &refusal })?;
            out.write_all(b"\n")
        }
    }
}

fn unreadable(engine: &Engine, number: u64, error: &serde_json::Error) -> Refusal {
    Refusal {
        kind: RefusalKind::Malformed,
        machine: "wire",
        state: engine.run_state().label(),
        expected: engine.expected(),
        reason: Some(format!("script line {number}: {}", brief(&error.to_string()))),
    }
}

/// A parser's message quotes what it read. A string may be a model's text, which is not shown here, and the rest
/// is cut to what a person needs.
fn brief(message: &str) -> String {
    const SHOWN_MAX: usize = 160;
    let quoted = message.split_once("string \"").and_then(|(before, rest)| Some((before, rest.rsplit_once('"')?.1)));
    let message = quoted.map_or_else(|| message.to_owned(), |(before, after)| format!("{before}a string{after}"));
    let mut shown: String = message.chars().take(SHOWN_MAX).collect();
    if shown.len() < message.len() {
        shown.push_str("...");
    }
    shown
}
