//! Sees every step of a history, and remembers what turned the run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::account::{Account, known};
use super::waits::Waiting;
use super::{Explanation, Standing};
use crate::engine::{Engine, Step};
use crate::machines::release::Progress;
use crate::machines::run;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::{FactId, ToolCallId};
use crate::vocabulary::input::{Input, Parent};
use crate::vocabulary::message::Message;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::tool::ObservationCode;
use crate::vocabulary::wire::words;

words! {
    /// Where a run stands, seen from the loop.
    pub enum Place {
        /// Its environment is being found.
        BeforeTheLoop = "before_the_loop",
        /// Model calls and tool calls go on.
        InTheLoop = "in_the_loop",
        /// A draft has left the loop, and is repaired or checked.
        OutOfTheLoop = "out_of_the_loop",
    }
}

impl Place {
    fn of(engine: &Engine) -> Self {
        match (engine.run_state(), engine.progress()) {
            (run::State::Created | run::State::Resolving, _) => Self::BeforeTheLoop,
            (_, Progress::Collecting) => Self::InTheLoop,
            (_, Progress::SafetyValidating | Progress::Repairing) => Self::OutOfTheLoop,
        }
    }
}

/// A signal, by its type, and the word of a closed vocabulary, the id or the number that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Raised {
    /// The type.
    pub signal: &'static str,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

impl Raised {
    /// A signal without its texts and digests.
    #[must_use]
    pub fn of(signal: &Signal) -> Self {
        let of = match signal {
            Signal::EnvironmentRefused { error } => Some(error.tag().to_owned()),
            Signal::ResponseAccepted { call, .. } => Some(call.to_string()),
            Signal::RetryScheduled { call, attempt, .. } => Some(format!("{call}/{attempt}")),
            Signal::ModelReplaced { model, .. } => Some(format!("fallback {model}")),
            Signal::BatchOpened { round, .. } | Signal::BatchClosed { round } => Some(format!("round {round}")),
            Signal::CallClosed { call, code: Some(code) } => Some(format!("{call} {code}")),
            Signal::CallClosed { call, code: None } | Signal::CallIndeterminate { call } => Some(call.to_string()),
            Signal::NestedLost { nested } => Some(nested.to_string()),
            Signal::FactsObserved { count: 0, call, .. } => Some(format!("none from {call}")),
            Signal::FactsObserved { first, count: 1, .. } => Some(first.to_string()),
            Signal::FactsObserved { first, count, .. } => {
                Some(format!("{first} to {}", FactId(first.0.saturating_add(count.saturating_sub(1)))))
            }
            Signal::BudgetExhausted { limit } => Some(limit.to_string()),
            Signal::ProtocolViolated { in_a_row } => Some(format!("{in_a_row} in a row")),
            Signal::DraftCompleted { conclusion: true, .. } => Some("with a conclusion".to_owned()),
            Signal::DraftCompleted { conclusion: false, .. } => Some("without a conclusion".to_owned()),
            Signal::DraftInvalid { kind, .. } => Some(kind.to_string()),
            Signal::RepairAsked { of } => Some(of.to_string()),
            Signal::RepairFailed { of, reason } => Some(format!("{of}: {reason}")),
            Signal::ExecutionFailed { failure } => Some(code(failure)),
            Signal::EvidenceViolated { kind } => Some(kind.to_string()),
            Signal::SemanticsHeld { judged: true } => Some("judged".to_owned()),
            Signal::SemanticsHeld { judged: false } => Some("not judged".to_owned()),
            Signal::SemanticsRefused { kind } => Some(kind.to_string()),
            Signal::GateBlocked { gate, of } => Some(format!("{of} gate {gate}")),
            Signal::FactsImported { count } => Some(count.to_string()),
            Signal::BoundBroken { plugin, contribution } => Some(format!("{plugin}: {contribution}")),
            Signal::StateConflicted { scope, key, .. } => Some(format!("{scope} {key}")),
            Signal::StateCommitted { commands } | Signal::StateRolledBack { commands } => Some(commands.to_string()),
            Signal::ReleaseDecided { row, .. } => Some(format!("row {row}")),
            Signal::RunEnded { state } => Some(state.to_string()),
            Signal::EnvironmentFixed { .. }
            | Signal::BudgetMarked
            | Signal::BudgetUnmarked
            | Signal::ToolsWithdrawn
            | Signal::InformationSaturated
            | Signal::StopDelivered
            | Signal::ViolationLimitReached
            | Signal::CollectionStopped
            | Signal::EvidenceHeld => None,
        };
        Self { signal: signal.tag(), of }
    }
}

/// A record that turned the run: what was reported, and what the machines told each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The record.
    pub seq: u64,
    /// When, in milliseconds from the start.
    pub at_ms: u64,
    /// The type of its input.
    pub input: &'static str,
    /// Its signals, those alone that turned something.
    pub signals: Vec<Raised>,
}

/// The record that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// The record.
    pub seq: u64,
    /// When, in milliseconds from the start.
    pub at_ms: u64,
    /// The type of its input.
    pub input: &'static str,
    /// All of its signals.
    pub signals: Vec<Raised>,
    /// Where the run stood before it.
    pub place: Place,
    /// How many recoveries in a row had found work under way and seen no report since, up to this record.
    pub crashes: u32,
}

/// A call that did not simply succeed, and what the model was told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The record.
    pub seq: u64,
    /// The call.
    pub call: ToolCallId,
    /// Its tool; `None` for one that no tool has the name of.
    pub tool: Option<String>,
    /// The code.
    pub code: ObservationCode,
}

/// What was seen of a history so far.
#[derive(Debug, Clone)]
pub struct Witness {
    place: Place,
    forked_from: Option<Parent>,
    tools: BTreeMap<ToolCallId, String>,
    turns: Vec<Turn>,
    observations: Vec<Observation>,
    decided: Option<(Decided, Vec<Signal>)>,
}

impl Default for Witness {
    fn default() -> Self {
        Self {
            place: Place::BeforeTheLoop,
            forked_from: None,
            tools: BTreeMap::new(),
            turns: Vec::new(),
            observations: Vec::new(),
            decided: None,
        }
    }
}

impl Witness {
    /// Sees one step, and the engine after it.
    pub fn see(&mut self, step: &Step, engine: &Engine) {
        if let Input::RunStarted { forked_from, .. } = &step.input {
            self.forked_from.clone_from(forked_from);
        }
        for message in &step.messages {
            if let Message::Assistant { calls, .. } = &**message {
                let named = calls.iter().filter_map(|call| Some((call.call, engine.tool(&call.request.name)?)));
                self.tools.extend(named.map(|(call, tool)| (call, tool.name.to_string())));
            }
        }
        if self.decided.is_none() {
            self.remember(step, engine);
        }
        self.place = Place::of(engine);
    }

    fn remember(&mut self, step: &Step, engine: &Engine) {
        let (seq, at_ms, input) = (step.seq, step.at_ms, step.input.tag());
        if step.signals.iter().any(|signal| matches!(signal, Signal::RunEnded { .. })) {
            let signals = step.signals.iter().map(Raised::of).collect();
            let crashes = engine.decider().core().map_or(0, |core| core.recoveries.crashes);
            let decided = Decided { seq, at_ms, input, signals, place: self.place, crashes };
            self.decided = Some((decided, step.signals.clone()));
            return;
        }
        for signal in &step.signals {
            if let Signal::CallClosed { call, code: Some(code) } = signal {
                let tool = self.tools.get(call).cloned();
                self.observations.push(Observation { seq, call: *call, tool, code: *code });
            }
        }
        let signals: Vec<Raised> = step.signals.iter().filter(|signal| turns(signal)).map(Raised::of).collect();
        if !signals.is_empty() || matches!(step.input, Input::RunRecovered { .. }) {
            self.turns.push(Turn { seq, at_ms, input, signals });
        }
    }

    /// What can be said, given the engine as the last record left it; `None` before the first.
    #[must_use]
    pub fn explain(&self, engine: &Engine) -> Option<Explanation> {
        let standing = match (engine.ending(), &self.decided) {
            (Some(ending), Some((decided, signals))) => {
                Standing::Ended(Box::new(Account::of(engine, ending, decided, signals)))
            }
            _ => Standing::Open(Waiting::of(engine, self.place)),
        };
        Some(Explanation {
            run: engine.run_id()?.clone(),
            records: engine.decider().records(),
            forked_from: self.forked_from.clone(),
            turns: self.turns.clone(),
            observations: self.observations.clone(),
            facts: known(engine),
            standing,
        })
    }
}

/// Whether a signal turns a run: it goes on otherwise than it would have without it.
fn turns(signal: &Signal) -> bool {
    match signal {
        Signal::EnvironmentRefused { .. }
        | Signal::RetryScheduled { .. }
        | Signal::ModelReplaced { .. }
        | Signal::CallIndeterminate { .. }
        | Signal::NestedLost { .. }
        | Signal::BudgetMarked
        | Signal::BudgetUnmarked
        | Signal::BudgetExhausted { .. }
        | Signal::ToolsWithdrawn
        | Signal::InformationSaturated
        | Signal::StopDelivered
        | Signal::ProtocolViolated { .. }
        | Signal::ViolationLimitReached
        | Signal::CollectionStopped
        | Signal::DraftCompleted { .. }
        | Signal::DraftInvalid { .. }
        | Signal::RepairAsked { .. }
        | Signal::RepairFailed { .. }
        | Signal::ExecutionFailed { .. }
        | Signal::EvidenceHeld
        | Signal::EvidenceViolated { .. }
        | Signal::SemanticsHeld { .. }
        | Signal::SemanticsRefused { .. }
        | Signal::GateBlocked { .. }
        | Signal::BoundBroken { .. }
        | Signal::StateConflicted { .. } => true,
        Signal::EnvironmentFixed { .. }
        | Signal::ResponseAccepted { .. }
        | Signal::BatchOpened { .. }
        | Signal::CallClosed { .. }
        | Signal::BatchClosed { .. }
        | Signal::FactsObserved { .. }
        | Signal::FactsImported { .. }
        | Signal::StateCommitted { .. }
        | Signal::StateRolledBack { .. }
        | Signal::ReleaseDecided { .. }
        | Signal::RunEnded { .. } => false,
    }
}

/// A failure's code, and the code inside it.
pub(super) fn code(failure: &Failure) -> String {
    if let Failure::Inference { code } = failure { format!("inference: {code}") } else { failure.tag().to_owned() }
}
