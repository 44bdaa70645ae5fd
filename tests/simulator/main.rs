//! The simulator: one seed is one world, in which the real runtime drives runs while everything around it goes
//! wrong, on a clock of its own and in one thread (docs/simulator.md).
//!
//! | module | what |
//! |---|---|
//! | `faults` | what can go wrong, by name |
//! | `decisions` | everything that is left to chance, drawn from the seed; each decision can be taken back |
//! | `world` | time, decisions, and what was seen |
//! | `process` | a clock, and a life that hangs or ends between any two actions |
//! | `store` | a session of the store between which and its medium things go wrong |
//! | `ports`, `plugin`, `script` | models, tools, judge, gates and a plugin, and what they say |
//! | `specs` | specs and tools |
//! | `host`, `people` | the program around the runtime, and those who are asked |
//! | `observed`, `told` | what was seen from outside and what a subscriber was told, and what must be true of it |
//! | `life` | from a seed to the end of its last run |
//! | `bugs` | bugs that are put in on purpose |
//! | `budget`, `shrink`, `tally`, `remembered` | many worlds; a failing one made small; counts; names |
//!
//! `cargo test --all-features --test simulator`. `SEED=N` lives through one world and shows it, and with `REMEMBER=NAME` keeps it;
//! `SIMULATOR_SEEDS=N` and `SIMULATOR_FROM=K` live through others.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod budget;
mod bugs;
mod decisions;
mod faults;
mod host;
mod life;
mod observed;
mod people;
mod plugin;
mod ports;
mod process;
mod remembered;
mod script;
mod shrink;
mod specs;
mod store;
mod tally;
mod told;
mod world;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::conformance;
use portcullis::runtime::store::Store;

use bugs::Bug;
use decisions::Decisions;
use life::{Wanted, live};
use process::Process;
use store::SimulatedStore;
use tally::Tally;
use world::World;

/// Worlds that every run of the tests lives through.
const WORLDS: u64 = 1_000;
/// Worlds that are lived through twice.
const TWICE: u64 = 40;
/// Worlds in which a bug that was put in must be found.
const FOUND_WITHIN: u64 = 1_000;

fn main() -> ExitCode {
    if let Some(seed) = number("SEED") {
        return one(seed);
    }
    if let Some(worlds) = number("SIMULATOR_SEEDS") {
        let from = number("SIMULATOR_FROM").unwrap_or(0);
        eprintln!("simulator: worlds {from} to {}", from + worlds.max(1) - 1);
        return told(budget::through(Seeds { next: from, left: worlds }).map(|_| ()));
    }
    let mut arguments = Arguments::from_args();
    // One thread: the budget is one of time.
    arguments.test_threads.get_or_insert(1);
    let mut trials = vec![
        Trial::test("a_store_without_faults_keeps_every_rule_of_stores", a_store_without_faults),
        Trial::test("one_seed_is_one_world_byte_for_byte", one_seed_is_one_world),
        Trial::test("remembered_worlds_hold", remembered_worlds),
        Trial::test("many_worlds_hold_and_meet_everything_that_can_go_wrong", many_worlds),
    ];
    trials.extend(Bug::ALL.iter().map(|(bug, name, breach)| Trial::test(*name, move || is_found(*bug, breach))));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Seeds, one after the other.
struct Seeds {
    next: u64,
    left: u64,
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        self.next += 1;
        Some(self.next - 1)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Seeds {}

fn told(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(story) => {
            eprintln!("{story}");
            ExitCode::FAILURE
        }
    }
}

/// Lives through one world and shows it.
fn one(seed: u64) -> ExitCode {
    let wanted = Wanted { traced: true, ..Wanted::default() };
    let lived = live(seed, &wanted);
    println!("{}", lived.trace.join("\n"));
    println!("rows {:?}, {} records, {} decisions", lived.rows, lived.records, lived.taken.len());
    if let Ok(name) = std::env::var("REMEMBER") {
        remembered::remember(&name, seed);
    }
    told(budget::world(seed, &Wanted::default(), &mut Tally::default()))
}

fn a_store_without_faults() -> Result<(), Failed> {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let checked = executor.block_on(async {
        let mut calm = Decisions::new(0, BTreeSet::new());
        calm.heal();
        let world = World::new(0, None, calm, false);
        world.power_up(0);
        let (process, medium) = (Process::new(&world), MemoryStore::new());
        let open = async || Ok(Arc::new(SimulatedStore::unobserved(&process, medium.session())) as Arc<dyn Store>);
        conformance::store(open).await
    });
    checked.map_err(|breaches| format!("{breaches:?}").into())
}

fn one_seed_is_one_world() -> Result<(), Failed> {
    let wanted = Wanted { traced: true, ..Wanted::default() };
    for seed in 0..TWICE {
        let (first, second) = (live(seed, &wanted), live(seed, &wanted));
        let differs = first.trace.iter().zip(&second.trace).position(|(one, other)| one != other);
        if let Some(line) = differs {
            let (one, other) = (&first.trace[line], &second.trace[line]);
            return Err(format!("world {seed} differs in line {line} of its trace:\n{one}\n{other}").into());
        }
        if (first.histories, first.trace.len()) != (second.histories, second.trace.len()) {
            return Err(format!("world {seed} leads to other bytes the second time").into());
        }
    }
    Ok(())
}

fn remembered_worlds() -> Result<(), Failed> {
    for remembered in remembered::all() {
        if remembered.version != remembered::VERSION {
            eprintln!("simulator: {} was another world when it was remembered", remembered.name);
        }
        let held = budget::world(remembered.seed, &Wanted::default(), &mut Tally::default());
        held.map_err(|story| format!("{}: {story}", remembered.name))?;
    }
    Ok(())
}

fn many_worlds() -> Result<(), Failed> {
    let tally = budget::through(Seeds { next: 0, left: WORLDS })?;
    let missing = tally.missing();
    if missing.is_empty() { Ok(()) } else { Err(format!("never met: {}", missing.join(", ")).into()) }
}

fn is_found(bug: Bug, breach: &str) -> Result<(), Failed> {
    let wanted = Wanted { bug: Some(bug), ..Wanted::default() };
    let mut others = BTreeSet::new();
    for seed in 0..FOUND_WITHIN {
        match live(seed, &wanted).breach {
            Some(found) if found.contains(breach) => {
                eprintln!("simulator: found in world {seed}: {found}");
                return Ok(());
            }
            Some(other) => drop(others.insert(other)),
            None => {}
        }
    }
    Err(format!("not found in {FOUND_WITHIN} worlds; what was found instead: {others:?}").into())
}
