//! What one step brings: signals in the order they were raised, effects and messages in the order they came.

use std::sync::Arc;

use crate::machines::Taken;
use crate::machines::release::{Candidate, EvidencedDraft, Release, VerifiedDraft};
use crate::vocabulary::draft::BadDraft;
use crate::vocabulary::effect::{Effect, Purpose};
use crate::vocabulary::failure::Failure;
use crate::vocabulary::message::Message;
use crate::vocabulary::outcome::{EvidenceViolation, SemanticRefusal};
use crate::vocabulary::signal::{BudgetLimit, RepairFailure, RepairOf, Signal};

/// An effect that carries the engine's own release.
pub type Request = Effect<Release>;

/// The outbox of one step.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) signals: Vec<Signal>,
    pub(crate) effects: Vec<Request>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) transitions: Vec<Taken>,
    queue: std::collections::VecDeque<Raised>,
}

impl Outbox {
    /// Raises a signal that other machines act on within this step.
    pub(crate) fn raise(&mut self, raised: Raised) {
        self.signals.push(raised.signal());
        self.queue.push_back(raised);
    }

    /// Writes a signal that nobody acts on.
    pub(crate) fn note(&mut self, signal: Signal) {
        self.signals.push(signal);
    }

    /// Requests something of the world.
    pub(crate) fn request(&mut self, effect: Request) {
        self.effects.push(effect);
    }

    /// The next signal that was not acted on yet.
    pub(crate) fn next(&mut self) -> Option<Raised> {
        self.queue.pop_front()
    }
}

/// A signal together with what travels inside the step only: drafts and proofs.
#[derive(Debug)]
pub(crate) enum Raised {
    EnvironmentFixed(crate::vocabulary::digest::Digest),
    BatchOpened { round: u32, calls: u32 },
    BatchClosed { round: u32 },
    BudgetExhausted(BudgetLimit),
    ViolationLimitReached,
    CollectionStopped,
    DraftCompleted(Candidate),
    DraftConcludesNothing(crate::vocabulary::digest::Digest, Vec<String>),
    DraftInvalid(BadDraft, Purpose),
    RepairFailed(RepairOf, RepairFailure),
    ExecutionFailed(Failure),
    EvidenceHeld(EvidencedDraft),
    EvidenceViolated(EvidenceViolation),
    SemanticsHeld(VerifiedDraft),
    SemanticsRefused(EvidencedDraft, SemanticRefusal),
    ReleaseBlocked(String),
}

impl Raised {
    /// What is recorded of it.
    fn signal(&self) -> Signal {
        match self {
            Self::EnvironmentFixed(digest) => Signal::EnvironmentFixed { digest: *digest },
            Self::BatchOpened { round, calls } => Signal::BatchOpened { round: *round, calls: *calls },
            Self::BatchClosed { round } => Signal::BatchClosed { round: *round },
            Self::BudgetExhausted(limit) => Signal::BudgetExhausted { limit: *limit },
            Self::ViolationLimitReached => Signal::ViolationLimitReached,
            Self::CollectionStopped => Signal::CollectionStopped,
            Self::DraftCompleted(candidate) => Signal::DraftCompleted { digest: candidate.digest(), conclusion: true },
            Self::DraftConcludesNothing(digest, _) => Signal::DraftCompleted { digest: *digest, conclusion: false },
            Self::DraftInvalid(bad, _) => Signal::DraftInvalid { kind: bad.kind, digest: bad.digest, bytes: bad.bytes },
            Self::RepairFailed(of, reason) => Signal::RepairFailed { of: *of, reason: *reason },
            Self::ExecutionFailed(failure) => Signal::ExecutionFailed { failure: failure.clone() },
            Self::EvidenceHeld(_) => Signal::EvidenceHeld,
            Self::EvidenceViolated(kind) => Signal::EvidenceViolated { kind: *kind },
            Self::SemanticsHeld(verified) => Signal::SemanticsHeld { judged: verified.judged() },
            Self::SemanticsRefused(_, kind) => Signal::SemanticsRefused { kind: *kind },
            Self::ReleaseBlocked(gate) => {
                Signal::GateBlocked { gate: gate.clone(), of: crate::vocabulary::environment::GateOf::Release }
            }
        }
    }
}
