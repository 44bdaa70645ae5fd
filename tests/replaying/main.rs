//! What is done with recorded runs: they are audited, and other rules are supposed for them.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod audit;
mod what_if;
