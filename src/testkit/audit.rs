//! Rules that a whole history keeps, read off its records alone: it imports nothing of the machines or the
//! engine (SPEC 13, invariants 1 to 5, 8, 12; SPEC 3, cause and row).
//!
//! An audit is not a replay: it does not step anything, and it believes the bytes. It asks whether what is
//! written there may have happened.

mod calls;
mod ending;
mod nested;
mod sharing;
pub(super) mod wire;

use std::cell::RefCell;
use std::collections::BTreeSet;

use calls::Calls;
use ending::End;
use nested::Nested;
use wire::{integer, list, member, word};

use crate::vocabulary::json::Json;
use crate::vocabulary::wire::words;

words! {
    /// A rule that a history breaks, by name.
    pub enum Rule {
        /// The line is no record.
        Unreadable = "unreadable",
        /// Places count from 0 without a gap, and time never runs backwards.
        OutOfOrder = "out_of_order",
        /// 13.I1: a run ends once, and nothing after it changes the ending.
        OneTerminal = "one_terminal",
        /// 3: the ending stands in the closed table, and its row follows from the signals.
        ClosedTable = "closed_table",
        /// 13.I2: an observed fact behind every citation, and both guards held.
        ProvenSuccess = "proven_success",
        /// 13.I3: a fallback gives every observed fact, and there is one.
        FoundedFallback = "founded_fallback",
        /// 13.I4: no more is admitted than the limit.
        WithinLimits = "within_limits",
        /// 13.I5: every call of the model has exactly one closing observation.
        OneClosing = "one_closing",
        /// 7.9: a call is entered only once its dispatch is on record.
        DispatchedFirst = "dispatched_first",
        /// 13.I8: a call that is indeterminate or closed is not entered again.
        NeverAgain = "never_again",
        /// 12: a batch that breaks a bound or conflicts commits nothing, and no run leaves anything staged.
        WholeBatches = "whole_batches",
        /// 7.P5: a nested call is asked for by a call that runs, let through once, and over with that call.
        NestedInside = "nested_inside",
        /// 13.I12: one release value, and none before the end.
        OneRelease = "one_release",
    }
}

/// Where a history breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule} at record {seq}: {reason}")]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// The record.
    pub seq: u64,
    /// For people.
    pub reason: String,
}

/// An audit under way: it takes record after record.
#[derive(Debug, Default)]
pub struct Audit {
    records: u64,
    at_ms: u64,
    spec: Option<Json>,
    facts: u64,
    signals: BTreeSet<String>,
    calls: Calls,
    nested: Nested,
    end: Option<End>,
}

/// Audits the lines of one history, the oldest first.
///
/// # Errors
/// The first rule that is broken.
pub fn audit<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Audit, Breach> {
    let mut audit = Audit::default();
    for line in lines {
        audit.take(line)?;
    }
    Ok(audit)
}

/// The first breach of every rule that these lines break, in the order of the records.
#[must_use]
pub fn breaches<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Breach> {
    let (mut audit, mut found) = (Audit::default(), Vec::<Breach>::new());
    for line in lines {
        let breaches = audit.all(line);
        let unreadable = breaches.iter().any(|breach| breach.rule == Rule::Unreadable);
        for breach in breaches {
            if !found.iter().any(|earlier| earlier.rule == breach.rule) {
                found.push(breach);
            }
        }
        if unreadable {
            break;
        }
    }
    found
}

/// One record, taken apart, and what was found in it.
struct Record<'a> {
    seq: u64,
    input: &'a Json,
    signals: &'a [Json],
    state: &'a Json,
    effects: &'a [Json],
    found: RefCell<Vec<Breach>>,
}

impl Record<'_> {
    /// Notes a breach of `rule`, unless it holds.
    fn require(&self, holds: bool, rule: Rule, reason: &str) {
        if !holds {
            self.found.borrow_mut().push(Breach { rule, seq: self.seq, reason: reason.to_owned() });
        }
    }

    /// The type of the input.
    fn input_type(&self) -> &str {
        word(self.input, "type")
    }

    /// The effects of that type.
    fn effects_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Json> {
        self.effects.iter().filter(move |effect| word(effect, "type") == name)
    }
}

impl Audit {
    /// Takes the next line, with or without its line end.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn take(&mut self, line: &str) -> Result<(), Breach> {
        self.all(line).into_iter().next().map_or(Ok(()), Err)
    }

    /// Takes the next line: every rule that it breaks. One that is unreadable breaks nothing else, and ends the
    /// audit.
    fn all(&mut self, line: &str) -> Vec<Breach> {
        self.read(line).unwrap_or_else(|unreadable| vec![unreadable])
    }

    fn read(&mut self, line: &str) -> Result<Vec<Breach>, Breach> {
        let unreadable = |reason: String| Breach { rule: Rule::Unreadable, seq: self.records, reason };
        let json = Json::parse(line.trim_end()).map_err(|error| unreadable(error.to_string()))?;
        let part = |name| member(&json, name).ok_or_else(|| unreadable(format!("no {name}")));
        let record = Record {
            seq: integer(&json, "seq").ok_or_else(|| unreadable("no seq".to_owned()))?,
            input: part("input")?,
            signals: list(&json, "signals"),
            state: part("state")?,
            effects: list(&json, "effects"),
            found: RefCell::default(),
        };
        let at_ms = integer(&json, "at_ms").unwrap_or(0);
        let in_order = record.seq == self.records && at_ms >= self.at_ms;
        record.require(in_order, Rule::OutOfOrder, "a gap, or time runs backwards");
        (self.records, self.at_ms) = (record.seq.saturating_add(1), at_ms);
        if self.spec.is_none() {
            self.spec = member(record.input, "spec").cloned();
        }
        self.check(&record);
        Ok(record.found.into_inner())
    }

    /// How many records were taken.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Whether the run has ended.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn check(&mut self, record: &Record<'_>) {
        for signal in record.signals {
            self.signals.insert(word(signal, "type").to_owned());
            self.count_facts(record, signal);
            self.calls.signal(record, signal);
        }
        self.calls.effects(record);
        self.nested.record(record);
        self.check_limits(record);
        sharing::check(record);
        match &self.end {
            Some(end) => end.stays(record),
            None => self.check_end(record),
        }
    }

    /// Facts are numbered without a gap.
    fn count_facts(&mut self, record: &Record<'_>, signal: &Json) {
        let count = integer(signal, "count").unwrap_or(0);
        match word(signal, "type") {
            "facts_observed" => {}
            "facts_imported" => {
                record.require(self.facts == 0, Rule::ClosedTable, "facts are imported after others");
                self.facts = count;
                return;
            }
            _ => return,
        }
        let first = format!("f{}", self.facts.saturating_add(1));
        record.require(word(signal, "first") == first, Rule::ClosedTable, "facts are not numbered in order");
        self.facts = self.facts.saturating_add(count);
    }

    fn check_limits(&self, record: &Record<'_>) {
        let ledger = member(record.state, "ledger").unwrap_or(&Json::Null);
        let budgets = self.spec.as_ref().and_then(|spec| member(spec, "budgets")).unwrap_or(&Json::Null);
        let within = |spent: Option<u64>, limit: Option<u64>| spent.unwrap_or(0) <= limit.unwrap_or(u64::MAX);
        for name in ["model_calls", "tool_calls"] {
            let holds = within(integer(ledger, name), integer(budgets, name));
            record.require(holds, Rule::WithinLimits, name);
        }
        let by_tool = member(ledger, "tool_calls_by_tool").and_then(Json::as_object);
        let limits = member(budgets, "tool_calls_by_tool").unwrap_or(&Json::Null);
        for name in by_tool.into_iter().flat_map(|tools| tools.keys()) {
            let spent = member(ledger, "tool_calls_by_tool").and_then(|tools| integer(tools, name));
            record.require(within(spent, integer(limits, name)), Rule::WithinLimits, name);
        }
    }

    /// A run that goes on publishes nothing; one that ends here does so lawfully.
    fn check_end(&mut self, record: &Record<'_>) {
        let ends = record.signals.iter().filter(|signal| word(signal, "type") == "run_ended").count();
        let shown = member(record.state, "ending");
        record.require(ends == usize::from(shown.is_some()), Rule::OneTerminal, "an ending without its signal");
        let Some(ending) = shown else {
            let silent = record.effects_of("publish").next().is_none();
            record.require(silent, Rule::OneRelease, "a release before the end");
            return;
        };
        self.calls.all_closed(record);
        let judged = self.spec.as_ref().and_then(|spec| member(spec, "release")).map_or("", |spec| word(spec, "judge"));
        self.end = Some(End::check(record, ending, self.facts, &self.signals, judged == "off"));
    }
}
