//! The run's own time: milliseconds since it started, never backwards, and the deadline (SPEC 1, 4, 7.8).

use serde::Serialize;

/// A run's clock. It is told the time, it never asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clock {
    at_ms: u64,
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_since_ms: Option<u64>,
}

impl Clock {
    /// A clock at 0.
    #[must_use]
    pub const fn new(deadline_ms: Option<u64>) -> Self {
        Self { at_ms: 0, deadline_ms, paused_since_ms: None }
    }

    /// The time of the last step.
    #[must_use]
    pub const fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// The time that a report at `at_ms` counts as: never earlier than the last step.
    #[must_use]
    pub fn clamped(&self, at_ms: u64) -> u64 {
        at_ms.max(self.at_ms)
    }

    /// When the run times out, while the deadline runs.
    #[must_use]
    pub const fn deadline_ms(&self) -> Option<u64> {
        if self.paused_since_ms.is_some() { None } else { self.deadline_ms }
    }

    /// Whether the deadline has passed at `at_ms`.
    #[must_use]
    pub fn is_past_deadline(&self, at_ms: u64) -> bool {
        self.deadline_ms().is_some_and(|deadline| at_ms >= deadline)
    }

    /// Moves on to `at_ms`, which was clamped.
    pub fn advance(&mut self, at_ms: u64) {
        self.at_ms = at_ms;
    }

    /// Stops the deadline.
    pub fn pause(&mut self) {
        self.paused_since_ms.get_or_insert(self.at_ms);
    }

    /// Lets the deadline run on; true when it had stood still and has moved.
    pub fn resume(&mut self) -> bool {
        let Some(since) = self.paused_since_ms.take() else {
            return false;
        };
        let paused = self.at_ms.saturating_sub(since);
        self.deadline_ms = self.deadline_ms.map(|deadline| deadline.saturating_add(paused));
        self.deadline_ms.is_some()
    }
}
