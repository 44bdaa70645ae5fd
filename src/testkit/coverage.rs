//! What a suite took: which transitions of which machines, and what became of which report in which state.

use std::collections::BTreeMap;

use crate::engine::Step;
use crate::machines::Taken;
use crate::vocabulary::refusal::RefusalKind;

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It was accepted.
    Accepted,
    /// It was accepted as what the deadline carries.
    Displaced,
    /// It was refused.
    Refused(RefusalKind),
}

/// A state of the run, a type of report, and what became of it there.
pub type Met = (&'static str, &'static str, Answer);

/// How often each of them was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Every transition that a machine took.
    pub transitions: BTreeMap<Taken, u64>,
    /// Every report that was offered, by its type and the run's state.
    pub reports: BTreeMap<Met, u64>,
}

impl Coverage {
    /// Counts an accepted report of that type, in a run that stood in `state`.
    pub fn accept(&mut self, state: &'static str, report: &'static str, step: &Step) {
        let answer = if step.input.tag() == report { Answer::Accepted } else { Answer::Displaced };
        count(&mut self.reports, (state, report, answer));
        for taken in &step.transitions {
            count(&mut self.transitions, *taken);
        }
    }

    /// Counts a refused report of that type.
    pub fn refuse(&mut self, state: &'static str, report: &'static str, kind: RefusalKind) {
        count(&mut self.reports, (state, report, Answer::Refused(kind)));
    }

    /// Adds what another part of a suite took.
    pub fn add(&mut self, other: &Self) {
        for (taken, times) in &other.transitions {
            *self.transitions.entry(*taken).or_default() += times;
        }
        for (met, times) in &other.reports {
            *self.reports.entry(*met).or_default() += times;
        }
    }
}

fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}
