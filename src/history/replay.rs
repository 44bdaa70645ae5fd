//! Replay: decode the input, step again, encode again, compare the bytes (SPEC 13).

use std::io::BufRead;

use serde::Deserialize;

use super::chain;
use super::difference::{Found, differences};
use super::fault::{Fault, FaultCode};
use super::reader::{Line, Lines, Next, Tail};
use super::record::{Envelope, Recorder, VERSION};
use super::redaction;
use crate::engine::{Decider, Ending, Engine, Step};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;
use crate::vocabulary::json::Json;
use crate::vocabulary::refusal::Refusal;

/// What to do at a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Stop at the first.
    #[default]
    Stop,
    /// Go on and report all.
    ReportAll,
}

/// A record that does not come out as it was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Divergence {
    /// The record.
    pub seq: u64,
    /// The first field that differs, as a path: `state.run.phase`.
    pub field: String,
    /// What the history says.
    pub expected: String,
    /// What came out.
    pub got: String,
}

/// What a replay found.
#[derive(Debug)]
pub struct Summary {
    /// The run.
    pub run: RunId,
    /// How many records.
    pub records: u64,
    /// How many bytes of them.
    pub bytes: u64,
    /// The hash of the last one.
    pub head: Digest,
    /// How the run ended; `None` while it is open.
    pub ending: Option<Ending>,
    /// Whether the release has a receipt.
    pub delivered: bool,
    /// A cut last line.
    pub tail: Option<Tail>,
    /// Differences; none when the history was reproduced.
    pub divergences: Vec<Divergence>,
    /// What decides, as the last record left it.
    pub decider: Decider,
}

/// What takes the inputs of a history again.
pub trait Stepper: Default {
    /// Takes one input.
    ///
    /// # Errors
    /// A refusal, which changes nothing.
    fn step(&mut self, at_ms: u64, input: Input) -> Result<Step, Refusal>;

    /// What decides in it.
    fn decider(&self) -> &Decider;
}

impl Stepper for Decider {
    fn step(&mut self, at_ms: u64, input: Input) -> Result<Step, Refusal> {
        Self::step(self, at_ms, input)
    }

    fn decider(&self) -> &Decider {
        self
    }
}

impl Stepper for Engine {
    fn step(&mut self, at_ms: u64, input: Input) -> Result<Step, Refusal> {
        Self::step(self, at_ms, input)
    }

    fn decider(&self) -> &Decider {
        self.decider()
    }
}

/// A replay, record by record: in a [`Decider`], which remembers no text, or in an [`Engine`], which can then
/// go on.
#[derive(Debug, Clone, Default)]
pub struct Replay<S = Decider> {
    stepper: S,
    recorder: Recorder,
    run: Option<RunId>,
    records: u64,
    bytes: u64,
    /// The hash that the next record must continue.
    link: Digest,
}

/// Replays a whole history in constant memory.
///
/// # Errors
/// The first damage. Nothing after it is believed.
pub fn replay(source: impl BufRead, policy: Policy) -> Result<Summary, Fault> {
    let mut lines = Lines::new(source);
    let mut replay = Replay::<Decider>::default();
    let mut divergences = Vec::new();
    let tail = loop {
        match lines.next_line()? {
            Next::End => break None,
            Next::Tail(tail) => break Some(tail),
            Next::Line(line) => {
                if let Replayed::Diverged(divergence) = replay.take(line)? {
                    divergences.push(divergence);
                    if policy == Policy::Stop {
                        break None;
                    }
                }
            }
        }
    };
    replay.finish(tail, divergences)
}

/// What became of one record.
#[derive(Debug)]
pub enum Replayed {
    /// Its bytes came out as they were written.
    Reproduced(Step),
    /// They did not.
    Diverged(Divergence),
}

impl<S: Stepper> Replay<S> {
    /// Takes one line: it must continue the chain, and stepping its input again must give its bytes.
    ///
    /// # Errors
    /// The damage, when the line is no record that continues this history.
    pub fn take(&mut self, line: Line<'_>) -> Result<Replayed, Fault> {
        if let Some((at_ms, input)) = self.expected_input(line.bytes) {
            // Most lines are whole, in place and reproduced: then nothing but their input has to be read.
            return match self.stepper.step(at_ms, input) {
                Ok(step) => {
                    let written = self.recorder.decided(self.stepper.decider(), &step);
                    if written.strip_suffix(b"\n") == Some(line.bytes) {
                        self.count(line);
                        return Ok(Replayed::Reproduced(step));
                    }
                    self.diagnose(line, Some(Ok(step)))
                }
                Err(refusal) => self.diagnose(line, Some(Err(refusal))),
            }
            .map(Replayed::Diverged);
        }
        self.diagnose(line, None).map(Replayed::Diverged)
    }

    /// What took the inputs so far.
    pub const fn stepper(&self) -> &S {
        &self.stepper
    }

    /// How many records were taken.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The hash of the last record; all zeros before the first.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.recorder.head()
    }

    /// What took the inputs, and a recorder that goes on after the last record.
    pub fn into_parts(self) -> (S, Recorder) {
        (self.stepper, self.recorder)
    }

    /// The time and input of the next record, when the line begins as that record must.
    fn expected_input(&self, line: &[u8]) -> Option<(u64, Input)> {
        let rest = line.strip_prefix(b"{\"v\":1,\"run\":\"")?;
        let id = rest.split(|byte| *byte == b'"').next()?;
        if self.run.as_ref().is_some_and(|run| run.as_str().as_bytes() != id) {
            return None;
        }
        let rest = rest.get(id.len()..)?.strip_prefix(b"\",\"seq\":")?;
        let (seq, rest) = leading_number(rest)?;
        let (at_ms, rest) = leading_number(rest.strip_prefix(b",\"at_ms\":")?)?;
        let mut reader = serde_json::Deserializer::from_slice(rest.strip_prefix(b",\"input\":")?);
        (seq == self.records).then(|| Input::deserialize(&mut reader).ok()).flatten().map(|input| (at_ms, input))
    }

    /// Something differs. Damage comes first: only a whole chain can diverge.
    fn diagnose(&mut self, line: Line<'_>, step: Option<Result<Step, Refusal>>) -> Result<Divergence, Fault> {
        let envelope = read(line)?;
        chain::check(line, &envelope, self.run.as_ref(), self.records, self.link)?;
        let seq = envelope.seq;
        let divergence = match step.unwrap_or_else(|| self.stepper.step(envelope.at_ms, envelope.input)) {
            Ok(step) => {
                self.recorder = Recorder::after(envelope.prev);
                first_difference(seq, line.bytes, self.recorder.decided(self.stepper.decider(), &step))
            }
            Err(refusal) => Divergence {
                seq,
                field: "input".to_owned(),
                expected: "an accepted input".to_owned(),
                got: refusal.to_string(),
            },
        };
        self.recorder = Recorder::after(envelope.hash);
        self.run.get_or_insert(envelope.run);
        self.count(line);
        Ok(divergence)
    }

    fn count(&mut self, line: Line<'_>) {
        self.records += 1;
        self.bytes += line.bytes.len() as u64 + 1;
        self.link = self.recorder.head();
        if self.run.is_none() {
            self.run = self.stepper.decider().core().map(|core| core.charter.run.clone());
        }
    }
}

impl Replay {
    fn finish(self, tail: Option<Tail>, divergences: Vec<Divergence>) -> Result<Summary, Fault> {
        let Some(run) = self.run else {
            let reason = match &tail {
                Some(tail) => format!("{} bytes without a line end; a new history starts anew", tail.bytes),
                None => "no record".to_owned(),
            };
            return Err(Fault { code: FaultCode::Empty, offset: 0, line: 1, reason });
        };
        Ok(Summary {
            run,
            records: self.records,
            bytes: self.bytes,
            head: self.recorder.head(),
            ending: self.stepper.ending().cloned(),
            delivered: self.stepper.is_delivered(),
            tail,
            divergences,
            decider: self.stepper,
        })
    }
}

/// Reads the line as a record of a known version.
pub(super) fn read(line: Line<'_>) -> Result<Envelope<'_>, Fault> {
    let fault = |code, reason: String| Fault { code, offset: line.offset, line: line.number, reason };
    serde_json::from_slice::<Envelope<'_>>(line.bytes)
        .map_err(|error| {
            #[derive(serde::Deserialize)]
            struct Version {
                v: u32,
            }
            if let Err(error) = std::str::from_utf8(line.bytes) {
                return fault(FaultCode::InvalidUtf8, format!("at column {}", error.valid_up_to() + 1));
            }
            if redaction::is_marked(line.bytes) {
                return fault(FaultCode::Redacted, "payloads are missing from it; only `verify` reads it".to_owned());
            }
            match serde_json::from_slice::<Version>(line.bytes) {
                Ok(Version { v }) if v != VERSION => fault(FaultCode::UnknownVersion, version(v)),
                Ok(_) | Err(_) => fault(FaultCode::MalformedRecord, error.to_string()),
            }
        })
        .and_then(|envelope| match envelope.v {
            VERSION => Ok(envelope),
            v => Err(fault(FaultCode::UnknownVersion, version(v))),
        })
}

fn version(v: u32) -> String {
    format!("version {v}; this build knows {VERSION}")
}

/// A decimal number and what follows it.
fn leading_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = bytes.split_at_checked(digits)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

/// The first field that differs between two lines.
fn first_difference(seq: u64, expected: &[u8], got: &[u8]) -> Divergence {
    let read = |bytes: &[u8]| Json::parse_bytes(bytes.trim_ascii_end()).unwrap_or(Json::Null);
    let (expected, got) = (read(expected), read(got));
    match differences("", Some(&expected), Some(&got), |_| false).into_iter().next() {
        Some(Found { path, left, right }) => Divergence { seq, field: path, expected: shown(left), got: shown(right) },
        None => Divergence {
            seq,
            field: "bytes".to_owned(),
            expected: "the same fields, spelt otherwise".to_owned(),
            got: String::new(),
        },
    }
}

fn shown(value: Option<&Json>) -> String {
    value.map_or_else(|| "(absent)".to_owned(), |value| value.to_text().chars().take(200).collect())
}
