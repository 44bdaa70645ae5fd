//! How often everything was met: a simulator that meets nothing finds nothing.

use std::collections::BTreeMap;
use std::fmt;

use crate::faults::Fault;
use crate::life::Lived;

/// Rows of the closed table.
const ROWS: std::ops::RangeInclusive<u64> = 1..=20;
/// What a recovery can find outstanding, as the effects that ask for it again.
const RECOVERIES: [&str; 12] = [
    "resolve_environment",
    "call_model",
    "start_timer deadline",
    "start_timer backoff",
    "start_timer tool_timeout",
    "ask_gate",
    "call_hook",
    "perform_action",
    "invoke_tool",
    "judge_semantics",
    "await_decision",
    "reconcile_tool",
];

/// Counts over many worlds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) worlds: u64,
    records: u64,
    faults: BTreeMap<Fault, u64>,
    rows: BTreeMap<u64, u64>,
    recoveries: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, lived: &Lived) {
        self.worlds += 1;
        self.records += lived.records;
        for (fault, times) in &lived.met {
            *self.faults.entry(*fault).or_default() += times;
        }
        for row in &lived.rows {
            *self.rows.entry(*row).or_default() += 1;
        }
        for kind in &lived.recoveries {
            *self.recoveries.entry(kind.clone()).or_default() += 1;
        }
    }

    /// What was never met.
    pub(crate) fn missing(&self) -> Vec<String> {
        let faults = Fault::ALL.iter().filter(|fault| !self.faults.contains_key(fault)).map(|fault| fault.word());
        let rows = ROWS.filter(|row| !self.rows.contains_key(row)).map(|row| format!("row {row}"));
        let recoveries = RECOVERIES.iter().filter(|kind| !self.recoveries.contains_key(**kind));
        let recoveries = recoveries.map(|kind| format!("recovery of {kind}"));
        faults.map(str::to_owned).chain(rows).chain(recoveries).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} worlds, {} records", self.worlds, self.records)?;
        let list = |counts: Vec<(String, u64)>| {
            counts.iter().map(|(name, times)| format!("{name} {times}")).collect::<Vec<_>>().join(", ")
        };
        let faults = Fault::ALL.iter().map(|fault| (fault.word().to_owned(), self.faults.get(fault).copied()));
        writeln!(out, "faults: {}", list(faults.map(|(name, times)| (name, times.unwrap_or(0))).collect()))?;
        let rows = ROWS.map(|row| (row.to_string(), self.rows.get(&row).copied().unwrap_or(0)));
        writeln!(out, "rows: {}", list(rows.collect()))?;
        let recoveries = self.recoveries.iter().map(|(kind, times)| (kind.clone(), *times));
        write!(out, "recoveries: {}", list(recoveries.collect()))
    }
}
