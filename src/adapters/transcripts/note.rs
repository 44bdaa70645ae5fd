//! What the reader saw and did not take at face value. Nothing is left out without one of these.

use std::fmt;

use super::format::Format;
use super::position::Position;
use crate::vocabulary::llm::Code;

/// One remark about the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its place in the recording: what is counted, and from where, depends on the format
    /// ([`Format::unit`]). `None` when it concerns the whole recording.
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
    /// Another conversation of the file begins there, and has no user message: it was left out.
    NobodyAsked {
        /// How many entries it has.
        entries: usize,
    },
    /// It says how a turn ended before any turn began, and was left out.
    EndBeforeTurn,
    /// Lines that could not be read were skipped.
    LinesSkipped {
        /// The first of them.
        at: Position,
        /// How many, one after another.
        count: usize,
        /// Why, the first.
        reason: String,
    },
    /// An entry that is no part of the conversation was left out.
    LeftOut {
        /// What it is, in the recording's words.
        what: String,
    },
    /// What the model thought was left out.
    Reasoning,
    /// Text that should hold JSON does not, and was left out.
    NotJson {
        /// Where it stands.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// An id that stood for another entry before.
    RepeatedId,
    /// An entry of another session, in the middle of this one.
    OtherSession,
    /// An example that was shown to the model, and did not happen.
    Demonstration,
    /// These attributes were put back from the columns of a store: they are not what the runtime wrote.
    Restored {
        /// Their names, as recorded.
        attributes: String,
    },
    /// A request's context is not the conversation so far: only what is new at its end was taken.
    ContextDiffers,
    /// A reply that is known only from the context of a later request.
    FromContext,
    /// The request lacks its messages; those of its agent were taken.
    ContextFromAgent,
    /// A model request that failed and was tried again.
    FailedAttempt {
        /// The code of the error.
        code: Code,
    },
    /// The recording names no class of the failure that is known here; it was taken as the provider's.
    FailureUnclassed,
    /// A model request without an answer in the recording.
    RequestUnanswered,
    /// It was scheduled and never started.
    NeverStarted {
        /// What it is called.
        activity: String,
    },
    /// It was started and never ended.
    NeverEnded {
        /// What it is called.
        activity: String,
    },
    /// A result that stands before its call was put after it.
    ResultBeforeCall,
    /// The id of a result was taken from its text.
    IdFromText,
    /// A field under a name that the format does not know.
    FieldGuessed {
        /// Its name.
        field: &'static str,
    },
    /// How the recording ended was taken from a field that does not have to mean it.
    ClaimGuessed {
        /// Its name.
        field: &'static str,
    },
    /// A conversation beside the main one became a recording of its own.
    Aside {
        /// What of.
        of: String,
    },
    /// An action that is no `Name[..]` was taken as a call of that name.
    ActionUnreadable,
    /// Commands have no tool's name; their first word was taken.
    CommandsAsTools,
    /// What was handed in was read as the answer.
    SubmissionTaken,
    /// The event names no call of a model: one was made of its action.
    CallFromEvent,
    /// A user message that no request to the model contains.
    UnheardUser,
    /// Text deeper than any recording nests was taken as its JSON.
    TooDeep,
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
            Self::NobodyAsked { entries } => {
                write!(out, "a conversation of its own without a user message, {entries} entries left out")
            }
            Self::EndBeforeTurn => out.write_str("an ending before any user message, left out"),
            Self::LinesSkipped { at, count: 1, reason } => write!(out, "{at}: skipped: {reason}"),
            Self::LinesSkipped { at, count, reason } => {
                write!(out, "{at}: {count} lines skipped, the first since: {reason}")
            }
            Self::LeftOut { what } => write!(out, "{what}, left out"),
            Self::Reasoning => out.write_str("the model's reasoning, left out"),
            Self::NotJson { what, reason } => write!(out, "{what} is not readable, left out: {reason}"),
            Self::RepeatedId => out.write_str("its id was used before: taken as another entry"),
            Self::OtherSession => out.write_str("of another session, taken as part of this one"),
            Self::Demonstration => out.write_str("a demonstration, left out"),
            Self::Restored { attributes } => write!(out, "restored from columns, not recorded so: {attributes}"),
            Self::ContextDiffers => {
                out.write_str("its context is not the conversation so far: only new messages at its end were taken")
            }
            Self::FromContext => out.write_str("a reply known only from the context of this request"),
            Self::ContextFromAgent => {
                out.write_str("the request does not hold its messages: those of its agent were taken")
            }
            Self::FailedAttempt { code } => {
                write!(out, "a model request that failed ({code}) and was tried again, left out")
            }
            Self::FailureUnclassed => out.write_str("no known class of failure: taken as the provider's"),
            Self::RequestUnanswered => out.write_str("a model request without an answer"),
            Self::NeverStarted { activity } => write!(out, "{activity:?} was scheduled and never started"),
            Self::NeverEnded { activity } => write!(out, "{activity:?} was started and never ended"),
            Self::ResultBeforeCall => out.write_str("a result before its call, put after it"),
            Self::IdFromText => out.write_str("no id but in its text: taken from there"),
            Self::FieldGuessed { field } => write!(out, "taken from {field:?}, which the format does not know"),
            Self::ClaimGuessed { field } => write!(out, "how it ended was taken from {field:?}"),
            Self::Aside { of } => write!(out, "a conversation of its own: {of}"),
            Self::ActionUnreadable => out.write_str("an action that is no Name[..]: taken as a call of that name"),
            Self::CommandsAsTools => out.write_str("commands name no tool: their first word was taken"),
            Self::SubmissionTaken => out.write_str("what was submitted was read as the answer"),
            Self::CallFromEvent => out.write_str("the model's call was not recorded: it was made of the action"),
            Self::UnheardUser => out.write_str("no request to the model holds this user message"),
            Self::TooDeep => out.write_str("nested too deep: taken as its JSON"),
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

    /// None yet, of the same format.
    pub(super) const fn of(other: &Self) -> Self {
        Self::new(other.format)
    }

    /// A remark about one entry.
    pub(super) fn at(&mut self, at: usize, kind: NoteKind) {
        self.notes.push(Note { at: Some(at), format: self.format, kind });
    }

    /// A remark about the recording.
    pub(super) fn file(&mut self, kind: NoteKind) {
        self.notes.push(Note { at: None, format: self.format, kind });
    }

    /// Takes over the remarks of a part that was read on its own.
    pub(super) fn append(&mut self, other: Self) {
        self.notes.extend(other.notes);
    }

    /// All remarks: those about the recording first, then in its order.
    pub(super) fn in_order(mut self) -> Vec<Note> {
        self.notes.sort_by_key(|note| note.at);
        self.notes
    }
}
