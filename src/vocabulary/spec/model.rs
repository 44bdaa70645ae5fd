//! Models and when a failed request to one is sent again (SPEC 6).

use crate::vocabulary::json::Json;
use crate::vocabulary::wire::{object, words};

object! {
    /// A model, by name, and how it is asked.
    pub struct ModelSpec {
        /// The name that the provider knows.
        pub name: String,
        /// What its provider speaks. Default: told by the name (`claude-`, `gemini-`), else `openai`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub api: Option<Api>,
        /// The provider's address, where it is not the usual one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub base_url: Option<String>,
        /// Where the key is found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key: Option<SecretRef>,
        /// Parameters of the request (temperature and such), handed to the provider as they are. Default: none.
        #[serde(default = "none", skip_serializing_if = "is_none")]
        pub parameters: Json,
        /// How it asks for tools. Default: `native`.
        #[serde(default = "native", skip_serializing_if = "is_native")]
        pub tool_calling: ToolCalling,
        /// Whether the provider is asked to hold answers to a JSON Schema. Default: no.
        #[serde(default, skip_serializing_if = "is_false")]
        pub structured_output: bool,
        /// Whether answers come piece by piece; they are taken whole all the same. Default: no.
        #[serde(default, skip_serializing_if = "is_false")]
        pub streaming: bool,
        /// How long one attempt may take, from the connection to the last byte, in milliseconds: 1 to 3,600,000.
        /// Default: 300,000.
        #[serde(default = "timeout_ms", skip_serializing_if = "is_usual_timeout")]
        pub timeout_ms: u64,
    }
}

words! {
    /// What a provider speaks.
    pub enum Api {
        /// Chat completions, as OpenAI and many others have them.
        OpenAi = "openai",
        /// Anthropic's messages.
        Anthropic = "anthropic",
        /// Gemini's `generateContent`.
        Gemini = "gemini",
        /// Ollama's chat.
        Ollama = "ollama",
    }
}

words! {
    /// How a model asks for tools.
    pub enum ToolCalling {
        /// In the provider's own form.
        Native = "native",
        /// As JSON in its text, one step an answer: for models that have no form of their own.
        JsonSteps = "json_steps",
    }
}

const TIMEOUT_MS: u64 = 300_000;

const fn timeout_ms() -> u64 {
    TIMEOUT_MS
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_usual_timeout(milliseconds: &u64) -> bool {
    *milliseconds == TIMEOUT_MS
}

const fn native() -> ToolCalling {
    ToolCalling::Native
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_native(calling: &ToolCalling) -> bool {
    matches!(calling, ToolCalling::Native)
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_false(flag: &bool) -> bool {
    !*flag
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
        Self {
            name: name.into(),
            api: None,
            base_url: None,
            key: None,
            parameters: Json::Null,
            tool_calling: ToolCalling::Native,
            structured_output: false,
            streaming: false,
            timeout_ms: TIMEOUT_MS,
        }
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
