//! The crash proof: real processes that are killed, stopped, starved of disk and interrupted, and what is true
//! afterwards. A program of its own, because it starts itself again as the processes that die.
//!
//! | module | what |
//! |---|---|
//! | `suite` | names, filters, and the lines that are printed |
//! | `wire` | what a child says to its parent, line by line over a loopback socket |
//! | `book` | the parent's side: the ledger of effects, and everything that was said |
//! | `world` | scripted ports whose effects are entries in the ledger |
//! | `points` | the named points at which a child kills or stops itself |
//! | `fused` | a store and ports with such points around every call |
//! | `child` | the child program |
//! | `case` | one store, one ledger and the processes that work on them |
//! | `claims` | what must hold of a case when all its runs have ended |
//! | `every_point`, `moments`, `owners`, `handles`, `disk`, `interrupts`, `unsynced` | the tests |
//!
//! `cargo test --test crash -- FILTER`. `PORTCULLIS_CRASH_SEED` sets the seed of the random moments,
//! `PORTCULLIS_CRASH_DIR` where the stores lie: a folder in memory by default, where there is one, for a killed
//! process loses nothing that it had written.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

#[cfg(unix)]
mod book;
#[cfg(unix)]
mod case;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod claims;
#[cfg(all(unix, feature = "cli"))]
mod command;
#[cfg(all(unix, feature = "cli"))]
mod disk;
#[cfg(unix)]
mod every_point;
#[cfg(unix)]
mod fused;
#[cfg(unix)]
mod handles;
#[cfg(all(unix, feature = "cli"))]
mod interrupts;
#[cfg(unix)]
mod moments;
#[cfg(unix)]
mod owners;
#[cfg(unix)]
mod points;
#[cfg(unix)]
mod suite;
#[cfg(unix)]
mod unsynced;
#[cfg(unix)]
mod wire;
#[cfg(unix)]
mod world;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    if let Ok(task) = std::env::var(wire::TASK) {
        return child::main(&task);
    }
    #[allow(unused_mut)]
    let mut tests = [every_point::TESTS, moments::TESTS, owners::TESTS, handles::TESTS, unsynced::TESTS].concat();
    #[cfg(feature = "cli")]
    tests.extend([disk::TESTS, interrupts::TESTS].concat());
    suite::run(&tests)
}

#[cfg(not(unix))]
fn main() {
    println!("test result: ok. 0 passed; 0 failed; processes are only stopped and killed on Unix");
    println!("0 passed, 0 failed");
}
