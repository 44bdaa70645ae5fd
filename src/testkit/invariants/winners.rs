//! 13.I9: of cancel and deadline the first wins; a second one of either is refused and changes nothing.

use super::Subject;
use super::prefixes::Prefix;
use crate::testkit::alphabet::Report;
use crate::testkit::shown::Shown;
use crate::vocabulary::input::{CancelOrigin, Input};

/// The rows of the closed table that they lead to.
const CANCELLED: u8 = 15;
const TIMED_OUT: u8 = 16;

pub(super) fn ask<S: Subject>(prefix: &Prefix<'_, S>) -> Option<String> {
    let clock = prefix.subject.engine().decider().clock()?;
    let at_ms = clock.at_ms();
    let input = Input::CancelRequested { by: "somebody".to_owned(), origin: CancelOrigin::Caller };
    let cancel = Report { at_ms, input };
    let elapse = |at_ms| Report { at_ms, input: Input::DeadlineElapsed { displaced: None } };
    let deadline = clock.deadline_ms().map(elapse);
    let late = deadline.clone().unwrap_or_else(|| elapse(at_ms));
    if prefix.subject.engine().ending().is_some() {
        return nothing_more(prefix.subject.clone(), &[&cancel, &late]);
    }
    let cancelled = wins(prefix.subject, &cancel, &late, CANCELLED);
    cancelled.or_else(|| deadline.and_then(|deadline| wins(prefix.subject, &deadline, &cancel, TIMED_OUT)))
}

/// The first one ends the run in its row; then neither does anything.
fn wins<S: Subject>(subject: &S, first: &Report, second: &Report, row: u8) -> Option<String> {
    let mut subject = subject.clone();
    if let Err(refusal) = subject.step(first.at_ms, first.input.clone()) {
        return Some(format!("{} is refused: {refusal}", first.input.tag()));
    }
    let reached = subject.engine().ending().map(|ending| ending.row);
    if reached != Some(row) {
        return Some(format!("{} leads to row {reached:?} instead of {row}", first.input.tag()));
    }
    let second = Report { at_ms: first.at_ms.max(second.at_ms), input: second.input.clone() };
    nothing_more(subject, &[first, &second, &second])
}

fn nothing_more<S: Subject>(mut subject: S, reports: &[&Report]) -> Option<String> {
    let before = Shown::of(subject.engine());
    for report in reports {
        let name = report.input.tag();
        if subject.step(report.at_ms, report.input.clone()).is_ok() {
            return Some(format!("{name} is accepted by a run that has ended"));
        }
        if Shown::of(subject.engine()) != before {
            return Some(format!("{name} is refused by a run that has ended, and changes it"));
        }
    }
    None
}
