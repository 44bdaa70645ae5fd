//! The way of a draft to its reader: repairs, evidence, semantics, gates, delivery (SPEC 10, 11).

pub mod draft;
pub mod guard;
mod outcome;
mod proof;

use serde::Serialize;
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use super::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::draft::DraftFault;
use crate::vocabulary::ids::{Ask, JudgeCallId};
use crate::vocabulary::outcome::{EvidenceViolation, ReleaseOutcome};
use crate::vocabulary::wire::words;

pub use outcome::{Body, Citation, Release};
pub use proof::{Candidate, EvidencedDraft, VerifiedDraft};

/// Every transition on the way out.
const TABLE: &[Transition] = transitions! {
    waiting,            draft_repair_asked    => repairing_draft;
    waiting,            evidence_repair_asked => repairing_evidence;
    waiting,            judge_asked           => judging;
    waiting,            verified              => verified;
    waiting,            gate_asked            => gating;
    waiting,            decided               => decided;

    repairing_draft,    draft_repair_asked    => repairing_draft;
    repairing_draft,    evidence_repair_asked => repairing_evidence;
    repairing_draft,    judge_asked           => judging;
    repairing_draft,    verified              => verified;
    repairing_draft,    gate_asked            => gating;
    repairing_draft,    decided               => decided;

    repairing_evidence, evidence_repair_asked => repairing_evidence;
    repairing_evidence, judge_asked           => judging;
    repairing_evidence, verified              => verified;
    repairing_evidence, gate_asked            => gating;
    repairing_evidence, decided               => decided;

    judging,            interrupted           => judging;
    judging,            verified              => verified;
    judging,            gate_asked            => gating;
    judging,            decided               => decided;

    verified,           gate_asked            => gating;
    verified,           decided               => decided;

    gating,             gate_asked            => gating;
    gating,             decided               => decided;

    decided,            delivered             => delivered;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "release", states: STATES, events: EVENTS, transitions: TABLE };

words! {
    /// What a user sees while they wait: progress without text (SPEC 11).
    pub enum Progress {
        /// Evidence is being collected.
        Collecting = "collecting",
        /// A draft is being checked.
        SafetyValidating = "safety_validating",
        /// A draft is being written again.
        Repairing = "repairing",
    }
}

/// Where the release stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// There is no draft yet.
    Waiting,
    /// A bad draft is asked for again.
    RepairingDraft {
        /// What was wrong with it.
        fault: DraftFault,
        /// Which repair, from 1.
        repair: u32,
    },
    /// A draft whose evidence does not hold is asked for again.
    RepairingEvidence {
        /// The first violation: it stands when the repairs fail.
        violation: EvidenceViolation,
        /// Which repair, from 1.
        repair: u32,
    },
    /// The judge is asked.
    Judging {
        /// The question.
        call: JudgeCallId,
        /// Which attempt, from 1.
        attempt: u32,
        /// The draft, whose evidence holds.
        #[serde(rename = "draft")]
        evidenced: EvidencedDraft,
    },
    /// The draft holds, and the hooks before a release are asked.
    Verified {
        /// The draft.
        #[serde(rename = "draft")]
        verified: VerifiedDraft,
    },
    /// A release gate is asked.
    Gating {
        /// The question.
        ask: Ask,
        /// Which gate, from 0.
        gate: u32,
        /// The draft, which holds.
        #[serde(rename = "draft")]
        verified: VerifiedDraft,
    },
    /// The release is decided and offered to its reader.
    Decided {
        /// What the reader sees.
        outcome: ReleaseOutcome,
        /// The same for every offer.
        key: Digest,
    },
    /// The reader has it.
    Delivered {
        /// What the reader saw.
        outcome: ReleaseOutcome,
    },
}

labels! { State, STATES:
    Waiting => waiting, RepairingDraft => repairing_draft, RepairingEvidence => repairing_evidence,
    Judging => judging, Verified => verified, Gating => gating, Decided => decided, Delivered => delivered,
}

/// What moves a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A bad draft is asked for again.
    DraftRepairAsked(DraftFault),
    /// A draft whose evidence does not hold is asked for again.
    EvidenceRepairAsked(EvidenceViolation),
    /// The judge is asked.
    JudgeAsked(JudgeCallId, EvidencedDraft),
    /// The draft holds, and plugins are asked.
    Verified(VerifiedDraft),
    /// A release gate is asked.
    GateAsked {
        /// The question.
        ask: Ask,
        /// Which gate, from 0.
        gate: u32,
        /// The draft, which holds.
        verified: VerifiedDraft,
    },
    /// A crash lost the judge's attempt.
    Interrupted,
    /// The ending is chosen.
    Decided(ReleaseOutcome, Digest),
    /// The reader has it.
    Delivered,
}

labels! { Event, EVENTS:
    DraftRepairAsked => draft_repair_asked, EvidenceRepairAsked => evidence_repair_asked,
    JudgeAsked => judge_asked, Verified => verified, GateAsked => gate_asked, Interrupted => interrupted, Decided => decided,
    Delivered => delivered,
}

impl State {
    /// How many draft repairs were asked for.
    #[must_use]
    pub const fn draft_repairs(&self) -> u32 {
        if let Self::RepairingDraft { repair, .. } = self { *repair } else { 0 }
    }

    /// How many evidence repairs were asked for.
    #[must_use]
    pub const fn evidence_repairs(&self) -> u32 {
        if let Self::RepairingEvidence { repair, .. } = self { *repair } else { 0 }
    }

    /// What a user sees while they wait.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        match self {
            Self::Waiting => Progress::Collecting,
            Self::RepairingDraft { .. } | Self::RepairingEvidence { .. } => Progress::Repairing,
            Self::Judging { .. }
            | Self::Verified { .. }
            | Self::Gating { .. }
            | Self::Decided { .. }
            | Self::Delivered { .. } => Progress::SafetyValidating,
        }
    }
}

pub(crate) struct Releasing;

machine!(Releasing);

#[state_machine(
    initial = "State::Waiting",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl Releasing {
    #[state(superstate = "drafting")]
    fn waiting(event: &Event) -> Outcome<State> {
        if let Event::DraftRepairAsked(fault) = event {
            To(State::RepairingDraft { fault: *fault, repair: 1 })
        } else {
            Super
        }
    }

    #[state(superstate = "drafting")]
    fn repairing_draft(fault: &mut DraftFault, repair: &mut u32, event: &Event) -> Outcome<State> {
        let _ = fault;
        if let Event::DraftRepairAsked(fault) = event {
            To(State::RepairingDraft { fault: *fault, repair: repair.saturating_add(1) })
        } else {
            Super
        }
    }

    #[state(superstate = "drafting")]
    fn repairing_evidence(violation: &mut EvidenceViolation, repair: &mut u32, event: &Event) -> Outcome<State> {
        if let Event::EvidenceRepairAsked(_) = event {
            To(State::RepairingEvidence { violation: *violation, repair: repair.saturating_add(1) })
        } else {
            Super
        }
    }

    #[state(superstate = "checking")]
    fn judging(
        call: &mut JudgeCallId,
        attempt: &mut u32,
        evidenced: &mut EvidencedDraft,
        event: &Event,
    ) -> Outcome<State> {
        if matches!(event, Event::Interrupted) {
            let attempt = attempt.saturating_add(1);
            To(State::Judging { call: *call, attempt, evidenced: evidenced.clone() })
        } else {
            Super
        }
    }

    #[state(superstate = "undecided")]
    fn verified(verified: &mut VerifiedDraft, event: &Event) -> Outcome<State> {
        let _ = (verified, event);
        Super
    }

    #[state(superstate = "undecided")]
    fn gating(ask: &mut Ask, gate: &mut u32, verified: &mut VerifiedDraft, event: &Event) -> Outcome<State> {
        let _ = (ask, gate, verified, event);
        Super
    }

    #[state]
    fn decided(outcome: &mut ReleaseOutcome, key: &mut Digest, event: &Event) -> Outcome<State> {
        let _ = key;
        if matches!(event, Event::Delivered) { To(State::Delivered { outcome: *outcome }) } else { Super }
    }

    #[state]
    fn delivered(outcome: &mut ReleaseOutcome, event: &Event) -> Outcome<State> {
        let _ = (outcome, event);
        Super
    }

    /// While a draft may still come.
    #[superstate(superstate = "checking")]
    fn drafting(event: &Event) -> Outcome<State> {
        match event {
            Event::EvidenceRepairAsked(violation) => To(State::RepairingEvidence { violation: *violation, repair: 1 }),
            Event::JudgeAsked(call, evidenced) => {
                To(State::Judging { call: *call, attempt: 1, evidenced: evidenced.clone() })
            }
            Event::DraftRepairAsked(_)
            | Event::Verified(_)
            | Event::GateAsked { .. }
            | Event::Interrupted
            | Event::Decided(..)
            | Event::Delivered => Super,
        }
    }

    /// Until the draft is known to hold.
    #[superstate(superstate = "undecided")]
    fn checking(event: &Event) -> Outcome<State> {
        if let Event::Verified(verified) = event { To(State::Verified { verified: verified.clone() }) } else { Super }
    }

    /// Until the release is decided.
    #[superstate]
    fn undecided(event: &Event) -> Outcome<State> {
        match event {
            Event::GateAsked { ask, gate, verified } => {
                To(State::Gating { ask: *ask, gate: *gate, verified: verified.clone() })
            }
            Event::Decided(outcome, key) => To(State::Decided { outcome: *outcome, key: *key }),
            Event::DraftRepairAsked(_)
            | Event::EvidenceRepairAsked(_)
            | Event::JudgeAsked(..)
            | Event::Verified(_)
            | Event::Interrupted
            | Event::Delivered => Super,
        }
    }
}
