//! The audit of recorded runs: each is taken through the engine under one policy, and what is odd about it is
//! named (`docs/audit.md`).
//!
//! | file | what |
//! |---|---|
//! | `mod` | one run: its ending, its ending if its citations are inferred, its findings |
//! | `grounding` | citations inferred by literal containment |
//! | `finding` | what can be odd about a run |
//! | `conversation` | what has to be known of the whole conversation |
//! | `write` | writes that failed and were claimed as done |

mod conversation;
mod finding;
mod grounding;
mod write;

use std::collections::BTreeMap;

use serde::Serialize;

use super::playback::{Played, play};
use super::recording::Recording;
use super::transcripts::{Claim, Turn};
use crate::engine::{Ending, Engine, Request, Step};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;
use crate::vocabulary::refusal::Refusal;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::{DraftFormat, Settings, SettingsFault, Spec};
use crate::vocabulary::tool::ObservationCode;

use conversation::Conversation;
pub use finding::Finding;
pub use grounding::Grounding;

/// A recorded conversation, ready to be audited turn by turn.
#[derive(Debug)]
pub struct Audit<'a> {
    recording: &'a Recording,
    settings: &'a Settings,
    conversation: Conversation,
}

/// Why a run cannot be audited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unauditable {
    /// The policy does not fit.
    #[error(transparent)]
    Settings(#[from] SettingsFault),
    /// No run begins under this policy.
    #[error("no run begins under this policy: {0}")]
    Refused(Refusal),
}

/// What the audit of one run found.
#[derive(Debug, Clone, Serialize)]
pub struct Audited {
    /// The run's id.
    pub run: RunId,
    /// Which turn of its conversation, from 1.
    pub turn: usize,
    /// How it would have ended; `None` when the recording stops before.
    pub ending: Option<Ending>,
    /// What the engine asked and the recording does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<&'static str>,
    /// What would have become of its answer, had it cited what it repeats. Only for a run with an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grounded: Option<Grounded>,
    /// What the recording itself says of the end.
    pub claim: &'static str,
    /// Whether the recording ends with an answer.
    pub answered: bool,
    /// Model requests.
    pub model_calls: u64,
    /// Tool calls that were admitted.
    pub tool_calls: u64,
    /// Facts that were observed.
    pub facts: usize,
    /// What is odd about it.
    pub findings: Vec<Finding>,
}

/// The second ending: the answer as a draft whose citations are inferred. A measure, not a verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Grounded {
    /// The row.
    pub row: Option<u8>,
    /// What was inferred.
    #[serde(flatten)]
    pub grounding: Grounding,
}

impl<'a> Audit<'a> {
    /// An audit of a recording under a policy.
    #[must_use]
    pub fn new(recording: &'a Recording, settings: &'a Settings) -> Self {
        Self { recording, settings, conversation: Conversation::of(recording.transcript()) }
    }

    /// Audits one turn, from 0; `None` when there is none in that place. `each` sees every step of it.
    ///
    /// # Errors
    /// When no run begins under the policy.
    pub fn turn(
        &self,
        index: usize,
        run: &RunId,
        mut each: impl FnMut(&Step, &Engine),
    ) -> Option<Result<Audited, Unauditable>> {
        let turn = self.recording.transcript().turns.get(index)?;
        let spec = self.recording.spec(index)?;
        Some(self.audited(index, run, turn, &spec, &mut each))
    }

    fn audited(
        &self,
        index: usize,
        run: &RunId,
        turn: &Turn,
        spec: &Spec,
        each: &mut impl FnMut(&Step, &Engine),
    ) -> Result<Audited, Unauditable> {
        let mut codes: BTreeMap<ObservationCode, u32> = BTreeMap::new();
        let under = self.settings.apply(spec)?;
        let as_it_is = |text: &str, _: &Engine| text.to_owned();
        let Played { engine, unanswered } = play(run, under, turn, &as_it_is, |step, engine| {
            for signal in &step.signals {
                if let Signal::CallClosed { code: Some(code), .. } = signal {
                    *codes.entry(*code).or_default() += 1;
                }
            }
            each(step, engine);
        })
        .map_err(Unauditable::Refused)?;
        let ending = engine.ending().cloned();
        let answered = turn.replies.last().is_some_and(|last| last.calls.is_empty() && last.text.is_some());
        let grounded = if answered { Some(self.grounded(run, turn, spec)?) } else { None };
        let (model_calls, tool_calls) =
            engine.ledger().map_or((0, 0), |ledger| (ledger.model_calls, ledger.tool_calls));
        let facts = engine.facts().len();
        let seen = finding::Seen { turn, answered, ending: ending.as_ref(), facts, codes: &codes };
        let mut findings = seen.findings();
        findings.extend(self.conversation.findings(index));
        Ok(Audited {
            run: run.clone(),
            turn: index + 1,
            unanswered: unanswered.as_ref().map(Request::tag),
            ending,
            grounded,
            claim: claim(&turn.claim),
            answered,
            model_calls,
            tool_calls,
            facts,
            findings,
        })
    }

    /// The same turn, with its answer as a draft that cites the facts whose words it repeats.
    fn grounded(&self, run: &RunId, turn: &Turn, spec: &Spec) -> Result<Grounded, Unauditable> {
        let mut spec = self.settings.apply(spec)?;
        spec.draft.format = DraftFormat::Json;
        let inferred = std::cell::Cell::new(Grounding::default());
        let cites = |text: &str, engine: &Engine| {
            let found = Grounding::infer(text, &engine.facts());
            let draft = draft(text, &found);
            inferred.set(found.grounding);
            draft
        };
        let Played { engine, .. } = play(run, spec, turn, &cites, |_, _| {}).map_err(Unauditable::Refused)?;
        Ok(Grounded { row: engine.ending().map(|ending| ending.row), grounding: inferred.get() })
    }
}

/// The draft that a model would have written that cites.
fn draft(text: &str, found: &grounding::Inferred) -> String {
    let statement = BTreeMap::from([("statement".to_owned(), Json::from(text))]);
    let citations = found.cited.iter().map(|fact| Json::from(fact.to_string())).collect();
    let members =
        [("conclusion".to_owned(), Json::Object(statement)), ("citations".to_owned(), Json::Array(citations))];
    Json::Object(members.into_iter().collect()).to_text()
}

const fn claim(claim: &Claim) -> &'static str {
    match claim {
        Claim::Unsaid => "unsaid",
        Claim::Success => "success",
        Claim::Cancelled => "cancelled",
        Claim::LimitReached { .. } => "limit_reached",
        Claim::ModelFailed { .. } => "model_failed",
        Claim::Failed { .. } => "failed",
    }
}
