//! Collecting evidence: is anything new still coming, and why did it stop? (SPEC 7.2, 7.4, 8)

mod facts;

use serde::Serialize;
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use super::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::outcome::{CollectionStatus, StopReason};

pub use facts::{Facts, ObservedFacts};

/// Every transition of collecting.
const TABLE: &[Transition] = transitions! {
    collecting, evidence_observed => collecting;
    collecting, evidence_observed => saturated;
    collecting, model_called      => collecting;
    collecting, protocol_kept     => collecting;
    collecting, protocol_broken   => collecting;
    collecting, protocol_broken   => stopped;
    collecting, budget_exhausted  => stopped;

    saturated,  evidence_observed => saturated;
    saturated,  model_called      => stop_delivered;
    saturated,  budget_exhausted  => stopped;

    stop_delivered, model_called     => stop_delivered;
    stop_delivered, evidence_asked   => stopped;
    stop_delivered, budget_exhausted => stopped;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "collection", states: STATES, events: EVENTS, transitions: TABLE };

/// What is counted while collecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Progress {
    /// Successful evidence observations in a row without a new fact.
    pub barren: u32,
    /// Responses in a row with a protocol violation.
    pub violations: u32,
    /// Whether an evidence observation has reached the model.
    pub evidence: Evidence,
}

/// How far the first evidence observation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// There is none.
    #[default]
    None,
    /// It stands in the transcript.
    Published,
    /// The model has been called with it: from now on assessments are due.
    Delivered,
}

/// Where collecting stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// New facts may come.
    Collecting {
        /// What is counted.
        #[serde(flatten)]
        progress: Progress,
    },
    /// Nothing new comes; the model has not been told yet.
    Saturated {
        /// What is counted.
        #[serde(flatten)]
        progress: Progress,
    },
    /// Nothing new comes, and the model has been told.
    StopDelivered {
        /// What is counted.
        #[serde(flatten)]
        progress: Progress,
    },
    /// Collecting stopped.
    Stopped {
        /// Why.
        reason: StopReason,
        /// Whether it was saturated before.
        saturated: bool,
    },
}

labels! { State, STATES:
    Collecting => collecting, Saturated => saturated, StopDelivered => stop_delivered, Stopped => stopped,
}

/// What moves collecting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A successful evidence observation was published.
    EvidenceObserved {
        /// Whether it brought a new fact.
        new: bool,
        /// How many barren ones in a row saturate; never when absent.
        saturation_after: Option<u32>,
    },
    /// A model call goes out: it delivers what was published.
    ModelCalled,
    /// A response had a valid evidence call and no violation.
    ProtocolKept,
    /// A response had a violation.
    ProtocolBroken {
        /// How many in a row stop collecting.
        limit: u32,
    },
    /// Evidence was asked for after the stop was delivered.
    EvidenceAsked,
    /// The budget is used up.
    BudgetExhausted,
}

labels! { Event, EVENTS:
    EvidenceObserved => evidence_observed, ModelCalled => model_called, ProtocolKept => protocol_kept,
    ProtocolBroken => protocol_broken, EvidenceAsked => evidence_asked, BudgetExhausted => budget_exhausted,
}

impl State {
    /// Collecting that has not begun.
    pub const START: Self =
        Self::Collecting { progress: Progress { barren: 0, violations: 0, evidence: Evidence::None } };

    /// The progress layer's value.
    #[must_use]
    pub const fn status(&self) -> CollectionStatus {
        match self {
            Self::Collecting { .. } | Self::Stopped { saturated: false, .. } => CollectionStatus::Collecting,
            Self::Saturated { .. } | Self::StopDelivered { .. } | Self::Stopped { saturated: true, .. } => {
                CollectionStatus::Saturated
            }
        }
    }

    /// Why collecting stopped, as an ending shows it: a stop's own reason, else saturation (SPEC 3, "IS").
    #[must_use]
    pub const fn stop_reason(&self) -> Option<StopReason> {
        match self {
            Self::Collecting { .. } => None,
            Self::Saturated { .. } | Self::StopDelivered { .. } => Some(StopReason::InformationSaturated),
            Self::Stopped { reason, .. } => Some(*reason),
        }
    }

    /// What is counted, while it goes on.
    #[must_use]
    pub const fn progress(&self) -> Option<&Progress> {
        match self {
            Self::Collecting { progress } | Self::Saturated { progress } | Self::StopDelivered { progress } => {
                Some(progress)
            }
            Self::Stopped { .. } => None,
        }
    }

    /// Whether evidence calls must assess the observation before (SPEC 7.4).
    #[must_use]
    pub fn assessment_due(&self) -> bool {
        self.progress().is_some_and(|progress| progress.evidence == Evidence::Delivered)
    }
}

pub(crate) struct Collection;

machine!(Collection);

#[state_machine(
    initial = "State::START",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl Collection {
    #[state]
    fn collecting(progress: &mut Progress, event: &Event) -> Outcome<State> {
        match event {
            Event::EvidenceObserved { new, saturation_after } => {
                let progress = progress.observed(*new);
                if saturation_after.is_some_and(|after| progress.barren >= after) {
                    To(State::Saturated { progress })
                } else {
                    To(State::Collecting { progress })
                }
            }
            Event::ModelCalled => To(State::Collecting { progress: progress.delivered() }),
            Event::ProtocolKept => To(State::Collecting { progress: Progress { violations: 0, ..*progress } }),
            Event::ProtocolBroken { limit } => {
                let violations = progress.violations.saturating_add(1);
                if violations >= *limit {
                    To(State::Stopped { reason: StopReason::ProtocolViolation, saturated: false })
                } else {
                    To(State::Collecting { progress: Progress { violations, ..*progress } })
                }
            }
            Event::BudgetExhausted => To(State::Stopped { reason: StopReason::BudgetLimitReached, saturated: false }),
            Event::EvidenceAsked => Super,
        }
    }

    #[state]
    fn saturated(progress: &mut Progress, event: &Event) -> Outcome<State> {
        match event {
            Event::EvidenceObserved { new, .. } => To(State::Saturated { progress: progress.observed(*new) }),
            Event::ModelCalled => To(State::StopDelivered { progress: progress.delivered() }),
            Event::BudgetExhausted => To(State::Stopped { reason: StopReason::BudgetLimitReached, saturated: true }),
            Event::ProtocolKept | Event::ProtocolBroken { .. } | Event::EvidenceAsked => Super,
        }
    }

    #[state]
    fn stop_delivered(progress: &mut Progress, event: &Event) -> Outcome<State> {
        match event {
            Event::ModelCalled => To(State::StopDelivered { progress: *progress }),
            Event::EvidenceAsked => To(State::Stopped { reason: StopReason::InformationSaturated, saturated: true }),
            Event::BudgetExhausted => To(State::Stopped { reason: StopReason::BudgetLimitReached, saturated: true }),
            Event::EvidenceObserved { .. } | Event::ProtocolKept | Event::ProtocolBroken { .. } => Super,
        }
    }

    #[state]
    fn stopped(reason: &mut StopReason, saturated: &mut bool, event: &Event) -> Outcome<State> {
        let _ = (reason, saturated, event);
        Super
    }
}

impl Progress {
    fn observed(self, new: bool) -> Self {
        let evidence = if self.evidence == Evidence::None { Evidence::Published } else { self.evidence };
        Self { barren: if new { 0 } else { self.barren.saturating_add(1) }, evidence, ..self }
    }

    fn delivered(self) -> Self {
        let evidence = if self.evidence == Evidence::Published { Evidence::Delivered } else { self.evidence };
        Self { evidence, ..self }
    }
}
