//! Floor 2, the engine: the machines composed. Inputs go in, steps come out; no clock, no randomness, no
//! input or output, no threads.
//!
//! What goes in: [`Engine::step`]. What comes out, in the order in which it is used: a [`Step`] (store its
//! record first, then perform its effects), then [`Engine::model_request`], [`Engine::plan`] and
//! [`Engine::evidence`], which give an effect the content that its record only names.

mod admission;
mod core;
mod decider;
mod drafts;
#[cfg(feature = "explorer")]
mod encoding;
mod ending;
mod form;
mod hooks;
#[cfg(feature = "explorer")]
mod identity;
pub mod invariants;
mod outbox;
mod outstanding;
mod publication;
mod receipts;
mod recovery;
mod request;
mod rounds;
mod sharing;
mod stepping;
pub mod table;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::machines::batch::{Batch, Plan};
use crate::machines::nested::Nested;
use crate::machines::release::{self, Candidate, Release};
use crate::machines::shared::Place;
use crate::machines::{collection, consultation, ledger::Ledger, run};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::{NestedCallId, RunId, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::json::Json;
use crate::vocabulary::message::Message;
use crate::vocabulary::refusal::{Refusal, RefusalKind};
use crate::vocabulary::spec::Spec;

use receipts::Receipts;

pub(crate) use self::core::{Core, StateView};
pub use decider::{Decider, Step};
pub use invariants::Violation;
pub use outbox::Request;
pub(crate) use recovery::CRASHES_MAX;
pub use request::ModelRequest;
pub use table::Ending;

/// One run, live: what decides, plus the transcript that model calls need and the receipts that give refused
/// repetitions their name.
#[derive(Clone, Default)]
pub struct Engine {
    decider: Decider,
    receipts: Receipts,
    transcript: Vec<Arc<Message>>,
}

/// Shows where the run stands and nothing of what was written.
impl fmt::Debug for Engine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.decider, out)
    }
}

impl Engine {
    /// An engine that waits for `run_started`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one input to completion. Store the step's record before performing its effects.
    ///
    /// `at_ms` counts from `run_started` and is clamped so that it never runs backwards.
    ///
    /// # Errors
    /// A refusal: the input is not accepted in this state, and nothing has changed (SPEC 4).
    pub fn step(&mut self, at_ms: u64, input: Input) -> Result<Step, Refusal> {
        match self.decider.take(at_ms, input) {
            Ok(step) => {
                self.receipts.keep(&step.input);
                self.transcript.extend(step.messages.iter().cloned());
                Ok(step)
            }
            Err(refused) => Err(self.named(refused.refusal, &refused.input)),
        }
    }

    /// A refused repetition of an accepted report is a duplicate or a conflict, unless a reason that is asked
    /// earlier holds.
    fn named(&self, refusal: Refusal, report: &Input) -> Refusal {
        match refusal.kind {
            RefusalKind::Unexpected | RefusalKind::Stale | RefusalKind::NotDue => {}
            RefusalKind::Terminal if matches!(report, Input::ReleaseDelivered { .. }) => {}
            RefusalKind::Malformed
            | RefusalKind::NotStarted
            | RefusalKind::AlreadyStarted
            | RefusalKind::Terminal
            | RefusalKind::Duplicate
            | RefusalKind::Conflict => return refusal,
        }
        let kind = self.receipts.repeated(report).unwrap_or(refusal.kind);
        Refusal { kind, ..refusal }
    }

    /// What decides.
    #[must_use]
    pub const fn decider(&self) -> &Decider {
        &self.decider
    }

    /// How the run ended, once it has.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.decider.ending()
    }

    /// The release, once the run has ended.
    #[must_use]
    pub fn release(&self) -> Option<&Release> {
        self.core().and_then(|core| core.ending.as_ref()).map(|(_, release)| release.as_ref())
    }

    /// Where the run stands.
    #[must_use]
    pub fn run_state(&self) -> &run::State {
        self.decider.run_state()
    }

    /// Whether collecting is saturated, and why it stopped.
    #[must_use]
    pub fn collection(&self) -> &collection::State {
        const START: &collection::State = &collection::State::START;
        self.core().map_or(START, |core| &core.collection)
    }

    /// What a user may be shown while they wait.
    #[must_use]
    pub fn progress(&self) -> release::Progress {
        self.core().map_or(release::Progress::Collecting, |core| core.release.progress())
    }

    /// The run's id, once it has begun.
    #[must_use]
    pub fn run_id(&self) -> Option<&RunId> {
        self.core().map(|core| &core.charter.run)
    }

    /// The run's spec, once it has begun.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        self.core().map(Core::spec)
    }

    /// What was spent.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.decider.ledger()
    }

    /// The types of input that would be accepted now.
    #[must_use]
    pub fn expected(&self) -> Vec<&'static str> {
        self.core().map_or_else(|| vec!["run_started"], Core::expected)
    }

    /// The tool batch that is open.
    #[must_use]
    pub fn batch(&self) -> Option<&Batch> {
        self.core().and_then(|core| core.tools.batch.as_ref())
    }

    /// The facts observed so far, in order.
    #[must_use]
    pub fn facts(&self) -> Vec<Arc<Fact>> {
        self.core().map(|core| core.facts.iter().cloned().collect()).unwrap_or_default()
    }

    /// Every effect that has not been answered: what a driver that lost its work has to do.
    #[must_use]
    pub fn outstanding(&self) -> Vec<Request> {
        self.core().map(|core| core.outstanding()).unwrap_or_default()
    }

    /// The transcript. Privileged: it may hold text that is never released.
    #[must_use]
    pub fn transcript(&self) -> &[Arc<Message>] {
        &self.transcript
    }

    /// The content of the open `call_model` effect.
    #[must_use]
    pub fn model_request(&self) -> Option<ModelRequest<'_>> {
        let core = self.core()?;
        let request = core.inference.request()?;
        let offered = request.tools == crate::vocabulary::effect::ToolOffer::Offered;
        let tools = core.tools.toolbox.iter().flat_map(|toolbox| toolbox.tools()).filter(|_| offered);
        Some(ModelRequest {
            model: core.spec().model_at(request.model)?,
            purpose: request.purpose,
            messages: &self.transcript,
            context: &core.context,
            tools: tools.collect(),
            offer: request.tools,
            answer: &core.spec().draft,
        })
    }

    /// The tool of that name, once the environment is fixed.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<crate::machines::toolbox::Tool>> {
        self.core().and_then(|core| core.tools.toolbox.as_ref()).and_then(|toolbox| toolbox.tool(name))
    }

    /// What was resolved, once the environment is fixed.
    #[must_use]
    pub fn environment(&self) -> Option<&Environment> {
        self.core().and_then(|core| core.tools.toolbox.as_ref()).map(|toolbox| toolbox.environment())
    }

    /// The tool and arguments of an `invoke_tool` or `await_decision` effect.
    #[must_use]
    pub fn plan(&self, call: ToolCallId) -> Option<Arc<Plan>> {
        self.core().and_then(|core| core.plan_of(call))
    }

    /// The id that the next nested call of a running tool call must have.
    #[must_use]
    pub fn next_nested(&self, parent: ToolCallId) -> NestedCallId {
        NestedCallId { parent, index: self.core().map_or(0, |core| core.tools.nested.requested(parent)) }
    }

    /// A nested call that is not over.
    #[must_use]
    pub fn nested(&self, nested: NestedCallId) -> Option<&Nested> {
        self.core().and_then(|core| core.tools.nested.get(nested))
    }

    /// The open question to a plugin.
    #[must_use]
    pub fn consultation(&self) -> &consultation::State {
        const SILENT: &consultation::State = &consultation::State::Silent;
        self.core().map_or(SILENT, |core| &core.consultation)
    }

    /// The shared state as it is committed: what hooks, gates and tools may see, and what the thread's next run
    /// begins with.
    #[must_use]
    pub fn shared_state(&self) -> Arc<BTreeMap<Place, Json>> {
        self.core().map(|core| Arc::clone(core.shared.committed())).unwrap_or_default()
    }

    /// The conclusion and evidence of the open `judge_semantics`, release `ask_gate` or `before_release` hook.
    /// Privileged: it is not released yet.
    #[must_use]
    pub fn evidence(&self) -> Option<&Candidate> {
        match &self.core()?.release {
            release::State::Judging { evidenced, .. } => Some(evidenced.candidate()),
            release::State::Verified { verified } | release::State::Gating { verified, .. } => {
                Some(verified.evidenced().candidate())
            }
            release::State::Waiting
            | release::State::RepairingDraft { .. }
            | release::State::RepairingEvidence { .. }
            | release::State::Decided { .. }
            | release::State::Delivered { .. } => None,
        }
    }

    fn core(&self) -> Option<&Core> {
        self.decider.core()
    }
}
