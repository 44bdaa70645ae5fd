//! Recordings of other runtimes, format by format: those that nobody here wrote, and a small document of our
//! own for each rule.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

#[path = "../it/shared.rs"]
mod shared;

mod atif;
mod claude_code;
mod exports;
mod lines;
mod openhands;
mod otlp;
mod properties;
mod react;
mod recorded;
mod support;
mod swe_agent;
mod temporal;
