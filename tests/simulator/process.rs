//! One process: a clock of its own, and a life that can stand still or end between any two actions.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use portcullis::runtime::clock::Clock;
use tokio::sync::Notify;

use crate::bugs::Bug;
use crate::faults::Fault;
use crate::world::World;

/// A process. Everything that it does in the world goes through [`Process::act`].
pub(crate) struct Process {
    pub(crate) world: Arc<World>,
    pub(crate) number: u32,
    /// How far its clock is ahead.
    ahead_ms: AtomicI64,
    hangs_until_ms: AtomicU64,
    jumped: Notify,
}

impl Process {
    pub(crate) fn new(world: &Arc<World>) -> Arc<Self> {
        let number = {
            let mut state = world.lock();
            state.processes += 1;
            state.processes
        };
        let back = number > 1 && world.goes_wrong(Fault::ClockBack, number);
        let ahead_ms = if back { -5_000 } else { 0 };
        Arc::new(Self {
            world: Arc::clone(world),
            number,
            ahead_ms: AtomicI64::new(ahead_ms),
            hangs_until_ms: AtomicU64::new(0),
            jumped: Notify::new(),
        })
    }

    /// Waits while the process hangs; for ever once the power has gone.
    pub(crate) async fn awake(&self) {
        loop {
            if self.world.is_dark() {
                return std::future::pending().await;
            }
            let wait_ms = self.hangs_until_ms.load(Ordering::Relaxed).saturating_sub(self.world.now_ms());
            if wait_ms == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// Between two actions: here the power may go, the process may hang, and its clock may jump.
    pub(crate) async fn act(&self, what: impl Display + Send) {
        self.awake().await;
        self.world.in_time();
        let number = {
            let mut state = self.world.lock();
            let number = state.action();
            state.note(format_args!("p{} {what} [{number}]", self.number));
            number
        };
        if self.world.goes_wrong(Fault::PowerCut, number) && self.world.lock().may_be_cut() {
            self.world.go_dark();
        }
        if self.world.goes_wrong(Fault::Hang, number) && self.world.lock().may_be_cut() {
            let hangs_ms = self.world.number("hangs_ms", number, 500, 15_000);
            self.hangs_until_ms.store(self.world.now_ms() + hangs_ms, Ordering::Relaxed);
        }
        if self.world.goes_wrong(Fault::ClockJump, number) {
            let jumps_ms = self.world.number("jumps_ms", number, 10, 20_000);
            self.ahead_ms.fetch_add(i64::try_from(jumps_ms).unwrap(), Ordering::Relaxed);
            self.jumped.notify_waiters();
        }
        self.awake().await;
    }

    /// When the world's clock shows what this process's clock shows then.
    pub(crate) fn in_the_world(&self, own_ms: u64) -> u64 {
        own_ms.saturating_add_signed(-self.ahead_ms.load(Ordering::Relaxed))
    }

    /// Lets time pass in this process.
    pub(crate) async fn pass(&self, wait_ms: u64) {
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        self.awake().await;
    }
}

/// The clock of a process.
pub(crate) struct ProcessClock(pub(crate) Arc<Process>);

impl Clock for ProcessClock {
    fn now_ms(&self) -> u64 {
        self.0.world.now_ms().saturating_add_signed(self.0.ahead_ms.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, due_ms: u64) -> BoxFuture<'static, ()> {
        let process = Arc::clone(&self.0);
        Box::pin(async move {
            loop {
                process.awake().await;
                let wait_ms = due_ms.saturating_sub(Self(Arc::clone(&process)).now_ms());
                if wait_ms == 0 {
                    let world = &process.world;
                    if world.bug == Some(Bug::LosesAlarms) && world.lock().observed.is_alarm(process.number, due_ms) {
                        return std::future::pending().await;
                    }
                    return;
                }
                // A day is more than any world lasts.
                let wait = Duration::from_millis(wait_ms.min(86_400_000));
                tokio::select! {
                    biased;
                    () = process.jumped.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        })
    }
}
