//! Models and when a failed request to one is sent again (SPEC 6).

use crate::vocabulary::wire::object;

use crate::vocabulary::json::Json;

object! {
    /// A model, by name, and how it is asked.
    pub struct ModelSpec {
        /// The name that the provider knows.
        pub name: String,
        /// The provider's address, where it is not the usual one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub base_url: Option<String>,
        /// Where the key is found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key: Option<SecretRef>,
        /// Parameters of the request (temperature and such), handed to the provider as they are. Default: none.
        #[serde(default = "none", skip_serializing_if = "is_none")]
        pub parameters: Json,
    }
}

const fn none() -> Json {
    Json::Null
}

const fn is_none(parameters: &Json) -> bool {
    matches!(parameters, Json::Null)
}

impl ModelSpec {
    /// A model with nothing but its name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), base_url: None, key: None, parameters: Json::Null }
    }
}

object! {
    /// A reference to a secret: never the secret itself (SPEC 5).
    pub struct SecretRef {
        /// The environment variable that holds it.
        pub env: String,
    }
}

object! {
    default
    /// When a failed model request is sent again.
    pub struct Retry {
        /// Retries of one request on one model: 0 to 100. Default: 2.
        pub retries_max: u32,
        /// The first delay: 1 to 3,600,000. Default: 500.
        pub base_ms: u64,
        /// The first delay after `overloaded`: 1 to 3,600,000. Default: 2,000.
        pub overloaded_base_ms: u64,
        /// The longest delay of our own: 1 to 3,600,000. Default: 8,000.
        pub delay_ms_max: u64,
        /// The longest wait that a provider may ask for: 0 to 3,600,000. Default: 60,000.
        pub retry_after_ms_max: u64,
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            retries_max: 2,
            base_ms: 500,
            overloaded_base_ms: 2_000,
            delay_ms_max: 8_000,
            retry_after_ms_max: 60_000,
        }
    }
}
