//! The one closing observation of a call: staged when the call is closed, published with its batch.

use serde::Serialize;

use super::{Plan, projection};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fact::Statement;
use crate::vocabulary::input::StagedCommand;
use crate::vocabulary::spec::Limits;
use crate::vocabulary::tool::{ObservationCode, Recovery, ToolError, ToolOutput};

/// A staged observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Closing {
    /// Why it is not an ordinary success.
    pub(crate) code: Option<ObservationCode>,
    /// What the model sees.
    pub(crate) text: String,
    /// Facts, not numbered yet.
    pub(crate) facts: Vec<Statement>,
    /// What the tool stages, once its batch is closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) commands: Vec<StagedCommand>,
}

/// A closing with its digest, which every record shows until the batch is published.
#[derive(Debug, Clone)]
pub(crate) struct Staged {
    pub(crate) closing: Closing,
    pub(crate) digest: Digest,
}

impl From<Closing> for Staged {
    fn from(closing: Closing) -> Self {
        Self { digest: closing.digest(), closing }
    }
}

/// What the model is told beside a code: where and what, never a library's wording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Remark {
    /// A JSON Pointer into the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    /// The schema keyword or JSON error that refuses them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keyword: Option<String>,
    /// Where in the argument text, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u64>,
    /// What a person, a gate or the executor said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// `unknown` when it is not known whether the call did anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<&'static str>,
}

impl Remark {
    pub(crate) fn text(note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..Self::default() }
    }

    pub(crate) fn at(pointer: impl Into<String>, keyword: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into()), keyword: Some(keyword.into()), ..Self::default() }
    }
}

impl Closing {
    /// An observation that is an error.
    pub(crate) fn coded(code: ObservationCode, remark: Remark) -> Self {
        #[derive(Serialize)]
        struct Shown<'a> {
            error: ObservationCode,
            #[serde(flatten)]
            remark: &'a Remark,
        }
        let text = serde_json::to_string(&Shown { error: code, remark: &remark }).unwrap_or_default();
        Self { code: Some(code), text, facts: Vec::new(), commands: Vec::new() }
    }

    /// A gate's answer in the tool's place: an observation, never facts.
    pub(crate) const fn set_by_gate(text: String) -> Self {
        Self { code: Some(ObservationCode::SetByGate), text, facts: Vec::new(), commands: Vec::new() }
    }

    /// Of code, text and facts.
    pub(crate) fn digest(&self) -> Digest {
        let code = self.code.map_or("", ObservationCode::word);
        let said = [code.as_bytes(), self.text.as_bytes()];
        let statements = self.facts.iter().map(|fact| fact.statement.as_bytes());
        let commands = self.commands.iter().map(|command| serde_json::to_vec(command).unwrap_or_default());
        let commands: Vec<Vec<u8>> = commands.collect();
        let parts = said.into_iter().chain(statements).chain(commands.iter().map(Vec::as_slice));
        Digest::of("portcullis.closing.1", &parts.collect::<Vec<_>>())
    }
}

/// What an invocation that returned is closed with (SPEC 7, results).
pub(crate) fn after_success(plan: &Plan, limits: &Limits, output: &ToolOutput) -> Closing {
    let reported = match output {
        ToolOutput::Success { facts, commands, .. } => {
            let staged = |command| serde_json::to_vec(command).map_or(0, |bytes| bytes.len());
            let facts: usize = facts.iter().map(|fact| fact.to_text().len()).sum();
            facts + commands.iter().map(staged).sum::<usize>()
        }
        ToolOutput::Error { .. } => 0,
    };
    let size = (output.content().len() + reported) as u64;
    if size > plan.tool.spec.result_bytes_max {
        let note = format!("{size} bytes, at most {} are taken", plan.tool.spec.result_bytes_max);
        return Closing::coded(ObservationCode::ResultTooLarge, Remark::text(note));
    }
    match output {
        ToolOutput::Error { content } => {
            let (code, text) = (Some(ObservationCode::ToolResultError), content.clone());
            Closing { code, text, facts: Vec::new(), commands: Vec::new() }
        }
        ToolOutput::Success { content, facts, commands } => {
            let (text, commands) = (content.clone(), commands.clone());
            if !plan.tool.spec.evidence {
                return Closing { code: None, text, facts: Vec::new(), commands };
            }
            match projection::project(&plan.tool.spec.projection, limits, content, facts) {
                Ok(facts) => Closing { code: None, text, facts, commands },
                Err(reason) => Closing::coded(ObservationCode::ProjectionFailed, Remark::text(reason)),
            }
        }
    }
}

/// What an invocation that failed for good is closed with. When it is not known whether the call did anything,
/// the observation says so of every tool that may not simply be run again.
pub(crate) fn after_failure(plan: &Plan, limits: &Limits, code: ObservationCode, error: Option<&ToolError>) -> Closing {
    let unknown = code != ObservationCode::ToolUnavailable;
    let harmless = plan.tool.spec.recovery_mode() == Recovery::ReplaySafe;
    let note = error.map(|error| clipped(error.message(), limits.note_bytes_max));
    let effect = (unknown && !harmless).then_some("unknown");
    Closing::coded(code, Remark { note, effect, ..Remark::default() })
}

/// The longest prefix of `text` of at most `bytes_max` bytes.
fn clipped(text: &str, bytes_max: u64) -> String {
    let mut end = text.len().min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
