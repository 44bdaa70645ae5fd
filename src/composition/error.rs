//! Why plugins do not make one environment. Branch on the variants; the messages are for people, and say the ids
//! and the way out (SPEC 12).

use std::fmt;

use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::json::Pointer;
use crate::vocabulary::wire::words;

/// Why a merge failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A contribution outside its plugin's bound (SPEC 12.M1).
    #[error(transparent)]
    Bound(#[from] BoundViolation),
    /// One tool twice (SPEC 12.M2).
    #[error("the tool {id:?} comes from {first:?} and from {second:?}: rename one of the two, or leave it out")]
    DuplicateTool {
        /// The tool's name.
        id: String,
        /// Who came first in the order.
        first: String,
        /// Who came second.
        second: String,
    },
    /// One action kind twice (SPEC 12.M3).
    #[error("the action kind {id:?} comes from {first:?} and from {second:?}: rename one of the two, or leave it out")]
    DuplicateActionKind {
        /// The action kind.
        id: String,
        /// Who came first in the order.
        first: String,
        /// Who came second.
        second: String,
    },
    /// A plugin requires one that is not there (SPEC 12.M4).
    #[error("plugin {plugin:?} requires {missing:?}, which takes no part: add it to the run's plugins")]
    MissingDependency {
        /// The plugin that requires.
        plugin: String,
        /// What it requires.
        missing: String,
    },
    /// Plugins require each other in a circle (SPEC 12.M5).
    #[error("plugins require each other in a circle, {}: drop one of the requirements", circle(plugins))]
    DependencyCycle {
        /// One circle: each of these requires the next, and the last the first.
        plugins: Vec<String>,
    },
    /// One plugin id twice (SPEC 12.M6).
    #[error("plugin {id:?} is there twice: list it once")]
    DuplicatePlugin {
        /// The id.
        id: String,
    },
    /// A configuration or a declaration that is malformed (SPEC 12.M7).
    #[error(transparent)]
    Config(#[from] PluginConfigError),
}

/// A contribution outside its plugin's bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin:?} contributes {} beyond its bound: contribute less, or add it to `bound.{}` of its manifest", .kind.named(.id), .kind.of_bound())]
pub struct BoundViolation {
    /// The plugin.
    pub plugin: String,
    /// What kind of thing it contributed.
    pub kind: ContributionKind,
    /// Its id; for a hook, its point.
    pub id: String,
}

words! {
    /// The kinds of contributions that a bound knows.
    pub enum ContributionKind {
        /// A tool.
        Tool = "tool",
        /// A state key.
        StateKey = "state_key",
        /// A hook.
        Hook = "hook",
        /// An action kind.
        ActionKind = "action_kind",
        /// A gate before tool calls.
        ToolGate = "tool_gate",
        /// A gate before a release.
        ReleaseGate = "release_gate",
    }
}

impl ContributionKind {
    /// The field of a bound that allows it.
    const fn of_bound(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::StateKey => "state_keys",
            Self::Hook => "hooks",
            Self::ActionKind => "action_kinds",
            Self::ToolGate => "tool_gates",
            Self::ReleaseGate => "release_gates",
        }
    }

    /// One of them, for people.
    fn named(self, id: &str) -> String {
        match self {
            Self::Tool => format!("the tool {id}"),
            Self::StateKey => format!("the state key {id}"),
            Self::Hook => format!("a hook at {id}"),
            Self::ActionKind => format!("the action kind {id}"),
            Self::ToolGate => format!("the tool gate {id}"),
            Self::ReleaseGate => format!("the release gate {id}"),
        }
    }
}

/// What is wrong with a plugin's configuration, or with what it declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PluginConfigError {
    /// The plugin.
    pub plugin: String,
    /// Where in its configuration. `None` when it is not about one value of it.
    pub pointer: Option<Pointer>,
    /// What is wrong, for people.
    pub reason: String,
}

impl PluginConfigError {
    /// An error that is not about one value.
    #[must_use]
    pub fn new(plugin: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { plugin: plugin.into(), pointer: None, reason: reason.into() }
    }

    /// The same error, about the value in this place of the configuration.
    #[must_use]
    pub fn at(self, pointer: Pointer) -> Self {
        Self { pointer: Some(pointer), ..self }
    }

    fn message(&self) -> String {
        match &self.pointer {
            Some(pointer) => format!("at \"{pointer}\" of its configuration, {}", self.reason),
            None => self.reason.clone(),
        }
    }
}

impl fmt::Display for PluginConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} is configured wrong: {}", self.plugin, self.message())
    }
}

fn circle(plugins: &[String]) -> String {
    let ids: Vec<String> = plugins.iter().chain(plugins.first()).map(|id| format!("{id:?}")).collect();
    ids.join(" -> ")
}

impl From<MergeError> for ResolutionError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Bound(BoundViolation { plugin, kind, id }) => {
                Self::Bound { plugin, contribution: kind.named(&id) }
            }
            MergeError::DuplicateTool { id, first, second } => Self::DuplicateTool { id, first, second },
            MergeError::DuplicateActionKind { id, first, second } => Self::DuplicateActionKind { id, first, second },
            MergeError::MissingDependency { plugin, missing } => Self::MissingDependency { plugin, missing },
            MergeError::DependencyCycle { plugins } => Self::DependencyCycle { plugins },
            MergeError::DuplicatePlugin { id } => Self::DuplicatePlugin { id },
            MergeError::Config(error) => Self::Config { message: error.message(), plugin: error.plugin },
        }
    }
}
