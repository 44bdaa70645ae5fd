//! The test suite: one binary, one file a subject.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

#[cfg(feature = "testkit")]
mod audit;
#[cfg(feature = "testkit")]
mod cases;
#[cfg(feature = "testkit")]
mod closed_table;
#[cfg(feature = "testkit")]
mod play;
#[cfg(feature = "testkit")]
mod properties;
#[cfg(feature = "testkit")]
mod refusals;
#[cfg(feature = "testkit")]
mod regressions;
