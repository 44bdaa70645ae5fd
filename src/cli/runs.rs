//! `portcullis runs`: what the store knows of its runs, without reading their histories (SPEC 14).

use std::io::{IsTerminal, Write};
use std::time::{Duration, UNIX_EPOCH};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::exit::{Exit, Problem, note, printable};
use super::output::Output;
use super::place::{Place, wait};
use crate::engine::table::ROWS;
use crate::runtime::store::{Filter, Listed, Owner, Standing, Store};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::outcome::ReleaseOutcome;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only runs that ended so: a row of the closed table, or an outcome. With several options, runs that pass
    /// any of them.
    #[arg(long, value_name = "WORD", value_parser = ending)]
    ending: Vec<Wanted>,
    /// Only runs that await a person.
    #[arg(long)]
    awaiting: bool,
    /// Only runs that have not ended.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    place: Place,
}

/// An ending that is looked for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Row(u8),
    Outcome(ReleaseOutcome),
}

fn ending(text: &str) -> Result<Wanted, String> {
    let row = ROWS.iter().find(|row| row.number.to_string() == text).map(|row| Wanted::Row(row.number));
    let outcome = ReleaseOutcome::ALL.iter().find(|outcome| outcome.word() == text).copied().map(Wanted::Outcome);
    row.or(outcome).ok_or_else(|| {
        let words: Vec<&str> = ReleaseOutcome::ALL.iter().map(|outcome| outcome.word()).collect();
        format!("a row from 1 to {}, or one of {}", ROWS.len(), words.join(", "))
    })
}

impl Arguments {
    fn takes(&self, standing: Standing) -> bool {
        let all = self.ending.is_empty() && !self.awaiting && !self.open;
        all || match standing {
            Standing::Running => self.open,
            Standing::Awaiting { .. } => self.open || self.awaiting,
            Standing::Ended { row, outcome, .. } => self.ending.iter().any(|wanted| match wanted {
                Wanted::Row(number) => *number == row,
                Wanted::Outcome(word) => *word == outcome,
            }),
        }
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let store = arguments.place.read()?;
    let mut runs = wait(store.list(Filter::All))?;
    let all = runs.len();
    runs.retain(|listed| arguments.takes(listed.standing));
    let mut out = Output::stdout();
    if json {
        for listed in &runs {
            out.json(&RunLine::new(listed))?;
        }
    } else if runs.is_empty() {
        let place = arguments.place.path();
        let which = if all == 0 { "holds no run".to_owned() } else { format!("holds {all} runs, none of them such") };
        note!("portcullis: {}: {which}", printable(&place.display().to_string()));
    } else {
        writeln!(out, "{}", printable(&table(&runs).trim_fmt()))?;
    }
    out.finish()?;
    Ok(Exit::Success)
}

fn table(runs: &[Listed]) -> Table {
    let mut table = Table::new();
    let wide = !std::io::stdout().is_terminal();
    let arrangement = if wide { ContentArrangement::Disabled } else { ContentArrangement::Dynamic };
    table.load_style(presets::NOTHING).set_content_arrangement(arrangement);
    table.set_header(["run", "started", "records", "stands", "owner", "delivered"]);
    for listed in runs {
        table.add_row([
            listed.run.to_string(),
            time(listed.started_ms),
            listed.records.to_string(),
            stands(listed.standing),
            owner(&listed.owner),
            delivered(listed.standing).map_or("-", |delivered| if delivered { "yes" } else { "no" }).to_owned(),
        ]);
    }
    table
}

/// Wall time as people read it; a time beyond the year 9999 as the number that it is.
pub(crate) fn time(wall_ms: u64) -> String {
    const YEAR_10000_MS: u64 = 253_402_300_800_000;
    if wall_ms >= YEAR_10000_MS {
        return format!("{wall_ms} ms");
    }
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(wall_ms)).to_string()
}

fn stands(standing: Standing) -> String {
    match standing {
        Standing::Running => "running".to_owned(),
        Standing::Awaiting { due_ms: None } => "awaiting".to_owned(),
        Standing::Awaiting { due_ms: Some(due_ms) } => format!("awaiting until {}", time(due_ms)),
        Standing::Ended { row, outcome, .. } => format!("row {row}, {outcome}"),
    }
}

fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Nobody => "-".to_owned(),
        Owner::Living { name } => format!("living: {name}"),
        Owner::Dead { name } => format!("lost: {name}"),
    }
}

const fn delivered(standing: Standing) -> Option<bool> {
    match standing {
        Standing::Ended { delivered, .. } => Some(delivered),
        Standing::Running | Standing::Awaiting { .. } => None,
    }
}

/// A run as `--json` shows it.
#[derive(Serialize)]
struct RunLine<'a> {
    run: &'a RunId,
    started_ms: u64,
    records: u64,
    head: Digest,
    #[serde(flatten)]
    standing: StandingLine,
    epoch: u64,
    owner: OwnerLine<'a>,
}

#[derive(Serialize)]
#[serde(tag = "stands", rename_all = "snake_case")]
enum StandingLine {
    Running,
    Awaiting {
        #[serde(skip_serializing_if = "Option::is_none")]
        due_ms: Option<u64>,
    },
    Ended {
        row: u8,
        outcome: ReleaseOutcome,
        delivered: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OwnerLine<'a> {
    Nobody,
    Living { name: &'a str },
    Lost { name: &'a str },
}

impl<'a> RunLine<'a> {
    fn new(listed: &'a Listed) -> Self {
        Self {
            run: &listed.run,
            started_ms: listed.started_ms,
            records: listed.records,
            head: listed.head,
            standing: match listed.standing {
                Standing::Running => StandingLine::Running,
                Standing::Awaiting { due_ms } => StandingLine::Awaiting { due_ms },
                Standing::Ended { row, outcome, delivered } => StandingLine::Ended { row, outcome, delivered },
            },
            epoch: listed.epoch,
            owner: match &listed.owner {
                Owner::Nobody => OwnerLine::Nobody,
                Owner::Living { name } => OwnerLine::Living { name },
                Owner::Dead { name } => OwnerLine::Lost { name },
            },
        }
    }
}
