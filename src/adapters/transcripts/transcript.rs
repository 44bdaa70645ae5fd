//! What a recording says, once read: turns, replies, calls and their results.

use super::assemble::{Conversation, assemble};
use super::chain::{Chain, chain};
use super::error::TranscriptError;
use super::node::Node;
use super::note::{Note, Notes};
use super::position::Position;
use super::shape::{Shape, located};

/// A recorded conversation, cut into one turn per user message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transcript {
    /// How it was recorded.
    pub shape: Shape,
    /// The system or developer messages before anything else, a blank line between several.
    pub system: Option<String>,
    /// What the assistant said before the first user message, such as a greeting.
    pub opening: Vec<Reply>,
    /// The turns in order; at least one.
    pub turns: Vec<Turn>,
    /// Everything that was left out or looked odd, in message order.
    pub notes: Vec<Note>,
}

/// One user message and all that followed until the next one: the script of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Index of the user message in the recorded list, from 0.
    pub at: usize,
    /// The user's text as recorded; may be empty, which a note says.
    pub task: String,
    /// The model's replies in order; empty when nobody answered.
    pub replies: Vec<Reply>,
}

/// One assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// Its text, never `Some("")`. Beside calls it is commentary; alone it is the answer.
    /// `None` without calls is an empty draft.
    pub text: Option<String>,
    /// The tools it asked for, in model order.
    pub calls: Vec<Call>,
    /// Index of the message in the recorded list, from 0. Two replies share one index when a
    /// terminal call stood beside other calls.
    pub at: usize,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// The arguments' text as recorded, which need not be JSON.
    pub arguments: String,
    /// The provider's id: an attribute, never a key, since recorded ids repeat.
    pub provider_id: Option<String>,
    /// What the tool gave back, if that was recorded.
    pub result: Option<ToolResult>,
}

/// One recorded result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolResult {
    /// Its text as recorded; may be empty, which a note says.
    pub text: String,
    /// Whether the text is an error: it starts with `Error:`, or it opens with a JSON object whose
    /// `error` is a non-empty string. Nothing else is guessed.
    pub is_error: bool,
}

/// One thing said before a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said<'a> {
    /// The text of a user message.
    User(&'a str),
    /// An assistant message, with the results of its calls.
    Assistant(&'a Reply),
}

/// How to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// The largest document in bytes; 64 MiB. Time and memory grow linearly with it; the smallest
    /// possible messages take some fifteen bytes of memory per byte.
    pub bytes_max: usize,
    /// Tools whose call, last in a turn and without a result, is the turn's answer;
    /// `Finish` and `submit`.
    pub terminal_tools: Vec<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { bytes_max: 64 * 1024 * 1024, terminal_tools: vec!["Finish".to_owned(), "submit".to_owned()] }
    }
}

impl Transcript {
    /// Reads a document with the default options.
    ///
    /// # Errors
    /// See [`TranscriptError`]; each says where, why, and the way out.
    pub fn read(bytes: &[u8]) -> Result<Self, TranscriptError> {
        Self::read_with(bytes, &ReadOptions::default())
    }

    /// Reads a document.
    ///
    /// # Errors
    /// See [`TranscriptError`]; each says where, why, and the way out.
    pub fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<Self, TranscriptError> {
        if bytes.len() > options.bytes_max {
            return Err(TranscriptError::TooLarge { bytes: bytes.len(), bytes_max: options.bytes_max });
        }
        let document = std::str::from_utf8(bytes)
            .map_err(|error| TranscriptError::NotUtf8 { at: Position::of(bytes, error.valid_up_to()) })?;
        let root = Node::root(document)?;
        let found = located(&root).ok_or(TranscriptError::Unrecognised)?;
        let mut notes = Notes::default();
        let conversation = match chain(&root, found, &mut notes)? {
            Chain::Recorded(lines) => assemble(lines, &options.terminal_tools, &mut notes),
            Chain::QueryOnly(task) => Conversation::asked(task),
        };
        if conversation.turns.is_empty() {
            return Err(TranscriptError::NoTurn { shape: found.shape() });
        }
        Ok(Self {
            shape: found.shape(),
            system: conversation.system,
            opening: conversation.opening,
            turns: conversation.turns,
            notes: notes.in_order(),
        })
    }

    /// Everything said before a turn (from 0), in order: the prior messages of its run.
    pub fn prior(&self, turn: usize) -> impl Iterator<Item = Said<'_>> {
        let earlier =
            self.turns.iter().take(turn).flat_map(|turn| {
                std::iter::once(Said::User(&turn.task)).chain(turn.replies.iter().map(Said::Assistant))
            });
        self.opening.iter().map(Said::Assistant).chain(earlier)
    }
}
