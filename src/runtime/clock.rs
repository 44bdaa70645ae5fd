//! The clock port: the only place where a run learns what time it is.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;

/// Where time comes from. All times are wall milliseconds since 1970.
pub trait Clock: Send + Sync + 'static {
    /// The time. It never runs backwards while the process lives.
    fn now_ms(&self) -> u64;

    /// Comes back when it is `due_ms` or later.
    fn sleep_until(&self, due_ms: u64) -> BoxFuture<'static, ()>;

    /// Says that work is under way that takes no time. A clock that jumps from one wait to the next must not
    /// jump while anybody holds one of these; a real clock does not care.
    fn busy(&self) -> Busy {
        Busy::default()
    }
}

/// Work is under way that takes no time; over when dropped.
#[derive(Default)]
pub struct Busy(Option<Arc<dyn Held>>);

/// A clock that counts who is busy.
pub(super) trait Held: Send + Sync {
    /// One more.
    fn hold(&self);
    /// One less.
    fn let_go(&self);
}

impl Busy {
    /// Counted by that clock.
    pub(super) fn counted(by: Arc<dyn Held>) -> Self {
        by.hold();
        Self(Some(by))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(clock) = &self.0 {
            clock.let_go();
        }
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Busy")
    }
}

/// The machine's clock. Wall time is read once, and from there on the monotonic clock counts: nobody who sets
/// the wall clock moves a deadline.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    wall_ms: u64,
    since: Instant,
}

impl SystemClock {
    /// A clock that reads the wall time now.
    #[must_use]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX), since: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A wait that nobody outlives, which every timer can hold: about thirty years.
const WAIT_MS_MAX: u64 = 1 << 40;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        self.wall_ms.saturating_add(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, due_ms: u64) -> BoxFuture<'static, ()> {
        let wait = Duration::from_millis(due_ms.saturating_sub(self.wall_ms).min(WAIT_MS_MAX));
        Box::pin(tokio::time::sleep_until((self.since + wait).into()))
    }
}
