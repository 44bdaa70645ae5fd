//! What can be wrong with a history's bytes, each with its own code and place.

use crate::vocabulary::wire::words;

words! {
    /// A kind of damage. The words are a contract.
    pub enum FaultCode {
        /// Not one whole line.
        Empty = "empty",
        /// The line is longer than any record may be.
        LineTooLong = "line_too_long",
        /// The line is not UTF-8.
        InvalidUtf8 = "invalid_utf8",
        /// The line is no record: broken JSON, or another form.
        MalformedRecord = "malformed_record",
        /// The record has a version that this build does not know.
        UnknownVersion = "unknown_version",
        /// Records are missing before this one.
        Gap = "gap",
        /// A second record stands in a place that is taken.
        Fork = "fork",
        /// The record belongs to another run.
        WrongRun = "wrong_run",
        /// The record does not continue the one before it.
        WrongPrev = "wrong_prev",
        /// The hash does not cover the record's bytes.
        WrongHash = "wrong_hash",
        /// It is a redacted export: payloads are missing, so it cannot be stepped.
        Redacted = "redacted_export",
        /// A redacted export without its closing line, or with more after it.
        Unclosed = "unclosed",
        /// The bytes could not be read.
        Unreadable = "unreadable",
    }
}

/// Damage at a place. Nothing after it is believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} at byte {offset} (line {line}): {reason}")]
pub struct Fault {
    /// What kind.
    pub code: FaultCode,
    /// Where the line begins, in bytes.
    pub offset: u64,
    /// Which line, from 1.
    pub line: u64,
    /// For people.
    pub reason: String,
}
