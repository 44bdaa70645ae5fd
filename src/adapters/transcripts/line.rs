//! What one entry of any recording is to the conversation: the one form that every importer gives.

use super::transcript::{Claim, Reply};

/// One entry, in the order in which it happened.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A system or developer message.
    Instructions(String),
    /// A user message.
    User(String),
    /// A prompt that the recording loop wrote and withdrew.
    Withdrawn,
    /// An assistant message, its calls still without results.
    Assistant(Reply),
    /// A tool's or function's result.
    Result(Recorded),
    /// What the recording says of how the turn ended.
    Closed(Claim),
    /// A message of a role we do not know.
    Unknown(String),
}

/// An entry and its place in the recording, from 0.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) line: Line,
}

/// A recorded result that waits for its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Its place in the recording.
    pub(super) at: usize,
    pub(super) text: String,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// Whether the recording says that it is an error; `None` when only its text can tell.
    pub(super) is_error: Option<bool>,
}
