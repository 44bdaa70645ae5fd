//! The closed table: the whole set of legal endings, in one place (SPEC 3). Everything else about endings is
//! derived from it.

use serde::Serialize;

use crate::machines::collection::{Facts, ObservedFacts};
use crate::machines::release::{EvidencedDraft, Release, VerifiedDraft};
use crate::machines::run;
use crate::vocabulary::draft::DraftFault;
use crate::vocabulary::failure::{Failure, ResolutionKind};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::outcome::{
    EvidenceViolation, FailureCode, FallbackType, ReleaseOutcome, RunStatus, SemanticRefusal, StopReason,
};

/// How a run ended: the tuple that the table is checked against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ending {
    /// The row of the table, 1 to 20.
    pub row: u8,
    /// The execution layer.
    pub run_state: RunStatus,
    /// The committed cause of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The progress layer.
    pub stop_reason: Option<StopReason>,
    /// How many facts were observed.
    pub facts: u32,
    /// The release layer.
    pub outcome: ReleaseOutcome,
    /// Why a fallback stands in the report's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_type: Option<FallbackType>,
    /// The coarse reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
}

/// One row: what may stand in each column.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its number.
    pub number: u8,
    /// What happened.
    pub happened: &'static str,
    /// The execution layer.
    pub run_state: RunStatus,
    /// The codes that a failed run may carry.
    pub failures: &'static [&'static str],
    /// The progress layer.
    pub stop: Stop,
    /// Whether facts were observed; `None` for either.
    pub facts: Option<bool>,
    /// The release layer.
    pub outcome: ReleaseOutcome,
    /// The fallbacks that may stand in the report's place.
    pub fallbacks: &'static [FallbackType],
    /// The failure codes it may carry.
    pub codes: &'static [FailureCode],
}

/// What may stand in the StopReason column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// `information_saturated` if collecting was saturated, else none ("IS").
    IfSaturated,
    /// This one.
    Always(StopReason),
    /// None.
    Never,
}

use FailureCode::{InternalFailure, RoutingUnavailable, RunCancelled};
use FallbackType::InsufficientEvidence;
use ReleaseOutcome as Shown;
use Stop::{Always, IfSaturated, Never};
use StopReason::{BudgetLimitReached, InformationSaturated, ProtocolViolation};

const EVIDENCE: &[FallbackType] =
    &[FallbackType::EvidenceUnknownReference, FallbackType::EvidenceMissing, FallbackType::EvidenceMismatch];
const SEMANTIC: &[FallbackType] =
    &[FallbackType::SemanticUnsupported, FallbackType::SemanticContradicted, FallbackType::SemanticUnavailable];
const NO_FACTS: &[&str] = &["no_observed_facts"];

macro_rules! rows {
    ($( $number:literal $happened:literal, $state:ident $failures:expr, $stop:expr, $facts:expr, $shown:ident $fallbacks:expr, $codes:expr; )*) => {
        &[ $( Row {
            number: $number, happened: $happened, run_state: RunStatus::$state, failures: $failures, stop: $stop,
            facts: $facts, outcome: Shown::$shown, fallbacks: $fallbacks, codes: $codes,
        } ),* ]
    };
}

/// The closed table. `F` is whether facts were observed.
#[rustfmt::skip]
pub const ROWS: &[Row] = rows! {
    // what happened, RunState (failures), StopReason, F, outcome (fallbacks), codes
    1 "draft with conclusion, evidence and semantics hold", Success &[], IfSaturated, Some(true), Success &[], &[];
    2 "evidence guard still violated after its repairs", Success &[], IfSaturated, Some(true), Fallback EVIDENCE, &[];
    3 "evidence guard violated, nothing observed", Failed NO_FACTS, IfSaturated, Some(false), Failed &[], &[InternalFailure];
    4 "semantics unsupported, contradicted, or the judge failed", Success &[], IfSaturated, Some(true), Fallback SEMANTIC, &[];
    5 "legal draft without conclusion", Success &[], IfSaturated, Some(true), Fallback &[InsufficientEvidence], &[];
    6 "legal draft without conclusion, nothing observed", Failed NO_FACTS, IfSaturated, Some(false), Failed &[], &[InternalFailure];
    7 "bad draft after its repairs", Success &[], IfSaturated, Some(true), Fallback &[InsufficientEvidence], &[];
    8 "bad draft after its repairs, nothing observed", Failed &["draft_contract"], IfSaturated, Some(false), Failed &[], &[InternalFailure];
    9 "evidence asked for after the stop was delivered", Success &[], Always(InformationSaturated), Some(true), Fallback &[InsufficientEvidence], &[];
    10 "evidence asked for after the stop, nothing observed", Failed NO_FACTS, Always(InformationSaturated), Some(false), Failed &[], &[InternalFailure];
    11 "too many protocol violations in a row", Success &[], Always(ProtocolViolation), Some(true), Fallback &[InsufficientEvidence], &[];
    12 "too many protocol violations, nothing observed", Failed NO_FACTS, Always(ProtocolViolation), Some(false), Failed &[], &[InternalFailure];
    13 "budget used up at the model gate", BudgetExhausted &[], Always(BudgetLimitReached), Some(true), Fallback &[InsufficientEvidence], &[];
    14 "budget used up, nothing observed", BudgetExhausted &[], Always(BudgetLimitReached), Some(false), Failed &[], &[InternalFailure];
    15 "cancelled", Cancelled &[], IfSaturated, None, Cancelled &[], &[RunCancelled];
    16 "deadline passed", TimedOut &[], IfSaturated, None, Failed &[], &[InternalFailure];
    17 "inference that cannot recover, capability bound, state conflict, internal", Failed &["inference", "capability_bound", "state_conflict", "internal"], IfSaturated, None, Failed &[], &[InternalFailure];
    18 "no route or environment", Failed &["resolution", "capability_bound"], Never, Some(false), Failed &[], &[RoutingUnavailable, InternalFailure];
    19 "crash budget used up, or an outcome stays unknown", Failed &["indeterminate"], IfSaturated, None, Failed &[], &[InternalFailure];
    20 "a release gate blocks a verified draft", Failed &["blocked"], IfSaturated, Some(true), Failed &[], &[InternalFailure];
};

impl Row {
    /// Whether `ending` may stand in this row, column by column.
    #[must_use]
    pub fn admits(&self, ending: &Ending) -> bool {
        let stop = match self.stop {
            IfSaturated => matches!(ending.stop_reason, None | Some(InformationSaturated)),
            Always(reason) => ending.stop_reason == Some(reason),
            Never => ending.stop_reason.is_none(),
        };
        let failure = match &ending.failure {
            Some(failure) => self.failures.contains(&failure.tag()),
            None => self.failures.is_empty(),
        };
        let fallback = match &ending.fallback_type {
            Some(fallback) => self.fallbacks.contains(fallback),
            None => self.fallbacks.is_empty(),
        };
        let code = match &ending.failure_code {
            Some(code) => self.codes.contains(code),
            None => self.codes.is_empty(),
        };
        let routing = Failure::Resolution { kind: ResolutionKind::Routing };
        let code_fits = ending.failure_code != Some(RoutingUnavailable) || ending.failure == Some(routing.clone());
        let routed = ending.failure != Some(routing) || ending.failure_code == Some(RoutingUnavailable);
        ending.row == self.number
            && ending.run_state == self.run_state
            && ending.outcome == self.outcome
            && self.facts.is_none_or(|facts| facts == (ending.facts > 0))
            && stop
            && failure
            && fallback
            && code
            && code_fits
            && routed
    }
}

/// Whether the table has a row for `ending`.
#[must_use]
pub fn is_legal(ending: &Ending) -> bool {
    ROWS.iter().any(|row| row.number == ending.row && row.admits(ending))
}

/// What happened, with the proofs that its row asks for.
#[derive(Debug, Clone)]
pub(crate) enum Cause {
    /// Evidence and semantics hold, and no gate blocks.
    Verified(VerifiedDraft),
    /// The evidence guard is still violated.
    EvidenceViolated(EvidenceViolation),
    /// The judge does not support the conclusion.
    SemanticsRefused(EvidencedDraft, SemanticRefusal),
    /// A legal draft concludes nothing; these facts it cites.
    NoConclusion(Vec<String>),
    /// The draft stayed bad.
    BadDraft(DraftFault),
    /// Evidence was asked for after the stop.
    CollectionStopped,
    /// Too many violations in a row.
    ViolationLimit,
    /// The budget is used up.
    Budget,
    /// Somebody cancelled.
    Cancelled,
    /// The deadline passed.
    Deadline,
    /// Something failed beyond recovery.
    Failed(Failure),
    /// No route or environment.
    Unresolved(Failure),
    /// An outcome stays unknown.
    Indeterminate,
    /// A release gate blocks.
    Blocked(String),
}

impl Cause {
    /// Whether it can come while something else is under way. Every other cause follows from the last answer
    /// that was outstanding.
    pub(crate) const fn interrupts(&self) -> bool {
        match self {
            Self::Cancelled | Self::Deadline | Self::Indeterminate | Self::Failed(_) => true,
            Self::Verified(_)
            | Self::EvidenceViolated(_)
            | Self::SemanticsRefused(..)
            | Self::NoConclusion(_)
            | Self::BadDraft(_)
            | Self::CollectionStopped
            | Self::ViolationLimit
            | Self::Budget
            | Self::Unresolved(_)
            | Self::Blocked(_) => false,
        }
    }
}

/// A chosen ending: what the run machine is told and what the reader gets.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) ending: Ending,
    pub(crate) event: run::Event,
    pub(crate) release: Release,
}

/// Chooses the row for `cause`. Which of a pair of rows it is follows from whether facts were observed.
pub(crate) fn decide(run: &RunId, cause: Cause, stop_reason: Option<StopReason>, facts: &Facts) -> Verdict {
    let observed = facts.proof();
    let fallback = |kind, observed: &ObservedFacts| Release::fallback(run.clone(), kind, observed, &[]);
    let failed = || Release::failed(run.clone(), InternalFailure);
    let own = |row, release| (row, run::Event::Succeeded, release);
    let no_facts = |row| (row, run::Event::Failed(Failure::NoObservedFacts), failed());
    let (row, event, release) = match (cause, &observed) {
        (Cause::Verified(verified), _) => own(1, Release::success(&verified)),
        (Cause::EvidenceViolated(kind), Some(observed)) => own(2, fallback(kind.fallback(), observed)),
        (Cause::EvidenceViolated(_), None) => no_facts(3),
        (Cause::SemanticsRefused(evidenced, kind), _) => own(4, fallback(kind.fallback(), evidenced.observed())),
        (Cause::NoConclusion(cited), Some(observed)) => {
            own(5, Release::fallback(run.clone(), InsufficientEvidence, observed, &cited))
        }
        (Cause::NoConclusion(_), None) => no_facts(6),
        (Cause::BadDraft(_), Some(observed)) => own(7, fallback(InsufficientEvidence, observed)),
        (Cause::BadDraft(kind), None) => (8, run::Event::Failed(Failure::DraftContract { kind }), failed()),
        (Cause::CollectionStopped, Some(observed)) => own(9, fallback(InsufficientEvidence, observed)),
        (Cause::CollectionStopped, None) => no_facts(10),
        (Cause::ViolationLimit, Some(observed)) => own(11, fallback(InsufficientEvidence, observed)),
        (Cause::ViolationLimit, None) => no_facts(12),
        (Cause::Budget, Some(observed)) => (13, run::Event::BudgetExhausted, fallback(InsufficientEvidence, observed)),
        (Cause::Budget, None) => (14, run::Event::BudgetExhausted, failed()),
        (Cause::Cancelled, _) => (15, run::Event::Cancelled, Release::cancelled(run.clone())),
        (Cause::Deadline, _) => (16, run::Event::TimedOut, failed()),
        (Cause::Failed(failure), _) => (17, run::Event::Failed(failure), failed()),
        (Cause::Unresolved(failure), _) => {
            let routing = failure == Failure::Resolution { kind: ResolutionKind::Routing };
            let code = if routing { RoutingUnavailable } else { InternalFailure };
            (18, run::Event::Failed(failure), Release::failed(run.clone(), code))
        }
        (Cause::Indeterminate, _) => (19, run::Event::Failed(Failure::Indeterminate), failed()),
        (Cause::Blocked(gate), _) => (20, run::Event::Failed(Failure::Blocked { gate }), failed()),
    };
    let ending = Ending {
        row,
        run_state: status(&event),
        failure: if let run::Event::Failed(failure) = &event { Some(failure.clone()) } else { None },
        stop_reason,
        facts: facts.count(),
        outcome: release.outcome(),
        fallback_type: release.fallback_type(),
        failure_code: release.failure_code(),
    };
    Verdict { ending, event, release }
}

const fn status(event: &run::Event) -> RunStatus {
    match event {
        run::Event::Succeeded => RunStatus::Success,
        run::Event::Failed(_) => RunStatus::Failed,
        run::Event::Cancelled => RunStatus::Cancelled,
        run::Event::TimedOut => RunStatus::TimedOut,
        run::Event::BudgetExhausted => RunStatus::BudgetExhausted,
        run::Event::Started
        | run::Event::ModelCalled(_)
        | run::Event::BackedOff(_)
        | run::Event::ToolsCalled(_)
        | run::Event::PersonAwaited(_)
        | run::Event::Consulted
        | run::Event::ReleaseEntered => RunStatus::Running,
    }
}
