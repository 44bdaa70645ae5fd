//! `portcullis diff`: two histories, where they part, and both timelines side by side (SPEC 13.14, 14).

use std::io::{BufWriter, IsTerminal, Write};

use serde::Serialize;

use super::columns::{self, Block};
use super::ending::describe;
use super::exit::{Exit, Problem, note, printable};
use super::output::Output;
use super::place::Place;
use super::source::Source;
use super::stepped::{progress, step_through};
use super::subject::visible;
use super::timeline::Timeline;
use crate::history::compare::{Comparison, Difference, Manner, Parting, Reading, compare, is_sealed};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;

/// Columns below which two timelines do not stand side by side.
const NARROW: usize = 100;
/// Settings that are shown.
const SETTINGS_MAX: usize = 20;
/// Characters of a value that are shown.
const VALUE_MAX: usize = 200;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A history, or a run of the store. A file of that name is taken before a run.
    #[arg(value_name = "A")]
    first: String,
    /// What it is compared with.
    #[arg(value_name = "B")]
    second: String,
    /// Both are runs, even if there are files of these names.
    #[arg(long)]
    run: bool,
    /// A record that comes at another time is a difference.
    #[arg(long)]
    times: bool,
    /// Shows payloads that differ, and not only how long they are. Privileged.
    #[arg(long)]
    payloads: bool,
    /// Two columns within that width, or one after the other below 100; the terminal's width when absent.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    #[command(flatten)]
    place: Place,
}

/// One of the two.
struct Side {
    name: String,
    run: RunId,
    records: u64,
    head: Digest,
    reading: Reading,
    blocks: Vec<Block>,
    ending: String,
}

#[derive(Serialize)]
struct SideLine<'a> {
    run: &'a RunId,
    records: u64,
    head: Digest,
}

#[derive(Serialize)]
struct DiffLine<'a> {
    a: SideLine<'a>,
    b: SideLine<'a>,
    identical: bool,
    same: bool,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let read = |name: &str| Side::read(name, arguments);
    let (a, b) = (read(&arguments.first)?, read(&arguments.second)?);
    let manner = Manner { times: arguments.times, payloads: arguments.payloads };
    if manner.payloads {
        note!("portcullis: privileged: what models, tools and people wrote, and nothing has released it");
    }
    let comparison = compare(&a.reading, &b.reading, manner);
    let mut out = Output::new(BufWriter::new(std::io::stdout().lock()));
    if json {
        let (identical, same) = (a.head == b.head, comparison.same());
        out.json(&DiffLine { a: a.line(), b: b.line(), identical, same, comparison: &comparison })?;
    } else {
        tell(&a, &b, &comparison, arguments.times, &mut out)?;
        if !comparison.same() {
            let width = arguments.width.or_else(terminal).filter(|width| *width >= NARROW);
            let from = comparison.parting.as_ref().map(|parting| parting.seq);
            columns::show(&a.blocks, &b.blocks, from, width, &mut out)?;
        }
    }
    out.finish()?;
    Ok(if comparison.same() { Exit::Success } else { Exit::Divergence })
}

impl Side {
    fn read(name: &str, arguments: &Arguments) -> Result<Self, Problem> {
        let Source { name, lines, .. } = Source::named(name, arguments.run, &arguments.place)?;
        let (mut reading, mut timeline, mut blocks) = (Reading::default(), Timeline::default(), Vec::new());
        let stepped = step_through(&name, lines, &progress(None, true), |step, engine| {
            reading.see(step, engine);
            let mut block = Vec::new();
            timeline.step(step, engine, &mut block)?;
            blocks.push(String::from_utf8_lossy(&block).lines().map(str::to_owned).collect());
            Ok(())
        })?;
        let ending = stepped.engine.ending().map_or_else(|| "open: it has not ended".to_owned(), describe);
        let (run, records, head) = (stepped.run, stepped.records, stepped.head);
        Ok(Self { name, run, records, head, reading, blocks, ending })
    }

    fn line(&self) -> SideLine<'_> {
        SideLine { run: &self.run, records: self.records, head: self.head }
    }
}

fn tell(a: &Side, b: &Side, comparison: &Comparison, times: bool, out: &mut impl Write) -> Result<(), Problem> {
    let mut say = |line: &str| writeln!(out, "{}", printable(line));
    for (letter, Side { name, run, records, head, ending, .. }) in [("A", a), ("B", b)] {
        say(&format!("{letter}: {name}: run {run}, {records} records, head {head}"))?;
        say(&format!("   {ending}"))?;
    }
    if a.head == b.head {
        say("the same, byte for byte")?;
        return Ok(());
    }
    if !comparison.ids.is_empty() {
        say(&format!("looked through: {}, and what derives from them", comparison.ids.join(", ")))?;
    }
    if let Some(Parting { seq, difference }) = comparison.time.as_ref().filter(|_| !times) {
        let at = |value: &Option<Json>| value.as_ref().map_or_else(String::new, Json::to_text);
        let (a, b) = (at(&difference.a), at(&difference.b));
        say(&format!("looked through: when records come, which differs from record {seq} on (A {a} ms, B {b} ms)"))?;
    }
    if comparison.same() {
        say("the same, but for that")?;
    }
    for Difference { field, a, b } in comparison.settings.iter().take(SETTINGS_MAX) {
        say(&format!("setting {field}: {} -> {}", value(a.as_ref()), value(b.as_ref())))?;
    }
    if let Some(more) = comparison.settings.len().checked_sub(SETTINGS_MAX).filter(|more| *more > 0) {
        say(&format!("and {more} settings more (--json has all)"))?;
    }
    match &comparison.parting {
        Some(Parting { seq, difference: Difference { a: Some(Json::String(input)), b: None, .. } }) => {
            say(&format!("they part at record {seq}: A goes on with {input}, and B ends before it"))?;
        }
        Some(Parting { seq, difference: Difference { a: None, b: Some(Json::String(input)), .. } }) => {
            say(&format!("they part at record {seq}: B goes on with {input}, and A ends before it"))?;
        }
        Some(Parting { seq, difference: Difference { field, a, b } }) => {
            say(&format!("they part at record {seq}, in {field}"))?;
            say(&format!("  A: {}", value(a.as_ref())))?;
            say(&format!("  B: {}", value(b.as_ref())))?;
        }
        None if !comparison.same() => say("apart from settings they are the same")?,
        None => {}
    }
    Ok(())
}

/// A value; of a payload how long it is, and a digest by which equal ones are seen.
fn value(value: Option<&Json>) -> String {
    let Some(value) = value else { return "(nothing)".to_owned() };
    let text = visible(&told(value).to_text());
    if text.chars().count() > VALUE_MAX { text.chars().take(VALUE_MAX).collect::<String>() + ".." } else { text }
}

/// The value with a few words in the place of each payload.
fn told(value: &Json) -> Json {
    match value {
        Json::Object(members) if is_sealed(value) => {
            let bytes = members.get("bytes").map(Json::to_text).unwrap_or_default();
            let digest = members.get("redacted").and_then(Json::as_str).and_then(|digest| digest.get(..8));
            Json::from(format!("{bytes} bytes ({}..)", digest.unwrap_or_default()))
        }
        Json::Object(members) => {
            Json::Object(members.iter().map(|(name, member)| (name.clone(), told(member))).collect())
        }
        Json::Array(items) => Json::Array(items.iter().map(told).collect()),
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => value.clone(),
    }
}

/// The width of the terminal that is written to; `None` when it is none, or does not say.
fn terminal() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    #[cfg(unix)]
    return rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    None
}
