//! Portcullis: a deterministic, fail-closed run engine for LLM agents.
//!
//! One run is a loop of model calls and tool calls. Every report from the world is an [`Input`]; the
//! [`Engine`] takes it to completion in one pure step, as signals and transitions of typed machines; the step
//! is written to an append-only history before its effects are performed; and every run ends in one row of a
//! [closed table](engine::table).
//!
//! The modules, from the ground up. Imports point down only.
//!
//! | floor | module | what |
//! |---|---|---|
//! | 0 | [`vocabulary`] | words: values, wire forms, limits |
//! | 1 | [`machines`] | rules: one machine a file, its table first |
//! | 2 | [`composition`] | plugins: manifest, bound, merge, state keys |
//! | 2 | [`engine`] | the machines composed, the closed table, the invariants |
//! | 3 | [`history`] | memory: records, their chain, replay; explaining, comparing and forking what was recorded |
//! | 3 | `testkit` | for suites: the table by another hand, audits, the explorer invariants (feature `explorer`); strategies (feature `testkit`) |
//! | 4 | `runtime` | the asynchronous edge: ports, plugins, driver, timers, recovery (feature `runtime`) |
//! | 5 | `plugins` | plugins that are ready to be registered |
//! | 5 | `adapters` | the world: stores, scenarios, recorded transcripts |
//! | 7 | `cli` | arguments, rendering, exit codes |
//!
//! Rules are cited as `SPEC 7.4`; they stand, numbered alike, in `docs/rules.md`.
//!
//! [`Input`]: vocabulary::input::Input
//! [`Engine`]: engine::Engine

pub mod vocabulary;

pub mod machines;

pub mod composition;

pub mod engine;

pub mod history;

#[cfg(feature = "explorer")]
pub mod testkit;

#[cfg(feature = "runtime")]
pub mod runtime;

#[cfg(feature = "runtime")]
pub mod plugins;

#[cfg(feature = "runtime")]
pub mod adapters;

#[cfg(feature = "cli")]
pub mod cli;

/// The README's program is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// So are those of the page for plugin authors.
#[cfg(doctest)]
#[doc = include_str!("../docs/composition.md")]
pub struct Plugins;
