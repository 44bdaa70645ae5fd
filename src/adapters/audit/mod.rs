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

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::playback::{Played, play};
use super::recording::Recording;
use super::transcripts::{Claim, Turn};
use crate::engine::{Ending, Engine, Request, Step};
use crate::vocabulary::fact::{Fact, PriorFact};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;
use crate::vocabulary::refusal::Refusal;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::{DraftFormat, Settings, SettingsFault, Spec};
use crate::vocabulary::tool::ObservationCode;

use conversation::Conversation;
pub use finding::Finding;
pub use grounding::Grounding;

/// Facts of earlier turns that the next one may stand on: the latest, and bytes of their statements, at most.
const CARRIED_MAX: usize = 256;
/// See [`CARRIED_MAX`].
const CARRIED_BYTES_MAX: usize = 256 << 10;

/// A recorded conversation, audited turn by turn, in order: a turn may stand on what earlier ones observed.
#[derive(Debug)]
pub struct Audit<'a> {
    recording: &'a Recording,
    settings: &'a Settings,
    conversation: Conversation,
    /// The next turn, from 0.
    next: usize,
    carried: VecDeque<PriorFact>,
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
    /// Facts that it could stand on: what it and the turns before it observed, the latest 256.
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
        let conversation = Conversation::of(recording.transcript());
        Self { recording, settings, conversation, next: 0, carried: VecDeque::new() }
    }

    /// Audits the next turn; `None` after the last. `each` sees every step of it.
    ///
    /// # Errors
    /// When no run begins under the policy.
    pub fn turn(&mut self, run: &RunId, mut each: impl FnMut(&Step, &Engine)) -> Option<Result<Audited, Unauditable>> {
        let index = self.next;
        let turn = self.recording.transcript().turns.get(index)?;
        let spec = self.spec(index)?;
        self.next += 1;
        Some(self.audited(index, run, turn, spec, &mut each))
    }

    /// The spec of a turn. What was said before decides no ending, so that it is left out; what was observed
    /// before may be cited.
    fn spec(&self, index: usize) -> Option<Result<Spec, SettingsFault>> {
        let spec = self.recording.rules(index)?;
        Some(self.settings.apply(&Spec { prior_facts: self.carried.iter().cloned().collect(), ..spec }))
    }

    fn audited(
        &mut self,
        index: usize,
        run: &RunId,
        turn: &Turn,
        spec: Result<Spec, SettingsFault>,
        each: &mut impl FnMut(&Step, &Engine),
    ) -> Result<Audited, Unauditable> {
        let spec = spec?;
        let mut codes: BTreeMap<ObservationCode, u32> = BTreeMap::new();
        let as_it_is = |text: &str, _: &Engine| text.to_owned();
        let Played { engine, unanswered } = play(run, spec.clone(), turn, &as_it_is, |step, engine| {
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
        let grounded = if answered { Some(grounded(run, turn, spec)?) } else { None };
        let (model_calls, tool_calls) =
            engine.ledger().map_or((0, 0), |ledger| (ledger.model_calls, ledger.tool_calls));
        let observed = engine.facts();
        let facts = observed.len();
        self.carry(run, &observed);
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

    /// Keeps what a turn observed itself for the next ones.
    fn carry(&mut self, run: &RunId, observed: &[Arc<Fact>]) {
        let own = observed.iter().filter(|fact| fact.origin.is_none());
        self.carried.extend(own.map(|fact| fact.carried_from(run)));
        let mut bytes: usize = self.carried.iter().map(|fact| fact.statement.len()).sum();
        while self.carried.len() > CARRIED_MAX || bytes > CARRIED_BYTES_MAX {
            let Some(oldest) = self.carried.pop_front() else { break };
            bytes -= oldest.statement.len();
        }
    }
}

/// The same turn, with its answer as a draft that cites the facts whose words it repeats.
fn grounded(run: &RunId, turn: &Turn, mut spec: Spec) -> Result<Grounded, Unauditable> {
    spec.draft.format = DraftFormat::Json;
    let inferred = Cell::new(Grounding::default());
    let cites = |text: &str, engine: &Engine| {
        let found = Grounding::infer(text, &engine.facts());
        let draft = draft(text, &found);
        inferred.set(found.grounding);
        draft
    };
    let Played { engine, .. } = play(run, spec, turn, &cites, |_, _| {}).map_err(Unauditable::Refused)?;
    Ok(Grounded { row: engine.ending().map(|ending| ending.row), grounding: inferred.get() })
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
