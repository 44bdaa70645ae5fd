//! A run in an embedder's hand.

use std::fmt;
use std::sync::Arc;

use super::execution::Error;
use super::face::{Ended, Events, Face, Standpoint, Waiting};
use super::shared::Shared;
use crate::vocabulary::ids::{RunId, Ticket, ToolCallId};
use crate::vocabulary::input::{CancelOrigin, Decision, Input, Reconciliation};

/// A run. What goes in: [`cancel`](Self::cancel), [`decide`](Self::decide), [`reconcile`](Self::reconcile),
/// [`delivered`](Self::delivered). What comes out: [`events`](Self::events), [`outcome`](Self::outcome).
///
/// No text that was not released is reachable from here.
pub struct RunHandle {
    shared: Arc<Shared>,
    face: Arc<Face>,
    on_drop: OnDrop,
}

/// What becomes of a run whose handle is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDrop {
    /// It goes on. Its release waits in the store.
    #[default]
    Detach,
    /// It is cancelled, with the origin `disconnect`.
    Cancel,
}

/// Where a run came to.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It has ended, durably.
    Ended(Arc<Ended>),
    /// It waits for a person. It holds no task meanwhile; ask for its outcome again after the answer.
    Awaiting(Arc<Waiting>),
}

impl RunHandle {
    pub(super) fn new(shared: Arc<Shared>, face: Arc<Face>) -> Self {
        face.held();
        Self { shared, face, on_drop: OnDrop::Detach }
    }

    /// The run's id.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.face.run
    }

    /// Chooses what becomes of the run when this handle is dropped.
    #[must_use]
    pub fn on_drop(mut self, choice: OnDrop) -> Self {
        self.on_drop = choice;
        self
    }

    /// What is committed of the run, from its beginning on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.face.events()
    }

    /// Waits until the run has ended or waits for a person.
    ///
    /// # Errors
    /// `Commit` when the store refused a record: nothing was released, and [`Runtime::recover`] goes on from the
    /// last durable one. `Execution` when the driver had to stop.
    ///
    /// [`Runtime::recover`]: super::Runtime::recover
    pub async fn outcome(&self) -> Result<Outcome, Error> {
        loop {
            match self.face.settled().await {
                Standpoint::Driven => {}
                Standpoint::Awaiting(waiting) => {
                    if !self.shared.moved_on(&self.face.run, waiting.records).await? {
                        return Ok(Outcome::Awaiting(waiting));
                    }
                }
                Standpoint::Ended(ended) => return Ok(Outcome::Ended(ended)),
                Standpoint::Broken(error) => return Err(error),
            }
        }
    }

    /// Cancels the run. `by` says who, as your edge knows them; it is written into the history.
    ///
    /// # Errors
    /// `Execution` with the refusal when the run has ended.
    pub async fn cancel(&self, by: impl Into<String>) -> Result<(), Error> {
        self.report(Input::CancelRequested { by: by.into(), origin: CancelOrigin::Caller }).await
    }

    /// Decides on the call that waits under `ticket`. Whether `by` may is your edge's work (SPEC 7.8).
    ///
    /// # Errors
    /// `Execution` with the refusal when the ticket is not open any more.
    pub async fn decide(&self, ticket: Ticket, by: impl Into<String>, decision: Decision) -> Result<(), Error> {
        self.report(Input::DecisionGiven { ticket, by: by.into(), decision }).await
    }

    /// Says what an interrupted call did.
    ///
    /// # Errors
    /// `Execution` with the refusal when the call does not wait for that.
    pub async fn reconcile(
        &self,
        call: ToolCallId,
        by: impl Into<String>,
        outcome: Reconciliation,
    ) -> Result<(), Error> {
        self.report(Input::ToolReconciled { call, by: by.into(), outcome }).await
    }

    /// Says that the release reached its reader. Until then [`Runtime::recover`] offers it again, with the same
    /// bytes and key.
    ///
    /// # Errors
    /// `Execution` with the refusal when the run has not ended or was delivered already.
    ///
    /// [`Runtime::recover`]: super::Runtime::recover
    pub async fn delivered(&self, receipt: impl Into<String>) -> Result<(), Error> {
        self.report(Input::ReleaseDelivered { receipt: receipt.into() }).await
    }

    pub(super) const fn face(&self) -> &Arc<Face> {
        &self.face
    }

    /// Lets the run go, and waits until its driver has left it.
    pub(crate) async fn left(self) {
        let face = Arc::clone(&self.face);
        drop(self);
        face.left().await;
    }

    /// Waits until nothing more comes of a run that has ended; false when its driver stopped before.
    pub(crate) async fn rested(&self) -> bool {
        self.face.rested().await
    }

    async fn report(&self, input: Input) -> Result<(), Error> {
        self.shared.report(&self.face.run, input).await.map(|_| ())
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunHandle").field("run", self.run()).field("on_drop", &self.on_drop).finish_non_exhaustive()
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        let wanted = self.on_drop == OnDrop::Cancel
            && matches!(self.face.standpoint(), Standpoint::Driven | Standpoint::Awaiting(_));
        if let (true, Some(tokio)) = (wanted, self.shared.event_loop()) {
            let (shared, run) = (Arc::clone(&self.shared), self.face.run.clone());
            tokio.spawn(async move {
                let input = Input::CancelRequested { by: "its holder".to_owned(), origin: CancelOrigin::Disconnect };
                if let Err(error) = shared.report(&run, input).await {
                    tracing::debug!(%run, %error, "a run whose holder went away was not cancelled");
                }
            });
        }
        self.face.let_go();
    }
}
