//! `portcullis table --check`: that nothing outside the closed table can be reached, that every row can be, and
//! that every run ends (SPEC 13.9, 13.I11).

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use indicatif::ProgressBar;
use serde::Serialize;

use super::exit::{Exit, Problem};
use super::proof::Page;
use super::table::print_json;
use crate::engine::table::ROWS;
use crate::testkit::alphabet::Report;
use crate::testkit::explorer::{Bounds, Exploration, Figures, Offence, explore, wide_worlds, worlds};

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

pub(super) fn check(wide: bool, proof: Option<&Path>, json: bool) -> Result<Exit, Problem> {
    let page = proof.map(Page::open).transpose()?;
    let began = Instant::now();
    let worlds = if wide { wide_worlds() } else { worlds() };
    // Draws on standard error, and only where that is a terminal.
    let progress = ProgressBar::new_spinner();
    let outcome = explore(&worlds, Bounds::NONE, |figures: &Figures| {
        progress.set_message(format!("{} states, {} transitions", figures.states, figures.transitions));
        progress.tick();
    });
    progress.finish_and_clear();
    match outcome {
        Ok(exploration) => {
            let seconds = began.elapsed().as_secs_f64();
            if let Some(page) = page {
                page.write(&worlds, &exploration)?;
            }
            report(&exploration, seconds, json)
        }
        Err(offence) => {
            offend(&offence, json)?;
            Ok(Exit::Unexpected)
        }
    }
}

fn report(exploration: &Exploration, seconds: f64, json: bool) -> Result<Exit, Problem> {
    let Exploration { figures, endings, .. } = exploration;
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
            "{} states, {} transitions, {} refusals, {seconds:.1} s: nothing outside the table, and every run ends",
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
