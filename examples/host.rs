//! A host at its own boundary: it maps what the runtime says, in neutral variants, to the finer errors that its
//! callers know. Branch on variants and codes; messages are for the log.
//!
//! `cargo run --example host`

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::engine::Ending;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::runtime::store::StoreError;
use portcullis::runtime::{Outcome, Runtime};
use portcullis::vocabulary::failure::{Failure, ResolutionKind};
use portcullis::vocabulary::llm;
use portcullis::vocabulary::outcome::ReleaseOutcome;
use portcullis::vocabulary::spec::{Budgets, Spec};

/// What this host's callers are told, and what they may do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostError {
    /// The request is wrong: the same one will fail again.
    BadRequest,
    /// There is no such run.
    NotFound,
    /// Somebody else has the run, or it has moved on: look again.
    Conflict,
    /// The account behind the model is at its end: tell whoever pays.
    Account,
    /// Something outside is not there now: a new run may do better.
    Unavailable,
    /// A plugin of this deployment is wrong: tell whoever installed it. A new run fails in the same way.
    Deployment,
    /// Somebody has to look at the outside world before anything is repeated.
    CheckFirst,
    /// A policy of this host says no.
    Forbidden,
    /// Nothing that the caller asked about could be observed.
    NothingFound,
    /// The run was stopped by its deadline, its budget or somebody's wish.
    Stopped,
    /// The record could not be kept: nothing was released, and the same run goes on once the store is mended.
    Unrecorded,
    /// A bug, here or in the engine.
    Internal,
}

/// A call that failed: there is no run to go on from, or not here.
pub(crate) fn of_call(error: &Error) -> HostError {
    match error {
        Error::Resolution { .. } => HostError::BadRequest,
        Error::Execution(trouble) => match trouble {
            Trouble::UnknownRun(_) => HostError::NotFound,
            Trouble::Refused(_) | Trouble::RefusedThere { .. } | Trouble::Driven { .. } => HostError::Conflict,
            Trouble::Stopped(_) | Trouble::Unanswered(_) => HostError::Unavailable,
            Trouble::Damaged { .. } | Trouble::Diverged { .. } | Trouble::Unequipped(_) | Trouble::PluginTwice(_) => {
                HostError::Internal
            }
        },
        Error::Commit(StoreError::RunExists { .. }) => HostError::Conflict,
        Error::Commit(_) => HostError::Unrecorded,
    }
}

/// A run that came to its end: `None` when there is something to show, a report or observed facts.
pub(crate) fn of_ending(ending: &Ending) -> Option<HostError> {
    match ending.outcome {
        ReleaseOutcome::Success | ReleaseOutcome::Fallback => None,
        ReleaseOutcome::Cancelled => Some(HostError::Stopped),
        ReleaseOutcome::Failed => Some(ending.failure.as_ref().map_or(HostError::Stopped, of_failure)),
    }
}

/// The committed cause of a failed run.
fn of_failure(failure: &Failure) -> HostError {
    match failure {
        Failure::Inference { code } => of_model(*code),
        Failure::CapabilityBound | Failure::StateConflict => HostError::Deployment,
        Failure::Resolution { kind: ResolutionKind::Routing } => HostError::Unavailable,
        Failure::Resolution { .. } => HostError::Deployment,
        Failure::DraftContract { .. } => HostError::Unavailable,
        Failure::NoObservedFacts => HostError::NothingFound,
        Failure::Blocked { .. } => HostError::Forbidden,
        Failure::Indeterminate => HostError::CheckFirst,
        Failure::Internal => HostError::Internal,
    }
}

fn of_model(code: llm::Code) -> HostError {
    match code {
        llm::Code::Unauthorized | llm::Code::UsageLimit | llm::Code::LoginRequired => HostError::Account,
        llm::Code::InvalidRequest | llm::Code::ContextOverflow | llm::Code::ContentFiltered => HostError::BadRequest,
        llm::Code::ProviderError
        | llm::Code::RateLimited
        | llm::Code::Overloaded
        | llm::Code::Timeout
        | llm::Code::BindingRejected
        | llm::Code::ModelNotFound => HostError::Unavailable,
    }
}

/// A provider whose key has expired.
struct Expired;

impl Model for Expired {
    async fn respond(&self, _: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        Err(llm::Error::Unauthorized { message: "key 1234 has expired".to_owned() }.into())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().model(Expired).store(MemoryStore::new()).build()?;

    let mut endless = Spec::new("Why is checkout slow?", "small-model");
    (endless.deadline_ms, endless.budgets) = (None, Budgets { model_calls: None, ..Budgets::default() });
    if let Err(error) = runtime.start(endless).await {
        println!("the call failed: {:?} (log: {error})", of_call(&error));
    }

    let run = runtime.start(Spec::new("Why is checkout slow?", "small-model")).await?;
    if let Outcome::Ended(ended) = run.outcome().await? {
        let code = ended.ending.failure.as_ref().map_or("none", Failure::tag);
        if let Some(error) = of_ending(&ended.ending) {
            println!("the run failed: {error:?} (log: row {}, {code})", ended.ending.row);
        }
    }
    Ok(())
}
