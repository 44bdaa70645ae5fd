//! The simulated world: its time, its decisions, and what was seen of the runs from outside.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::vocabulary::ids::RunId;
use tokio::sync::Notify;

use crate::bugs::Bug;
use crate::decisions::Decisions;
use crate::faults::Fault;
use crate::observed::Observed;

/// Wall time at which every world begins: any moment after 1970 that leaves room to go back.
const BEGIN_MS: u64 = 1_000_000_000;
/// Power cuts and hangs in one world; more than six recoveries in a row end every run in row 19.
const CUTS_MAX: u64 = 9;

/// One world. It outlives its processes.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) bug: Option<Bug>,
    /// The medium: what is in it stays when the power goes.
    pub(crate) medium: MemoryStore,
    pub(crate) runs: Vec<RunId>,
    state: Mutex<State>,
    /// The power has gone, or a rule was broken.
    dark: Notify,
    /// The faults have stopped.
    pub(crate) healed: Notify,
    /// A run is done.
    pub(crate) done: Notify,
}

/// What changes.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) decisions: Decisions,
    pub(crate) observed: Observed,
    /// Wall time before the present power-up.
    past_ms: u64,
    since: Option<tokio::time::Instant>,
    is_dark: bool,
    cuts: u64,
    actions: u64,
    pub(crate) processes: u32,
    /// Torn lines at the end of histories.
    pub(crate) tails: BTreeMap<RunId, Vec<u8>>,
    trace: Option<Vec<String>>,
    broken: Option<String>,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, mut decisions: Decisions, traced: bool) -> Arc<Self> {
        let count = decisions.number("runs", "", 1, 2);
        let runs: Vec<RunId> = (0..count).map(|index| format!("run-{index}").parse().unwrap()).collect();
        let state = State { decisions, trace: traced.then(Vec::new), past_ms: BEGIN_MS, ..State::default() };
        let (dark, healed, done) = (Notify::new(), Notify::new(), Notify::new());
        Arc::new(Self { seed, bug, medium: MemoryStore::new(), runs, state: Mutex::new(state), dark, healed, done })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The power comes up again after so long; called inside the executor of this life.
    pub(crate) fn power_up(&self, after_ms: u64) {
        let mut state = self.lock();
        state.past_ms += after_ms;
        state.since = Some(tokio::time::Instant::now());
        state.is_dark = false;
    }

    /// The power has gone: what was under way is dropped after this.
    pub(crate) fn power_down(&self) {
        let mut state = self.lock();
        state.past_ms = state.now_ms();
        (state.since, state.is_dark) = (None, true);
        state.observed.power_gone();
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.lock().now_ms()
    }

    /// Everything stops here.
    pub(crate) fn go_dark(&self) {
        self.lock().is_dark = true;
        self.dark.notify_one();
    }

    pub(crate) fn is_dark(&self) -> bool {
        self.lock().is_dark
    }

    /// Comes back when the power goes.
    pub(crate) async fn darkness(&self) {
        while !self.is_dark() {
            self.dark.notified().await;
        }
    }

    /// A rule is broken: the world stops, and the first breach is told.
    pub(crate) fn breach(&self, reason: impl Display) {
        let mut state = self.lock();
        let reason = reason.to_string();
        state.note(format_args!("BREACH {reason}"));
        state.broken.get_or_insert(reason);
        drop(state);
        self.go_dark();
    }

    pub(crate) fn broken(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    /// Holds what was observed against the rules.
    pub(crate) fn check(&self, checked: Result<(), String>) {
        if let Err(reason) = checked {
            self.breach(reason);
        }
    }

    /// Looks at the world with what was observed so far.
    pub(crate) fn observe(&self, look: impl FnOnce(&mut Observed) -> Result<(), String>) {
        let checked = look(&mut self.lock().observed);
        self.check(checked);
    }

    /// What had to happen by now has happened.
    pub(crate) fn in_time(&self) {
        let state = self.lock();
        let checked = state.observed.in_time(state.now_ms(), state.decisions.held_up());
        drop(state);
        self.check(checked);
    }

    pub(crate) fn note(&self, what: Arguments<'_>) {
        self.lock().note(what);
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.lock().trace.clone().unwrap_or_default()
    }

    pub(crate) fn goes_wrong(&self, fault: Fault, at: impl Display) -> bool {
        let mut state = self.lock();
        let wrong = state.decisions.goes_wrong(fault, &at);
        if wrong {
            state.note(format_args!("FAULT {} {at}", fault.word()));
        }
        wrong
    }

    pub(crate) fn choose(&self, what: &str, of: impl Display, weights: &[u64]) -> usize {
        self.lock().decisions.choose(what, of, weights)
    }

    pub(crate) fn number(&self, what: &str, of: impl Display, low: u64, high: u64) -> u64 {
        self.lock().decisions.number(what, of, low, high)
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.lock().decisions.is_healed()
    }

    /// The faults stop.
    pub(crate) fn heal(&self) {
        let mut state = self.lock();
        state.decisions.heal();
        state.note(format_args!("the faults stop"));
        drop(state);
        self.healed.notify_waiters();
    }

    /// Waits until the faults stop.
    pub(crate) async fn until_healed(&self) {
        while !self.is_healed() {
            // Looked for now and then: whoever is told while nobody listens would wait for ever.
            let wait = tokio::time::timeout(Duration::from_secs(5), self.healed.notified());
            let _ = wait.await;
        }
    }
}

impl State {
    pub(crate) fn now_ms(&self) -> u64 {
        let lived = self.since.map(|since| since.elapsed().as_millis()).unwrap_or_default();
        self.past_ms + u64::try_from(lived).unwrap()
    }

    pub(crate) fn note(&mut self, what: Arguments<'_>) {
        let now_ms = self.now_ms() - BEGIN_MS;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now_ms:>7} {what}"));
        }
    }

    /// One more action, numbered.
    pub(crate) fn action(&mut self) -> u64 {
        self.actions += 1;
        self.actions
    }

    /// One more interruption, unless there were enough.
    pub(crate) fn may_be_cut(&mut self) -> bool {
        self.cuts += 1;
        self.cuts <= CUTS_MAX
    }
}
