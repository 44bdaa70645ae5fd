//! Redacted exports: what happened in a run, without anything that was written in it (SPEC 3.U4, 13).
//!
//! A redacted record keeps what the closed list in `structure` names. Every other value becomes
//! `{"redacted":DIGEST,"bytes":N}`, N being the length of its JSON text. The digest is keyed by the nonce and the
//! first record, which are both missing from the export: who lacks the original cannot check a guess, and equal
//! values are equal inside one export alone.
//!
//! Lines are chained anew under a domain of their own, and a closing line names the records and the head that
//! the export was made of. So it verifies as what it is, a cut shows, and it never passes for the original.

mod rule;
mod structure;

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::rule::{Rule, Sink, walk};
use super::chain::Chain;
use super::fault::{Fault, FaultCode};
use super::reader::{Line, Lines, Next};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;

/// The version of the form.
pub const VERSION: u32 = 1;

const CHAIN_DOMAIN: &str = "portcullis.redaction.record.1";
const KEY_DOMAIN: &str = "portcullis.redaction.key.1";
const VALUE_DOMAIN: &str = "portcullis.redaction.value.1";
/// How every line begins, and nothing else that we write.
const MARK: &[u8] = br#"{"redaction":"#;
/// What stands between the hashed bytes and the hash.
const SEAM: &[u8] = br#","hash":""#;

/// Whether a line calls itself part of a redacted export.
#[must_use]
pub fn is_marked(line: &[u8]) -> bool {
    line.starts_with(MARK)
}

/// Makes a redacted export, line by line.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    key: Option<Digest>,
    original: Chain,
    head: Digest,
    line: Vec<u8>,
}

impl Redactor {
    /// A redactor before the first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record of the original and gives the redacted one: a line with its line end.
    ///
    /// # Errors
    /// The damage, when the record does not continue the original's chain, or the first one starts no run.
    pub fn redact(&mut self, line: Line<'_>) -> Result<&[u8], Fault> {
        let envelope = self.original.take(line)?;
        let key = match (self.key, &envelope.input) {
            (Some(key), _) => key,
            (None, Input::RunStarted { nonce, .. }) => Digest::of(KEY_DOMAIN, &[nonce.as_bytes(), line.bytes]),
            (None, _) => {
                return Err(fault(line, FaultCode::MalformedRecord, "the first record starts no run".to_owned()));
            }
        };
        self.key = Some(key);
        // The input as it was written, beside the typed one.
        let input = serde_json::from_slice::<Written<'_>>(line.bytes)
            .map_err(|error| fault(line, FaultCode::MalformedRecord, error.to_string()))?
            .input;
        let mut text = Text { key, run: &envelope.run, out: std::mem::take(&mut self.line) };
        text.out.clear();
        text.keep(&format!(
            r#"{{"redaction":{VERSION},"run":"{}","seq":{},"at_ms":{}"#,
            envelope.run, envelope.seq, envelope.at_ms
        ));
        for (name, rule, raw) in [
            ("input", &structure::INPUT, input),
            ("signals", &structure::SIGNALS, envelope.signals),
            ("state", &structure::STATE, envelope.state),
            ("effects", &structure::EFFECTS, envelope.effects),
        ] {
            text.keep(&format!(r#","{name}":"#));
            walk(rule, raw.get(), &mut text);
        }
        self.line = text.out;
        Ok(self.sealed())
    }

    /// The closing line; empty when nothing was redacted.
    pub fn close(&mut self) -> &[u8] {
        let Some(run) = self.original.run() else { return &[] };
        let (records, head) = (self.original.records(), self.original.head());
        self.line =
            format!(r#"{{"redaction":{VERSION},"run":"{run}","records":{records},"head":"{head}""#).into_bytes();
        self.sealed()
    }

    /// How many records of the original were taken.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.original.records()
    }

    /// Chains the line that was begun.
    fn sealed(&mut self) -> &[u8] {
        let prev = format!(r#","prev":"{}""#, self.head);
        self.line.extend_from_slice(prev.as_bytes());
        self.head = Digest::of(CHAIN_DOMAIN, &[&self.line]);
        self.line.extend_from_slice(SEAM);
        self.line.extend_from_slice(self.head.hex().as_str().as_bytes());
        self.line.extend_from_slice(b"\"}\n");
        &self.line
    }
}

/// A part of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// What was accepted.
    Input,
    /// What the machines told each other.
    Signals,
}

/// The JSON text of one part with payloads sealed, as an export would have it. Equal values are equal under one key.
pub(super) fn sealed(part: Part, raw: &str, run: &RunId, key: Digest) -> Vec<u8> {
    let rule = match part {
        Part::Input => &structure::INPUT,
        Part::Signals => &structure::SIGNALS,
    };
    let mut text = Text { key, run, out: Vec::new() };
    walk(rule, raw, &mut text);
    text.out
}

/// A record of which only the input's text is wanted.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

/// What stands in a payload's place.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Redacted {
    redacted: Digest,
    bytes: u64,
}

/// The text of a redacted record while it is written.
struct Text<'a> {
    key: Digest,
    run: &'a RunId,
    out: Vec<u8>,
}

impl Sink for Text<'_> {
    fn is_run(&self, text: &str) -> bool {
        self.run.as_str() == text
    }

    fn keep(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn seal(&mut self, raw: &str) {
        let redacted = Digest::of(VALUE_DOMAIN, &[self.key.as_bytes(), raw.as_bytes()]);
        self.keep(&format!(r#"{{"redacted":"{redacted}","bytes":{}}}"#, raw.len()));
    }
}

/// What a whole redacted export says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The run.
    pub run: RunId,
    /// How many records the original had.
    pub records: u64,
    /// The hash of the last of them.
    pub head: Digest,
}

/// Verifies a redacted export: its chain, that nothing but the closed list was kept, and that it is closed.
/// Whether it was made of the history that it names shows only beside that history.
///
/// # Errors
/// The first damage; `unclosed` when the end is missing.
pub fn verify(source: impl BufRead) -> Result<Origin, Fault> {
    let mut lines = Lines::new(source);
    let mut follower = Follower::default();
    loop {
        let end = match lines.next_line()? {
            Next::Line(line) => {
                follower.take(line)?;
                continue;
            }
            Next::Tail(tail) => Fault {
                code: FaultCode::Unclosed,
                offset: tail.offset,
                line: tail.ordinal + 1,
                reason: "the last line is cut".to_owned(),
            },
            Next::End => match follower.closed {
                Some(origin) => return Ok(origin),
                None => Fault {
                    code: if follower.run.is_some() { FaultCode::Unclosed } else { FaultCode::Empty },
                    offset: follower.bytes,
                    line: follower.records + 1,
                    reason: "the closing line is missing: the end was cut off".to_owned(),
                },
            },
        };
        return Err(end);
    }
}

/// Follows the chain of a redacted export.
#[derive(Default)]
struct Follower {
    run: Option<RunId>,
    records: u64,
    bytes: u64,
    head: Digest,
    closed: Option<Origin>,
}

/// One redacted record.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<'a> {
    redaction: u32,
    run: RunId,
    seq: u64,
    #[allow(dead_code)] // read so that it is a number
    at_ms: u64,
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow)]
    signals: &'a RawValue,
    #[serde(borrow)]
    state: &'a RawValue,
    #[serde(borrow)]
    effects: &'a RawValue,
    prev: Digest,
    hash: Digest,
}

/// The closing line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Closing {
    redaction: u32,
    run: RunId,
    records: u64,
    head: Digest,
    prev: Digest,
    hash: Digest,
}

impl Follower {
    fn take(&mut self, line: Line<'_>) -> Result<(), Fault> {
        if self.closed.is_some() {
            return Err(fault(line, FaultCode::Unclosed, "there is more after the closing line".to_owned()));
        }
        let text = std::str::from_utf8(line.bytes)
            .map_err(|error| fault(line, FaultCode::InvalidUtf8, format!("at column {}", error.valid_up_to() + 1)))?;
        if let Ok(closing) = serde_json::from_str::<Closing>(text) {
            self.link(line, closing.redaction, &closing.run, closing.prev, closing.hash)?;
            if closing.records != self.records {
                let reason = format!("{} records are here, {} were closed", self.records, closing.records);
                return Err(fault(line, FaultCode::Gap, reason));
            }
            self.closed = Some(Origin { run: closing.run, records: closing.records, head: closing.head });
            return Ok(());
        }
        let record: Record<'_> =
            serde_json::from_str(text).map_err(|error| fault(line, FaultCode::MalformedRecord, error.to_string()))?;
        self.link(line, record.redaction, &record.run, record.prev, record.hash)?;
        if record.seq != self.records {
            let code = if record.seq > self.records { FaultCode::Gap } else { FaultCode::Fork };
            return Err(fault(line, code, format!("record {} where {} should stand", record.seq, self.records)));
        }
        for (rule, raw) in [
            (&structure::INPUT, record.input),
            (&structure::SIGNALS, record.signals),
            (&structure::STATE, record.state),
            (&structure::EFFECTS, record.effects),
        ] {
            check(&record.run, rule, raw.get()).map_err(|reason| fault(line, FaultCode::MalformedRecord, reason))?;
        }
        self.records += 1;
        Ok(())
    }

    /// Whether the line covers its bytes and continues the one before it.
    fn link(&mut self, line: Line<'_>, form: u32, run: &RunId, prev: Digest, hash: Digest) -> Result<(), Fault> {
        let Some((covered, seal)) =
            line.bytes.len().checked_sub(SEAM.len() + 66).and_then(|end| line.bytes.split_at_checked(end))
        else {
            return Err(fault(line, FaultCode::WrongHash, "too short".to_owned()));
        };
        if !seal.starts_with(SEAM) || Digest::of(CHAIN_DOMAIN, &[covered]) != hash {
            let reason = "the line's bytes are not those that were hashed".to_owned();
            return Err(fault(line, FaultCode::WrongHash, reason));
        }
        if form != VERSION {
            let reason = format!("form {form} of a redacted export; this build knows {VERSION}");
            return Err(fault(line, FaultCode::UnknownVersion, reason));
        }
        if self.run.as_ref().is_some_and(|known| known != run) {
            return Err(fault(line, FaultCode::WrongRun, "the line belongs to another run".to_owned()));
        }
        if prev != self.head {
            let reason = "the line does not continue the one before it".to_owned();
            return Err(fault(line, FaultCode::WrongPrev, reason));
        }
        self.run.get_or_insert_with(|| run.clone());
        self.bytes += line.bytes.len() as u64 + 1;
        self.head = hash;
        Ok(())
    }
}

fn fault(line: Line<'_>, code: FaultCode, reason: String) -> Fault {
    Fault { code, offset: line.offset, line: line.number, reason }
}

/// Whether whatever is no structure was redacted.
fn check(run: &RunId, rule: &Rule, raw: &str) -> Result<(), String> {
    struct Bare<'a>(&'a RunId, bool);

    impl Sink for Bare<'_> {
        fn is_run(&self, text: &str) -> bool {
            self.0.as_str() == text
        }

        fn keep(&mut self, _: &str) {}

        fn seal(&mut self, raw: &str) {
            self.1 |= serde_json::from_str::<Redacted>(raw).is_err();
        }
    }

    let mut bare = Bare(run, false);
    walk(rule, raw, &mut bare);
    if bare.1 { Err("it holds a value that should have been redacted".to_owned()) } else { Ok(()) }
}
