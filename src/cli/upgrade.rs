//! `portcullis upgrade`: a history in the newest version of records; the old file is kept (SPEC 13.8, 14).

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::exit::{Exit, Problem, printable};
use super::histories::{Histories, HistoryFile};
use super::output::Output;
use super::source::{Source, damaged};
use crate::history::upgrade::{Upgraded, upgrade};
use crate::history::{Summary, VERSION};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A history.
    file: PathBuf,
    /// Where the newer one goes; FILE with `.vN` before its ending when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct UpgradeLine<'a> {
    run: &'a RunId,
    from: u32,
    to: u32,
    records: u64,
    head: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let Source { name, mut lines, .. } = Source::file(&arguments.file)?;
    let mut history = Vec::new();
    lines.read_to_end(&mut history).map_err(|error| Problem::unreadable(Exit::Corrupt, &arguments.file, &error))?;
    let mut said = Output::stdout();
    match upgrade(&history).map_err(|fault| damaged(&name, &fault))? {
        Upgraded::Newest(summary) => {
            reproduced(&name, &summary)?;
            if json {
                said.json(&line(&summary, VERSION, None))?;
            } else {
                let text =
                    format!("{name}: has version {VERSION}, the newest; nothing is to be done, and nothing is written");
                writeln!(said, "{}", printable(&text))?;
            }
        }
        Upgraded::Written { from, lines, summary } => {
            reproduced(&name, &summary)?;
            let out =
                arguments.out.clone().unwrap_or_else(|| arguments.file.with_extension(format!("v{VERSION}.jsonl")));
            keep(&out, &lines)?;
            let place = out.display().to_string();
            if json {
                said.json(&line(&summary, from, Some(place)))?;
            } else {
                let text = format!("{name}: version {from}; {place}: version {VERSION}, head {}", summary.head);
                writeln!(said, "{}", printable(&text))?;
            }
        }
    }
    said.finish()?;
    Ok(Exit::Success)
}

fn line(summary: &Summary, from: u32, out: Option<String>) -> UpgradeLine<'_> {
    UpgradeLine { run: &summary.run, from, to: VERSION, records: summary.records, head: summary.head, out }
}

fn reproduced(name: &str, summary: &Summary) -> Result<(), Problem> {
    match summary.divergences.first() {
        None => Ok(()),
        Some(found) => {
            let reason = format!("{name}: record {} diverges in {}", found.seq, found.field);
            Err(Problem::new(Exit::Divergence, reason))
        }
    }
}

fn keep(out: &Path, lines: &[u8]) -> Result<(), Problem> {
    let unwritten = |error: std::io::Error| Problem::new(Exit::Persistence, format!("{}: {error}", out.display()));
    let mut file: HistoryFile = Histories::beside(out)?;
    file.write_all(lines).map_err(unwritten)?;
    file.keep().map_err(unwritten)
}
