//! One tool call of a scripted answer, together with everything that becomes of it.

use serde::Deserialize;

use super::written::written_as;
use crate::vocabulary::input::{Decision, Reconciliation, StagedCommand};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::ToolRequest;
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// How long a tool takes, in milliseconds.
const TOOL_MS: u64 = 100;

/// One call that the model makes, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub tool: String,
    /// The arguments; a string is taken as the model's own text, which need not be JSON. Default: `{}`.
    #[serde(default = "no_arguments")]
    pub arguments: Json,
    /// The provider's id for the call. Default: none.
    #[serde(default)]
    pub provider_id: Option<String>,
    /// What the first attempt comes to. Default: nothing is known, so that entering the tool leaves the
    /// question open.
    #[serde(default)]
    pub result: Option<ToolReply>,
    /// What later attempts come to, in order. Default: none.
    #[serde(default)]
    pub retries: Vec<ToolReply>,
    /// What a person decides whenever the call asks for a decision. Default: nothing, so that the run stays
    /// awaiting.
    #[serde(default)]
    pub decision: Option<PersonReply>,
    /// What a person finds out when the call was interrupted. Default: nothing, so that the run stays
    /// awaiting.
    #[serde(default)]
    pub reconciled: Option<ReconciledReply>,
}

fn no_arguments() -> Json {
    Json::Object(std::collections::BTreeMap::new())
}

impl ScriptedCall {
    /// A call without arguments of which nothing is known.
    #[must_use]
    pub fn new(tool: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            arguments: no_arguments(),
            provider_id: None,
            result: None,
            retries: Vec::new(),
            decision: None,
            reconciled: None,
        }
    }

    /// The call as the model writes it.
    pub(super) fn request(&self) -> ToolRequest {
        let arguments = self.arguments.as_str().map_or_else(|| self.arguments.to_text(), str::to_owned);
        ToolRequest { name: self.tool.clone(), arguments, provider_id: self.provider_id.clone() }
    }

    /// What an attempt (from 1) comes to.
    pub(super) fn attempt(&self, attempt: u32) -> Option<&ToolReply> {
        match attempt.checked_sub(2) {
            None => self.result.as_ref(),
            Some(later) => self.retries.get(later as usize),
        }
    }
}

/// What one attempt comes to: `{"content": .., "facts"?: [..]}`, `{"error": ..}` or `{"fails": {..}}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ToolReplyFields")]
pub struct ToolReply {
    /// What the tool returned, or how the invocation failed.
    pub outcome: Result<ToolOutput, ToolError>,
    /// How long it takes, in virtual milliseconds.
    pub after_ms: u64,
}

impl ToolReply {
    /// A result that takes the usual time.
    #[must_use]
    pub const fn returned(output: ToolOutput) -> Self {
        Self { outcome: Ok(output), after_ms: TOOL_MS }
    }
}

/// What one attempt comes to as it is written: `content`, `error` or `fails`. A tool times out when it takes
/// longer than its `timeout_ms`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "ToolReply")]
struct ToolReplyFields {
    /// What a success shows the model.
    content: Option<String>,
    /// The facts of a success: texts, or objects `{"statement", "key"?}`. Default: none.
    #[serde(default)]
    facts: Vec<Json>,
    /// What a success stages. Default: nothing.
    #[serde(default)]
    commands: Vec<StagedCommand>,
    /// What the tool's own error shows the model.
    error: Option<String>,
    /// How the invocation failed.
    fails: Option<ToolError>,
    /// How long it takes, in virtual milliseconds. Default: 100.
    after_ms: Option<u64>,
}

written_as!(ToolReply, ToolReplyFields);

impl TryFrom<ToolReplyFields> for ToolReply {
    type Error = &'static str;

    fn try_from(fields: ToolReplyFields) -> Result<Self, Self::Error> {
        let ToolReplyFields { content, facts, commands, error, fails, after_ms } = fields;
        let nothing = content.is_none() && facts.is_empty() && commands.is_empty() && error.is_none();
        let outcome = match fails {
            Some(failure) if nothing => Err(failure),
            Some(_) => return Err("an invocation that `fails` returns nothing else"),
            None => Ok(ToolReturnFields { content, facts, commands, error }.output()?),
        };
        Ok(Self { outcome, after_ms: after_ms.unwrap_or(TOOL_MS) })
    }
}

/// What a tool returned: `content`, with `facts`, or `error`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "ToolReturn")]
struct ToolReturnFields {
    /// What a success shows the model.
    content: Option<String>,
    /// The facts of a success: texts, or objects `{"statement", "key"?}`. Default: none.
    #[serde(default)]
    facts: Vec<Json>,
    /// What a success stages. Default: nothing.
    #[serde(default)]
    commands: Vec<StagedCommand>,
    /// What the tool's own error shows the model.
    error: Option<String>,
}

impl ToolReturnFields {
    fn output(self) -> Result<ToolOutput, &'static str> {
        match (self.content, self.error) {
            (Some(content), None) => {
                let facts = self.facts.into_iter().map(stated).collect();
                Ok(ToolOutput::Success { content, facts, commands: self.commands })
            }
            (None, Some(content)) if self.facts.is_empty() && self.commands.is_empty() => {
                Ok(ToolOutput::Error { content })
            }
            (None, Some(_)) => Err("a tool's own `error` states no facts and stages nothing"),
            (Some(_), Some(_)) | (None, None) => Err("a tool's result has one of `content`, `error` and `fails`"),
        }
    }
}

/// A fact may be written as its statement alone.
fn stated(fact: Json) -> Json {
    if matches!(fact, Json::String(_)) { Json::Object([("statement".to_owned(), fact)].into()) } else { fact }
}

/// What a person decides on a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PersonReply {
    /// It may run as it is.
    Allow,
    /// It may run with these arguments.
    AllowWith(Json),
    /// It may not, for this reason.
    Deny(String),
    /// Nobody decides: the ticket or the run expires.
    Silence,
}

impl PersonReply {
    /// The decision on the wire; `None` when nobody decides.
    pub(super) fn decision(self) -> Option<Decision> {
        match self {
            Self::Allow => Some(Decision::Allow),
            Self::AllowWith(arguments) => Some(Decision::AllowWith { arguments }),
            Self::Deny(note) => Some(Decision::Deny { note: Some(note) }),
            Self::Silence => None,
        }
    }
}

/// What a person finds out about an interrupted call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReconciledReply {
    /// It happened, and this is what it returned.
    Applied(ToolReturn),
    /// Nothing happened.
    NotApplied,
    /// It cannot be found out.
    Unknown,
}

/// What an interrupted call returned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ToolReturnFields")]
pub struct ToolReturn(ToolOutput);

written_as!(ToolReturn, ToolReturnFields);

impl TryFrom<ToolReturnFields> for ToolReturn {
    type Error = &'static str;

    fn try_from(fields: ToolReturnFields) -> Result<Self, Self::Error> {
        fields.output().map(Self)
    }
}

impl From<ReconciledReply> for Reconciliation {
    fn from(reply: ReconciledReply) -> Self {
        match reply {
            ReconciledReply::Applied(ToolReturn(output)) => Self::Applied { output },
            ReconciledReply::NotApplied => Self::NotApplied,
            ReconciledReply::Unknown => Self::Unknown,
        }
    }
}
