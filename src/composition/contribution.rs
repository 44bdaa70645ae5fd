//! What a plugin brings, as values.

use super::error::PluginConfigError;
use super::manifest::PluginManifest;
use crate::vocabulary::environment::{Gate, HookPoint, StateKeySpec};
use crate::vocabulary::spec::ToolSpec;

/// What a plugin brings into a run, in the order in which it is to be offered and asked. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contribution {
    /// Tools. What they stage is held against the plugin's bound.
    pub tools: Vec<ToolSpec>,
    /// Gates before tool calls and releases.
    pub gates: Vec<Gate>,
    /// The points at which the plugin is asked.
    pub hooks: Vec<HookPoint>,
    /// State keys. Another plugin may declare the same key with the same policy: then it is one key, and shared.
    pub state_keys: Vec<StateKeySpec>,
    /// Kinds of actions that the plugin performs.
    pub action_kinds: Vec<String>,
}

/// One plugin's part in a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// What it declares of itself.
    pub manifest: PluginManifest,
    /// What it brings, or why its configuration lets it bring nothing. The error waits for its turn: the merge
    /// reports what stands before configuration first.
    pub contribution: Result<Contribution, PluginConfigError>,
}

impl Proposal {
    /// A plugin whose configuration is good.
    #[must_use]
    pub const fn new(manifest: PluginManifest, contribution: Contribution) -> Self {
        Self { manifest, contribution: Ok(contribution) }
    }
}
