//! The test suite: one binary, one file a subject.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod run_command;
mod scenarios;
mod shared;
mod transcript_reader;
mod transcripts;
