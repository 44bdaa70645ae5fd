//! Floor 2, the engine: the machines composed. Inputs go in, steps come out; no clock, no randomness, no
//! input or output, no threads.
//!
//! What goes in: [`Engine::step`]. What comes out, in the order in which it is used: a [`Step`] (store its
//! record first, then perform its effects), then [`Engine::model_request`], [`Engine::plan`] and
//! [`Engine::evidence`], which give an effect the content that its record only names.

mod admission;
mod core;
mod drafts;
mod ending;
mod form;
#[cfg(feature = "testkit")]
mod identity;
pub mod invariants;
mod outbox;
mod outstanding;
mod publication;
mod receipts;
mod recovery;
mod request;
mod rounds;
mod stepping;
pub mod table;
mod tools;

use std::fmt;
use std::sync::Arc;

use crate::machines::batch::{Batch, Plan};
use crate::machines::release::{self, Candidate, Release};
use crate::machines::{clock::Clock, collection, ledger::Ledger, run};
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::{RunId, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::message::Message;
use crate::vocabulary::refusal::{Refusal, RefusalKind};
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Spec;

use admission::Objection;
use outbox::Outbox;
use receipts::Receipts;

pub(crate) use self::core::{Core, StateView};
pub use invariants::Violation;
pub use outbox::Request;
pub use request::ModelRequest;
pub use table::Ending;

/// One accepted input taken to completion.
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// Its place in the history, from 0.
    pub seq: u64,
    /// When, in milliseconds since the run started, never backwards.
    pub at_ms: u64,
    /// What was accepted: the input itself, or the `deadline_elapsed` that stands in its place.
    pub input: Input,
    /// What the machines told each other, in order.
    pub signals: Vec<Signal>,
    /// What the world is asked, in order.
    pub effects: Vec<Request>,
    /// What the transcript gained. Privileged: it may hold text that is never released.
    pub messages: Vec<Message>,
}

/// Shows what happened, not what was written: a step holds text that may never be released (SPEC 13.I10).
impl fmt::Debug for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Step")
            .field("seq", &self.seq)
            .field("at_ms", &self.at_ms)
            .field("input", &self.input.tag())
            .field("signals", &self.signals)
            .field("effects", &self.effects)
            .finish_non_exhaustive()
    }
}

/// What decides: every machine of one run, or none yet. It remembers no text and no receipts, so a replay
/// can step through a long history in little memory.
#[derive(Clone, Default)]
pub struct Decider(Option<Box<Core>>);

impl Decider {
    /// Takes one input to completion.
    ///
    /// # Errors
    /// A refusal, which changes nothing at all (SPEC 13.I7).
    pub fn step(&mut self, at_ms: u64, input: Input) -> Result<Step, Refusal> {
        self.take(at_ms, input).map_err(|refused| refused.refusal)
    }

    /// The same; a refused input comes back.
    fn take(&mut self, at_ms: u64, input: Input) -> Result<Step, Box<Refused>> {
        let mut out = Outbox::default();
        let refused = |refusal, input| Box::new(Refused { refusal, input });
        let Some(core) = &mut self.0 else {
            return match Core::begin(&input, &mut out) {
                Ok(core) => Ok(finish(self.0.insert(Box::new(core)), 0, input, out)),
                Err(objection) => Err(refused(refusal(None, objection), input)),
            };
        };
        let at_ms = core.clock.clamped(at_ms);
        let input = displace(core, at_ms, input);
        if let Err(objection) = core.admit(at_ms, &input) {
            return Err(refused(refusal(Some(core), objection), input));
        }
        core.apply(at_ms, &input, &mut out);
        Ok(finish(core, at_ms, input, out))
    }

    pub(crate) fn core(&self) -> Option<&Core> {
        self.0.as_deref()
    }

    /// How the run ended, once it has.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.core().and_then(|core| core.ending.as_ref()).map(|(ending, _)| ending)
    }

    /// Whether the release has a receipt.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.core().is_some_and(|core| matches!(core.release, release::State::Delivered { .. }))
    }

    /// Where the run stands: `created` before the first input.
    #[must_use]
    pub fn run_state(&self) -> &run::State {
        self.core().map_or(&run::State::Created, |core| &core.run)
    }

    /// What was spent.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.core().map(|core| &core.ledger)
    }

    /// The state as a record shows it, one JSON object; empty before the first input.
    #[must_use]
    pub fn state_json(&self) -> String {
        self.core().and_then(|core| serde_json::to_string(&core.view()).ok()).unwrap_or_default()
    }

    /// The run's time and its deadline, once it has begun.
    #[must_use]
    pub fn clock(&self) -> Option<&Clock> {
        self.core().map(|core| &core.clock)
    }

    /// How many inputs were accepted: the place of the next record.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.core().map_or(0, |core| core.seq)
    }

    /// The epoch of the last recovery, 0 before the first. The next one must be larger.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.core().map_or(0, |core| core.recoveries.epoch)
    }

    /// The broken invariants; none, unless the engine has a bug (SPEC 13).
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.core().map(invariants::check).unwrap_or_default()
    }
}

/// A refusal, and the input that it refused.
struct Refused {
    refusal: Refusal,
    input: Input,
}

fn finish(core: &Core, at_ms: u64, input: Input, out: Outbox) -> Step {
    debug_assert_eq!(invariants::check(core), Vec::new());
    let Outbox { signals, effects, messages, .. } = out;
    Step { seq: core.seq.saturating_sub(1), at_ms, input, signals, effects, messages }
}

/// A report at or after the deadline becomes the deadline's step and is carried by it (SPEC 4).
fn displace(core: &Core, at_ms: u64, input: Input) -> Input {
    let exempt = matches!(input, Input::RunStarted { .. } | Input::DeadlineElapsed { .. } | Input::TailRepaired { .. });
    if exempt || core.run.is_terminal() || !core.clock.is_past_deadline(at_ms) {
        return input;
    }
    Input::DeadlineElapsed { displaced: Some(Box::new(input)) }
}

fn refusal(core: Option<&Core>, objection: Objection) -> Refusal {
    let (state, expected) = core.map_or(("created", vec!["run_started"]), |core| (core.run.label(), core.expected()));
    Refusal { kind: objection.kind, machine: objection.machine, state, expected, reason: objection.reason }
}

/// Shows where the run stands and nothing of what was written.
impl fmt::Debug for Decider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Decider")
            .field("run", &self.core().map(|core| core.charter.run.as_str()))
            .field("state", &self.run_state())
            .field("ending", &self.ending())
            .finish_non_exhaustive()
    }
}

/// One run, live: what decides, plus the transcript that model calls need and the receipts that give refused
/// repetitions their name.
#[derive(Clone, Default)]
pub struct Engine {
    decider: Decider,
    receipts: Receipts,
    transcript: Vec<Message>,
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
    pub fn transcript(&self) -> &[Message] {
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

    /// The tool and arguments of an `invoke_tool` or `await_decision` effect.
    #[must_use]
    pub fn plan(&self, call: ToolCallId) -> Option<Arc<Plan>> {
        self.core().and_then(|core| core.plan_of(call))
    }

    /// The conclusion and evidence of the open `judge_semantics` or release `ask_gate` effect. Privileged:
    /// it is not released yet.
    #[must_use]
    pub fn evidence(&self) -> Option<&Candidate> {
        match &self.core()?.release {
            release::State::Judging { evidenced, .. } => Some(evidenced.candidate()),
            release::State::Gating { verified, .. } => Some(verified.evidenced().candidate()),
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
