//! What can go wrong between here and a server, and what each means for a call (SPEC 7).

use rmcp::service::ServiceError;

use super::text::remark;
use super::transport::SendFault;
use crate::vocabulary::tool::ToolError;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// Nothing of it can have been written: the proof that nothing happened.
    #[error("{0}")]
    Unwritten(String),
    /// It was written, or may have been, and there is no answer.
    #[error("{0}")]
    Lost(String),
    /// The server answers that it will not.
    #[error("the server answers {code}: {message}")]
    Refused {
        /// JSON-RPC's code.
        code: i32,
        /// What the server says.
        message: String,
    },
    /// The server's answer breaks a limit or the protocol.
    #[error("{0}")]
    Broken(String),
}

/// JSON-RPC's codes that say something of the request.
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

impl Fault {
    /// What became of a request that was handed to the client.
    pub(super) fn of(error: ServiceError) -> Self {
        if let ServiceError::McpError(refusal) = error {
            return Self::Refused { code: refusal.code.0, message: remark(&refusal.message) };
        }
        // No other is a proof but the carrier's own.
        let ServiceError::TransportSend(sent) = error else { return Self::Lost(remark(&error.to_string())) };
        match sent.error.downcast_ref::<SendFault>() {
            Some(SendFault::Unwritten(reason)) => Self::Unwritten(reason.clone()),
            Some(SendFault::Begun(reason)) => Self::Lost(reason.clone()),
            None => Self::Lost(remark(&sent.error.to_string())),
        }
    }

    /// What the engine is told of a call that ended so.
    pub(super) fn of_call(self, source: &str) -> ToolError {
        let message = format!("{source:?}: {self}");
        match self {
            Self::Unwritten(_) => ToolError::UnavailableBeforeDispatch { message },
            Self::Lost(_) | Self::Broken(_) => ToolError::Execution { message },
            Self::Refused { code: METHOD_NOT_FOUND, .. } => ToolError::Unknown { message },
            Self::Refused { code: INVALID_PARAMS, .. } => ToolError::InvalidArguments { message },
            Self::Refused { .. } => ToolError::Execution { message },
        }
    }

    /// The same with other words.
    pub(super) fn map(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Unwritten(reason) => Self::Unwritten(change(reason)),
            Self::Lost(reason) => Self::Lost(change(reason)),
            Self::Refused { code, message } => Self::Refused { code, message: change(message) },
            Self::Broken(reason) => Self::Broken(change(reason)),
        }
    }

    /// Whether the server answered at all.
    pub(super) const fn is_an_answer(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Unwritten(_) | Self::Lost(_) | Self::Broken(_) => false,
        }
    }
}
