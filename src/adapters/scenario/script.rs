//! The script: every answer of the world, in the order in which it is asked.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::interruption::Interruption;
use super::keyed;
use super::plugin_reply::PluginReplies;
use super::reply::ModelReply;
use super::written::written_as;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::input::{GateAnswer, Verdict};
use crate::vocabulary::llm;
use crate::vocabulary::wire::words;

/// How long a judge takes, in milliseconds.
const JUDGE_MS: u64 = 500;

/// What the world answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Why resolution fails. Default: it succeeds.
    pub unresolved: Option<ResolutionError>,
    /// What the model answers, one entry an attempt, in order.
    pub model: Vec<ModelReply>,
    /// What the judge answers, one entry an attempt, in order.
    pub judge: Vec<JudgeReply>,
    /// What each gate answers, by gate id, in order.
    #[serde(deserialize_with = "keyed::once")]
    pub gates: BTreeMap<String, Vec<GateReply>>,
    /// What each plugin's hooks answer, by plugin and by point, in order.
    #[serde(deserialize_with = "keyed::once_in_each")]
    pub hooks: BTreeMap<String, BTreeMap<AnsweredPoint, PluginReplies>>,
    /// What performing an action comes to, by action kind, in order.
    #[serde(deserialize_with = "keyed::once")]
    pub actions: BTreeMap<String, PluginReplies>,
    /// What comes in between.
    pub interruptions: Vec<Interruption>,
    /// The reader's receipt of the release; `null` for a reader that went away. Default: `"read"`.
    pub receipt: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            unresolved: None,
            model: Vec::new(),
            judge: Vec::new(),
            gates: BTreeMap::new(),
            hooks: BTreeMap::new(),
            actions: BTreeMap::new(),
            interruptions: Vec::new(),
            receipt: Some("read".to_owned()),
        }
    }
}

words! {
    /// The points at which hooks are answered. At the run's end they are told, and nobody waits for them.
    pub enum AnsweredPoint {
        /// Before a round's model call is prepared.
        RoundStart = "round_start",
        /// Right before the model call.
        BeforeInference = "before_inference",
        /// Right after the model's response.
        AfterInference = "after_inference",
        /// After each closed tool call.
        AfterTool = "after_tool",
        /// When the round's batch is closed.
        RoundEnd = "round_end",
        /// Before a verified draft meets the release gates.
        BeforeRelease = "before_release",
    }
}

impl From<AnsweredPoint> for HookPoint {
    fn from(point: AnsweredPoint) -> Self {
        match point {
            AnsweredPoint::RoundStart => Self::RoundStart,
            AnsweredPoint::BeforeInference => Self::BeforeInference,
            AnsweredPoint::AfterInference => Self::AfterInference,
            AnsweredPoint::AfterTool => Self::AfterTool,
            AnsweredPoint::RoundEnd => Self::RoundEnd,
            AnsweredPoint::BeforeRelease => Self::BeforeRelease,
        }
    }
}

/// One answer of the judge: `{"verdict": ..}` or `{"error": ..}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "JudgeFields")]
pub struct JudgeReply {
    /// What the judge says.
    pub says: JudgeSays,
    /// What it used.
    pub usage: Option<llm::Usage>,
    /// How long it takes.
    pub after_ms: u64,
}

/// What a judge says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeSays {
    /// A verdict.
    Verdict(Verdict),
    /// Nothing: it failed.
    Error(llm::Error),
}

/// An answer of the judge as it is written: `verdict` or `error`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "JudgeReply")]
struct JudgeFields {
    /// The verdict.
    verdict: Option<Verdict>,
    /// How the judge failed.
    error: Option<llm::Error>,
    /// What it used. Default: not known.
    usage: Option<llm::Usage>,
    /// How long it takes, in virtual milliseconds. Default: 500.
    after_ms: Option<u64>,
}

written_as!(JudgeReply, JudgeFields);

impl TryFrom<JudgeFields> for JudgeReply {
    type Error = &'static str;

    fn try_from(fields: JudgeFields) -> Result<Self, Self::Error> {
        let says = match (fields.verdict, fields.error) {
            (Some(verdict), None) => JudgeSays::Verdict(verdict),
            (None, Some(error)) if fields.usage.is_none() => JudgeSays::Error(error),
            (None, Some(_)) => return Err("a judge that fails reports no `usage`"),
            (Some(_), Some(_)) | (None, None) => return Err("a judge's answer has either `verdict` or `error`"),
        };
        Ok(Self { says, usage: fields.usage, after_ms: fields.after_ms.unwrap_or(JUDGE_MS) })
    }
}

/// One answer of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GateReply {
    /// Nothing against it.
    Allow,
    /// Not this one, for this reason.
    Block(String),
    /// This text stands in the tool's place.
    SetResult(String),
    /// A person must decide, whenever they do.
    Confirm,
    /// A person must decide within so many milliseconds.
    ConfirmWithinMs(u64),
    /// The gate itself fails.
    Fail,
}

impl GateReply {
    /// The answer on the wire; `None` for a gate that fails.
    pub(super) fn answer(self) -> Option<GateAnswer> {
        match self {
            Self::Allow => Some(GateAnswer::Allow),
            Self::Block(reason) => Some(GateAnswer::Block { reason: Some(reason) }),
            Self::SetResult(content) => Some(GateAnswer::SetResult { content }),
            Self::Confirm => Some(GateAnswer::Confirm { expires_ms: None }),
            Self::ConfirmWithinMs(limit) => Some(GateAnswer::Confirm { expires_ms: Some(limit) }),
            Self::Fail => None,
        }
    }
}
