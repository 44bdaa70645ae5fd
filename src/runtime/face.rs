//! What is seen of a run from outside: its events and where it stands. Shared by its handles and its driver.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::{mpsc, oneshot, watch};

use super::clock::Busy;
use super::event::{Event, Question};
use super::execution::Error;
use super::shared::Shared;
use crate::engine::Ending;
use crate::machines::ledger::Ledger;
use crate::machines::release::Release;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::Refusal;

/// How many events are kept for readers that come late or are slow.
const EVENTS_MAX: usize = 4_096;

/// A run from outside.
pub(crate) struct Face {
    pub(super) run: RunId,
    view: watch::Sender<View>,
    /// How many handles there are.
    holders: watch::Sender<usize>,
    /// Who takes reports for the run. Held while a driver comes or goes.
    pub(super) seat: tokio::sync::Mutex<Seat>,
    /// Who has to forget the run when nobody looks at it any more.
    runtime: Weak<Shared>,
}

/// Who takes reports.
#[derive(Debug)]
pub(super) enum Seat {
    /// Nobody: the run waits in the store.
    Empty,
    /// A driver.
    Taken(mpsc::Sender<Command>),
}

/// A report from outside, and who wants to know whether it was accepted.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) input: Input,
    pub(crate) reply: oneshot::Sender<Result<(), Refusal>>,
    pub(crate) busy: Busy,
}

/// What is seen.
#[derive(Debug)]
struct View {
    events: VecDeque<Event>,
    forgotten: u64,
    standpoint: Standpoint,
    /// Whether the driver of a run that has ended waits for nothing but its reader.
    quiet: bool,
}

/// Where the run stands, seen from outside.
#[derive(Debug, Clone)]
pub(super) enum Standpoint {
    /// It is being driven.
    Driven,
    /// It waits for a person.
    Awaiting(Arc<Waiting>),
    /// It has ended, durably.
    Ended(Arc<Ended>),
    /// Its driver had to stop.
    Broken(Error),
}

/// A run that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// What people are asked.
    pub questions: Vec<Question>,
    /// When its next timer is due, in wall milliseconds since 1970; `None` when nothing expires.
    pub due_ms: Option<u64>,
    /// How many records its history has so far.
    pub records: u64,
    /// What was spent so far.
    pub spent: Ledger,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its row of the closed table, column by column.
    pub ending: Ending,
    /// What its reader gets.
    pub release: Release,
    /// The same for every offer of this release.
    pub key: Digest,
    /// What was spent.
    pub spent: Ledger,
    /// How many records its history has up to the end.
    pub records: u64,
    /// The hash of the last of them.
    pub head: Digest,
}

impl fmt::Debug for Face {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Face").field("run", &self.run).field("view", &self.view).finish_non_exhaustive()
    }
}

impl Face {
    pub(super) fn new(run: RunId, runtime: Weak<Shared>) -> Arc<Self> {
        let view = View { events: VecDeque::new(), forgotten: 0, standpoint: Standpoint::Driven, quiet: false };
        Arc::new(Self {
            run,
            view: watch::Sender::new(view),
            holders: watch::Sender::new(0),
            seat: tokio::sync::Mutex::new(Seat::Empty),
            runtime,
        })
    }

    /// One more handle.
    pub(super) fn held(&self) {
        self.holders.send_modify(|holders| *holders += 1);
    }

    /// One less.
    pub(super) fn let_go(&self) {
        self.holders.send_modify(|holders| *holders = holders.saturating_sub(1));
    }

    /// Comes back when no handle is left.
    pub(super) async fn abandoned(&self) {
        // The sender lives in here, so the wait cannot fail.
        let _ = self.holders.subscribe().wait_for(|holders| *holders == 0).await;
    }

    /// Tells more.
    pub(super) fn tell(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        self.view.send_modify(|view| {
            view.events.extend(events);
            while view.events.len() > EVENTS_MAX {
                view.events.pop_front();
                view.forgotten += 1;
            }
        });
    }

    /// How many events were told so far.
    pub(super) fn told(&self) -> u64 {
        let view = self.view.borrow();
        view.forgotten + view.events.len() as u64
    }

    pub(super) fn stand(&self, standpoint: Standpoint) {
        self.view.send_modify(|view| (view.standpoint, view.quiet) = (standpoint, false));
    }

    /// Nothing more comes of a run that has ended.
    pub(super) fn hush(&self) {
        self.view.send_modify(|view| view.quiet = true);
    }

    /// Waits until nothing more comes of a run that has ended; false when its driver stopped before.
    pub(super) async fn rested(&self) -> bool {
        let mut seen = self.view.subscribe();
        let rests = seen.wait_for(|view| view.quiet || !matches!(view.standpoint, Standpoint::Ended(_))).await;
        rests.is_ok_and(|view| view.quiet)
    }

    pub(super) fn standpoint(&self) -> Standpoint {
        self.view.borrow().standpoint.clone()
    }

    /// Waits until the run is not being driven towards its end any more.
    pub(super) async fn settled(&self) -> Standpoint {
        let mut seen = self.view.subscribe();
        let settled = seen.wait_for(|view| !matches!(view.standpoint, Standpoint::Driven)).await;
        match settled {
            Ok(view) => view.standpoint.clone(),
            // The sender lives in here, so the wait cannot fail.
            Err(_) => Standpoint::Driven,
        }
    }

    /// Waits until a driver that has nothing more to do has left its seat.
    pub(super) async fn left(&self) {
        while let Some(desk) = self.desk().await {
            desk.closed().await;
        }
    }

    /// Where the run's driver takes reports.
    async fn desk(&self) -> Option<mpsc::Sender<Command>> {
        match &*self.seat.lock().await {
            Seat::Taken(desk) => Some(desk.clone()),
            Seat::Empty => None,
        }
    }

    pub(super) fn events(self: &Arc<Self>) -> Events {
        Events { face: Arc::clone(self), seen: self.view.subscribe(), taken: 0 }
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.forget(&self.run);
        }
    }
}

/// The events of a run, from its beginning on, as they are committed.
#[derive(Debug)]
pub struct Events {
    face: Arc<Face>,
    seen: watch::Receiver<View>,
    taken: u64,
}

impl Events {
    /// The next one; `None` after the last, when the run has ended or its driver had to stop. While the run
    /// awaits a person this waits with it.
    pub async fn next(&mut self) -> Option<Event> {
        let taken = self.taken;
        let more = |view: &View| {
            let told = view.forgotten + view.events.len() as u64;
            told > taken || matches!(view.standpoint, Standpoint::Ended(_) | Standpoint::Broken(_))
        };
        let view = self.seen.wait_for(more).await.ok()?;
        if view.forgotten > self.taken {
            let count = view.forgotten - self.taken;
            self.taken = view.forgotten;
            return Some(Event::Missed { count });
        }
        let index = usize::try_from(self.taken - view.forgotten).ok()?;
        let event = view.events.get(index).cloned()?;
        self.taken += 1;
        Some(event)
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.face.run
    }
}
