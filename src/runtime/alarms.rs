//! The timers of runs that wait for a person: such a run holds no task, so one task waits for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::clock::{Busy, Clock};
use super::execution::{Error, Trouble};
use super::shared::{Admission, Shared};
use crate::vocabulary::ids::RunId;

/// How long a run that could not be woken waits for the next try.
const AGAIN: Duration = Duration::from_secs(5);
/// How many runs are woken at the same time.
const AT_ONCE_MAX: usize = 32;

/// When which run has to be woken.
pub(super) struct Alarms {
    set: Mutex<Set>,
    changed: Notify,
    /// For the runs that are being woken.
    places: Arc<Semaphore>,
}

impl Default for Alarms {
    fn default() -> Self {
        Self { set: Mutex::default(), changed: Notify::new(), places: Arc::new(Semaphore::new(AT_ONCE_MAX)) }
    }
}

#[derive(Default)]
struct Set {
    by_time: BTreeSet<(u64, RunId)>,
    by_run: BTreeMap<RunId, u64>,
    /// Held until the task knows of the alarms that were set meanwhile.
    fresh: Vec<Busy>,
}

impl Alarms {
    /// Wakes the run at that wall time.
    pub(super) fn set(&self, run: &RunId, due_ms: u64, busy: Busy) {
        let mut set = self.lock();
        set.remove(run);
        set.by_time.insert((due_ms, run.clone()));
        set.by_run.insert(run.clone(), due_ms);
        set.fresh.push(busy);
        drop(set);
        self.changed.notify_one();
    }

    /// The run is driven again, and keeps its own time.
    pub(super) fn clear(&self, run: &RunId) {
        self.lock().remove(run);
    }

    /// Nobody needs them any more.
    pub(super) fn close(&self) {
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> Option<u64> {
        self.lock().by_time.first().map(|(due_ms, _)| *due_ms)
    }

    fn take_due(&self, now_ms: u64) -> Option<RunId> {
        let mut set = self.lock();
        let (due_ms, run) = set.by_time.first().filter(|(due_ms, _)| *due_ms <= now_ms).cloned()?;
        set.by_time.remove(&(due_ms, run.clone()));
        set.by_run.remove(&run);
        Some(run)
    }

    /// Waits until an alarm is due, or another one may be first. Comes back busy in the first case.
    async fn wait(&self, clock: &dyn Clock) -> Option<Busy> {
        let first = self.first();
        // Whoever waits is busy until the wait is over: it must not be let go before the wait is given up.
        let ring = async {
            let busy = clock.busy();
            clock.sleep_until(first.unwrap_or(u64::MAX)).await;
            busy
        };
        let mut ring = pin!(ring);
        let mut changed = pin!(self.changed.notified());
        std::future::poll_fn(move |context| {
            if first.is_some()
                && let Poll::Ready(busy) = ring.as_mut().poll(context)
            {
                return Poll::Ready(Some(busy));
            }
            // The wait is known to the clock by now.
            let fresh = if self.first() == first { std::mem::take(&mut self.lock().fresh) } else { Vec::new() };
            drop(fresh);
            changed.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

impl Set {
    fn remove(&mut self, run: &RunId) {
        if let Some(due_ms) = self.by_run.remove(run) {
            self.by_time.remove(&(due_ms, run.clone()));
        }
    }
}

/// Wakes runs as long as the runtime lives.
pub(super) async fn ring(alarms: Arc<Alarms>, clock: Arc<dyn Clock>, runtime: Weak<Shared>) {
    while runtime.strong_count() > 0 {
        let Some(busy) = alarms.wait(&*clock).await else { continue };
        let Some(shared) = runtime.upgrade() else { return };
        while let Some(run) = alarms.take_due(clock.now_ms()) {
            let Ok(place) = Arc::clone(&alarms.places).acquire_owned().await else { return };
            tokio::spawn(wake(Arc::clone(&alarms), Arc::clone(&shared), run, clock.busy(), place));
        }
        drop(busy);
    }
}

/// Wakes one run. One that cannot be woken is tried again in a while, in the machine's time: a clock that jumps
/// would try for ever at once.
async fn wake(alarms: Arc<Alarms>, shared: Arc<Shared>, run: RunId, busy: Busy, place: OwnedSemaphorePermit) {
    let woken = shared.attach(&run, Admission::AtOnce).await;
    drop((busy, place));
    match woken {
        Ok(_) => return,
        // The store may be mended, and a session that has the run may give it back.
        Err(Error::Commit(_) | Error::Execution(Trouble::Driven { .. })) => {}
        // It is gone, or only a person can help.
        Err(error) => return tracing::warn!(%run, %error, "a run whose timer is due could not be woken"),
    }
    let clock = Arc::clone(&shared.equipment.clock);
    // The runtime may go meanwhile.
    drop(shared);
    tokio::time::sleep(AGAIN).await;
    alarms.set(&run, clock.now_ms(), clock.busy());
}
