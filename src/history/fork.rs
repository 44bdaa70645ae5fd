//! Forks: a run of its own that begins with the first records of another one (SPEC 13.13).
//!
//! The reports of the parent are taken again, step by step, under the fork's id. Whatever derives from the id comes
//! out anew: tickets, operation ids, the key of the release. A report that names such an id is named again by its
//! place. Delays before a model attempt derive from the nonce, so a fork may wait longer than its parent did.

use std::io::BufRead;

use super::fault::Fault;
use super::identity::{OpenTickets, renamed, ticket};
use super::reader::{Lines, Next};
use super::record::Recorder;
use super::replay::{Divergence, Replay, Replayed};
use crate::engine::Engine;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::{RunId, ToolCallId};
use crate::vocabulary::input::{Input, Parent};
use crate::vocabulary::refusal::Refusal;

/// Why there is no fork.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The parent's history is damaged.
    #[error("corrupt: {0}")]
    Damaged(#[from] Fault),
    /// The engine would have written something else.
    #[error("record {} diverges in {}", .0.seq, .0.field)]
    Diverged(Divergence),
    /// There is no such record.
    #[error("there is no record {at}: the history has {records}, 0 to {}", .records.saturating_sub(1))]
    BeyondTheEnd {
        /// The record that was named.
        at: u64,
        /// How many there are.
        records: u64,
    },
    /// Nothing can follow.
    #[error("the run ended with record {ended}, in row {row}: nothing can follow it. Fork at 0 to {}", .ended.saturating_sub(1))]
    Ended {
        /// The record that it ended with.
        ended: u64,
        /// The row.
        row: u8,
    },
    /// A run is not its own parent.
    #[error("a fork has an id of its own, and {0} is its parent's")]
    SameRun(RunId),
    /// A report does not mean the same in the fork.
    #[error("record {seq} ({report}) cannot be taken over: {reason}")]
    Untranslatable {
        /// The record.
        seq: u64,
        /// The type of its input.
        report: &'static str,
        /// Why.
        reason: String,
    },
}

/// What a fork takes over: the reports of the parent, up to one record.
#[derive(Debug, Clone)]
pub struct Prefix {
    parent: Parent,
    nonce: String,
    wall_time: String,
    reports: Vec<Report>,
}

/// A report, and the call that its ticket is about.
#[derive(Debug, Clone)]
struct Report {
    at_ms: u64,
    input: Input,
    about: Option<ToolCallId>,
}

/// A fork: its records, and the engine as the last of them left it.
#[derive(Debug)]
pub struct Fork {
    /// Where it left its parent.
    pub parent: Parent,
    /// Its records, one line each.
    pub lines: Vec<u8>,
    /// How many.
    pub records: u64,
    /// The hash of the last one.
    pub head: Digest,
    /// Its state.
    pub engine: Engine,
}

impl Prefix {
    /// Reads the parent's history up to record `at`, and steps it. What comes after is not looked at.
    ///
    /// # Errors
    /// Damage, a divergence, a record that is not there, or one after which nothing can follow.
    pub fn read(source: impl BufRead, at: u64) -> Result<Self, ForkError> {
        let (mut lines, mut replay) = (Lines::new(source), Replay::<Engine>::default());
        let mut reports = Vec::new();
        while replay.records() <= at {
            let Next::Line(line) = lines.next_line()? else {
                return Err(ForkError::BeyondTheEnd { at, records: replay.records() });
            };
            let open = OpenTickets::of(replay.stepper());
            let step = match replay.take(line)? {
                Replayed::Reproduced(step) => step,
                Replayed::Diverged(divergence) => return Err(ForkError::Diverged(divergence)),
            };
            if let Some(ending) = replay.stepper().ending() {
                return Err(ForkError::Ended { ended: step.seq, row: ending.row });
            }
            let about = open.about(&step.input);
            reports.push(Report { at_ms: step.at_ms, input: step.input, about });
        }
        let head = replay.head();
        let started = reports.first().map(|report| &report.input);
        let Some(Input::RunStarted { run_id, nonce, wall_time, .. }) = started else {
            return Err(ForkError::BeyondTheEnd { at, records: 0 });
        };
        let parent = Parent { run: run_id.clone(), seq: at, head };
        Ok(Self { parent, nonce: nonce.clone(), wall_time: wall_time.clone(), reports })
    }

    /// Where the fork leaves its parent.
    #[must_use]
    pub const fn parent(&self) -> &Parent {
        &self.parent
    }

    /// When the last record was taken, in milliseconds from the parent's start.
    #[must_use]
    pub fn at_ms(&self) -> u64 {
        self.reports.last().map_or(0, |report| report.at_ms)
    }

    /// When the parent began, as its record 0 says.
    #[must_use]
    pub fn wall_time(&self) -> &str {
        &self.wall_time
    }

    /// Takes the reports again under the id `run`. The nonce follows from the parent's, so the same fork has the
    /// same bytes.
    ///
    /// # Errors
    /// The parent's own id, or a report that does not mean the same in the fork.
    pub fn fork(self, run: &RunId, wall_time: String) -> Result<Fork, ForkError> {
        if *run == self.parent.run {
            return Err(ForkError::SameRun(run.clone()));
        }
        let parts: [&[u8]; 3] = [self.nonce.as_bytes(), self.parent.head.as_bytes(), run.as_str().as_bytes()];
        let nonce = Digest::of("portcullis.fork.1", &parts).hex().as_str().to_owned();
        let (mut engine, mut recorder, mut lines) = (Engine::new(), Recorder::new(), Vec::new());
        for (seq, Report { at_ms, input, about }) in (0..).zip(self.reports) {
            let report = input.tag();
            let foreign = |reason: String| ForkError::Untranslatable { seq, report, reason };
            let input = if let Input::RunStarted { spec, .. } = input {
                let (run_id, nonce, wall_time) = (run.clone(), nonce.clone(), wall_time.clone());
                Input::RunStarted { run_id, spec, nonce, wall_time, forked_from: Some(self.parent.clone()) }
            } else {
                translated(input, about, &engine).map_err(&foreign)?
            };
            let at_ms = at_ms.max(due(&input, &engine).unwrap_or(0));
            let step = engine.step(at_ms, input).map_err(|refusal: Refusal| foreign(refusal.to_string()))?;
            if step.input.tag() != report {
                return Err(foreign("the fork's deadline passes before it".to_owned()));
            }
            lines.extend_from_slice(recorder.record(&engine, &step));
        }
        Ok(Fork { parent: self.parent, records: engine.decider().records(), head: recorder.head(), lines, engine })
    }
}

/// The report as the fork takes it.
fn translated(report: Input, about: Option<ToolCallId>, fork: &Engine) -> Result<Input, String> {
    let Some(named) = ticket(&report) else { return Ok(report) };
    let open = OpenTickets::of(fork);
    match about.and_then(|call| open.ticket(call)) {
        Some(own) => Ok(renamed(report, own)),
        None => Err(format!("the fork has no open ticket in the place of {named}")),
    }
}

/// When a timer's report is due in this run; `None` for other reports.
fn due(report: &Input, engine: &Engine) -> Option<u64> {
    let belongs = if let Input::BackoffElapsed { call, attempt } = report {
        format!("{call}/{attempt}")
    } else if let Input::ToolTimedOut { call, attempt } = report {
        format!("{call}/{attempt}")
    } else if let Input::TicketExpired { ticket } = report {
        ticket.0.clone()
    } else {
        return None;
    };
    engine.outstanding().into_iter().find_map(|effect| {
        if let Effect::StartTimer { of, due_ms, .. } = effect { (of == belongs).then_some(due_ms) } else { None }
    })
}
