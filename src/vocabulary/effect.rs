//! Effects: requests to the world, imperative, with deterministic ids (SPEC 4). They are written before they
//! are performed, and each is answered by an input.

use serde::Serialize;

use super::digest::Digest;
use super::environment::HookPoint;
use super::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, OperationId, Ticket, ToolCallId};
use super::input::Input;
use super::tool::ObservationCode;
use super::wire::words;

/// A request to the world. `R` is the release it may carry: the engine's own, which nobody else can build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect<R> {
    /// Find and merge tools, gates and hooks. Answered by `environment_resolved` or `resolution_failed`.
    ResolveEnvironment,
    /// Ask a model. Answered by `model_responded` or `model_failed`.
    CallModel {
        /// The request.
        call: ModelCallId,
        /// Which attempt, from 1.
        attempt: u32,
        /// The model's name.
        model: String,
        /// What for.
        purpose: Purpose,
        /// Whether tools are offered.
        tools: ToolOffer,
        /// Of everything the model is shown.
        request: Digest,
    },
    /// Wake the run. Answered by the input that the kind names.
    StartTimer {
        /// Which timer.
        kind: TimerKind,
        /// What it belongs to: a call and its attempt, a ticket, or the run.
        of: String,
        /// When, in milliseconds from the run's start.
        due_ms: u64,
    },
    /// Ask a gate. Answered by `gate_answered` or `gate_failed`.
    AskGate {
        /// The question.
        ask: Ask,
        /// The gate.
        gate: String,
        /// What it stands before.
        about: GateSubject,
    },
    /// Tell a hook. Answered by `hook_answered` or `hook_failed`; at `run_end` nothing answers, for the run has
    /// ended.
    CallHook {
        /// The question.
        ask: Ask,
        /// Where the run stands.
        point: HookPoint,
        /// The plugin.
        plugin: String,
    },
    /// Have a plugin perform a scheduled action. Answered by `hook_answered` or `hook_failed`.
    PerformAction {
        /// The question.
        ask: Ask,
        /// The action's kind.
        action: String,
        /// The plugin that contributes the kind.
        plugin: String,
    },
    /// Make the dispatch of a wave durable. Answered by `tools_dispatched`.
    DispatchTools {
        /// The wave, in model order.
        calls: Vec<ToolCallId>,
    },
    /// Enter a tool. Answered by `tool_completed`, `tool_failed` or `tool_timed_out`.
    InvokeTool {
        /// The call.
        call: ToolCallId,
        /// Which attempt, from 1.
        attempt: u32,
        /// The idempotency key, the same for every attempt.
        operation_id: OperationId,
    },
    /// Let a nested call begin: the tool makes it itself. Answered by `nested_completed`, until its parent closes.
    AdmitNested {
        /// The nested call.
        nested: NestedCallId,
    },
    /// Do not let it begin. Nothing answers.
    DenyNested {
        /// The nested call.
        nested: NestedCallId,
        /// Why.
        code: ObservationCode,
    },
    /// Ask a person. Answered by `decision_given` or `ticket_expired`.
    AwaitDecision {
        /// The ticket.
        ticket: Ticket,
        /// The call it decides on.
        call: ToolCallId,
    },
    /// Find out what an interrupted call did. Answered by `tool_reconciled`.
    ReconcileTool {
        /// The call.
        call: ToolCallId,
        /// Its idempotency key.
        operation_id: OperationId,
    },
    /// Ask the judge. Answered by `semantics_judged` or `semantics_failed`.
    JudgeSemantics {
        /// The question.
        call: JudgeCallId,
        /// Which attempt, from 1.
        attempt: u32,
        /// The draft.
        draft: Digest,
    },
    /// Stop whatever is under way. Nothing answers; late reports are refused.
    AbortInFlight,
    /// Hand the release out, at least once. Answered by `release_delivered`.
    Publish {
        /// The release.
        release: R,
        /// The same for every offer of this release.
        key: Digest,
    },
}

/// An effect that is answered by one of these inputs, by type.
impl<R> Effect<R> {
    /// The types of input that answer it.
    #[must_use]
    pub const fn answers(&self) -> &'static [&'static str] {
        match self {
            Self::ResolveEnvironment => &["environment_resolved", "resolution_failed"],
            Self::CallModel { .. } => &["model_responded", "model_failed"],
            Self::StartTimer { kind, .. } => match kind {
                TimerKind::Deadline => &["deadline_elapsed"],
                TimerKind::Backoff => &["backoff_elapsed"],
                TimerKind::ToolTimeout => &["tool_timed_out"],
                TimerKind::TicketExpiry => &["ticket_expired"],
            },
            Self::AskGate { .. } => &["gate_answered", "gate_failed"],
            Self::CallHook { point: HookPoint::RunEnd, .. } => &[],
            Self::CallHook { .. } | Self::PerformAction { .. } => &["hook_answered", "hook_failed"],
            Self::DispatchTools { .. } => &["tools_dispatched"],
            Self::InvokeTool { .. } => &["tool_completed", "tool_failed"],
            Self::AdmitNested { .. } => &["nested_completed"],
            Self::AwaitDecision { .. } => &["decision_given"],
            Self::ReconcileTool { .. } => &["tool_reconciled"],
            Self::JudgeSemantics { .. } => &["semantics_judged", "semantics_failed"],
            Self::Publish { .. } => &["release_delivered"],
            Self::DenyNested { .. } | Self::AbortInFlight => &[],
        }
    }
}

macro_rules! tags {
    ($( $variant:ident = $tag:literal ),* $(,)?) => {
        impl<R> Effect<R> {
            /// Every `type` on the wire, in declaration order.
            pub const TAGS: &'static [&'static str] = &[ $( $tag ),* ];

            /// The `type` of this effect on the wire.
            #[must_use]
            pub const fn tag(&self) -> &'static str {
                match self { $( Self::$variant { .. } => $tag ),* }
            }
        }
    };
}

tags! {
    ResolveEnvironment = "resolve_environment",
    CallModel = "call_model",
    StartTimer = "start_timer",
    AskGate = "ask_gate",
    CallHook = "call_hook",
    PerformAction = "perform_action",
    DispatchTools = "dispatch_tools",
    InvokeTool = "invoke_tool",
    AdmitNested = "admit_nested",
    DenyNested = "deny_nested",
    AwaitDecision = "await_decision",
    ReconcileTool = "reconcile_tool",
    JudgeSemantics = "judge_semantics",
    AbortInFlight = "abort_in_flight",
    Publish = "publish",
}

words! {
    /// What a model call is for.
    pub enum Purpose {
        /// The next step of the loop: tools or an answer.
        Step = "step",
        /// A bad draft, once more.
        DraftRepair = "draft_repair",
        /// A draft whose evidence does not hold, once more.
        EvidenceRepair = "evidence_repair",
    }
}

words! {
    /// Whether a model call offers tools.
    pub enum ToolOffer {
        /// Every tool of the environment.
        Offered = "offered",
        /// None: the model must answer.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// Which timer.
    pub enum TimerKind {
        /// The run's deadline.
        Deadline = "deadline",
        /// The delay before a model attempt.
        Backoff = "backoff",
        /// The time a tool call may take.
        ToolTimeout = "tool_timeout",
        /// The time a decision may take.
        TicketExpiry = "ticket_expiry",
    }
}

impl TimerKind {
    /// What a timer of this kind reports when it fires, `of` being what the effect says that it belongs to.
    /// `None` for an `of` that no effect of this kind has.
    #[must_use]
    pub fn report(self, of: &str) -> Option<Input> {
        let named = of.split_once('/').and_then(|(call, attempt)| Some((call, attempt.parse().ok()?)));
        Some(match self {
            Self::Deadline => Input::DeadlineElapsed { displaced: None },
            Self::TicketExpiry => Input::TicketExpired { ticket: Ticket(of.to_owned()) },
            Self::Backoff => {
                let (call, attempt) = named?;
                Input::BackoffElapsed { call: call.parse().ok()?, attempt }
            }
            Self::ToolTimeout => {
                let (call, attempt) = named?;
                Input::ToolTimedOut { call: call.parse().ok()?, attempt }
            }
        })
    }
}

/// What a gate is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GateSubject {
    /// A tool call.
    Tool {
        /// The call.
        call: ToolCallId,
    },
    /// A call that a running tool wants to make.
    Nested {
        /// The nested call.
        nested: NestedCallId,
    },
    /// A verified draft.
    Release {
        /// Its digest.
        draft: Digest,
    },
}
