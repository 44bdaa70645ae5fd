//! The life of one world, from its seed to the end of its last run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use portcullis::runtime::store::Store;

use crate::bugs::Bug;
use crate::decisions::Decisions;
use crate::faults::Fault;
use crate::host::Host;
use crate::process::Process;
use crate::world::World;

/// When the faults stop, in milliseconds of the world.
const HEALED_AFTER: Duration = Duration::from_secs(40);
/// How long the runs may take from there on. Longer than every deadline, expiry and back-off together.
const ENDED_AFTER: Duration = Duration::from_secs(900);

/// What came of one seed.
#[derive(Debug, Default)]
pub(crate) struct Lived {
    pub(crate) breach: Option<String>,
    /// Decisions that came out otherwise than plain.
    pub(crate) taken: Vec<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) met: BTreeMap<Fault, u64>,
    pub(crate) rows: Vec<u64>,
    pub(crate) recoveries: Vec<String>,
    pub(crate) records: u64,
    /// Every record, byte by byte.
    pub(crate) histories: Vec<u8>,
}

/// How a world is lived in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) bug: Option<Bug>,
    /// Decisions that are taken back.
    pub(crate) plain: BTreeSet<String>,
    pub(crate) traced: bool,
}

/// Lives through the world of a seed.
pub(crate) fn live(seed: u64, wanted: &Wanted) -> Lived {
    let decisions = Decisions::new(seed, wanted.plain.clone());
    let world = World::new(seed, wanted.bug, decisions, wanted.traced);
    let mut left = HEALED_AFTER;
    let mut life = 0_u64;
    while let Some(again) = one_life(&world, life, &mut left) {
        if !again {
            break;
        }
        life += 1;
    }
    read_back(&world);
    let state = world.lock();
    let mut histories = Vec::new();
    state.observed.histories().for_each(|line| histories.extend_from_slice(line));
    let lived = Lived {
        breach: None,
        taken: state.decisions.taken().to_vec(),
        trace: Vec::new(),
        met: state.decisions.met().clone(),
        rows: state.observed.rows().collect(),
        recoveries: state.observed.recoveries().map(str::to_owned).collect(),
        records: state.observed.records(),
        histories,
    };
    drop(state);
    Lived { breach: world.broken(), trace: world.trace(), ..lived }
}

/// In the end, the medium holds what was stored, and nothing else.
fn read_back(world: &World) {
    for run in &world.runs {
        let mut bytes = Vec::new();
        if let Some(Ok(mut reader)) = world.medium.read(run).now_or_never() {
            reader.read_to_end(&mut bytes).unwrap();
        }
        world.observe(|seen| seen.read(run, &bytes));
    }
}

/// From one power-up to the next. `Some(true)` when the power comes up again.
fn one_life(world: &Arc<World>, life: u64, left: &mut Duration) -> Option<bool> {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let again = executor.block_on(async {
        let after_ms = [0, 20, 3_000, 30_000][world.choose("down", life, &[3, 2, 2, 1])];
        world.power_up(if life == 0 { 0 } else { after_ms });
        let began = tokio::time::Instant::now();
        Host::new(&Process::new(world)).live(false);
        if world.goes_wrong(Fault::TakeOver, life) {
            tokio::spawn(second_process(Arc::clone(world), life));
        }
        let ended = lived(world, *left).await;
        *left = left.saturating_sub(began.elapsed());
        // Read here: outside, the clock is the machine's.
        world.power_down();
        ended
    });
    // Everything that was in flight is dropped here.
    drop(executor);
    again
}

/// A second process, which takes over what the first one drives.
async fn second_process(world: Arc<World>, life: u64) {
    let after_ms = world.number("second_ms", life, 0, 6_000);
    tokio::time::sleep(Duration::from_millis(after_ms)).await;
    if !world.is_dark() {
        Host::new(&Process::new(&world)).live(true);
    }
}

/// Waits until the power goes or every run is done, and stops the faults in between.
async fn lived(world: &World, left: Duration) -> Option<bool> {
    if !world.is_healed() {
        tokio::select! {
            biased;
            () = world.darkness() => return Some(world.broken().is_none()),
            () = all_done(world) => return Some(false),
            () = tokio::time::sleep(left) => world.heal(),
        }
        if world.choose("restarts_healed", "", &[1, 1]) == 1 {
            return Some(true);
        }
    }
    tokio::select! {
        biased;
        () = world.darkness() => Some(world.broken().is_none()),
        () = all_done(world) => Some(false),
        () = tokio::time::sleep(ENDED_AFTER) => {
            let standing = |run| format!("{run}: {}", world.lock().observed.standing(run));
            let left = world.runs.iter().filter(|run| !world.lock().observed.is_delivered(run)).map(standing);
            world.breach(format_args!("it does not end though nothing goes wrong any more: {}", left.collect::<Vec<_>>().join("; ")));
            Some(false)
        }
    }
}

async fn all_done(world: &World) {
    loop {
        let all = {
            let state = world.lock();
            world.runs.iter().all(|run| state.observed.is_delivered(run))
        };
        if all {
            return;
        }
        // Told by whoever holds a run; looked at now and then, for a receipt may be stored without its sender's knowing.
        let _ = tokio::time::timeout(Duration::from_secs(1), world.done.notified()).await;
    }
}
