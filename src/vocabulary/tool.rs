//! Tools: how their calls can end (SPEC 7).

use super::fact::Statement;
use super::input::StagedCommand;
use super::json::Json;
use super::wire::{tagged, words};

words! {
    /// What may be done with a call whose end was lost in a crash (SPEC 7).
    pub enum Recovery {
        /// It is never entered again.
        NeverReplay = "never_replay",
        /// It only looks: it may run again.
        ReplaySafe = "replay_safe",
        /// The other side removes repetitions by operation id.
        Idempotent = "idempotent",
        /// The request is durable there: the executor connects to it again.
        DurableRequest = "durable_request",
    }
}

words! {
    /// Whether a call may run beside others of its batch.
    pub enum Concurrency {
        /// Together with its parallel neighbours.
        Parallel = "parallel",
        /// Alone.
        Serial = "serial",
    }
}

words! {
    /// What an indeterminate call does to the run.
    pub enum OnIndeterminate {
        /// Wait for a person to reconcile it.
        Await = "await",
        /// Tell the model that the outcome is unknown and go on.
        Observe = "observe",
        /// End the run (SPEC 3.19).
        End = "end",
    }
}

tagged! {
    /// What a tool's executor reports when the invocation itself worked.
    pub enum ToolOutput {
        /// The tool did what was asked.
        Success = "success" {
            /// What the model sees.
            content: String,
            /// Facts, when the tool's projection is `reported`: objects `{"statement", "key"?}`. Kept as
            /// JSON so that a malformed one is an observation and not a lost call.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            facts: Vec<Json>,
            /// What it stages; nothing of it counts unless the result does.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            commands: Vec<StagedCommand>,
        },
        /// The tool answers with a failure that the model should see.
        Error = "error" {
            /// What the model sees.
            content: String,
        },
    }
}

impl ToolOutput {
    /// A plain success without reported facts.
    #[must_use]
    pub fn text(content: impl Into<String>) -> Self {
        Self::Success { content: content.into(), facts: Vec::new(), commands: Vec::new() }
    }

    /// A failed result that the model should see.
    #[must_use]
    pub fn error(content: impl Into<String>) -> Self {
        Self::Error { content: content.into() }
    }

    /// A success with facts.
    #[must_use]
    pub fn facts(content: impl Into<String>, statements: impl IntoIterator<Item = Statement>) -> Self {
        let facts = statements
            .into_iter()
            .map(|fact| {
                let key = fact.key.map(|key| ("key".to_owned(), Json::String(key)));
                let statement = ("statement".to_owned(), Json::String(fact.statement));
                Json::Object([statement].into_iter().chain(key).collect())
            })
            .collect();
        Self::Success { content: content.into(), facts, commands: Vec::new() }
    }

    /// The same, staging these commands too. An error stages nothing.
    #[must_use]
    pub fn staging(mut self, staged: impl IntoIterator<Item = StagedCommand>) -> Self {
        if let Self::Success { commands, .. } = &mut self {
            commands.extend(staged);
        }
        self
    }

    /// What the model sees.
    #[must_use]
    pub fn content(&self) -> &str {
        match self {
            Self::Success { content, .. } | Self::Error { content } => content,
        }
    }
}

tagged! {
    /// An invocation that failed.
    #[derive(thiserror::Error)]
    #[error("{}: {}", self.tag(), self.message())]
    pub enum ToolError {
        /// The executor does not know the tool.
        Unknown = "unknown" {
            /// For people.
            message: String,
        },
        /// The executor refuses the arguments.
        InvalidArguments = "invalid_arguments" {
            /// For people.
            message: String,
        },
        /// The request never crossed the dispatch boundary: the only proof that nothing happened.
        UnavailableBeforeDispatch = "unavailable_before_dispatch" {
            /// For people.
            message: String,
        },
        /// It failed somewhere on the way; whether something happened is not known.
        Execution = "execution" {
            /// For people.
            message: String,
        },
    }
}

impl ToolError {
    /// For people: a diagnostic, not a contract.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Unknown { message }
            | Self::InvalidArguments { message }
            | Self::UnavailableBeforeDispatch { message }
            | Self::Execution { message } => message,
        }
    }
}

words! {
    /// Why a call's observation is not an ordinary success: the closed list of SPEC 7.
    pub enum ObservationCode {
        /// No tool of that name.
        UnknownTool = "UNKNOWN_TOOL",
        /// Arguments that are no strict JSON or that the schema refuses.
        InvalidArguments = "INVALID_ARGUMENTS",
        /// Arguments cut by the length limit.
        ArgumentsTruncated = "ARGUMENTS_TRUNCATED",
        /// `previous_observation` is missing or malformed.
        ProtocolViolation = "PROTOCOL_VIOLATION",
        /// This scope was already answered.
        DuplicateScope = "DUPLICATE_SCOPE",
        /// The tool budget is used up.
        BudgetExhausted = "BUDGET_EXHAUSTED",
        /// A gate blocked the call.
        Blocked = "BLOCKED",
        /// A gate answered in the tool's place.
        SetByGate = "SET_BY_GATE",
        /// A person denied the call.
        Denied = "DENIED",
        /// Nobody decided in time.
        DecisionExpired = "DECISION_EXPIRED",
        /// The result is larger than the tool may give.
        ResultTooLarge = "RESULT_TOO_LARGE",
        /// The result's facts are malformed.
        ProjectionFailed = "PROJECTION_FAILED",
        /// The tool's own error.
        ToolResultError = "TOOL_RESULT_ERROR",
        /// The invocation failed.
        ToolExecutionError = "TOOL_EXECUTION_ERROR",
        /// The invocation took too long.
        ToolTimeout = "TOOL_TIMEOUT",
        /// The tool could not be reached.
        ToolUnavailable = "TOOL_UNAVAILABLE",
        /// The call was never started.
        NotDispatched = "NOT_DISPATCHED",
        /// A person found that an interrupted call did nothing.
        NotApplied = "NOT_APPLIED",
        /// It is not known what an interrupted call did.
        OutcomeUnknown = "OUTCOME_UNKNOWN",
        /// A nested call of a finished run.
        RunInactive = "RUN_INACTIVE",
    }
}
