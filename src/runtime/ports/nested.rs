//! Calls that a tool makes of its own while it runs: it asks the run first, makes the call itself, and says when
//! it is over (SPEC 6, 7).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::runtime::clock::{Busy, Clock};
use crate::vocabulary::ids::{NestedCallId, ToolCallId};
use crate::vocabulary::input::NestedKind;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::Usage;
use crate::vocabulary::tool::ObservationCode;

/// What a running tool asks its run with, before it calls another tool or a model by itself. Each call counts
/// against the run's budgets and meets the gates of its tool; nobody is asked to confirm it.
///
/// It belongs to one attempt of one tool call. When that returns, times out or is given up, nothing more is let
/// through.
#[derive(Debug, Clone)]
pub struct Nested {
    pub(crate) parent: ToolCallId,
    pub(crate) attempt: u32,
    pub(crate) line: Line,
}

impl Nested {
    /// Asks for a call of a tool of the run. When this comes back, the request is durable; a gate may take its
    /// time.
    ///
    /// # Errors
    /// Why the call may not be made. Nothing was called.
    pub async fn tool(&self, name: impl Into<String>, arguments: Json) -> Result<Admitted, Denied> {
        self.ask(NestedKind::Tool, Some(name.into()), Some(arguments)).await
    }

    /// Asks for a request to a model. It counts as one of the run's model calls.
    ///
    /// # Errors
    /// Why the request may not be made.
    pub async fn model(&self) -> Result<Admitted, Denied> {
        self.ask(NestedKind::Model, None, None).await
    }

    async fn ask(&self, kind: NestedKind, tool: Option<String>, arguments: Option<Json>) -> Result<Admitted, Denied> {
        let (parent, attempt) = (self.parent, self.attempt);
        let wanted = Wanted { parent, attempt, kind, tool, arguments };
        let answer =
            self.line.ask(|reply| Wished::Call(wanted, reply)).await.unwrap_or_else(|| Err(Denied::inactive()));
        answer.map(|nested| Admitted { nested, line: self.line.clone() })
    }
}

/// A nested call that may be made now, once.
///
/// One that is dropped stays open: once its parent is over, nobody knows what it did. A later call of a
/// `never_replay` tool with the same arguments needs a person then, and what a model used is unknown.
#[derive(Debug)]
#[must_use = "a nested call that never completes has an unknown effect"]
pub struct Admitted {
    nested: NestedCallId,
    line: Line,
}

impl Admitted {
    /// Its id: a key under which the other side can remove repetitions, together with the run's.
    #[must_use]
    pub const fn id(&self) -> NestedCallId {
        self.nested
    }

    /// Says that the call is over, and what it used, if anybody knows. Await it before the tool returns: when it
    /// comes back, the report is durable.
    ///
    /// # Errors
    /// It came too late: the parent or the run was over.
    pub async fn complete(self, usage: Option<Usage>) -> Result<(), TooLate> {
        let nested = self.nested;
        let heard = self.line.ask(|reply| Wished::Completion { nested, usage, reply }).await;
        heard.unwrap_or(Err(TooLate))
    }
}

/// A nested call that may not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}", .reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
pub struct Denied {
    /// Why: the code that a model would see, `RUN_INACTIVE` when the run is over, `NOT_DISPATCHED` when the tool
    /// call is over that asks, or may ask for no more.
    pub code: ObservationCode,
    /// What there is to say beside it: a gate's reason, or the text that a gate sets in the call's place.
    pub reason: Option<String>,
}

impl Denied {
    /// The run is over, or nobody drives it here any more.
    pub(crate) fn inactive() -> Self {
        Self { code: ObservationCode::RunInactive, reason: Some("the run is over".to_owned()) }
    }
}

/// A nested call that was over too late to be written down: its effect counts as unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call that made it was over before")]
pub struct TooLate;

/// From a tool to the driver of its run.
#[derive(Clone)]
pub(crate) struct Line {
    wishes: mpsc::Sender<Wish>,
    clock: Arc<dyn Clock>,
    /// How many answers the tool waits for.
    waiting: Arc<AtomicUsize>,
}

/// What a tool says, and the proof that nobody's time goes on until the driver has heard it.
pub(crate) struct Wish {
    pub(crate) what: Wished,
    pub(crate) busy: Busy,
}

/// What it wants.
pub(crate) enum Wished {
    /// It wants to make a call.
    Call(Wanted, Reply<Result<NestedCallId, Denied>>),
    /// Such a call is over.
    Completion { nested: NestedCallId, usage: Option<Usage>, reply: Reply<Result<(), TooLate>> },
}

/// The call that it wants to make.
pub(crate) struct Wanted {
    pub(crate) parent: ToolCallId,
    pub(crate) attempt: u32,
    pub(crate) kind: NestedKind,
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Option<Json>,
}

/// Where the answer goes.
pub(crate) struct Reply<T>(oneshot::Sender<(T, Busy)>);

impl<T> Reply<T> {
    /// Answers. Nobody's time goes on until the tool has heard it.
    pub(crate) fn send(self, answer: T, busy: Busy) {
        // A tool that was given up does not wait any more.
        let _ = self.0.send((answer, busy));
    }
}

impl Line {
    /// A line of its own for each tool that is entered.
    pub(crate) fn new(wishes: mpsc::Sender<Wish>, clock: Arc<dyn Clock>) -> Self {
        Self { wishes, clock, waiting: Arc::default() }
    }

    /// Whether the tool waits for an answer, and so is not at work.
    pub(crate) fn is_waited_on(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// `None` when nobody answers any more.
    async fn ask<T>(&self, wished: impl FnOnce(Reply<T>) -> Wished) -> Option<T> {
        let _waits = Waits::begin(&self.waiting);
        let (to, answer) = oneshot::channel();
        let wish = Wish { what: wished(Reply(to)), busy: self.clock.busy() };
        self.wishes.send(wish).await.ok()?;
        let (answer, _busy) = answer.await.ok()?;
        Some(answer)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Line")
    }
}

/// One more answer is waited for, until this is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
