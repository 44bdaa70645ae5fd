//! The resolved environment: everything a run may use, whole and canonical, so that a history replays with
//! nothing beside it (SPEC 4, 12).

use super::bound::Bound;
use super::spec::ToolSpec;
use super::wire::{object, words};

object! {
    /// What resolution found. The order of lists is the order in which things are asked.
    #[derive(Default)]
    pub struct Environment {
        /// Every tool the model is offered.
        #[serde(default)]
        pub tools: Vec<ToolSpec>,
        /// Every gate.
        #[serde(default)]
        pub gates: Vec<Gate>,
        /// Every hook.
        #[serde(default)]
        pub hooks: Vec<Hook>,
        /// Every state key that may be written.
        #[serde(default)]
        pub state_keys: Vec<StateKeySpec>,
        /// Every action kind that may be scheduled.
        #[serde(default)]
        pub action_kinds: Vec<String>,
        /// The plugins that took part, in dependency order.
        #[serde(default)]
        pub plugins: Vec<String>,
        /// What each of them may do in this run. A plugin without an entry may do nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub capabilities: Vec<Capability>,
    }
}

object! {
    /// What one plugin may do in a run, and what of the environment is its own. The engine holds everything that
    /// its hooks and tools stage against it (SPEC 12).
    pub struct Capability {
        /// The plugin.
        pub plugin: String,
        /// Its published bound.
        #[serde(default)]
        pub bound: Bound,
        /// The tools that it contributes: what they stage is held against its bound.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub tools: Vec<String>,
        /// The gates that it contributes, by id.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub gates: Vec<String>,
        /// The action kinds that it contributes: it is asked to perform them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub action_kinds: Vec<String>,
    }
}

object! {
    /// A gate: plugin code that may hold a call or a release back, never let more through (SPEC 7.8, 11).
    pub struct Gate {
        /// Its id.
        pub id: String,
        /// What it stands before.
        pub of: GateOf,
        /// For a tool gate: the tools it stands before; all of them when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub tools: Vec<String>,
    }
}

words! {
    /// What a gate stands before.
    pub enum GateOf {
        /// A tool call.
        Tool = "tool",
        /// A release.
        Release = "release",
    }
}

object! {
    /// A hook: plugin code that is told of a point in the run and may stage commands (SPEC 12).
    pub struct Hook {
        /// The plugin.
        pub plugin: String,
        /// Where it is asked.
        pub point: HookPoint,
    }
}

words! {
    /// Where hooks are asked.
    pub enum HookPoint {
        /// Before a round's model call is prepared.
        RoundStart = "round_start",
        /// Right before the model call.
        BeforeInference = "before_inference",
        /// Right after the model's response.
        AfterInference = "after_inference",
        /// After each closed tool call.
        AfterTool = "after_tool",
        /// When the round's batch is closed.
        RoundEnd = "round_end",
        /// Before a verified draft meets the release gates.
        BeforeRelease = "before_release",
        /// When the run has ended.
        RunEnd = "run_end",
    }
}

object! {
    /// A state key that may be written, with its policy (SPEC 12).
    pub struct StateKeySpec {
        /// The scope it lives in.
        pub scope: StateScope,
        /// Its name.
        pub key: String,
        /// What two writes in one commit batch do.
        pub policy: MergePolicy,
    }
}

words! {
    /// How long state lives.
    pub enum StateScope {
        /// As long as the run.
        Run = "run",
        /// As long as the thread.
        Thread = "thread",
    }
}

words! {
    /// What two writes of one (scope, key) in one commit batch do (SPEC 12).
    pub enum MergePolicy {
        /// Writers own separate parts.
        Disjoint = "disjoint",
        /// The order of writes does not matter.
        Commutative = "commutative",
        /// Two sets are a conflict, and the run fails.
        Exclusive = "exclusive",
    }
}
