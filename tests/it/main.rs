//! The test suite: one binary, one file a subject.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

#[macro_use]
mod support;

#[cfg(feature = "cli")]
mod any_scenario;
#[cfg(feature = "testkit")]
mod attacks;
#[cfg(feature = "testkit")]
mod attacks_on_bounds;
#[cfg(feature = "testkit")]
mod audit;
#[cfg(feature = "cli")]
mod breaking;
#[cfg(feature = "testkit")]
mod cases;
#[cfg(feature = "cli")]
mod check_command;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "testkit")]
mod closed_table;
#[cfg(feature = "cli")]
mod command_line;
mod composition;
#[cfg(all(feature = "runtime", feature = "testkit"))]
mod conformance;
#[cfg(feature = "testkit")]
mod coverage;
mod damage;
mod documents;
mod floors;
#[cfg(not(feature = "runtime"))]
mod forgery;
mod golden;
#[cfg(feature = "testkit")]
mod hooks;
mod machines;
#[cfg(feature = "testkit")]
mod neighbours;
#[cfg(feature = "testkit")]
mod nested;
#[cfg(feature = "testkit")]
mod play;
#[cfg(feature = "testkit")]
mod properties;
#[cfg(feature = "cli")]
mod real_parts;
mod redaction;
#[cfg(feature = "testkit")]
mod refusals;
#[cfg(feature = "testkit")]
mod regressions;
#[cfg(feature = "cli")]
mod run_command;
#[cfg(feature = "cli")]
mod runtime;
#[cfg(feature = "cli")]
mod scenarios;
#[cfg(feature = "cli")]
mod shared;
#[cfg(all(feature = "sqlite", unix))]
mod sqlite;
#[cfg(feature = "cli")]
mod stage;
#[cfg(feature = "cli")]
mod store_commands;
#[cfg(all(feature = "runtime", feature = "testkit"))]
mod stores;
#[cfg(feature = "testkit")]
mod testkit;
#[cfg(feature = "cli")]
mod transcript_reader;
#[cfg(feature = "cli")]
mod transcripts;
#[cfg(feature = "testkit")]
mod views;
mod wire;
