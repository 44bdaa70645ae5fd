//! The other side of a port: it does what a suite says, and remembers what it saw.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Wrong, within};

/// What the upstream does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn<A, E> {
    /// It answers this.
    Answer(A),
    /// It reports this failure.
    Fail(E),
    /// The connection breaks: the request has arrived, and nothing comes back.
    Break,
}

impl<A, E> Turn<A, E> {
    /// As a port may see it: the answer, or the failure, of which a connection that breaks has none.
    ///
    /// # Errors
    /// When it is no answer.
    pub fn reply(self) -> Result<A, Option<E>> {
        match self {
            Self::Answer(answer) => Ok(answer),
            Self::Fail(failure) => Err(Some(failure)),
            Self::Break => Err(None),
        }
    }
}

/// What is on the other side of your port. Whatever plays it there calls [`ask`](Self::ask) for each request that
/// arrives, and does what comes back. A request that is given up is one whose `ask` is dropped: a server has to
/// watch whether its connection closes.
pub struct Upstream<A, E>(Arc<Desk<A, E>>);

struct Desk<A, E> {
    away: bool,
    state: Mutex<BTreeMap<String, Case<A, E>>>,
    changed: watch::Sender<u64>,
}

/// What is planned for the requests that hold a marker, and what was seen of them.
struct Case<A, E> {
    act: Act<A, E>,
    seen: Seen,
}

/// What is planned.
#[derive(Debug, Clone)]
pub(super) enum Act<A, E> {
    /// This, at once.
    Now(Turn<A, E>),
    /// This, later.
    After(Duration, Turn<A, E>),
    /// Nothing, ever.
    Stall,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Each request, whole.
    pub(super) requests: Vec<String>,
    /// How many were given up before they were answered.
    pub(super) given_up: usize,
    /// Whether the upstream has no words for what was planned.
    pub(super) excused: bool,
}

impl<A, E> Clone for Upstream<A, E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A, E> fmt::Debug for Upstream<A, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Upstream").field("away", &self.0.away).finish_non_exhaustive()
    }
}

impl<A: Clone, E: Clone> Upstream<A, E> {
    pub(super) fn new() -> Self {
        Self::standing(false)
    }

    /// One that cannot be reached.
    pub(super) fn away() -> Self {
        Self::standing(true)
    }

    fn standing(away: bool) -> Self {
        Self(Arc::new(Desk { away, state: Mutex::default(), changed: watch::Sender::new(0) }))
    }

    /// Whether the upstream cannot be reached at all: open the port against an address where nobody listens.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.0.away
    }

    /// A request has arrived: all of it, as text, with what stands in its headers. What comes back is to be done.
    /// Sometimes nothing comes back; drop this when the request is given up.
    pub async fn ask(&self, request: impl Into<String>) -> Turn<A, E> {
        let request = request.into();
        let Some((marker, act)) = self.planned(request) else { return Turn::Break };
        let mut arrival = Arrival { upstream: self.clone(), marker, open: true };
        let turn = match act {
            Act::Now(turn) => turn,
            Act::After(delay, turn) => {
                tokio::time::sleep(delay).await;
                turn
            }
            Act::Stall => std::future::pending().await,
        };
        arrival.open = false;
        turn
    }

    /// The upstream as a function that sends one request to it, for a port that takes one.
    pub fn line(&self) -> impl Fn(String) -> BoxFuture<'static, Result<A, Option<E>>> + Send + Sync + use<A, E>
    where
        A: Send + 'static,
        E: Send + 'static,
    {
        let upstream = self.clone();
        move |request| {
            let upstream = upstream.clone();
            Box::pin(async move { upstream.ask(request).await.reply() })
        }
    }

    /// Says that this upstream has no words for what it was to do with a request: a provider without such a
    /// failure, a protocol without facts. That case is then left out. Enough must be left to check the rule.
    pub fn cannot_say(&self, request: &str) {
        let mut cases = self.cases();
        if let Some(case) = cases.iter_mut().find(|(marker, _)| request.contains(marker.as_str())) {
            case.1.seen.excused = true;
        }
    }

    /// Plans what is done with requests that hold the marker.
    pub(super) fn plan(&self, marker: &str, act: Act<A, E>) {
        self.cases().insert(marker.to_owned(), Case { act, seen: Seen::default() });
    }

    /// What was seen of requests that hold the marker.
    pub(super) fn seen(&self, marker: &str) -> Seen {
        self.cases().get(marker).map(|case| case.seen.clone()).unwrap_or_default()
    }

    /// Waits until such a request has arrived.
    pub(super) async fn heard(&self, marker: &str) -> Result<(), Wrong> {
        self.until("a request that should reach the upstream", marker, |seen| !seen.requests.is_empty()).await
    }

    /// Waits until every such request was given up.
    pub(super) async fn given_up(&self, marker: &str) -> Result<(), Wrong> {
        let all = |seen: &Seen| seen.given_up == seen.requests.len();
        self.until("a request that nobody waits for any more, and that should be given up", marker, all).await
    }

    async fn until(&self, what: &str, marker: &str, holds: impl Fn(&Seen) -> bool) -> Result<(), Wrong> {
        let mut changes = self.0.changed.subscribe();
        // The sender lives in here, so the wait cannot fail.
        within(what, async { drop(changes.wait_for(|_| holds(&self.seen(marker))).await) }).await
    }

    /// Notes a request, and gives what is planned for it.
    fn planned(&self, request: String) -> Option<(String, Act<A, E>)> {
        let mut cases = self.cases();
        let (marker, case) = cases.iter_mut().find(|(marker, _)| request.contains(marker.as_str()))?;
        case.seen.requests.push(request);
        let planned = (marker.clone(), case.act.clone());
        drop(cases);
        self.change();
        Some(planned)
    }

    fn cases(&self) -> MutexGuard<'_, BTreeMap<String, Case<A, E>>> {
        // Whole between any two calls, so a panic elsewhere does not spoil it.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) {
        self.0.changed.send_modify(|changes| *changes += 1);
    }
}

/// A request that is being answered.
struct Arrival<A: Clone, E: Clone> {
    upstream: Upstream<A, E>,
    marker: String,
    open: bool,
}

impl<A: Clone, E: Clone> Drop for Arrival<A, E> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        if let Some(case) = self.upstream.cases().get_mut(&self.marker) {
            case.seen.given_up += 1;
        }
        self.upstream.change();
    }
}
