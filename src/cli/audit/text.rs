//! The audit as a person reads it on a terminal: a line a run, then what they come to.

use comfy_table::{ContentArrangement, Table, presets};

use super::total::Total;
use crate::adapters::audit::{Audited, Finding};
use crate::engine::table::ROWS;

/// What the columns are.
pub(crate) const HEAD: &str = "row  grounded  literals  model  tools  facts  run\n";

/// One run.
pub(crate) fn line(audited: &Audited) -> String {
    let row = audited.ending.as_ref().map_or_else(|| "open".to_owned(), |ending| ending.row.to_string());
    let grounded = audited.grounded.as_ref();
    let second = grounded.and_then(|grounded| grounded.row).map_or_else(|| "-".to_owned(), |row| row.to_string());
    let literals = grounded
        .map_or_else(String::new, |grounded| format!("{}/{}", grounded.grounding.found, grounded.grounding.literals));
    let Audited { run, model_calls, tool_calls, facts, .. } = audited;
    let findings: Vec<String> = audited.findings.iter().map(said).collect();
    let findings = if findings.is_empty() { String::new() } else { format!("  {}", findings.join(", ")) };
    format!("{row:<4} {second:>8}  {literals:>8}  {model_calls:>5}  {tool_calls:>5}  {facts:>5}  {run}{findings}")
}

/// A finding in a few words.
pub(crate) fn said(finding: &Finding) -> String {
    match finding {
        Finding::ReleasedWithoutEvidence => "answered without evidence".to_owned(),
        Finding::LimitShownAsSuccess => "limit shown as success".to_owned(),
        Finding::LimitReached { said } => format!("stopped by a limit ({})", short(said)),
        Finding::NoAnswer => "no answer".to_owned(),
        Finding::FailedWriteClaimedDone { tool } => format!("failed write of {} claimed as done", short(tool)),
        Finding::WorkAfterEnd { replies } => format!("work after the end ({replies})"),
        Finding::OrphanCalls { calls } => format!("calls without result ({calls})"),
        Finding::OrphanResults { results } => format!("results without call ({results})"),
        Finding::RepeatedCall { tool, times } => format!("{} {times} times alike", short(tool)),
        Finding::MalformedArguments { calls } => format!("malformed arguments ({calls})"),
        Finding::TruncatedArguments { calls } => format!("truncated arguments ({calls})"),
        Finding::ReusedCallIds { calls } => format!("reused call ids ({calls})"),
    }
}

fn short(text: &str) -> String {
    const LETTERS_MAX: usize = 60;
    let line = text.replace('\n', " ");
    if line.chars().count() <= LETTERS_MAX {
        line
    } else {
        line.chars().take(LETTERS_MAX - 3).collect::<String>() + "..."
    }
}

/// What they come to.
pub(crate) fn total(total: &Total) -> String {
    let formats: Vec<String> = total.formats.iter().map(|(format, runs)| format!("{format} {runs}")).collect();
    let mut text = format!("{} in {}", count(total.runs, "run"), count(total.files, "file"));
    if !formats.is_empty() {
        text.push_str(&format!(" ({})", formats.join(", ")));
    }
    if total.unreadable > 0 {
        text.push_str(&format!("; {} could not be read", count(total.unreadable, "file")));
    }
    text.push_str("\n\n");
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["row", "runs", "grounded", "what happened"]);
    let shown = |runs: Option<&u64>| runs.map_or_else(|| "-".to_owned(), u64::to_string);
    for row in ROWS {
        let (runs, grounded) = (total.rows.get(&row.number), total.grounded.get(&row.number));
        if runs.is_some() || grounded.is_some() {
            table.add_row([row.number.to_string(), shown(runs), shown(grounded), row.happened.to_owned()]);
        }
    }
    if total.open > 0 {
        let why = "the recording stops before an ending".to_owned();
        table.add_row(["open".to_owned(), total.open.to_string(), "-".to_owned(), why]);
    }
    text.push_str(&table.trim_fmt());
    text.push_str(&format!("\n\n{} with findings", count(total.odd, "run")));
    for kind in Finding::TYPES {
        if let Some(runs) = total.findings.get(kind) {
            text.push_str(&format!("\n  {runs:>5}  {kind}"));
        }
    }
    if total.notes > 0 {
        text.push_str(&format!(
            "\n{} on what was guessed or left out (--notes says which)",
            count(total.notes, "note")
        ));
    }
    text
}

pub(crate) fn count(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}
