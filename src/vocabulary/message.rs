//! The transcript: what the model is shown, message by message. Text that was not released stands here, so
//! the transcript is privileged (SPEC 3).

use std::sync::Arc;

use serde::Serialize;

use super::fact::Fact;
use super::ids::ToolCallId;
use super::json::Json;
use super::llm::ToolRequest;
use super::spec::PriorRole;
use super::tool::ObservationCode;
use super::wire::words;

/// One message of the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The spec's instructions.
    Instructions {
        /// The text.
        text: String,
    },
    /// A message of an earlier run.
    Prior {
        /// Who wrote it.
        by: PriorRole,
        /// The text.
        text: String,
    },
    /// The spec's task.
    Task {
        /// The text.
        text: String,
    },
    /// Facts of earlier runs, under the numbers that they have in this one.
    Imported {
        /// The facts.
        facts: Vec<Arc<Fact>>,
    },
    /// What a plugin adds to one model request. It stands in that request alone, not in the transcript.
    Context {
        /// The plugin.
        by: String,
        /// The text.
        text: String,
    },
    /// What the model answered.
    Assistant {
        /// Text: a draft, or commentary beside calls.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The calls, in order; each has exactly one [`Message::Observation`].
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AssistantCall>,
        /// What the provider wants back.
        #[serde(skip_serializing_if = "Option::is_none")]
        opaque: Option<Json>,
    },
    /// What became of one call.
    Observation(Observation),
    /// What the engine tells the model.
    Notice {
        /// Why.
        kind: NoticeKind,
        /// The text.
        text: String,
    },
}

/// A call of an assistant message, under our id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AssistantCall {
    /// Our id.
    pub call: ToolCallId,
    /// The request as it came.
    #[serde(flatten)]
    pub request: ToolRequest,
}

/// The one closing observation of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The call.
    pub call: ToolCallId,
    /// Why it is not an ordinary success; an ordinary success has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ObservationCode>,
    /// What the model sees.
    pub text: String,
    /// The facts it brought, numbered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Arc<Fact>>,
    /// What the model must do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directive: Option<Directive>,
}

words! {
    /// What an observation tells the model to do.
    pub enum Directive {
        /// Stop collecting and answer.
        StopRequired = "STOP_REQUIRED",
    }
}

words! {
    /// Why the engine speaks to the model.
    pub enum NoticeKind {
        /// The draft was bad: write it again.
        DraftRepair = "draft_repair",
        /// The evidence does not hold: write it again.
        EvidenceRepair = "evidence_repair",
        /// Tools are withdrawn: answer now.
        AnswerNow = "answer_now",
    }
}

/// Facts as the model is shown them: each with the id under which it can be cited. What follows the first line of a
/// statement is marked, so that no statement looks like another fact.
#[must_use]
pub fn shown_facts(facts: &[Arc<Fact>]) -> String {
    facts.iter().map(|fact| format!("\n[{}] {}", fact.id, marked(&fact.statement))).collect()
}

/// A text whose further lines are marked as such.
fn marked(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("\n  | ")
}

impl Observation {
    /// The text that the model is shown, facts and directive included. Each fact is shown with the id under
    /// which it can be cited.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut shown = self.text.clone();
        if !self.facts.is_empty() {
            shown.push_str("\n\nObserved facts, to be cited by id:");
        }
        shown.push_str(&shown_facts(&self.facts));
        if let Some(directive) = self.directive {
            shown.push_str(&format!("\n\n{directive}: nothing new is being found. Write your answer now."));
        }
        shown
    }
}
