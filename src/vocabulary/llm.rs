//! Model requests: what comes back and how it can fail (SPEC 6).

use super::json::{Json, present};
use super::wire::{object, tagged, words};

words! {
    /// Why a model stopped writing.
    pub enum FinishReason {
        /// It was done.
        Stop = "stop",
        /// It asks for tools.
        ToolCalls = "tool_calls",
        /// The length limit cut it.
        Length = "length",
        /// A content filter cut it: a failure, not a draft.
        ContentFilter = "content_filter",
    }
}

object! {
    /// Tokens that one attempt used. An absent number is unknown, not zero.
    #[derive(Copy, Default)]
    pub struct Usage {
        /// Tokens read, cached ones included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input_tokens: Option<u64>,
        /// Tokens written, reasoning included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub output_tokens: Option<u64>,
    }
}

object! {
    /// One tool call that a model asks for, as it came.
    pub struct ToolRequest {
        /// The tool's name.
        pub name: String,
        /// The arguments as the model wrote them: text, not yet known to be JSON.
        pub arguments: String,
        /// The provider's id for the call: an attribute that may repeat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provider_id: Option<String>,
    }
}

object! {
    /// What a model answered.
    #[derive(Default)]
    pub struct Content {
        /// Text: the draft, or commentary beside tool calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
        /// Tool calls, in the model's order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub calls: Vec<ToolRequest>,
        /// What the provider wants back with the next request (reasoning blocks, signatures), opaque to us.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        pub opaque: Option<Json>,
    }
}

words! {
    /// The permanent code of an [`Error`].
    pub enum Code {
        /// The provider failed.
        ProviderError = "provider_error",
        /// Too many requests.
        RateLimited = "rate_limited",
        /// The provider has no room now.
        Overloaded = "overloaded",
        /// No answer in time.
        Timeout = "timeout",
        /// The request does not fit this model's binding.
        BindingRejected = "binding_rejected",
        /// More input than the model takes.
        ContextOverflow = "context_overflow",
        /// The provider calls the request wrong.
        InvalidRequest = "invalid_request",
        /// The key is refused.
        Unauthorized = "unauthorized",
        /// The account's quota is used up.
        UsageLimit = "usage_limit",
        /// Somebody must log in.
        LoginRequired = "login_required",
        /// No such model.
        ModelNotFound = "model_not_found",
        /// A content filter refused.
        ContentFiltered = "content_filtered",
    }
}

impl Code {
    /// Whether the same request may be sent again (SPEC 6).
    #[must_use]
    pub const fn retryable(self) -> bool {
        match self {
            Self::ProviderError | Self::RateLimited | Self::Overloaded | Self::Timeout => true,
            Self::BindingRejected
            | Self::ContextOverflow
            | Self::InvalidRequest
            | Self::Unauthorized
            | Self::UsageLimit
            | Self::LoginRequired
            | Self::ModelNotFound
            | Self::ContentFiltered => false,
        }
    }

    /// Whether it concerns that model or account alone, so that a fallback model may fare better (SPEC 6).
    #[must_use]
    pub const fn concerns_the_model(self) -> bool {
        match self {
            Self::ModelNotFound
            | Self::Unauthorized
            | Self::LoginRequired
            | Self::UsageLimit
            | Self::BindingRejected
            | Self::ContextOverflow => true,
            Self::ProviderError
            | Self::RateLimited
            | Self::Overloaded
            | Self::Timeout
            | Self::InvalidRequest
            | Self::ContentFiltered => false,
        }
    }
}

tagged! {
    /// One failed attempt of a model request. The engine alone decides to retry; adapters never do.
    #[derive(thiserror::Error)]
    #[error("{}: {}", self.code(), self.message())]
    pub enum Error {
        /// The provider failed.
        Provider = "provider_error" {
            /// For people; it never reaches a release.
            message: String,
        },
        /// Too many requests.
        RateLimited = "rate_limited" {
            /// For people.
            message: String,
            /// How long the provider asks to wait.
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after_ms: Option<u64>,
        },
        /// The provider has no room now.
        Overloaded = "overloaded" {
            /// For people.
            message: String,
            /// How long the provider asks to wait.
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after_ms: Option<u64>,
        },
        /// No answer in time.
        Timeout = "timeout" {
            /// For people.
            message: String,
        },
        /// The request does not fit this model's binding.
        Binding = "binding_rejected" {
            /// For people.
            message: String,
        },
        /// More input than the model takes.
        ContextOverflow = "context_overflow" {
            /// For people.
            message: String,
        },
        /// The provider calls the request wrong.
        InvalidRequest = "invalid_request" {
            /// For people.
            message: String,
        },
        /// The key is refused.
        Unauthorized = "unauthorized" {
            /// For people.
            message: String,
        },
        /// The account's quota is used up.
        UsageLimit = "usage_limit" {
            /// For people.
            message: String,
            /// When it is filled again.
            #[serde(skip_serializing_if = "Option::is_none")]
            reset_after_ms: Option<u64>,
        },
        /// Somebody must log in.
        LoginRequired = "login_required" {
            /// For people.
            message: String,
        },
        /// No such model.
        ModelNotFound = "model_not_found" {
            /// For people.
            message: String,
        },
        /// A content filter refused.
        ContentFiltered = "content_filtered" {
            /// For people.
            message: String,
        },
    }
}

impl Error {
    /// The permanent code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Provider { .. } => Code::ProviderError,
            Self::RateLimited { .. } => Code::RateLimited,
            Self::Overloaded { .. } => Code::Overloaded,
            Self::Timeout { .. } => Code::Timeout,
            Self::Binding { .. } => Code::BindingRejected,
            Self::ContextOverflow { .. } => Code::ContextOverflow,
            Self::InvalidRequest { .. } => Code::InvalidRequest,
            Self::Unauthorized { .. } => Code::Unauthorized,
            Self::UsageLimit { .. } => Code::UsageLimit,
            Self::LoginRequired { .. } => Code::LoginRequired,
            Self::ModelNotFound { .. } => Code::ModelNotFound,
            Self::ContentFiltered { .. } => Code::ContentFiltered,
        }
    }

    /// The provider's words: a diagnostic, not a contract.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Provider { message }
            | Self::RateLimited { message, .. }
            | Self::Overloaded { message, .. }
            | Self::Timeout { message }
            | Self::Binding { message }
            | Self::ContextOverflow { message }
            | Self::InvalidRequest { message }
            | Self::Unauthorized { message }
            | Self::UsageLimit { message, .. }
            | Self::LoginRequired { message }
            | Self::ModelNotFound { message }
            | Self::ContentFiltered { message } => message,
        }
    }

    /// How long the provider asks to wait before the same request.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_ms, .. } | Self::Overloaded { retry_after_ms, .. } => *retry_after_ms,
            Self::Provider { .. }
            | Self::Timeout { .. }
            | Self::Binding { .. }
            | Self::ContextOverflow { .. }
            | Self::InvalidRequest { .. }
            | Self::Unauthorized { .. }
            | Self::UsageLimit { .. }
            | Self::LoginRequired { .. }
            | Self::ModelNotFound { .. }
            | Self::ContentFiltered { .. } => None,
        }
    }

    /// The first classified error of a cause chain decides (SPEC 6): a rate limit inside a rejected request
    /// is a rejected request. `None` when nothing in the chain is classified.
    #[must_use]
    pub fn first_classified<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |cause| cause.source()).find_map(|cause| cause.downcast_ref())
    }
}
