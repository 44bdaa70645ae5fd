//! The account of an ended run: who decided, where, how it left the loop, and what the layers say (SPEC 2, 3, 9).

use serde::Serialize;

use super::neighbours::{Neighbour, neighbours};
use super::witness::Decided;
use crate::engine::{CRASHES_MAX, Ending, Engine};
use crate::machines::release::Body;
use crate::vocabulary::fact::Origin;
use crate::vocabulary::ids::FactId;
use crate::vocabulary::outcome::{ReleaseOutcome, RunStatus};
use crate::vocabulary::signal::Signal;
use crate::vocabulary::wire::words;

words! {
    /// What decided.
    pub enum By {
        /// Finding the environment (row 18).
        Resolution = "resolution",
        /// A budget (rows 13, 14).
        Resource = "resource",
        /// The deadline (row 16).
        Time = "time",
        /// The rules of collecting evidence (rows 9 to 12).
        Collection = "collection",
        /// The form that a draft must have (rows 7, 8).
        OutputContract = "output_contract",
        /// The release checks: the draft concludes nothing (rows 5, 6).
        Conclusion = "conclusion",
        /// The release checks: the evidence guard (rows 2, 3).
        Evidence = "evidence",
        /// The release checks: the judge (row 4).
        Semantics = "semantics",
        /// The release checks: a gate (row 20).
        Gate = "gate",
        /// The release checks: all of them held (row 1).
        EveryCheck = "every_check",
        /// Whoever cancelled (row 15).
        Caller = "caller",
        /// A failure of the model, a plugin, the driver or a port (row 17).
        Execution = "execution",
        /// A call whose outcome nobody knows (row 19).
        Recovery = "recovery",
        /// Too many crashes in a row (row 19).
        Crashes = "crashes",
    }
}

words! {
    /// How the run left the loop (SPEC 9).
    pub enum Edge {
        /// With a draft.
        Draft = "draft",
        /// By a controlled stop, without a draft.
        ControlledStop = "controlled_stop",
        /// It was interrupted: cancelled, or out of time.
        Interruption = "interruption",
        /// By a failure beyond recovery.
        Failure = "failure",
        /// It never came to the loop.
        NeverInside = "never_inside",
    }
}

words! {
    /// Why the run's state and what its reader sees are two things (SPEC 2).
    pub enum Gap {
        /// They say the same.
        None = "none",
        /// The run came to its own end, and its report could not be verified.
        NotVerified = "not_verified",
        /// The run was stopped by its budget, and the facts until then are given.
        StoppedWithFacts = "stopped_with_facts",
        /// The run was stopped by its budget, and there is nothing to give.
        StoppedWithoutFacts = "stopped_without_facts",
        /// The run was out of time, and for its reader that is a failure.
        OutOfTime = "out_of_time",
    }
}

/// The layers of state that are never mixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layers {
    /// Did the run technically go on to its end?
    pub run_state: RunStatus,
    /// What does its reader see?
    pub outcome: ReleaseOutcome,
    /// Why that is not the same.
    pub gap: Gap,
}

/// A fact, and its statement where the release publishes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Its number.
    pub id: FactId,
    /// The tool that gave it.
    pub tool: String,
    /// The run that observed it, when it was imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

/// Why a run ended as it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The ending.
    pub ending: Ending,
    /// The record that decided.
    pub decided: Decided,
    /// What decided.
    pub by: By,
    /// How the run left the loop.
    pub edge: Edge,
    /// What would have had to be otherwise, and which row that is.
    pub not_taken: Vec<Neighbour>,
    /// What the layers say.
    pub layers: Layers,
    /// Whether the release has a receipt.
    pub delivered: bool,
}

impl Account {
    pub(super) fn of(engine: &Engine, ending: &Ending, decided: &Decided, signals: &[Signal]) -> Self {
        let (by, edge) = decided_by(ending.row, decided);
        Self {
            ending: ending.clone(),
            decided: decided.clone(),
            by,
            edge,
            not_taken: neighbours(engine, ending, decided, signals),
            layers: Layers {
                run_state: ending.run_state,
                outcome: ending.outcome,
                gap: gap(ending.run_state, ending.outcome),
            },
            delivered: engine.decider().is_delivered(),
        }
    }
}

/// Who decides a row, and how the run leaves the loop for it (SPEC 3, 9).
const fn decided_by(row: u8, decided: &Decided) -> (By, Edge) {
    match row {
        1 => (By::EveryCheck, Edge::Draft),
        2 | 3 => (By::Evidence, Edge::Draft),
        4 => (By::Semantics, Edge::Draft),
        5 | 6 => (By::Conclusion, Edge::Draft),
        7 | 8 => (By::OutputContract, Edge::Draft),
        9..=12 => (By::Collection, Edge::ControlledStop),
        13 | 14 => (By::Resource, Edge::ControlledStop),
        15 => (By::Caller, Edge::Interruption),
        16 => (By::Time, Edge::Interruption),
        18 => (By::Resolution, Edge::NeverInside),
        19 if decided.crashes > CRASHES_MAX => (By::Crashes, Edge::Failure),
        19 => (By::Recovery, Edge::Failure),
        20 => (By::Gate, Edge::Draft),
        _ => (By::Execution, Edge::Failure),
    }
}

const fn gap(run: RunStatus, shown: ReleaseOutcome) -> Gap {
    match (run, shown) {
        (RunStatus::Success, ReleaseOutcome::Fallback) => Gap::NotVerified,
        (RunStatus::BudgetExhausted, ReleaseOutcome::Fallback) => Gap::StoppedWithFacts,
        (RunStatus::BudgetExhausted, _) => Gap::StoppedWithoutFacts,
        (RunStatus::TimedOut, _) => Gap::OutOfTime,
        (RunStatus::Success | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Running, _) => Gap::None,
    }
}

/// The facts of a run. What the release does not publish is named and not told (SPEC 3.U4).
pub(super) fn known(engine: &Engine) -> Vec<Known> {
    let published: Vec<FactId> = match engine.release().map(crate::machines::release::Release::body) {
        Some(Body::Success { citations, .. }) => citations.iter().map(|citation| citation.fact.id).collect(),
        Some(Body::Fallback { facts, .. }) => facts.iter().map(|fact| fact.id).collect(),
        Some(Body::Failed { .. } | Body::Cancelled { .. }) | None => Vec::new(),
    };
    let facts = engine.facts().into_iter().map(|fact| Known {
        id: fact.id,
        tool: fact.tool.to_string(),
        origin: fact.origin.clone(),
        statement: published.contains(&fact.id).then(|| fact.statement.to_string()),
    });
    facts.collect()
}
