//! `portcullis table`: the closed table (SPEC 14).

use std::io::Write;
use std::path::PathBuf;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::exit::{Exit, Problem};
use super::exploration;
use crate::engine::table::{ROWS, Row, Stop};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Explores the composed machines: fails if an ending outside the table is reachable, or a row is not.
    #[arg(long)]
    check: bool,
    /// Explores under wider bounds: more than a million states, one to three minutes in a release build.
    #[arg(long, requires = "check")]
    wide: bool,
    /// Writes what was explored, and what the bounds leave out, into the marked part of this Markdown file.
    #[arg(long, requires = "check", value_name = "FILE")]
    proof: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    match (arguments.check, json) {
        (false, false) => print_table(),
        (false, true) => print_json(&Rows { rows: ROWS.iter().map(RowLine::new).collect() }),
        (true, _) => return exploration::check(arguments.wide, arguments.proof.as_deref(), json),
    }?;
    Ok(Exit::Success)
}

#[derive(Serialize)]
struct Rows {
    rows: Vec<RowLine>,
}

/// One row as it is shown: each column is the list of what may stand in it.
#[derive(Serialize)]
struct RowLine {
    row: u8,
    happened: &'static str,
    run_state: &'static str,
    failures: &'static [&'static str],
    stop_reasons: Vec<Option<&'static str>>,
    facts: &'static str,
    outcome: &'static str,
    fallback_types: Vec<&'static str>,
    failure_codes: Vec<&'static str>,
}

impl RowLine {
    fn new(row: &Row) -> Self {
        Self {
            row: row.number,
            happened: row.happened,
            run_state: row.run_state.word(),
            failures: row.failures,
            stop_reasons: match row.stop {
                Stop::IfSaturated => vec![None, Some("information_saturated")],
                Stop::Always(reason) => vec![Some(reason.word())],
                Stop::Never => vec![None],
            },
            facts: match row.facts {
                Some(true) => "yes",
                Some(false) => "no",
                None => "any",
            },
            outcome: row.outcome.word(),
            fallback_types: row.fallbacks.iter().map(|kind| kind.word()).collect(),
            failure_codes: row.codes.iter().map(|code| code.word()).collect(),
        }
    }
}

fn print_table() -> Result<(), Problem> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["#", "what happened", "run state", "stop reason", "facts", "release"]);
    for line in ROWS.iter().map(RowLine::new) {
        let failures = line.failures.join("\n");
        let state =
            if failures.is_empty() { line.run_state.to_owned() } else { format!("{}:\n{failures}", line.run_state) };
        let stops: Vec<&str> = line.stop_reasons.iter().map(|stop| stop.unwrap_or("-")).collect();
        let release: Vec<&str> =
            std::iter::once(line.outcome).chain(line.fallback_types).chain(line.failure_codes).collect();
        table.add_row([
            line.row.to_string(),
            line.happened.to_owned(),
            state,
            stops.join("\n"),
            line.facts.to_owned(),
            release.join("\n"),
        ]);
    }
    writeln!(std::io::stdout(), "{}", table.trim_fmt())?;
    Ok(())
}

pub(super) fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
