//! The chain alone: is every record in its place, and does each continue the one before it? (SPEC 13.5)

use super::fault::{Fault, FaultCode};
use super::reader::Line;
use super::record::{Envelope, hash_holds};
use super::replay::read;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

/// Follows a chain record by record without stepping. What it finds whole may still not come out of the engine:
/// that takes a [`Replay`](super::Replay).
#[derive(Debug, Clone, Default)]
pub struct Chain {
    run: Option<RunId>,
    records: u64,
    head: Digest,
}

impl Chain {
    /// A chain before its first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one line, which must continue the chain, and gives it as it is read.
    ///
    /// # Errors
    /// The damage, which changes nothing.
    pub fn take<'a>(&mut self, line: Line<'a>) -> Result<Envelope<'a>, Fault> {
        let envelope = read(line)?;
        check(line, &envelope, self.run.as_ref(), self.records, self.head)?;
        self.run.get_or_insert_with(|| envelope.run.clone());
        self.records += 1;
        self.head = envelope.hash;
        Ok(envelope)
    }

    /// The run; `None` before the first record.
    #[must_use]
    pub const fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// How many records were taken.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The hash of the last one; all zeros before the first.
    #[must_use]
    pub const fn head(&self) -> Digest {
        self.head
    }
}

/// Whether a record covers its bytes, stands in its place and continues the chain that was read so far.
pub(super) fn check(
    line: Line<'_>,
    envelope: &Envelope<'_>,
    run: Option<&RunId>,
    records: u64,
    head: Digest,
) -> Result<(), Fault> {
    let fault = |code, reason: String| Err(Fault { code, offset: line.offset, line: line.number, reason });
    let seq = envelope.seq;
    if !hash_holds(line.bytes, &envelope.hash) {
        return fault(FaultCode::WrongHash, "the record's bytes are not those that were hashed".to_owned());
    }
    if seq > records {
        return fault(FaultCode::Gap, format!("record {seq} where {records} should stand"));
    }
    if seq < records {
        return fault(FaultCode::Fork, format!("record {seq} again, where {records} should stand"));
    }
    if run.is_some_and(|run| *run != envelope.run) {
        return fault(FaultCode::WrongRun, "the record belongs to another run".to_owned());
    }
    if head != envelope.prev {
        return fault(FaultCode::WrongPrev, "the record does not continue the one before it".to_owned());
    }
    Ok(())
}
