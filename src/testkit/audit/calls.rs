//! Tool calls over a history: each is closed once, dispatched before it is entered, and never entered again
//! once its outcome is unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::wire::{integer, list, word};
use super::{Record, Rule};
use crate::vocabulary::json::Json;

/// What is known of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    rounds: u64,
    /// Every call of the model, and whether it has its closing observation.
    closed: BTreeMap<String, bool>,
    dispatched: BTreeSet<String>,
    indeterminate: BTreeSet<String>,
}

impl Calls {
    /// Follows one signal.
    pub(super) fn signal(&mut self, record: &Record<'_>, signal: &Json) {
        let call = word(signal, "call");
        match word(signal, "type") {
            "response_accepted" => {
                self.all_closed(record);
                let calls = integer(signal, "calls").unwrap_or(0);
                self.rounds = self.rounds.saturating_add(u64::from(calls > 0));
                self.closed = (0..calls).map(|index| (format!("t{}.{index}", self.rounds), false)).collect();
            }
            "call_closed" => {
                let before = self.closed.insert(call.to_owned(), true);
                record.require(before == Some(false), Rule::OneClosing, "closed twice, or never asked for");
            }
            "batch_closed" => self.all_closed(record),
            "call_indeterminate" => {
                self.indeterminate.insert(call.to_owned());
            }
            _ => {}
        }
    }

    /// Follows the effects, once the signals of the record were followed.
    pub(super) fn effects(&mut self, record: &Record<'_>) {
        if record.input_type() == "tools_dispatched" {
            let calls = list(record.input, "calls").iter().filter_map(Json::as_str);
            self.dispatched.extend(calls.map(str::to_owned));
        }
        for effect in record.effects_of("invoke_tool") {
            let call = word(effect, "call");
            record.require(self.dispatched.contains(call), Rule::DispatchedFirst, call);
            let open = self.closed.get(call) == Some(&false) && !self.indeterminate.contains(call);
            record.require(open, Rule::NeverAgain, call);
        }
    }

    /// Every call that the model made has its closing observation.
    pub(super) fn all_closed(&self, record: &Record<'_>) {
        record.require(
            self.closed.values().all(|closed| *closed),
            Rule::OneClosing,
            "a call stays without its closing",
        );
    }
}
