//! Plugins that are ready to be registered. They use what every embedder can use, and nothing else.
//!
//! | plugin | id | what |
//! |---|---|---|
//! | [`ToolPermission`] | `tool-permission` | which tools may be called, and which a person confirms |
//! | [`AnswerPolicy`] | `answer-policy` | what no answer may say, and what each must have |
//!
//! ```
//! use portcullis::plugins::{AnswerPolicy, ToolPermission};
//! use portcullis::runtime::Runtime;
//!
//! let builder = Runtime::builder().plugin(ToolPermission).plugin(AnswerPolicy);
//! ```
//!
//! A run asks for them in its spec: `"plugins": [{"id": "answer-policy", "config": {"forbidden": ["(?i)secret"]}}]`.

mod answer_policy;
mod tool_permission;

pub use answer_policy::AnswerPolicy;
pub use tool_permission::ToolPermission;

use serde::de::DeserializeOwned;

use crate::composition::PluginConfigError;
use crate::runtime::plugins::Plugin;
use crate::vocabulary::json::{Json, Pointer};

/// All of them.
pub(crate) fn all() -> [Box<dyn Plugin>; 2] {
    [Box::new(ToolPermission), Box::new(AnswerPolicy)]
}

/// Reads a configuration that the manifest's schema let through.
fn read<T: DeserializeOwned>(plugin: &str, config: &Json) -> Result<T, PluginConfigError> {
    serde_json::from_str(&config.to_text()).map_err(|error| PluginConfigError::new(plugin, error.to_string()))
}

/// What is wrong with the item in one place of a list.
fn wrong(plugin: &str, list: &str, index: usize, reason: impl Into<String>) -> PluginConfigError {
    let error = PluginConfigError::new(plugin, reason);
    match Pointer::parse(&format!("/{list}/{index}")) {
        Ok(place) => error.at(place),
        Err(_) => error,
    }
}
