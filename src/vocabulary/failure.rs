//! The committed cause of a failed run. Codes are a contract, messages are diagnostics (SPEC 2).

use super::draft::DraftFault;
use super::llm;
use super::wire::{tagged, words};

tagged! {
    /// Why a run failed.
    pub enum Failure {
        /// A model request that could not recover.
        Inference = "inference" {
            /// The class of the last error.
            code: llm::Code,
        },
        /// A plugin contributed or scheduled beyond its published bound.
        CapabilityBound = "capability_bound",
        /// One commit batch set an exclusive (scope, key) twice.
        StateConflict = "state_conflict",
        /// The accepted run found no route or no environment.
        Resolution = "resolution" {
            /// What was missing or clashed.
            kind: ResolutionKind,
        },
        /// The draft stayed bad and nothing was observed.
        DraftContract = "draft_contract" {
            /// What was wrong with it.
            kind: DraftFault,
        },
        /// The run came to its end without one observed fact.
        NoObservedFacts = "no_observed_facts",
        /// A release gate blocked a verified draft.
        Blocked = "blocked" {
            /// The gate's id.
            gate: String,
        },
        /// It is not known what an interrupted call did, and nobody may guess.
        Indeterminate = "indeterminate",
        /// An unknown failure of the driver or a port, or a bug.
        Internal = "internal",
    }
}

words! {
    /// What a resolution failed at: routing, or a merge error's name (SPEC 12).
    pub enum ResolutionKind {
        /// No route to the model or environment.
        Routing = "routing",
        /// Two contributions of one tool.
        DuplicateTool = "duplicate_tool",
        /// Two contributions of one action kind.
        DuplicateActionKind = "duplicate_action_kind",
        /// A plugin requires one that is not there.
        MissingDependency = "missing_dependency",
        /// Plugins require each other in a circle.
        DependencyCycle = "dependency_cycle",
        /// One plugin id twice.
        DuplicatePlugin = "duplicate_plugin",
        /// A plugin's configuration is malformed.
        Config = "config",
        /// A tool's own declaration cannot be used: schema, name or size.
        InvalidTool = "invalid_tool",
    }
}

tagged! {
    /// Why an environment could not be resolved.
    pub enum ResolutionError {
        /// No route to the model or environment.
        Routing = "routing" {
            /// For people.
            message: String,
        },
        /// A contribution beyond a plugin's bound.
        Bound = "bound" {
            /// The plugin.
            plugin: String,
            /// What it tried to contribute.
            contribution: String,
        },
        /// Two contributions of one tool.
        DuplicateTool = "duplicate_tool" {
            /// The tool's name.
            id: String,
            /// Who came first.
            first: String,
            /// Who came second.
            second: String,
        },
        /// Two contributions of one action kind.
        DuplicateActionKind = "duplicate_action_kind" {
            /// The action kind.
            id: String,
            /// Who came first.
            first: String,
            /// Who came second.
            second: String,
        },
        /// A plugin requires one that is not there.
        MissingDependency = "missing_dependency" {
            /// The plugin that requires.
            plugin: String,
            /// What it requires.
            missing: String,
        },
        /// Plugins require each other in a circle.
        DependencyCycle = "dependency_cycle" {
            /// One circle: each of these requires the next, and the last the first.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            plugins: Vec<String>,
        },
        /// One plugin id twice.
        DuplicatePlugin = "duplicate_plugin" {
            /// The id.
            id: String,
        },
        /// A plugin's configuration is malformed.
        Config = "config" {
            /// The plugin.
            plugin: String,
            /// For people.
            message: String,
        },
        /// A tool's own declaration cannot be used.
        InvalidTool = "invalid_tool" {
            /// The tool's name.
            id: String,
            /// For people.
            message: String,
        },
    }
}

impl std::fmt::Display for ResolutionError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Routing { message } => write!(out, "no route: {message}"),
            Self::Bound { plugin, contribution } => {
                write!(out, "plugin {plugin} contributes {contribution} beyond its bound")
            }
            Self::DuplicateTool { id, first, second } => write!(out, "tool {id} comes from {first} and from {second}"),
            Self::DuplicateActionKind { id, first, second } => {
                write!(out, "action kind {id} comes from {first} and from {second}")
            }
            Self::MissingDependency { plugin, missing } => write!(out, "plugin {plugin} requires {missing}"),
            Self::DependencyCycle { plugins } if plugins.is_empty() => {
                out.write_str("plugins require each other in a circle")
            }
            Self::DependencyCycle { plugins } => {
                write!(out, "plugins require each other in a circle: {}", plugins.join(", "))
            }
            Self::DuplicatePlugin { id } => write!(out, "plugin {id} is named twice"),
            Self::Config { plugin, message } => write!(out, "plugin {plugin} is configured wrong: {message}"),
            Self::InvalidTool { id, message } => write!(out, "tool {id}: {message}"),
        }
    }
}

impl ResolutionError {
    /// The failure that a run commits for it (SPEC 3.18).
    #[must_use]
    pub const fn failure(&self) -> Failure {
        let kind = match self {
            Self::Bound { .. } => return Failure::CapabilityBound,
            Self::Routing { .. } => ResolutionKind::Routing,
            Self::DuplicateTool { .. } => ResolutionKind::DuplicateTool,
            Self::DuplicateActionKind { .. } => ResolutionKind::DuplicateActionKind,
            Self::MissingDependency { .. } => ResolutionKind::MissingDependency,
            Self::DependencyCycle { .. } => ResolutionKind::DependencyCycle,
            Self::DuplicatePlugin { .. } => ResolutionKind::DuplicatePlugin,
            Self::Config { .. } => ResolutionKind::Config,
            Self::InvalidTool { .. } => ResolutionKind::InvalidTool,
        };
        Failure::Resolution { kind }
    }
}
