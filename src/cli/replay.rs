//! `portcullis replay`: does a history come out as it was written? (SPEC 13, 14)

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ending::{EndingLine, OpenLine, describe};
use super::exit::{Exit, Problem, printable};
use super::invariance;
use super::output::Output;
use crate::history::{self, Divergence, Fault, Policy, Summary};
use crate::vocabulary::digest::Digest;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Histories, one record a line; a folder stands for every `.jsonl` in it, `-` for standard input.
    #[arg(required = true)]
    histories: Vec<PathBuf>,
    /// The hash that the last record must have: it pins the end, which the chain alone cannot.
    #[arg(long, value_name = "HASH", value_parser = head)]
    expect_head: Option<Digest>,
    /// Go on after a difference and report all of them.
    #[arg(long)]
    all: bool,
    /// Also asks for the closed table, by a reference that knows no engine, and for every named invariant. A broken
    /// one is 6. The cost grows with the square of a history's length.
    #[arg(long)]
    verify: bool,
}

fn head(text: &str) -> Result<Digest, String> {
    Digest::from_hex(text).ok_or_else(|| "64 lower-case hexadecimal digits".to_owned())
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Failed<'a> {
    Divergence { history: String, divergences: &'a [Divergence] },
    Corrupt { history: String, code: &'a str, offset: u64, line: u64, reason: &'a str },
    Unreadable { history: String, reason: String },
    WrongHead { history: String, expected: Digest, got: Digest },
}

/// A reproduced history: how it ends, and what is missing at its end.
#[derive(Serialize)]
struct Reproduced<E> {
    #[serde(flatten)]
    ending: E,
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
}

/// A last line without its line end.
#[derive(Serialize)]
struct Cut {
    offset: u64,
    bytes: u64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let histories = named(&arguments.histories)?;
    if arguments.expect_head.is_some() && histories.len() > 1 {
        return Err(Problem::usage("--expect-head pins one history: name one"));
    }
    let mut worst = Exit::Success;
    for path in &histories {
        let exit = replay_one(path, arguments, json)?;
        if severity(exit) > severity(worst) {
            worst = exit;
        }
    }
    Ok(worst)
}

/// The histories that were named, those of a folder in the order of their names.
fn named(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut histories = Vec::new();
    for path in paths {
        if !path.is_dir() {
            histories.push(path.clone());
            continue;
        }
        let unreadable = |error| Problem::unreadable(Exit::Usage, path, &error);
        let mut inside = Vec::new();
        for entry in path.read_dir().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            if entry.extension().is_some_and(|ending| ending == "jsonl") {
                inside.push(entry);
            }
        }
        if inside.is_empty() {
            return Err(Problem::usage(format!("{}: no history (`.jsonl`) in this folder", path.display())));
        }
        inside.sort();
        histories.append(&mut inside);
    }
    Ok(histories)
}

const fn severity(exit: Exit) -> u8 {
    match exit {
        Exit::Success => 0,
        Exit::Open => 1,
        Exit::Divergence => 2,
        Exit::Corrupt => 3,
        Exit::Unexpected
        | Exit::Usage
        | Exit::Fallback
        | Exit::Failed
        | Exit::Cancelled
        | Exit::Awaiting
        | Exit::Persistence => 4,
    }
}

fn replay_one(path: &Path, arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    if arguments.verify {
        return verify_one(path, arguments, json);
    }
    let name = path.display().to_string();
    let policy = if arguments.all { Policy::ReportAll } else { Policy::Stop };
    let source = match opened(path) {
        Ok(source) => source,
        Err(error) => return unreadable(path, &error, json),
    };
    judged(name, history::replay(BufReader::with_capacity(1 << 16, source), policy), arguments, json)
}

fn opened(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(File::open(path)?))
}

fn unreadable(path: &Path, error: &io::Error, json: bool) -> Result<Exit, Problem> {
    let failed = Failed::Unreadable { history: path.display().to_string(), reason: error.to_string() };
    say(json, &failed, Exit::Corrupt, || format!("{}: cannot be read: {error}", path.display()))
}

/// Replays, and asks for the closed table and the invariants of what is a whole chain, reproduced or not.
fn verify_one(path: &Path, arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let mut bytes = Vec::new();
    if let Err(error) = opened(path).and_then(|mut source| source.read_to_end(&mut bytes)) {
        return unreadable(path, &error, json);
    }
    let name = path.display().to_string();
    let policy = if arguments.all { Policy::ReportAll } else { Policy::Stop };
    let exit = judged(name.clone(), history::replay(&*bytes, policy), arguments, json)?;
    if exit == Exit::Corrupt {
        return Ok(exit);
    }
    let sound = invariance::verify(&name, &bytes, json)?;
    Ok(if sound { exit } else { Exit::Divergence })
}

/// What a replay comes to.
fn judged(name: String, replayed: Result<Summary, Fault>, arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    match replayed {
        Err(fault) => corrupt(name, &fault, json),
        Ok(summary) if !summary.divergences.is_empty() => diverged(name, &summary, json),
        Ok(summary) => match arguments.expect_head {
            Some(expected) if expected != summary.head => {
                let got = summary.head;
                let failed = Failed::WrongHead { history: name.clone(), expected, got };
                say(json, &failed, Exit::Corrupt, || {
                    format!("{name}: the head is {got}, not {expected}: records were cut off, added or replaced")
                })
            }
            Some(_) | None => reproduced(&name, &summary, json),
        },
    }
}

fn say(json: bool, failed: &Failed<'_>, exit: Exit, text: impl FnOnce() -> String) -> Result<Exit, Problem> {
    if json {
        print_json(failed)?;
    } else {
        print(&text())?;
    }
    Ok(exit)
}

fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    print(&serde_json::to_string(value).map_err(std::io::Error::from)?)
}

fn print(text: &str) -> Result<(), Problem> {
    let mut out = Output::stdout();
    writeln!(out, "{}", printable(text))?;
    out.finish()?;
    Ok(())
}

fn corrupt(name: String, fault: &Fault, json: bool) -> Result<Exit, Problem> {
    let text = format!("{name}: corrupt: {fault}");
    let Fault { code, offset, line, reason } = fault;
    let failed = Failed::Corrupt { history: name, code: code.word(), offset: *offset, line: *line, reason };
    say(json, &failed, Exit::Corrupt, || text)
}

fn diverged(name: String, summary: &Summary, json: bool) -> Result<Exit, Problem> {
    let lines = summary.divergences.iter().map(|found| {
        format!(
            "{name}: record {} diverges in {}\n  recorded: {}\n  replayed: {}",
            found.seq, found.field, found.expected, found.got
        )
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    say(json, &Failed::Divergence { history: name, divergences: &summary.divergences }, Exit::Divergence, || text)
}

fn reproduced(name: &str, summary: &Summary, json: bool) -> Result<Exit, Problem> {
    let exit = if summary.ending.is_some() && summary.tail.is_none() { Exit::Success } else { Exit::Open };
    let ledger = summary.decider.ledger();
    if json {
        let (run, records, head) = (&summary.run, summary.records, summary.head);
        let cut = summary.tail.as_ref().map(|tail| Cut { offset: tail.offset, bytes: tail.bytes });
        match &summary.ending {
            Some(ending) => {
                let ending = EndingLine::new(run, ending, ledger, records, head);
                print_json(&Reproduced { ending, delivered: summary.delivered, cut })?;
            }
            None => {
                let ending = OpenLine::new(run, ledger, records, head);
                print_json(&Reproduced { ending, delivered: false, cut })?;
            }
        }
        return Ok(exit);
    }
    let mut out = Output::stdout();
    let ended = match &summary.ending {
        Some(ending) => describe(ending),
        None => "open: no terminal record".to_owned(),
    };
    writeln!(out, "{}", printable(&format!("{name}: reproduced, {} records: {ended}", summary.records)))?;
    if let Some(tail) = &summary.tail {
        let Tail { bytes, offset, .. } = tail;
        writeln!(out, "{name}: the last line is cut ({bytes} bytes from byte {offset}); a resumed run sets it aside")?;
    }
    if summary.ending.is_some() && !summary.delivered {
        writeln!(out, "{name}: the release has no receipt yet")?;
    }
    writeln!(out, "{name}: head {}", summary.head)?;
    out.finish()?;
    Ok(exit)
}

use crate::history::Tail;
