//! Signals: events that one machine raises for the others, handled within the same step (SPEC 4).

use serde::Serialize;

use super::digest::Digest;
use super::draft::DraftFault;
use super::environment::{GateOf, StateScope};
use super::failure::{Failure, ResolutionError};
use super::ids::{FactId, ModelCallId, NestedCallId, ToolCallId};
use super::outcome::{EvidenceViolation, ReleaseOutcome, RunStatus, SemanticRefusal};
use super::tool::ObservationCode;
use super::wire::words;

/// An event inside a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Signal {
    /// The environment is fixed.
    EnvironmentFixed {
        /// Its digest.
        digest: Digest,
    },
    /// The environment cannot be used, or there is none.
    EnvironmentRefused {
        /// Why.
        error: ResolutionError,
    },
    /// A model's response was accepted.
    ResponseAccepted {
        /// The request.
        call: ModelCallId,
        /// How many tools it asks for.
        calls: u32,
    },
    /// A failed model request will be sent again.
    RetryScheduled {
        /// The request.
        call: ModelCallId,
        /// The next attempt.
        attempt: u32,
        /// How long it waits.
        delay_ms: u64,
    },
    /// The next model of the spec takes over.
    ModelReplaced {
        /// The request.
        call: ModelCallId,
        /// Its place: 1 is the first fallback.
        model: u32,
    },
    /// A batch of tool calls was opened.
    BatchOpened {
        /// The round.
        round: u32,
        /// Its calls.
        calls: u32,
    },
    /// A call got its closing observation.
    CallClosed {
        /// The call.
        call: ToolCallId,
        /// Why it is not an ordinary success.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<ObservationCode>,
    },
    /// It is not known what an interrupted call did.
    CallIndeterminate {
        /// The call.
        call: ToolCallId,
    },
    /// Its parent closed before an admitted nested call completed: it is not known what it did.
    NestedLost {
        /// The nested call.
        nested: NestedCallId,
    },
    /// Every call of the batch is closed and published.
    BatchClosed {
        /// The round.
        round: u32,
    },
    /// Facts were numbered.
    FactsObserved {
        /// The call that brought them.
        call: ToolCallId,
        /// The first of them.
        first: FactId,
        /// How many.
        count: u32,
        /// How many of them are new.
        new: u32,
    },
    /// A call met the overall tool limit: the next model gate ends the run unless it is given back.
    BudgetMarked,
    /// What used the tool limit up was given back.
    BudgetUnmarked,
    /// A model call was denied.
    BudgetExhausted {
        /// The limit that was met.
        limit: BudgetLimit,
    },
    /// Tools are withdrawn so that the last calls are kept for the answer.
    ToolsWithdrawn,
    /// Several successful observations in a row brought nothing new.
    InformationSaturated,
    /// The model is being told to stop collecting.
    StopDelivered,
    /// A response broke the protocol.
    ProtocolViolated {
        /// How many in a row.
        in_a_row: u32,
    },
    /// Too many responses in a row broke the protocol.
    ViolationLimitReached,
    /// The model asked for evidence after it was told to stop.
    CollectionStopped,
    /// A well-formed draft came.
    DraftCompleted {
        /// Its digest.
        digest: Digest,
        /// Whether it concludes anything.
        conclusion: bool,
    },
    /// A bad draft came and was dropped.
    DraftInvalid {
        /// What is wrong.
        kind: DraftFault,
        /// Of the text.
        digest: Digest,
        /// Of the text.
        bytes: u64,
    },
    /// A draft or its evidence is asked for again.
    RepairAsked {
        /// Which of them.
        of: RepairOf,
    },
    /// The repair brought nothing better.
    RepairFailed {
        /// Which repair.
        of: RepairOf,
        /// How.
        reason: RepairFailure,
    },
    /// Something failed beyond recovery.
    ExecutionFailed {
        /// What.
        failure: Failure,
    },
    /// Every citation and quote holds.
    EvidenceHeld,
    /// One does not.
    EvidenceViolated {
        /// Which rule it breaks.
        kind: EvidenceViolation,
    },
    /// The judge supports the conclusion, or the spec switched it off.
    SemanticsHeld {
        /// Whether a judge was asked.
        judged: bool,
    },
    /// The judge does not support it.
    SemanticsRefused {
        /// Why.
        kind: SemanticRefusal,
    },
    /// A gate blocked.
    GateBlocked {
        /// The gate.
        gate: String,
        /// What it stood before.
        of: GateOf,
    },
    /// Facts of earlier runs were numbered.
    FactsImported {
        /// How many.
        count: u32,
    },
    /// A plugin went beyond its bound.
    BoundBroken {
        /// The plugin; the tool's name when no plugin contributes that tool.
        plugin: String,
        /// What it tried.
        contribution: String,
    },
    /// Two writes of one commit batch do not go together.
    StateConflicted {
        /// The scope.
        scope: StateScope,
        /// The key.
        key: String,
        /// Who wrote first.
        earlier: String,
        /// Who wrote after it.
        later: String,
    },
    /// What a commit batch had staged took effect.
    StateCommitted {
        /// How many commands.
        commands: u32,
    },
    /// What a commit batch had staged was dropped.
    StateRolledBack {
        /// How many commands.
        commands: u32,
    },
    /// The row of the table is chosen.
    ReleaseDecided {
        /// The row.
        row: u8,
        /// What the user sees.
        outcome: ReleaseOutcome,
    },
    /// The run has ended.
    RunEnded {
        /// How.
        state: RunStatus,
    },
}

macro_rules! tags {
    ($( $variant:ident = $tag:literal ),* $(,)?) => {
        impl Signal {
            /// Every `type` on the wire, in declaration order.
            pub const TAGS: &'static [&'static str] = &[ $( $tag ),* ];

            /// The `type` of this signal on the wire.
            #[must_use]
            pub const fn tag(&self) -> &'static str {
                match self { $( Self::$variant { .. } => $tag ),* }
            }
        }
    };
}

tags! {
    EnvironmentFixed = "environment_fixed",
    EnvironmentRefused = "environment_refused",
    ResponseAccepted = "response_accepted",
    RetryScheduled = "retry_scheduled",
    ModelReplaced = "model_replaced",
    BatchOpened = "batch_opened",
    CallClosed = "call_closed",
    CallIndeterminate = "call_indeterminate",
    NestedLost = "nested_lost",
    BatchClosed = "batch_closed",
    FactsObserved = "facts_observed",
    BudgetMarked = "budget_marked",
    BudgetUnmarked = "budget_unmarked",
    BudgetExhausted = "budget_exhausted",
    ToolsWithdrawn = "tools_withdrawn",
    InformationSaturated = "information_saturated",
    StopDelivered = "stop_delivered",
    ProtocolViolated = "protocol_violated",
    ViolationLimitReached = "violation_limit_reached",
    CollectionStopped = "collection_stopped",
    DraftCompleted = "draft_completed",
    DraftInvalid = "draft_invalid",
    RepairAsked = "repair_asked",
    RepairFailed = "repair_failed",
    ExecutionFailed = "execution_failed",
    EvidenceHeld = "evidence_held",
    EvidenceViolated = "evidence_violated",
    SemanticsHeld = "semantics_held",
    SemanticsRefused = "semantics_refused",
    GateBlocked = "gate_blocked",
    FactsImported = "facts_imported",
    BoundBroken = "bound_broken",
    StateConflicted = "state_conflicted",
    StateCommitted = "state_committed",
    StateRolledBack = "state_rolled_back",
    ReleaseDecided = "release_decided",
    RunEnded = "run_ended",
}

words! {
    /// A budget that can be met at the model gate.
    pub enum BudgetLimit {
        /// Logical model requests.
        ModelCalls = "model_calls",
        /// The overall tool limit, marked by a denied call.
        ToolCalls = "tool_calls",
        /// Tokens.
        TotalTokens = "total_tokens",
        /// Cost.
        CostMicros = "cost_micros",
    }
}

words! {
    /// What is asked for again.
    pub enum RepairOf {
        /// A bad draft.
        Draft = "draft",
        /// A draft whose evidence does not hold.
        Evidence = "evidence",
    }
}

words! {
    /// Why a repair brought nothing better.
    pub enum RepairFailure {
        /// The budget denied it.
        Denied = "denied",
        /// The model asked for tools instead.
        ToolsRequested = "tools_requested",
        /// The draft is bad.
        DraftInvalid = "draft_invalid",
        /// The evidence still does not hold.
        EvidenceViolated = "evidence_violated",
    }
}
