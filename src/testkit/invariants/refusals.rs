//! 13.I7: every report that fits nothing here is refused, and leaves everything byte-equal.

use super::Subject;
use super::prefixes::Prefix;
use crate::engine::Engine;
use crate::testkit::alphabet::{Report, foreign};

pub(super) fn ask<S: Subject>(prefix: &Prefix<'_, S>) -> Option<String> {
    let reports = foreign(prefix.subject.engine(), prefix.world, Some(prefix.last));
    let before = Shown::of(prefix.subject.engine());
    let mut tried = prefix.subject.clone();
    let accepted = reports.iter().find(|report| tried.step(report.at_ms, report.input.clone()).is_ok());
    if let Some(report) = accepted {
        return Some(format!("{} is accepted, and nothing waits for it", named(report)));
    }
    if Shown::of(tried.engine()) == before {
        return None;
    }
    let changes = |report: &&Report| {
        let mut alone = prefix.subject.clone();
        let _refusal = alone.step(report.at_ms, report.input.clone());
        Shown::of(alone.engine()) != before
    };
    let which = reports.iter().find(changes).map_or_else(|| "several reports together".to_owned(), named);
    Some(format!("{which}: refused, and something is otherwise than before"))
}

fn named(report: &Report) -> String {
    format!("{} at {} ms", report.input.tag(), report.at_ms)
}

/// Everything that an engine shows of itself.
#[derive(PartialEq)]
pub(super) struct Shown {
    state: String,
    identity: String,
    outstanding: String,
    expected: Vec<&'static str>,
    messages: usize,
    facts: usize,
    records: u64,
}

impl Shown {
    pub(super) fn of(engine: &Engine) -> Self {
        let decider = engine.decider();
        Self {
            state: decider.state_json(),
            identity: decider.identity().to_string(),
            outstanding: serde_json::to_string(&engine.outstanding()).unwrap_or_default(),
            expected: engine.expected(),
            messages: engine.transcript().len(),
            facts: engine.facts().len(),
            records: decider.records(),
        }
    }
}
