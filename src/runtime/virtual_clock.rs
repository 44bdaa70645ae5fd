//! Virtual time: a day passes in milliseconds, and the same waits end in the same order every time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;

use super::clock::{Busy, Clock, Held};

/// A clock that stands still while anybody is [busy](Clock::busy), and then jumps to the first wait that is
/// due. It ends one wait at a time, equal ones in the order in which they began, so whatever they lead to is
/// finished before the next one ends.
///
/// Whoever waits on it must be busy: a wait lends the waiter's [`Busy`] until it ends. The driver does this for
/// every port; a test that acts from outside uses [`VirtualClock::at`].
#[derive(Clone, Default)]
pub struct VirtualClock(Arc<Shared>);

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    now_ms: u64,
    /// Below zero while somebody who is busy once waits for two things at once; nothing of that may be forgotten.
    busy: i64,
    begun: u64,
    waits: BTreeMap<Place, Waker>,
    ended: BTreeSet<Place>,
}

/// When a wait ends, and how many began before it.
type Place = (u64, u64);

impl VirtualClock {
    /// A clock that begins at `now_ms`.
    #[must_use]
    pub fn starting_at(now_ms: u64) -> Self {
        Self(Arc::new(Shared(Mutex::new(State { now_ms, ..State::default() }))))
    }

    /// Waits for a moment and keeps the clock there until the [`Busy`] is dropped.
    pub async fn at(&self, due_ms: u64) -> Busy {
        let busy = self.busy();
        self.sleep_until(due_ms).await;
        busy
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        let (now_ms, busy, waits) = (state.now_ms, state.busy, state.waits.len());
        out.debug_struct("VirtualClock").field("now_ms", &now_ms).field("busy", &busy).field("waits", &waits).finish()
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        self.0.lock().now_ms
    }

    fn sleep_until(&self, due_ms: u64) -> BoxFuture<'static, ()> {
        Box::pin(Wait { clock: Arc::clone(&self.0), due_ms, place: None })
    }

    fn busy(&self) -> Busy {
        Busy::counted(Arc::clone(&self.0) as Arc<dyn Held>)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two lines below, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held for Shared {
    fn hold(&self) {
        self.lock().busy += 1;
    }

    fn let_go(&self) {
        self.lock().let_go();
    }
}

impl State {
    fn let_go(&mut self) {
        self.busy -= 1;
        if self.busy > 0 {
            return;
        }
        let due = self.waits.first_key_value().map(|(place, _)| *place).filter(|(due_ms, _)| *due_ms < u64::MAX);
        if let Some((place, waker)) = due.and_then(|place| self.waits.remove_entry(&place)) {
            self.now_ms = self.now_ms.max(place.0);
            self.busy += 1;
            self.ended.insert(place);
            waker.wake();
        }
    }
}

/// One wait. Its waiter is busy before and after, and not in between.
struct Wait {
    clock: Arc<Shared>,
    due_ms: u64,
    place: Option<Place>,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = Arc::clone(&self.clock);
        let mut state = clock.lock();
        match self.place {
            Some(place) if state.ended.remove(&place) => {
                self.place = None;
                self.due_ms = 0;
                return Poll::Ready(());
            }
            Some(place) => {
                state.waits.insert(place, context.waker().clone());
            }
            None => {
                state.begun += 1;
                let place = (self.due_ms, state.begun);
                self.place = Some(place);
                state.waits.insert(place, context.waker().clone());
                state.let_go();
            }
        }
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.clock.lock();
        // What was lent goes back to the waiter, who drops it next.
        if state.waits.remove(&place).is_some() {
            state.busy += 1;
        } else {
            state.ended.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(clock: &VirtualClock, due_ms: u64, log: &Arc<Mutex<Vec<(u64, u64)>>>) -> impl Future<Output = ()> + use<> {
        let (clock, log, busy) = (clock.clone(), Arc::clone(log), clock.busy());
        async move {
            clock.sleep_until(due_ms).await;
            log.lock().unwrap().push((due_ms, clock.now_ms()));
            drop(busy);
        }
    }

    #[tokio::test]
    async fn a_day_passes_at_once_and_in_order() {
        const DAY_MS: u64 = 86_400_000;
        let clock = VirtualClock::starting_at(5);
        let log = Arc::default();
        let start = clock.busy();
        let waits = [DAY_MS, 10, 10, 3].map(|due_ms| tokio::spawn(seen(&clock, due_ms, &log)));
        drop(start);
        for wait in waits {
            wait.await.unwrap();
        }
        assert_eq!(*log.lock().unwrap(), [(3, 5), (10, 10), (10, 10), (DAY_MS, DAY_MS)]);
    }

    #[tokio::test]
    async fn a_dropped_wait_holds_nothing_up() {
        let clock = VirtualClock::default();
        let log = Arc::default();
        let start = clock.busy();
        let dropped = tokio::spawn(seen(&clock, 1, &log));
        let kept = tokio::spawn(seen(&clock, 2, &log));
        tokio::task::yield_now().await;
        dropped.abort();
        assert!(dropped.await.unwrap_err().is_cancelled());
        drop(start);
        kept.await.unwrap();
        assert_eq!(*log.lock().unwrap(), [(2, 2)]);
    }

    #[tokio::test]
    async fn whoever_is_at_a_moment_keeps_the_clock_there() {
        let clock = VirtualClock::default();
        let log = Arc::default();
        let start = clock.busy();
        let later = tokio::spawn(seen(&clock, 20, &log));
        let here = tokio::spawn({
            let clock = clock.clone();
            async move { clock.at(10).await }
        });
        // Whoever waits at a moment has to have begun before time goes on.
        tokio::task::yield_now().await;
        drop(start);
        let busy = here.await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(clock.now_ms(), 10);
        assert!(log.lock().unwrap().is_empty());
        drop(busy);
        later.await.unwrap();
        assert_eq!(clock.now_ms(), 20);
    }
}
