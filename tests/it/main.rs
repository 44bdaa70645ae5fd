//! The test suite: one binary, one file a subject.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod support;

#[cfg(feature = "cli")]
mod any_scenario;
#[cfg(feature = "cli")]
mod command_line;
mod damage;
mod floors;
mod forgery;
mod machines;
#[cfg(feature = "cli")]
mod run_command;
#[cfg(feature = "cli")]
mod scenarios;
#[cfg(feature = "cli")]
mod shared;
#[cfg(feature = "cli")]
mod transcript_reader;
#[cfg(feature = "cli")]
mod transcripts;
mod wire;
