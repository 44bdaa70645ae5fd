//! Nested calls over a history: each is asked for once, by a tool that runs, answered at most once, and completes
//! only after it was admitted and before its parent is over.

use std::collections::{BTreeMap, BTreeSet};

use super::wire::{integer, member, word};
use super::{Record, Rule};
use crate::vocabulary::json::Json;

/// What is known of the nested calls so far.
#[derive(Debug, Default)]
pub(super) struct Nested {
    /// The attempt of each call that was entered and is not over.
    running: BTreeMap<String, u64>,
    /// How many each of them has asked for.
    requested: BTreeMap<String, u64>,
    asking: BTreeSet<String>,
    admitted: BTreeSet<String>,
}

impl Nested {
    /// Follows one record.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        match record.input_type() {
            "nested_call_requested" => self.requested(record),
            "nested_completed" => {
                let admitted = self.admitted.remove(word(record.input, "nested"));
                record.require(admitted, Rule::NestedInside, "completed without being admitted");
            }
            // A completion that came too late is taken where it would have been accepted.
            "deadline_elapsed" => {
                let late = member(record.input, "displaced").filter(|late| word(late, "type") == "nested_completed");
                if let Some(late) = late {
                    self.admitted.remove(word(late, "nested"));
                }
            }
            _ => {}
        }
        for signal in record.signals {
            self.signal(record, signal);
        }
        for effect in record.effects {
            self.effect(record, effect);
        }
    }

    fn requested(&mut self, record: &Record<'_>) {
        let (parent, nested) = (word(record.input, "parent"), word(record.input, "nested"));
        let runs = self.running.get(parent).copied();
        let fits = runs.is_some() && runs == integer(record.input, "attempt");
        record.require(fits, Rule::NestedInside, "asked for by no call that runs");
        let next = self.requested.entry(parent.to_owned()).or_default();
        let id = format!("n{}.{next}", parent.trim_start_matches('t'));
        *next = next.saturating_add(1);
        record.require(nested == id, Rule::NestedInside, "not the parent's next one");
        self.asking.insert(nested.to_owned());
    }

    fn signal(&mut self, record: &Record<'_>, signal: &Json) {
        match word(signal, "type") {
            "call_closed" | "call_indeterminate" => self.over(record, word(signal, "call")),
            "nested_lost" => {
                let admitted = self.admitted.remove(word(signal, "nested"));
                record.require(admitted, Rule::NestedInside, "lost without being admitted");
            }
            _ => {}
        }
    }

    /// A call is over, or its attempt: what it asked for was given up before.
    fn over(&mut self, record: &Record<'_>, parent: &str) {
        self.running.remove(parent);
        let family = format!("n{}.", parent.trim_start_matches('t'));
        self.asking.retain(|nested| !nested.starts_with(&family));
        let left = self.admitted.iter().any(|nested| nested.starts_with(&family));
        record.require(!left, Rule::NestedInside, "outlives its parent");
    }

    fn effect(&mut self, record: &Record<'_>, effect: &Json) {
        let nested = word(effect, "nested");
        match word(effect, "type") {
            "invoke_tool" => {
                let call = word(effect, "call");
                let attempt = integer(effect, "attempt").unwrap_or(0);
                if self.running.get(call) != Some(&attempt) {
                    self.over(record, call);
                    self.running.insert(call.to_owned(), attempt);
                }
            }
            "admit_nested" => {
                let first = self.asking.remove(nested) && self.admitted.insert(nested.to_owned());
                record.require(first, Rule::NestedInside, "admitted without being asked for");
            }
            "deny_nested" => {
                record.require(self.asking.remove(nested), Rule::NestedInside, "denied without being asked for");
            }
            _ => {}
        }
    }
}
