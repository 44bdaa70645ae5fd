//! What the model answers to one attempt.

use serde::Deserialize;

use super::tool_call::ScriptedCall;
use super::written::written_as;
use crate::vocabulary::json::{Json, present};
use crate::vocabulary::llm::{self, FinishReason, Usage};

/// How long a model takes, in milliseconds.
const MODEL_MS: u64 = 1_000;

/// One answer of the model: `{"text": ..}`, `{"draft": {..}}`, `{"calls": [..]}` or `{"error": {..}}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ReplyFields")]
pub struct ModelReply {
    /// What the model says.
    pub says: ModelSays,
    /// What the attempt used; `None` when it is not known.
    pub usage: Option<Usage>,
    /// How long it takes, in virtual milliseconds.
    pub after_ms: u64,
}

/// What a model says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSays {
    /// Text, tool calls, or both.
    Answer {
        /// The draft, or commentary beside calls.
        text: Option<String>,
        /// The calls, and what becomes of them.
        calls: Vec<ScriptedCall>,
        /// Why it stopped.
        finish: FinishReason,
    },
    /// Nothing: the attempt failed.
    Error(llm::Error),
}

impl ModelReply {
    /// An answer that takes the usual time and whose usage is not known.
    #[must_use]
    pub fn new(text: Option<String>, calls: Vec<ScriptedCall>) -> Self {
        let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        Self { says: ModelSays::Answer { text, calls, finish }, usage: None, after_ms: MODEL_MS }
    }
}

/// An answer of the model as it is written: at least one of `text`, `draft`, `calls` and `error`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "ModelReply")]
struct ReplyFields {
    /// Its text as it comes: the draft, or commentary beside calls.
    text: Option<String>,
    /// The draft as JSON, in place of `text`.
    #[serde(default, deserialize_with = "present")]
    draft: Option<Json>,
    /// The tools it calls, and what becomes of each call. Default: none.
    #[serde(default)]
    calls: Vec<ScriptedCall>,
    /// Why it stopped. Default: `tool_calls` with calls, else `stop`.
    finish: Option<FinishReason>,
    /// How the attempt failed, in place of all that.
    error: Option<llm::Error>,
    /// What the attempt used. Default: not known.
    usage: Option<Usage>,
    /// How long it takes, in virtual milliseconds. Default: 1000.
    after_ms: Option<u64>,
}

written_as!(ModelReply, ReplyFields);

impl TryFrom<ReplyFields> for ModelReply {
    type Error = &'static str;

    fn try_from(fields: ReplyFields) -> Result<Self, Self::Error> {
        let ReplyFields { text, draft, calls, finish, error, usage, after_ms } = fields;
        let answers = text.is_some() || draft.is_some() || !calls.is_empty() || finish.is_some();
        let reply = match (error, answers) {
            (Some(error), false) => Self { says: ModelSays::Error(error), usage: None, after_ms: MODEL_MS },
            (Some(_), true) => return Err("an attempt that fails with `error` answers nothing else"),
            (None, false) => return Err("a model's answer has `text`, `draft`, `calls` or `error`"),
            (None, true) if text.is_some() && draft.is_some() => {
                return Err("`draft` stands in the place of `text`: give one of them");
            }
            (None, true) => {
                let mut reply = Self::new(text.or_else(|| draft.map(|draft| draft.to_text())), calls);
                if let (ModelSays::Answer { finish: usual, .. }, Some(finish)) = (&mut reply.says, finish) {
                    *usual = finish;
                }
                reply
            }
        };
        Ok(Self { usage, after_ms: after_ms.unwrap_or(MODEL_MS), ..reply })
    }
}
