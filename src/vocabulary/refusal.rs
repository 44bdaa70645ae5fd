//! Refusals: inputs that the present state does not accept. A value, and it changes nothing at all (SPEC 1).

use serde::Serialize;

use super::wire::words;

words! {
    /// Why an input was refused, in the order the reasons are asked (SPEC 4).
    pub enum RefusalKind {
        /// It breaks a form or size limit.
        Malformed = "malformed",
        /// The run has not begun.
        NotStarted = "not_started",
        /// The run has begun.
        AlreadyStarted = "already_started",
        /// The run has ended.
        Terminal = "terminal",
        /// It repeats an accepted report: same type and ids, same body.
        Duplicate = "duplicate",
        /// It repeats an accepted report with another body.
        Conflict = "conflict",
        /// Right form, wrong phase.
        Unexpected = "unexpected",
        /// It fits no call in flight.
        Stale = "stale",
        /// A timer that came early: the driver keeps it armed.
        NotDue = "not_due",
    }
}

/// A refused input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{kind} in {machine} `{state}`{}", .reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// The machine that refused.
    pub machine: &'static str,
    /// The state it is in.
    pub state: &'static str,
    /// The inputs that would be accepted now, by type.
    pub expected: Vec<&'static str>,
    /// For people, where the kind alone does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
