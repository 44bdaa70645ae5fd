//! What a recording says, once read: turns, replies, calls and their results.

use super::format::Format;
use super::note::Note;
use crate::vocabulary::llm::{self, FinishReason};

/// A recorded conversation, cut into one turn per user message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transcript {
    /// How it was recorded.
    pub format: Format,
    /// Its id as recorded, such as a trace's or a session's.
    pub id: Option<String>,
    /// The model that answered first, as recorded.
    pub model: Option<String>,
    /// The system or developer messages before anything else, a blank line between several.
    pub system: Option<String>,
    /// What the assistant said before the first user message, such as a greeting.
    pub opening: Vec<Reply>,
    /// The turns in order; at least one.
    pub turns: Vec<Turn>,
    /// Everything that was left out, guessed or looked odd, in the recording's order.
    pub notes: Vec<Note>,
}

/// One user message and all that followed until the next one: the script of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Place of the user message in the recording, counted as [`Format::unit`] says.
    pub at: usize,
    /// The user's text as recorded; may be empty, which a note says.
    pub task: String,
    /// The model's replies in order; empty when nobody answered.
    pub replies: Vec<Reply>,
    /// What the recording says of how the turn ended.
    pub claim: Claim,
}

/// What a recording itself says of how a turn ended: what its readers were told, not what holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// Nothing: the last reply has to speak for itself.
    Unsaid,
    /// It was a success.
    Success,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit stopped it.
    LimitReached {
        /// In the recording's words.
        said: String,
    },
    /// The model request failed that would have come next.
    ModelFailed {
        /// How.
        error: llm::Error,
    },
    /// It failed in another way.
    Failed {
        /// In the recording's words.
        said: String,
    },
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
    /// Why the model stopped writing, where that was recorded.
    pub finish: Option<FinishReason>,
    /// What it used, as far as that was recorded.
    pub usage: llm::Usage,
    /// Its place in the recording, counted as [`Format::unit`] says. Two replies share one place when a
    /// terminal call stood beside other calls.
    pub at: usize,
}

impl Reply {
    /// A reply without calls; an empty text is none.
    pub(super) fn new(text: impl Into<String>, at: usize) -> Self {
        let text = Some(text.into()).filter(|text| !text.is_empty());
        Self { text, calls: Vec::new(), finish: None, usage: llm::Usage::default(), at }
    }
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
    /// Whether it is an error. Where the recording does not say so, its text does: it starts with
    /// `Error:`, or it opens with a JSON object whose `error` is a non-empty string. Nothing else is
    /// guessed.
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

impl Transcript {
    /// Everything said before a turn (from 0), in order: the prior messages of its run.
    pub fn prior(&self, turn: usize) -> impl Iterator<Item = Said<'_>> {
        let earlier =
            self.turns.iter().take(turn).flat_map(|turn| {
                std::iter::once(Said::User(&turn.task)).chain(turn.replies.iter().map(Said::Assistant))
            });
        self.opening.iter().map(Said::Assistant).chain(earlier)
    }
}
