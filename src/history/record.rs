//! One record, one line: `{"v","run","seq","at_ms","input","signals","state","effects","prev","hash"}`.
//! The hash is the last field and covers the exact bytes of the line before it (SPEC 13).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::{Core, Decider, Engine, Request, StateView, Step};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;
use crate::vocabulary::signal::Signal;

/// The version of record and behaviour. A change that would replay differently gets the next number, and
/// older histories keep replaying under theirs.
pub const VERSION: u32 = 1;

/// The domain of the chain.
const DOMAIN: &str = "portcullis.record.1";
/// What stands between the hashed bytes and the hash.
const SEAM: &[u8] = br#","hash":""#;
/// The bytes of a line from the seam on, without the line end.
const SEAL_BYTES: usize = SEAM.len() + 64 + 2;

/// Writes records: it knows the head of the chain and nothing else.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    head: Option<Digest>,
    line: Vec<u8>,
}

#[derive(Serialize)]
struct Fields<'a> {
    v: u32,
    run: &'a RunId,
    seq: u64,
    at_ms: u64,
    input: &'a Input,
    signals: &'a [Signal],
    state: StateView<'a>,
    effects: &'a [Request],
    prev: Digest,
}

impl Recorder {
    /// A recorder before the first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder that goes on after the record with that hash.
    #[must_use]
    pub const fn after(head: Digest) -> Self {
        Self { head: Some(head), line: Vec::new() }
    }

    /// The hash of the last record; all zeros before the first.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.head.unwrap_or(Digest::ZERO)
    }

    /// The record of the step that `engine` has just taken: one line with its line end.
    pub fn record(&mut self, engine: &Engine, step: &Step) -> &[u8] {
        self.decided(engine.decider(), step)
    }

    /// The same, for what decides.
    pub(crate) fn decided(&mut self, decider: &Decider, step: &Step) -> &[u8] {
        match decider.core() {
            Some(core) => self.encode(core, step),
            None => &[],
        }
    }

    fn encode(&mut self, core: &Core, step: &Step) -> &[u8] {
        let prev = self.head();
        let fields = Fields {
            v: VERSION,
            run: &core.charter.run,
            seq: step.seq,
            at_ms: step.at_ms,
            input: &step.input,
            signals: &step.signals,
            state: core.view(),
            effects: &step.effects,
            prev,
        };
        self.line.clear();
        // Writing to memory cannot fail, and every payload was bounded when it came in.
        if serde_json::to_writer(&mut self.line, &fields).is_ok() {
            self.line.pop();
        }
        let hash = chain_hash(&self.line);
        self.line.extend_from_slice(SEAM);
        self.line.extend_from_slice(hash.hex().as_str().as_bytes());
        self.line.extend_from_slice(b"\"}\n");
        self.head = Some(hash);
        &self.line
    }
}

fn chain_hash(covered: &[u8]) -> Digest {
    Digest::of(DOMAIN, &[covered])
}

/// Whether the hash of a line (without its line end) covers the bytes before it.
pub(crate) fn hash_holds(line: &[u8], hash: &Digest) -> bool {
    line.len()
        .checked_sub(SEAL_BYTES)
        .and_then(|end| line.split_at_checked(end))
        .is_some_and(|(covered, seal)| seal.starts_with(SEAM) && chain_hash(covered) == *hash)
}

/// A record as it is read: the input typed, since it is all that a replay needs; the rest as it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope<'a> {
    /// The version.
    pub v: u32,
    /// The run.
    pub run: RunId,
    /// The place, from 0.
    pub seq: u64,
    /// When, in milliseconds since the run started.
    pub at_ms: u64,
    /// What was accepted.
    pub input: Input,
    /// What the machines told each other.
    #[serde(borrow)]
    pub signals: &'a RawValue,
    /// The state after the step.
    #[serde(borrow)]
    pub state: &'a RawValue,
    /// What the world was asked.
    #[serde(borrow)]
    pub effects: &'a RawValue,
    /// The hash of the record before.
    pub prev: Digest,
    /// The hash of this one.
    pub hash: Digest,
}
