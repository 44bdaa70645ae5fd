//! The test suite: one binary, one file a subject.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(feature = "testkit")]
mod closed_table;
