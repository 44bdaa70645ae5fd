//! What is under way: reports to come, and timers.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, Stream};
use tokio::sync::oneshot;

use crate::runtime::clock::{Busy, Clock};
use crate::runtime::ports::Line;
use crate::runtime::world::Moment;
use crate::vocabulary::effect::TimerKind;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::Input;

/// Something that has come, when, and the proof that nobody's time goes on until it was dealt with.
pub(super) struct Arrival {
    pub(super) what: Arrived,
    pub(super) at_ms: u64,
    pub(super) busy: Busy,
}

/// What can come.
pub(super) enum Arrived {
    /// The world reports.
    Report(Input),
    /// A timer fires.
    Timer(Input),
    /// A scripted moment has come.
    Moment(Moment),
    /// A call was given up.
    GivenUp,
    /// Somebody was told.
    Told,
}

/// Everything that is under way for one run. All of it is polled in the run's own task.
pub(super) struct Flight {
    clock: Arc<dyn Clock>,
    work: FuturesUnordered<BoxFuture<'static, Arrival>>,
    timers: FuturesUnordered<BoxFuture<'static, Arrival>>,
    /// Tool calls can be given up one by one.
    calls: BTreeMap<ToolCallId, oneshot::Sender<()>>,
    /// How many are being told something.
    telling: usize,
}

impl Flight {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (work, timers) = (FuturesUnordered::new(), FuturesUnordered::new());
        Self { clock, work, timers, calls: BTreeMap::new(), telling: 0 }
    }

    /// Waits for a report of the world.
    pub(super) fn report(&self, report: BoxFuture<'static, Input>) {
        let (clock, busy) = (Arc::clone(&self.clock), self.clock.busy());
        self.work.push(Box::pin(async move {
            let what = Arrived::Report(report.await);
            Arrival { what, at_ms: clock.now_ms(), busy }
        }));
    }

    /// Waits until somebody was told something. Nothing comes of it.
    pub(super) fn tell(&mut self, told: BoxFuture<'static, ()>) {
        let (clock, busy) = (Arc::clone(&self.clock), self.clock.busy());
        self.telling += 1;
        self.work.push(Box::pin(async move {
            told.await;
            Arrival { what: Arrived::Told, at_ms: clock.now_ms(), busy }
        }));
    }

    /// One of them was told.
    pub(super) fn told(&mut self) {
        self.telling = self.telling.saturating_sub(1);
    }

    /// Whether anybody is being told something.
    pub(super) const fn is_telling(&self) -> bool {
        self.telling > 0
    }

    /// Waits for what a tool call reports, until it is given up. A tool that waits for an answer on its line is not
    /// at work: others may take their time over it.
    pub(super) fn call(&mut self, call: ToolCallId, report: BoxFuture<'static, Input>, line: Line) {
        let (clock, busy) = (Arc::clone(&self.clock), self.clock.busy());
        let (give_up, mut given_up) = oneshot::channel();
        self.calls.insert(call, give_up);
        self.work.push(Box::pin(async move {
            let (mut report, mut busy) = (report, Some(busy));
            let working = std::future::poll_fn(|context: &mut Context<'_>| {
                busy.get_or_insert_with(|| clock.busy());
                let polled = report.as_mut().poll(context);
                if polled.is_pending() && line.is_waited_on() {
                    busy = None;
                }
                polled
            });
            let what = tokio::select! {
                biased;
                input = working => Arrived::Report(input),
                _ = &mut given_up => {
                    dropped(report);
                    Arrived::GivenUp
                }
            };
            let busy = busy.unwrap_or_else(|| clock.busy());
            Arrival { what, at_ms: clock.now_ms(), busy }
        }));
    }

    /// Gives one tool call up.
    pub(super) fn give_up(&mut self, call: ToolCallId) {
        self.calls.remove(&call);
    }

    /// Waits for a timer: `due_ms` is wall time.
    pub(super) fn timer(&self, kind: TimerKind, of: &str, due_ms: u64) {
        if let Some(input) = kind.report(of) {
            self.timers.push(self.wait(due_ms, Arrived::Timer(input)));
        }
    }

    /// Waits for a scripted moment: `due_ms` is wall time.
    pub(super) fn moment(&self, moment: Moment, due_ms: u64) {
        self.work.push(self.wait(due_ms, Arrived::Moment(moment)));
    }

    fn wait(&self, due_ms: u64, what: Arrived) -> BoxFuture<'static, Arrival> {
        let (clock, busy) = (Arc::clone(&self.clock), self.clock.busy());
        Box::pin(async move {
            clock.sleep_until(due_ms).await;
            Arrival { what, at_ms: clock.now_ms(), busy }
        })
    }

    /// Whether nothing but timers is to come.
    pub(super) fn has_no_work(&self) -> bool {
        self.work.is_empty()
    }

    /// Whether nothing at all is to come.
    pub(super) fn is_empty(&self) -> bool {
        self.work.is_empty() && self.timers.is_empty()
    }

    /// Gives up all work.
    pub(super) fn abort(&mut self) {
        self.calls.clear();
        self.telling = 0;
        // One by one: a panic in one of them must not keep the others alive.
        std::mem::take(&mut self.work).into_iter().for_each(dropped);
        self.abort_timers();
    }

    /// Gives up the timers: a run that has ended needs none.
    pub(super) fn abort_timers(&mut self) {
        self.timers = FuturesUnordered::new();
    }

    /// The next arrival. Never comes back while nothing is under way.
    pub(super) fn next(&mut self) -> impl Future<Output = Arrival> + '_ {
        std::future::poll_fn(|context: &mut Context<'_>| {
            for stream in [&mut self.work, &mut self.timers] {
                if let Poll::Ready(Some(arrival)) = Pin::new(stream).poll_next(context) {
                    return Poll::Ready(arrival);
                }
            }
            Poll::Pending
        })
    }
}

/// Drops work of a port. Its owner's code may panic there, and that must not reach the run.
fn dropped<T>(work: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(move || drop(work))) {
        tracing::warn!(panic = crate::runtime::ports::told(panic.as_ref()), "a port panicked when it was given up");
    }
}
