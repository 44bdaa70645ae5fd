//! A call that failed: what an embedder gets when there is no `RunState` to go on from (SPEC 12).

use super::store::StoreError;
use crate::history::{Divergence, Fault};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::outcome::FailureCode;
use crate::vocabulary::refusal::Refusal;

/// A call of the runtime that failed. Match on the variant; the text is for people.
///
/// A run that failed is no error of a call: it is an ending with its `Failure`. A `StateConflict` is one of
/// those and never comes out here.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The run cannot begin as it is asked for. Nothing was stored.
    #[error("the run cannot begin: {reason}")]
    Resolution {
        /// For people: what is wrong with the spec.
        reason: String,
    },
    /// The runtime could not do what was asked. What is stored has not changed.
    #[error("{0}")]
    Execution(#[from] Trouble),
    /// The store refused a commit. Nothing that depends on it was done, no release was published, and the
    /// history stays at its last durable record.
    #[error("{0}")]
    Commit(StoreError),
}

/// Why the runtime could not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    /// No such run.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// The run does not accept it now: a ticket that is closed, a run that has ended.
    #[error("{0}")]
    Refused(Refusal),
    /// The session that drives the run says that it does not accept it.
    #[error("run {run} does not take it: {reason}")]
    RefusedThere {
        /// The run.
        run: RunId,
        /// For people.
        reason: String,
    },
    /// A living session drives the run.
    #[error("run {run} is being driven by {by}")]
    Driven {
        /// The run.
        run: RunId,
        /// The session.
        by: String,
    },
    /// The stored history is damaged.
    #[error("the history of run {run} is damaged: {fault}")]
    Damaged {
        /// The run.
        run: RunId,
        /// Where and how.
        fault: Fault,
    },
    /// The stored history does not come out as it was written.
    #[error("the history of run {run} does not reproduce: record {}, {}", .divergence.seq, .divergence.field)]
    Diverged {
        /// The run.
        run: RunId,
        /// Where and how.
        divergence: Box<Divergence>,
    },
    /// The driver stopped before it answered.
    #[error("run {0} is not driven any more")]
    Stopped(RunId),
    /// The runtime was built without something that it needs.
    #[error("a runtime needs {0}")]
    Unequipped(&'static str),
    /// Two plugins of one id were registered.
    #[error("two plugins are called {0:?}")]
    PluginTwice(String),
    /// The session that drives the run did not answer in time. It may still do what was asked.
    #[error("whoever drives run {0} has not answered yet")]
    Unanswered(RunId),
}

impl Error {
    /// The coarse reason on the wire (SPEC 2), for what may be shown to anybody.
    #[must_use]
    pub const fn failure_code(&self) -> FailureCode {
        match self {
            Self::Resolution { .. } | Self::Execution(_) => FailureCode::InternalFailure,
            Self::Commit(_) => FailureCode::RunPersistenceFailed,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownRun { run } => Self::Execution(Trouble::UnknownRun(run)),
            StoreError::Owned { run, by } => Self::Execution(Trouble::Driven { run, by }),
            StoreError::RunExists { .. }
            | StoreError::Fenced { .. }
            | StoreError::Conflict { .. }
            | StoreError::Gap { .. }
            | StoreError::Malformed { .. }
            | StoreError::Medium { .. } => Self::Commit(error),
        }
    }
}
