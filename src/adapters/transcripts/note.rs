//! What the reader saw and did not take at face value. Nothing is left out without one of these.

use std::fmt;

use super::format::Format;

/// One remark about the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its place in the recording, from 0: what is counted depends on the format ([`Format::unit`]).
    /// `None` when it concerns the whole recording.
    pub at: Option<usize>,
    /// The recording's format.
    pub format: Format,
    /// What was seen.
    pub kind: NoteKind,
}

/// The closed list of remarks. Indices count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteKind {
    /// The ToolBench file kept no message chain; its query stands alone, without replies.
    NoChain,
    /// A ToolBench sample that the chosen chain does not contain was left out.
    SampleDiffers {
        /// Index in `train_messages`.
        sample: usize,
    },
    /// A prompt for one model call, found only in a sample that is not the chosen chain.
    SamplePrompt {
        /// Index in `train_messages`.
        sample: usize,
        /// Index of the message in that sample.
        index: usize,
    },
    /// A user message that the recording loop wrote for one model call and withdrew
    /// (`"valid": false`). It starts no turn and is left out.
    WithdrawnPrompt,
    /// Instructions after the conversation began were left out.
    LateInstructions,
    /// A message of an unknown role was left out.
    UnknownRole {
        /// The role as recorded.
        role: String,
    },
    /// Content that is neither null, text nor a list of parts; its JSON text was taken.
    ContentNotText,
    /// A part of a content list that holds no text was left out.
    PartNotText {
        /// Index in the content list.
        part: usize,
    },
    /// The user message has no text, so the task is empty.
    EmptyTask,
    /// The assistant message has neither text nor calls.
    EmptyReply,
    /// The model refused; the refusal's wording was left out.
    Refusal,
    /// Both `tool_calls` and `function_call` are there; the legacy one was left out.
    BothCallForms,
    /// Arguments that are no string: their JSON text was taken, or nothing if they are absent.
    ArgumentsNotText {
        /// Index of the call in its message.
        call: usize,
    },
    /// A reply after one that already ended the turn with a text answer.
    ReplyAfterAnswer,
    /// A result that belongs to no call was left out.
    OrphanResult,
    /// A result that is paired by position carries another id than its call.
    IdDiffers,
    /// A result carries another tool name than the call it is paired with.
    NameDiffers,
    /// The result is empty: it succeeded and states nothing.
    EmptyResult,
    /// A call has no recorded result.
    CallWithoutResult {
        /// Index of the call in its message.
        call: usize,
    },
    /// A terminal tool's call was read as the answer of the turn.
    TerminalAnswer {
        /// The tool's name.
        tool: String,
    },
    /// Text beside a terminal call is commentary and was left out (`SPEC 10`).
    CommentaryReplaced,
    /// It says how a turn ended before any turn began, and was left out.
    EndBeforeTurn,
    /// Nothing answers this user message.
    TurnWithoutReply,
    /// The turn ends on tool results or open calls: the recording stops before an answer.
    TurnWithoutAnswer,
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(out, "{} {at}: ", self.format.unit())?;
        }
        write!(out, "{}", self.kind)
    }
}

impl fmt::Display for NoteKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChain => out.write_str("the file kept no message chain, only its query"),
            Self::SampleDiffers { sample } => write!(out, "sample {sample} is not part of the chosen chain, left out"),
            Self::SamplePrompt { sample, index } => {
                write!(out, "message {index} of sample {sample}, a withdrawn prompt, left out")
            }
            Self::WithdrawnPrompt => out.write_str("a withdrawn prompt of the recording loop, left out"),
            Self::LateInstructions => out.write_str("instructions after the conversation began, left out"),
            Self::UnknownRole { role } => write!(out, "unknown role {role:?}, left out"),
            Self::ContentNotText => out.write_str("content is no text, its JSON was taken"),
            Self::PartNotText { part } => {
                write!(out, "content part {part} holds no text, left out")
            }
            Self::EmptyTask => out.write_str("the user message has no text"),
            Self::EmptyReply => out.write_str("the assistant message is empty"),
            Self::Refusal => out.write_str("the model refused, its wording is left out"),
            Self::BothCallForms => out.write_str("both `tool_calls` and `function_call`, the latter left out"),
            Self::ArgumentsNotText { call } => {
                write!(out, "arguments of call {call} are no string")
            }
            Self::ReplyAfterAnswer => out.write_str("a reply after the turn's answer"),
            Self::OrphanResult => out.write_str("a result without a call, left out"),
            Self::IdDiffers => out.write_str("paired by position, though the ids differ"),
            Self::NameDiffers => out.write_str("the result names another tool than its call"),
            Self::EmptyResult => out.write_str("the result is empty"),
            Self::CallWithoutResult { call } => write!(out, "call {call} has no result"),
            Self::TerminalAnswer { tool } => {
                write!(out, "the call of {tool:?} was read as the answer")
            }
            Self::CommentaryReplaced => out.write_str("text beside the terminal call, left out"),
            Self::EndBeforeTurn => out.write_str("an ending before any user message, left out"),
            Self::TurnWithoutReply => out.write_str("nothing answers this user message"),
            Self::TurnWithoutAnswer => out.write_str("the recording stops before an answer"),
        }
    }
}

/// The remarks gathered so far.
#[derive(Debug)]
pub(super) struct Notes {
    format: Format,
    notes: Vec<Note>,
}

impl Notes {
    /// None yet.
    pub(super) const fn new(format: Format) -> Self {
        Self { format, notes: Vec::new() }
    }

    /// A remark about one entry.
    pub(super) fn at(&mut self, at: usize, kind: NoteKind) {
        self.notes.push(Note { at: Some(at), format: self.format, kind });
    }

    /// A remark about the recording.
    pub(super) fn file(&mut self, kind: NoteKind) {
        self.notes.push(Note { at: None, format: self.format, kind });
    }

    /// All remarks: those about the recording first, then in its order.
    pub(super) fn in_order(mut self) -> Vec<Note> {
        self.notes.sort_by_key(|note| note.at);
        self.notes
    }
}
