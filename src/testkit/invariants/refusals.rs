//! 13.I7: every report that fits nothing here is refused, and leaves everything byte-equal.

use super::Subject;
use super::prefixes::Prefix;
use crate::testkit::alphabet::{Report, foreign};
use crate::testkit::shown::Shown;

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
