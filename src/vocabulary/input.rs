//! Inputs: reports from the world, past tense. The only thing that moves a run (SPEC 4).

use super::digest::Digest;
use super::environment::{Environment, StateScope};
use super::failure::ResolutionError;
use super::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, RunId, Ticket, ToolCallId};
use super::json::{Json, present};
use super::llm;
use super::spec::Spec;
use super::tool::{Recovery, ToolError, ToolOutput};
use super::wire::{object, tagged, words};

tagged! {
    /// A report from the world.
    #[allow(clippy::large_enum_variant)]
    pub enum Input {
        /// A run begins. Always the first input, at 0 ms.
        RunStarted = "run_started" {
            /// The run's id.
            run_id: RunId,
            /// What it is asked to do.
            spec: Box<Spec>,
            /// 1 to 128 bytes that no other run has: the seed of jitter.
            nonce: String,
            /// When it began, for people only: at most 64 bytes, RFC 3339 by custom.
            wall_time: String,
            /// The run whose first records it took over; absent for a run of its own.
            #[serde(skip_serializing_if = "Option::is_none")]
            forked_from: Option<Parent>,
        },
        /// Tools, gates and hooks were found and merged.
        EnvironmentResolved = "environment_resolved" {
            /// All of them.
            environment: Box<Environment>,
        },
        /// They were not.
        ResolutionFailed = "resolution_failed" {
            /// Why.
            error: ResolutionError,
        },
        /// The model answered.
        ModelResponded = "model_responded" {
            /// The request.
            call: ModelCallId,
            /// Which attempt, from 1.
            attempt: u32,
            /// What it answered.
            content: llm::Content,
            /// Why it stopped.
            finish: llm::FinishReason,
            /// What it used.
            usage: llm::Usage,
        },
        /// An attempt of a model request failed.
        ModelFailed = "model_failed" {
            /// The request.
            call: ModelCallId,
            /// Which attempt, from 1.
            attempt: u32,
            /// How.
            error: llm::Error,
            /// What was used all the same.
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<llm::Usage>,
        },
        /// The delay before an attempt is over.
        BackoffElapsed = "backoff_elapsed" {
            /// The request.
            call: ModelCallId,
            /// The attempt that may begin now.
            attempt: u32,
        },
        /// The dispatch of a wave is durable; its calls may be entered.
        ToolsDispatched = "tools_dispatched" {
            /// The wave, in model order.
            calls: Vec<ToolCallId>,
        },
        /// An invocation returned.
        ToolCompleted = "tool_completed" {
            /// The call.
            call: ToolCallId,
            /// Which attempt, from 1.
            attempt: u32,
            /// What it returned.
            output: ToolOutput,
        },
        /// An invocation failed.
        ToolFailed = "tool_failed" {
            /// The call.
            call: ToolCallId,
            /// Which attempt, from 1.
            attempt: u32,
            /// How.
            error: ToolError,
        },
        /// An invocation took too long.
        ToolTimedOut = "tool_timed_out" {
            /// The call.
            call: ToolCallId,
            /// Which attempt, from 1.
            attempt: u32,
        },
        /// A running tool asks for a call of its own.
        NestedCallRequested = "nested_call_requested" {
            /// The running tool call.
            parent: ToolCallId,
            /// The parent's attempt.
            attempt: u32,
            /// The nested call's id: the parent's next one, from 0 on, at most 1,024 over all its attempts.
            nested: NestedCallId,
            /// What it is.
            kind: NestedKind,
            /// The tool, for a tool call.
            #[serde(skip_serializing_if = "Option::is_none")]
            tool: Option<String>,
            /// Its arguments, for a tool call.
            #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
            arguments: Option<Json>,
        },
        /// A nested call ended.
        NestedCompleted = "nested_completed" {
            /// The nested call.
            nested: NestedCallId,
            /// What it used. A model call that does not say it used something that is not known.
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<llm::Usage>,
        },
        /// A gate answered.
        GateAnswered = "gate_answered" {
            /// The question.
            ask: Ask,
            /// The answer.
            answer: GateAnswer,
        },
        /// A gate failed.
        GateFailed = "gate_failed" {
            /// The question.
            ask: Ask,
        },
        /// A hook answered.
        HookAnswered = "hook_answered" {
            /// The question.
            ask: Ask,
            /// What it stages.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            commands: Vec<StagedCommand>,
            /// Text for the next model request only.
            #[serde(skip_serializing_if = "Option::is_none")]
            context: Option<String>,
        },
        /// A hook failed.
        HookFailed = "hook_failed" {
            /// The question.
            ask: Ask,
        },
        /// A person decided.
        DecisionGiven = "decision_given" {
            /// The ticket.
            ticket: Ticket,
            /// Who, as the edge knows them.
            by: String,
            /// What.
            decision: Decision,
        },
        /// Nobody decided in time.
        TicketExpired = "ticket_expired" {
            /// The ticket.
            ticket: Ticket,
        },
        /// The judge gave a verdict.
        SemanticsJudged = "semantics_judged" {
            /// The question.
            call: JudgeCallId,
            /// Which attempt, from 1.
            attempt: u32,
            /// The draft that was judged.
            draft: Digest,
            /// The verdict.
            verdict: Verdict,
            /// What it used.
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<llm::Usage>,
        },
        /// The judge failed.
        SemanticsFailed = "semantics_failed" {
            /// The question.
            call: JudgeCallId,
            /// Which attempt, from 1.
            attempt: u32,
            /// The draft that should have been judged.
            draft: Digest,
            /// How.
            error: llm::Error,
        },
        /// Somebody wants the run to stop.
        CancelRequested = "cancel_requested" {
            /// Who, as the edge knows them.
            by: String,
            /// Which way it came.
            origin: CancelOrigin,
        },
        /// The deadline passed.
        DeadlineElapsed = "deadline_elapsed" {
            /// The report that came at or after the deadline, in whose place this step stands.
            #[serde(skip_serializing_if = "Option::is_none")]
            displaced: Option<Box<Input>>,
        },
        /// An unknown failure of the driver or a port.
        ExecutionCrashed = "execution_crashed" {
            /// Where, for people.
            origin: String,
        },
        /// A driver took the run over after a crash.
        RunRecovered = "run_recovered" {
            /// Larger than every earlier one.
            epoch: u64,
            /// What the live tools declare now.
            #[serde(default)]
            tools: Vec<LiveTool>,
        },
        /// A person found out what an interrupted call did.
        ToolReconciled = "tool_reconciled" {
            /// The call.
            call: ToolCallId,
            /// Who, as the edge knows them.
            by: String,
            /// What it did.
            outcome: Reconciliation,
        },
        /// The release reached its reader.
        ReleaseDelivered = "release_delivered" {
            /// The reader's receipt.
            receipt: String,
        },
        /// A torn last line of the history was set aside.
        TailRepaired = "tail_repaired" {
            /// The torn line's place: the number of whole lines before it.
            ordinal: u64,
            /// Its length.
            bytes: u64,
            /// Its digest.
            digest: Digest,
        },
    }
}

object! {
    /// Where a fork left its parent (SPEC 13.13).
    pub struct Parent {
        /// The parent.
        pub run: RunId,
        /// The last of the records that were taken over.
        pub seq: u64,
        /// The hash of that record.
        pub head: Digest,
    }
}

words! {
    /// What a nested call is.
    pub enum NestedKind {
        /// A tool call.
        Tool = "tool",
        /// A model call.
        Model = "model",
    }
}

tagged! {
    /// What a gate answers. It may hold back, never widen.
    pub enum GateAnswer {
        /// Nothing against it.
        Allow = "allow",
        /// Not this one.
        Block = "block" {
            /// What the model may see of the reason.
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
        },
        /// This text stands in the tool's place: an observation, never facts.
        SetResult = "set_result" {
            /// What the model sees.
            content: String,
        },
        /// A person must decide.
        Confirm = "confirm" {
            /// When the question expires; never when absent.
            #[serde(skip_serializing_if = "Option::is_none")]
            expires_ms: Option<u64>,
        },
    }
}

tagged! {
    /// What a person decides.
    pub enum Decision {
        /// The call may run as it is.
        Allow = "allow",
        /// The call may run with these arguments.
        AllowWith = "allow_with" {
            /// The arguments that stand in the model's place.
            arguments: Json,
        },
        /// It may not.
        Deny = "deny" {
            /// What the model may see of the reason.
            #[serde(skip_serializing_if = "Option::is_none")]
            note: Option<String>,
        },
    }
}

tagged! {
    /// What a hook or a tool stages. A change of state takes effect when its commit batch commits; an action is
    /// performed within the batch (SPEC 12).
    pub enum StagedCommand {
        /// Sets a value.
        Set = "set" {
            /// The scope.
            scope: StateScope,
            /// The key.
            key: String,
            /// The value.
            value: Json,
        },
        /// Removes a value.
        Remove = "remove" {
            /// The scope.
            scope: StateScope,
            /// The key.
            key: String,
        },
        /// Asks the plugin that contributes an action kind to perform one.
        Schedule = "schedule" {
            /// The kind.
            action: String,
            /// What it is performed with.
            #[serde(default = "nothing")]
            payload: Json,
        },
    }
}

const fn nothing() -> Json {
    Json::Null
}

words! {
    /// The judge's verdict on a draft.
    pub enum Verdict {
        /// The cited facts carry the conclusion.
        Supported = "supported",
        /// They do not.
        Unsupported = "unsupported",
        /// They say the opposite.
        Contradicted = "contradicted",
        /// The judge could not tell.
        Unknown = "unknown",
    }
}

words! {
    /// Which way a cancellation came.
    pub enum CancelOrigin {
        /// The caller asked.
        Caller = "caller",
        /// The caller went away.
        Disconnect = "disconnect",
        /// A newer run took its place.
        Superseded = "superseded",
    }
}

object! {
    /// What a live tool declares at recovery.
    pub struct LiveTool {
        /// Its name.
        pub name: String,
        /// Its recovery mode.
        pub recovery: Recovery,
    }
}

tagged! {
    /// What a person found out about an interrupted call.
    pub enum Reconciliation {
        /// It happened, and this is what it returned.
        Applied = "applied" {
            /// What it returned.
            output: ToolOutput,
        },
        /// Nothing happened.
        NotApplied = "not_applied",
        /// It cannot be found out.
        Unknown = "unknown",
    }
}
