//! What decides: one input in, one step or one refusal out.

use std::fmt;
use std::sync::Arc;

use super::admission::Objection;
use super::core::Core;
use super::invariants::{self, Violation};
use super::outbox::{Outbox, Request};
use super::table::Ending;
use crate::machines::Taken;
use crate::machines::clock::Clock;
use crate::machines::ledger::Ledger;
use crate::machines::{release, run};
use crate::vocabulary::input::Input;
use crate::vocabulary::message::Message;
use crate::vocabulary::refusal::Refusal;
use crate::vocabulary::signal::Signal;

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
    pub messages: Vec<Arc<Message>>,
    /// What the machines did, in order. No record holds it: a replay takes the same transitions again.
    pub transitions: Vec<Taken>,
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
    pub(super) fn take(&mut self, at_ms: u64, input: Input) -> Result<Step, Box<Refused>> {
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
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) input: Input,
}

fn finish(core: &Core, at_ms: u64, input: Input, out: Outbox) -> Step {
    debug_assert_eq!(invariants::check(core), Vec::new());
    let Outbox { signals, effects, messages, transitions, .. } = out;
    Step { seq: core.seq.saturating_sub(1), at_ms, input, signals, effects, messages, transitions }
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
