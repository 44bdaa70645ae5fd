//! A report that breaks a size or form limit never leaves a call open (SPEC 4.D4).

use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::input::Input;
use crate::vocabulary::llm;
use crate::vocabulary::tool::ToolError;

/// What is reported in the place of a report that the engine calls malformed.
pub(super) fn instead_of(report: &Input, reason: String) -> Input {
    match report {
        Input::ModelResponded { call, attempt, .. } | Input::ModelFailed { call, attempt, .. } => {
            let error = llm::Error::Provider { message: reason };
            Input::ModelFailed { call: *call, attempt: *attempt, error, usage: None }
        }
        Input::ToolCompleted { call, attempt, .. } | Input::ToolFailed { call, attempt, .. } => {
            let error = ToolError::Execution { message: reason };
            Input::ToolFailed { call: *call, attempt: *attempt, error }
        }
        Input::SemanticsJudged { call, attempt, draft, .. } | Input::SemanticsFailed { call, attempt, draft, .. } => {
            let error = llm::Error::Provider { message: reason };
            Input::SemanticsFailed { call: *call, attempt: *attempt, draft: *draft, error }
        }
        Input::EnvironmentResolved { .. } | Input::ResolutionFailed { .. } => {
            Input::ResolutionFailed { error: ResolutionError::Routing { message: reason } }
        }
        // The shortest remark fits every limit.
        Input::ExecutionCrashed { .. } => Input::ExecutionCrashed { origin: String::new() },
        Input::GateAnswered { ask, .. } => Input::GateFailed { ask: *ask },
        Input::HookAnswered { ask, .. } => Input::HookFailed { ask: *ask },
        Input::RunStarted { .. }
        | Input::BackoffElapsed { .. }
        | Input::ToolsDispatched { .. }
        | Input::ToolTimedOut { .. }
        | Input::NestedCallRequested { .. }
        | Input::NestedCompleted { .. }
        | Input::GateFailed { .. }
        | Input::HookFailed { .. }
        | Input::DecisionGiven { .. }
        | Input::TicketExpired { .. }
        | Input::CancelRequested { .. }
        | Input::DeadlineElapsed { .. }
        | Input::RunRecovered { .. }
        | Input::ToolReconciled { .. }
        | Input::ReleaseDelivered { .. }
        | Input::TailRepaired { .. } => Input::ExecutionCrashed { origin: format!("a {} out of form", report.tag()) },
    }
}
