//! `portcullis table`: the closed table, and the check that nothing outside it can be reached (SPEC 14).

use std::io::Write;
use std::time::Instant;

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::ProgressBar;
use serde::Serialize;

use super::exit::{Exit, Problem};
use crate::engine::table::{ROWS, Row, Stop};
use crate::testkit::alphabet::Report;
use crate::testkit::explorer::{Bounds, Exploration, Figures, Offence, explore, worlds};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Explores the composed machines: fails if an ending outside the table is reachable, or a row is not.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    match (arguments.check, json) {
        (false, false) => print_table(),
        (false, true) => print_json(&Rows { rows: ROWS.iter().map(RowLine::new).collect() }),
        (true, _) => return check(json),
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

#[derive(Serialize)]
struct Checked {
    rows_reached: Vec<u8>,
    endings: usize,
    states: u64,
    transitions: u64,
    refusals: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct Found<'a> {
    offence: String,
    world: &'a str,
    reports: &'a [Report],
}

fn check(json: bool) -> Result<Exit, Problem> {
    let began = Instant::now();
    // Draws on standard error, and only where that is a terminal.
    let progress = ProgressBar::new_spinner();
    let outcome = explore(&worlds(), Bounds::NONE, |figures: &Figures| {
        progress.set_message(format!("{} states, {} transitions", figures.states, figures.transitions));
        progress.tick();
    });
    progress.finish_and_clear();
    match outcome {
        Ok(exploration) => report(&exploration, began.elapsed().as_secs_f64(), json),
        Err(offence) => {
            offend(&offence, json)?;
            Ok(Exit::Unexpected)
        }
    }
}

fn report(exploration: &Exploration, seconds: f64, json: bool) -> Result<Exit, Problem> {
    let Exploration { figures, endings } = exploration;
    let rows = exploration.rows();
    let missing: Vec<String> =
        ROWS.iter().filter(|row| !rows.contains(&row.number)).map(|row| row.number.to_string()).collect();
    if json {
        print_json(&Checked {
            rows_reached: rows.into_iter().collect(),
            endings: endings.len(),
            states: figures.states,
            transitions: figures.transitions,
            refusals: figures.refusals,
            seconds: (seconds * 1_000.0).round() / 1_000.0,
        })?;
    } else {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{} of {} rows reached, as {} distinct endings", rows.len(), ROWS.len(), endings.len())?;
        writeln!(
            out,
            "{} states, {} transitions, {} refusals, {seconds:.1} s: nothing outside the table",
            figures.states, figures.transitions, figures.refusals
        )?;
    }
    if missing.is_empty() {
        return Ok(Exit::Success);
    }
    Err(Problem::new(Exit::Unexpected, format!("rows that were not reached: {}", missing.join(", "))))
}

/// The offence, and a way to it that `portcullis simulate` can walk.
fn offend(offence: &Offence, json: bool) -> Result<(), Problem> {
    let Offence { fault, world, reports } = offence;
    if json {
        return print_json(&Found { offence: fault.to_string(), world, reports });
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{offence}")?;
    for report in reports {
        serde_json::to_writer(&mut out, report).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    Ok(())
}

fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
