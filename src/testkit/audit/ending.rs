//! The end of a run: its ending, what it is founded on, and that nothing after it changes it.

use std::collections::BTreeSet;

use super::wire::{integer, list, member, word};
use super::{Record, Rule};
use crate::testkit::reference;
use crate::vocabulary::json::Json;

/// A run's end as its record shows it.
#[derive(Debug)]
pub(super) struct End {
    ending: Json,
    release: Json,
    key: String,
}

/// Signals that choose the row when they stand in the record that ends the run (SPEC 3.C2).
const CHOOSING: [(&str, [u64; 2]); 6] = [
    ("collection_stopped", [9, 10]),
    ("violation_limit_reached", [11, 12]),
    ("budget_exhausted", [13, 14]),
    ("semantics_refused", [4, 4]),
    ("draft_invalid", [7, 8]),
    ("evidence_violated", [2, 3]),
];

impl End {
    /// Checks the record that ends the run.
    pub(super) fn check(
        record: &Record<'_>,
        ending: &Json,
        facts: u64,
        signals: &BTreeSet<String>,
        unjudged: bool,
    ) -> Self {
        if let Err(illegal) = reference::is_legal(ending) {
            record.require(false, Rule::ClosedTable, &illegal.to_string());
        }
        record.require(integer(ending, "facts") == Some(facts), Rule::ClosedTable, "another number of facts");
        cause(record, integer(ending, "row").unwrap_or(0), signals);
        let mut offers = record.effects_of("publish");
        let (offer, second) = (offers.next().unwrap_or(&Json::Null), offers.next());
        let once = *offer != Json::Null && second.is_none();
        record.require(once, Rule::OneRelease, "a run that ends offers its release once");
        let release = member(offer, "release").unwrap_or(&Json::Null);
        for name in ["outcome", "fallback_type", "failure_code"] {
            record.require(word(release, name) == word(ending, name), Rule::OneRelease, name);
        }
        founded(record, release, facts, unjudged);
        Self { ending: ending.clone(), release: release.clone(), key: word(offer, "key").to_owned() }
    }

    /// A later record: one of three inputs, the same ending, the same release.
    pub(super) fn stays(&self, record: &Record<'_>) {
        let allowed = ["release_delivered", "run_recovered", "tail_repaired"].contains(&record.input_type());
        let silent = record.signals.is_empty();
        record.require(allowed && silent, Rule::OneTerminal, "something happened after the end");
        let same = member(record.state, "ending") == Some(&self.ending);
        record.require(same, Rule::OneTerminal, "the ending changed");
        let is_offer = |effect: &Json| {
            word(effect, "type") == "publish"
                && member(effect, "release") == Some(&self.release)
                && word(effect, "key") == self.key
        };
        let told = |effect: &Json| word(effect, "type") == "call_hook" && word(effect, "point") == "run_end";
        let same = record.effects.iter().all(|effect| is_offer(effect) || told(effect));
        record.require(same, Rule::OneRelease, "another effect than the same offer");
    }
}

/// The row follows from what the signals and the input say happened.
fn cause(record: &Record<'_>, row: u64, signals: &BTreeSet<String>) {
    let own = |name: &str| record.signals.iter().any(|signal| word(signal, "type") == name);
    let ever = |name: &str| signals.contains(name);
    let input = record.input_type();
    let holds = match row {
        1 => ever("evidence_held") && ever("semantics_held"),
        2 | 3 => ever("evidence_violated"),
        4 => own("semantics_refused"),
        5 | 6 => own("draft_completed"),
        7 | 8 => ever("draft_invalid"),
        9 | 10 => own("collection_stopped") && ever("stop_delivered"),
        11 | 12 => own("violation_limit_reached"),
        13 | 14 => own("budget_exhausted"),
        15 => input == "cancel_requested",
        16 => input == "deadline_elapsed",
        17 => own("execution_failed"),
        18 => ["environment_resolved", "resolution_failed"].contains(&input) && !ever("response_accepted"),
        19 => input == "run_recovered",
        20 => own("gate_blocked") && ever("semantics_held"),
        _ => false,
    };
    record.require(holds, Rule::ClosedTable, "the row does not follow from the signals");
    // A fault of a draft or its evidence chooses nothing when it was to be repaired and the repair failed.
    let repaired = own("repair_failed") || own("execution_failed");
    for (name, rows) in CHOOSING {
        let chosen = rows.contains(&row) || !own(name) || repaired;
        record.require(chosen, Rule::ClosedTable, name);
    }
}

/// A success stands on observed facts and on both guards, a fallback on every observed fact.
fn founded(record: &Record<'_>, release: &Json, facts: u64, unjudged: bool) {
    match word(release, "outcome") {
        "success" => {
            let citations = list(release, "citations");
            let observed = |citation: &Json| {
                let number = word(citation, "id").strip_prefix('f').and_then(|number| number.parse::<u64>().ok());
                number.is_some_and(|number| (1..=facts).contains(&number))
            };
            let cited = !citations.is_empty() && citations.iter().all(observed);
            record.require(cited, Rule::ProvenSuccess, "a citation of nothing observed, or none");
            let judged = member(release, "judged").and_then(Json::as_bool) == Some(true);
            record.require(judged || unjudged, Rule::ProvenSuccess, "nobody judged it");
        }
        "fallback" => {
            let given = list(release, "facts").len() as u64;
            record.require(given > 0 && given == facts, Rule::FoundedFallback, "not every observed fact, or none");
        }
        _ => {}
    }
}
