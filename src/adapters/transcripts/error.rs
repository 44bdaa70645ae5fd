//! Why a document is not a transcript, with the place and the way out.

use super::format::Format;
use super::position::Position;

/// A document that could not be read as a transcript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The document is larger than `ReadOptions::bytes_max`.
    #[error("the document has {bytes} bytes, the limit is {bytes_max}; split the recording, or raise the limit")]
    TooLarge {
        /// Size of the document in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// A list in the document has more items than `ReadOptions::entries_max`.
    #[error("{entries} {unit}s, the limit is {entries_max}; split the recording, or raise the limit", unit = format.unit())]
    TooMany {
        /// What it was recognised as.
        format: Format,
        /// How many there are.
        entries: usize,
        /// The limit.
        entries_max: usize,
    },
    /// The document is not UTF-8.
    #[error("{at}: not UTF-8; every format here is UTF-8, so convert the file first")]
    NotUtf8 {
        /// The first byte that does not belong.
        at: Position,
    },
    /// The document is not one JSON value.
    #[error("{at}: not JSON: {reason}; the file must hold exactly one JSON value, whole")]
    Malformed {
        /// Where the parser stopped.
        at: Position,
        /// What it expected.
        reason: String,
    },
    /// The document is of no known format.
    #[error(
        "no recorded run: the formats known are {}; an object with `spec` is a scenario",
        Format::ALL.iter().map(|format| format!("{format}, {}", format.sketch())).collect::<Vec<_>>().join("; ")
    )]
    Unrecognised,
    /// The document has a known shape, but a value in it cannot be read.
    #[error("{at}: {path}: {reason}; correct that value, or take its message out")]
    Unreadable {
        /// JSON path of the value, such as `$.traj[3].tool_calls[0]`.
        path: String,
        /// Where in the document.
        at: Position,
        /// What was expected and what was found.
        reason: String,
    },
    /// The transcript asks nothing, so there is no run.
    #[error("the {format} recording holds no user message; a run starts at one, so add the message that sets the task")]
    NoTurn {
        /// What it was recognised as.
        format: Format,
    },
}
