//! How breaches read: what is broken, where, why. Nothing of it is what a model wrote.

use std::fmt;

use super::{Breach, Broken, check, lines};
use crate::testkit::audit::wire::{list, member, word};
use crate::vocabulary::json::Json;

/// Why a history is not fail-closed, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many whole records the history has.
    pub records: usize,
    /// Everything that is broken; one at least.
    pub breaches: Vec<Breach>,
    /// What stands in the record of each.
    shown: Vec<String>,
}

/// Asks what [`check`] asks, and says what is wrong so that it can be read.
///
/// # Errors
/// What is wrong.
pub fn report(history: impl AsRef<[u8]>) -> Result<(), Report> {
    let history = history.as_ref();
    let Err(breaches) = check(history) else { return Ok(()) };
    let lines = lines(history);
    let line = |breach: &Breach| usize::try_from(breach.seq).ok().and_then(|seq| lines.get(seq));
    let shown = breaches.iter().map(|breach| line(breach).map_or_else(String::new, |line| show(line))).collect();
    Err(Report { records: lines.len(), breaches, shown })
}

/// The types in a record, without a word of its contents.
fn show(line: &str) -> String {
    let Ok(record) = Json::parse(line) else { return "no record".to_owned() };
    let types = |name: &str| {
        let types: Vec<&str> = list(&record, name).iter().map(|item| word(item, "type")).collect();
        if types.is_empty() { "none".to_owned() } else { types.join(", ") }
    };
    let input = member(&record, "input").map_or("none", |input| word(input, "type"));
    format!("input {input}; signals {}; effects {}", types("signals"), types("effects"))
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, records) = (self.breaches.len(), self.records);
        let things = if count == 1 { "1 thing is broken".to_owned() } else { format!("{count} things are broken") };
        writeln!(out, "this history is not fail-closed: {things} in {records} records")?;
        for (breach, shown) in self.breaches.iter().zip(&self.shown) {
            writeln!(out, "\n  {}, at record {}", breach.broken, breach.seq)?;
            if let Broken::Invariant(invariant) = breach.broken {
                writeln!(out, "    demands: {}", invariant.demands())?;
            }
            writeln!(out, "    found:   {}", breach.reason)?;
            if !shown.is_empty() {
                writeln!(out, "    record:  {shown}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Report {}
