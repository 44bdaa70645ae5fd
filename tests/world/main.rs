//! The ports and the world: models over HTTP, tools over MCP, and runs of the command line with both. Only
//! loopback addresses are contacted. A program of its own, because it starts itself again as tool servers.
//!
//! | module | what |
//! |---|---|
//! | `components` | real components: where they are, and what is skipped without them |
//! | `loopback` | an HTTP server that answers as a test wants, badly too |
//! | `traces` | everything that is logged or traced |
//! | `models`, `tools`, `live` | the tests |
//!
//! `cargo test --all-features --test world -- FILTER`. Tests that need a component which is not there are shown
//! as ignored. `.ci/components FOLDER` installs them all; `PORTCULLIS_COMPONENTS` names the folder. Where
//! `PORTCULLIS_REQUIRE_COMPONENTS` is 1, an absent component is a failure.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod components;
mod live;
mod loopback;
mod models;
#[path = "../it/shared.rs"]
mod shared;
#[allow(dead_code)]
#[path = "../it/support.rs"]
mod support;
mod tools;
mod traces;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // Started as a tool server by one of its own tests.
    if let Some(code) = tools::served() {
        return code;
    }
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = [models::trials(), tools::trials(), live::trials()].into_iter().flatten().collect();
    let names: Vec<&str> = components::missing().collect();
    if !names.is_empty() {
        println!("not here, so that their tests are ignored: {}", names.join(", "));
        println!("`.ci/components FOLDER` installs them; PORTCULLIS_COMPONENTS names that folder");
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
