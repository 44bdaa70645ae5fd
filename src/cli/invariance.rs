//! What `replay --verify` asks beside the bytes: the closed table, by the reference that imports no engine, and the
//! named invariants (SPEC 13.9, 13.10).

use std::io::Write;

use serde::Serialize;

use super::exit::{Problem, printable};
use super::output::Output;
use crate::history::{Lines, Next};
use crate::testkit::audit::Rule;
use crate::testkit::invariants::{Breach, Broken, Invariant, check};
use crate::testkit::reference;
use crate::vocabulary::json::Json;

/// What was asked, and what is broken.
#[derive(Serialize)]
struct Verified<'a> {
    history: &'a str,
    /// Whether the ending is a row; absent while the run is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_table: Option<bool>,
    invariants: Vec<&'static str>,
    rules: Vec<&'static str>,
    broken: Vec<BreachLine>,
}

#[derive(Serialize)]
struct BreachLine {
    broken: String,
    seq: u64,
    reason: String,
}

/// Verifies a whole chain, says what was asked, and gives whether all of it holds.
pub(crate) fn verify(name: &str, history: &[u8], json: bool) -> Result<bool, Problem> {
    let ending = ending(history);
    let table = ending.as_ref().map(reference::is_legal);
    let breaches = check(history).err().unwrap_or_default();
    let sound = breaches.is_empty() && table.as_ref().is_none_or(Result::is_ok);
    let mut out = Output::stdout();
    if json {
        out.json(&Verified {
            history: name,
            closed_table: table.as_ref().map(Result::is_ok),
            invariants: Invariant::ALL.iter().map(|invariant| invariant.word()).collect(),
            rules: rules().map(Rule::word).collect(),
            broken: breaches.iter().map(BreachLine::from).collect(),
        })?;
    } else {
        let mut say = |line: String| writeln!(out, "{}", printable(&format!("{name}: {line}")));
        match &table {
            Some(Ok(())) => say(format!("closed table: its ending is row {}", row(ending.as_ref())))?,
            Some(Err(illegal)) => say(format!("closed table: {illegal}"))?,
            None => say("closed table: the run is open and has no ending".to_owned())?,
        }
        let asked = format!("{} invariants, {} rules of an audit", Invariant::ALL.len(), rules().count());
        match breaches.len() {
            0 => say(format!("{asked}: all hold"))?,
            1 => say(format!("{asked}: 1 is broken"))?,
            some => say(format!("{asked}: {some} are broken"))?,
        }
        for breach in &breaches {
            say(format!("  {breach}"))?;
            if let Broken::Invariant(invariant) = breach.broken {
                say(format!("    demands: {}", invariant.demands()))?;
            }
        }
    }
    out.finish()?;
    Ok(sound)
}

impl From<&Breach> for BreachLine {
    fn from(breach: &Breach) -> Self {
        Self { broken: breach.broken.to_string(), seq: breach.seq, reason: breach.reason.clone() }
    }
}

/// The rules of an audit that are none of the twelve invariants.
fn rules() -> impl Iterator<Item = Rule> {
    Rule::ALL.iter().copied().filter(|rule| matches!(Broken::from(*rule), Broken::Rule(_)))
}

fn row(ending: Option<&Json>) -> String {
    let row = ending.and_then(Json::as_object).and_then(|ending| ending.get("row"));
    row.map(Json::to_text).unwrap_or_default()
}

/// The first ending that the records show, as it stands in them.
fn ending(history: &[u8]) -> Option<Json> {
    let mut lines = Lines::new(history);
    while let Ok(Next::Line(line)) = lines.next_line() {
        let ending = Json::parse_bytes(line.bytes).ok().and_then(|mut record| record.remove("state")?.remove("ending"));
        if ending.is_some() {
            return ending;
        }
    }
    None
}
