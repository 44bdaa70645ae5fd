//! The test suite: one binary, one file a subject.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

<<<<<<< HEAD
#[macro_use]
mod support;

#[cfg(feature = "cli")]
mod command_line;
mod damage;
mod floors;
mod forgery;
mod golden;
mod machines;
=======
#[cfg(feature = "cli")]
mod any_scenario;
>>>>>>> af6e8ddf6786045f8574d2b079baa4df3c11a99a
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
