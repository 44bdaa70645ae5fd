//! The test suite: one binary, one file a subject.

#![allow(missing_docs)]

#[macro_use]
mod support;

#[cfg(feature = "cli")]
mod command_line;
mod damage;
mod floors;
mod forgery;
mod machines;
mod wire;
