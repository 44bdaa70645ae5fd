//! The test suite: one binary, one file a subject.

#![allow(missing_docs)]
