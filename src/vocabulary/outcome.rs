//! How a run ends, in three layers that are never mixed (SPEC 2).

use super::wire::words;

words! {
    /// May this run technically go on? (SPEC 2, execution layer)
    pub enum RunStatus {
        /// It may.
        Running = "running",
        /// It came to its own end.
        Success = "success",
        /// It failed for a committed [`Failure`](super::failure::Failure).
        Failed = "failed",
        /// Somebody cancelled it.
        Cancelled = "cancelled",
        /// Its deadline passed.
        TimedOut = "timed_out",
        /// Its budget was used up at the model gate.
        BudgetExhausted = "budget_exhausted",
    }
}

words! {
    /// Is collecting evidence saturated? (SPEC 2, progress layer)
    pub enum CollectionStatus {
        /// New facts may still come.
        Collecting = "collecting",
        /// Several successful observations in a row brought nothing new.
        Saturated = "saturated",
    }
}

words! {
    /// Why collecting stopped (SPEC 2, progress layer).
    pub enum StopReason {
        /// Collecting was saturated.
        InformationSaturated = "information_saturated",
        /// The budget was used up.
        BudgetLimitReached = "budget_limit_reached",
        /// Too many responses in a row broke the protocol.
        ProtocolViolation = "protocol_violation",
    }
}

words! {
    /// What the user sees (SPEC 2, release layer).
    pub enum ReleaseOutcome {
        /// A report whose evidence and semantics hold.
        Success = "success",
        /// Observed facts, and why there is no report.
        Fallback = "fallback",
        /// A failure with a safe message.
        Failed = "failed",
        /// The run was cancelled.
        Cancelled = "cancelled",
    }
}

words! {
    /// Why a fallback stands in the report's place.
    pub enum FallbackType {
        /// No conclusion that could be checked.
        InsufficientEvidence = "insufficient_evidence",
        /// The conclusion cites nothing.
        EvidenceMissing = "evidence_missing",
        /// The conclusion cites a fact that was never observed.
        EvidenceUnknownReference = "evidence_unknown_reference",
        /// A quote does not stand in the fact it claims.
        EvidenceMismatch = "evidence_mismatch",
        /// The judge found that the facts do not carry the conclusion.
        SemanticUnsupported = "semantic_unsupported",
        /// The judge found that the facts contradict the conclusion.
        SemanticContradicted = "semantic_contradicted",
        /// The judge could not be heard.
        SemanticUnavailable = "semantic_unavailable",
    }
}

words! {
    /// Which rule of the evidence guard a conclusion breaks (SPEC 11), in the order they are asked.
    pub enum EvidenceViolation {
        /// A citation names no observed fact.
        UnknownReference = "evidence_unknown_reference",
        /// There is no citation.
        Missing = "evidence_missing",
        /// A quote belongs to no cited fact or does not stand in it.
        Mismatch = "evidence_mismatch",
    }
}

impl EvidenceViolation {
    /// The fallback it leads to.
    #[must_use]
    pub const fn fallback(self) -> FallbackType {
        match self {
            Self::UnknownReference => FallbackType::EvidenceUnknownReference,
            Self::Missing => FallbackType::EvidenceMissing,
            Self::Mismatch => FallbackType::EvidenceMismatch,
        }
    }
}

words! {
    /// Why the semantics of a conclusion were refused (SPEC 11).
    pub enum SemanticRefusal {
        /// The facts do not carry it.
        Unsupported = "semantic_unsupported",
        /// The facts contradict it.
        Contradicted = "semantic_contradicted",
        /// The judge failed, was not affordable or gave no verdict.
        Unavailable = "semantic_unavailable",
    }
}

impl SemanticRefusal {
    /// The fallback it leads to.
    #[must_use]
    pub const fn fallback(self) -> FallbackType {
        match self {
            Self::Unsupported => FallbackType::SemanticUnsupported,
            Self::Contradicted => FallbackType::SemanticContradicted,
            Self::Unavailable => FallbackType::SemanticUnavailable,
        }
    }
}

words! {
    /// The coarse reason on the wire (SPEC 2, protocol layer).
    pub enum FailureCode {
        /// The run was cancelled.
        RunCancelled = "RUN_CANCELLED",
        /// No route to a model or environment.
        RoutingUnavailable = "ROUTING_UNAVAILABLE",
        /// The store refused a commit; never inside a history, since it could not be written there.
        RunPersistenceFailed = "RUN_PERSISTENCE_FAILED",
        /// Everything else.
        InternalFailure = "INTERNAL_FAILURE",
    }
}

impl FailureCode {
    /// A sentence that may be shown to anybody. It holds nothing that a provider or a tool wrote.
    #[must_use]
    pub const fn safe_message(self) -> &'static str {
        match self {
            Self::RunCancelled => "The run was cancelled.",
            Self::RoutingUnavailable => "No model or environment is available for this run.",
            Self::RunPersistenceFailed => "The run could not be stored, so nothing was released.",
            Self::InternalFailure => "The run failed and nothing was released.",
        }
    }
}
