//! What is due: the queue of a run in virtual time. Equal times keep the order in which they were entered.

use std::collections::BTreeMap;

use super::interruption::Moment;
use crate::vocabulary::input::Input;

/// Everything that is still to come.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<(u64, u64), Entry>,
    entered: u64,
}

/// One thing to come.
#[derive(Debug)]
pub(super) enum Entry {
    /// The world answers.
    Report(Input),
    /// A timer fires.
    Timer(Input),
    /// Somebody or something interrupts.
    Interruption(Moment),
}

impl Agenda {
    /// Enters something that is due at `due_ms`.
    pub(super) fn enter(&mut self, due_ms: u64, entry: Entry) {
        self.entries.insert((due_ms, self.entered), entry);
        self.entered += 1;
    }

    /// Takes what is due first, with its time.
    pub(super) fn take(&mut self) -> Option<(u64, Entry)> {
        self.entries.pop_first().map(|((due_ms, _), entry)| (due_ms, entry))
    }

    /// Whether nothing but timers is to come.
    pub(super) fn holds_only_timers(&self) -> bool {
        self.entries.values().all(|entry| matches!(entry, Entry::Timer(_)))
    }

    /// The process dies: its timers and the answers under way are lost. What interrupts comes all the same.
    pub(super) fn lose(&mut self) {
        self.entries.retain(|_, entry| matches!(entry, Entry::Interruption(_)));
    }
}
