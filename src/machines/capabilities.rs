//! What each plugin of an environment may do: found in order once, asked at every command (SPEC 12).

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::environment::{Capability, Environment, Gate, GateOf, MergePolicy, StateScope};
use crate::vocabulary::failure::ResolutionError;

/// Who is named where no plugin is: whoever put the environment together.
pub(crate) const HOST: &str = "host";

/// Every plugin's bound, and who owns what.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    plugins: BTreeMap<String, Capability>,
    tools: BTreeMap<String, String>,
    action_kinds: BTreeMap<String, String>,
    state_keys: BTreeMap<(StateScope, String), MergePolicy>,
}

impl Capabilities {
    /// Reads an environment. What is contributed beyond a bound, twice, or by nobody, is an error: nothing is
    /// dropped to make a run start.
    pub(super) fn new(environment: &Environment) -> Result<Self, ResolutionError> {
        let mut found = Self::default();
        if let Some(id) = twice(&environment.plugins) {
            return Err(ResolutionError::DuplicatePlugin { id });
        }
        if let Some(id) = twice(&environment.action_kinds) {
            let (first, second) = (HOST.to_owned(), HOST.to_owned());
            return Err(ResolutionError::DuplicateActionKind { id, first, second });
        }
        if environment.plugins.iter().any(|id| id.trim().is_empty()) {
            return Err(misconfigured(HOST, "a plugin without an id".to_owned()));
        }
        for capability in &environment.capabilities {
            found.add(environment, capability)?;
        }
        for hook in &environment.hooks {
            let allowed = found.plugins.get(&hook.plugin).is_some_and(|own| own.bound.hooks.contains(&hook.point));
            within(allowed, &hook.plugin, || format!("a hook at {}", hook.point))?;
            if environment.hooks.iter().filter(|other| *other == hook).count() > 1 {
                return Err(misconfigured(&hook.plugin, format!("it has two hooks at {}", hook.point)));
            }
        }
        for kind in &environment.action_kinds {
            if !found.action_kinds.contains_key(kind) {
                return Err(misconfigured(HOST, format!("no plugin performs the action kind {kind:?}")));
            }
        }
        for state in &environment.state_keys {
            let place = (state.scope, state.key.clone());
            if found.state_keys.insert(place, state.policy).is_some() {
                return Err(misconfigured(
                    HOST,
                    format!("the {} state key {:?} is declared twice", state.scope, state.key),
                ));
            }
        }
        Ok(found)
    }

    fn add(&mut self, environment: &Environment, capability: &Capability) -> Result<(), ResolutionError> {
        let (plugin, bound) = (&capability.plugin, &capability.bound);
        if !environment.plugins.contains(plugin) {
            return Err(misconfigured(plugin, "it has a capability, and it takes no part in the run".to_owned()));
        }
        if self.plugins.insert(plugin.clone(), capability.clone()).is_some() {
            return Err(ResolutionError::DuplicatePlugin { id: plugin.clone() });
        }
        for tool in &capability.tools {
            within(bound.tools.allows(tool), plugin, || format!("the tool {tool}"))?;
            if !environment.tools.iter().any(|declared| declared.name == *tool) {
                return Err(misconfigured(plugin, format!("it contributes {tool:?}, and there is no such tool")));
            }
            if let Some(first) = self.tools.insert(tool.clone(), plugin.clone()) {
                return Err(ResolutionError::DuplicateTool { id: tool.clone(), first, second: plugin.clone() });
            }
        }
        for kind in &capability.action_kinds {
            within(bound.action_kinds.allows(kind), plugin, || format!("the action kind {kind}"))?;
            if !environment.action_kinds.contains(kind) {
                return Err(misconfigured(plugin, format!("it performs {kind:?}, and there is no such action kind")));
            }
            if let Some(first) = self.action_kinds.insert(kind.clone(), plugin.clone()) {
                return Err(ResolutionError::DuplicateActionKind { id: kind.clone(), first, second: plugin.clone() });
            }
        }
        capability.gates.iter().try_for_each(|id| {
            let mut gates = environment.gates.iter().filter(|gate| gate.id == *id).peekable();
            if gates.peek().is_none() {
                return Err(misconfigured(
                    plugin,
                    format!("it contributes the gate {id:?}, and there is no such gate"),
                ));
            }
            gates.try_for_each(|gate| {
                within(allows_gate(capability, gate), plugin, || format!("the {} gate {id}", gate.of))
            })
        })
    }

    /// The plugin's capability.
    #[must_use]
    pub fn of(&self, plugin: &str) -> Option<&Capability> {
        self.plugins.get(plugin)
    }

    /// The plugin that contributes a tool.
    #[must_use]
    pub fn owner_of_tool(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool).map(String::as_str)
    }

    /// The plugin that performs an action kind.
    #[must_use]
    pub fn owner_of_action(&self, kind: &str) -> Option<&str> {
        self.action_kinds.get(kind).map(String::as_str)
    }

    /// What two writes of a key in one batch do.
    #[must_use]
    pub fn policy(&self, scope: StateScope, key: &str) -> Option<MergePolicy> {
        self.state_keys.get(&(scope, key.to_owned())).copied()
    }
}

/// The first name that stands twice.
fn twice(names: &[String]) -> Option<String> {
    let mut seen = BTreeSet::new();
    names.iter().find(|name| !seen.insert(name.as_str())).cloned()
}

fn allows_gate(capability: &Capability, gate: &Gate) -> bool {
    match gate.of {
        GateOf::Tool => capability.bound.tool_gates.allows(&gate.id),
        GateOf::Release => capability.bound.release_gates.allows(&gate.id),
    }
}

fn within(allowed: bool, plugin: &str, contribution: impl Fn() -> String) -> Result<(), ResolutionError> {
    if allowed {
        return Ok(());
    }
    Err(ResolutionError::Bound { plugin: plugin.to_owned(), contribution: contribution() })
}

fn misconfigured(plugin: &str, message: String) -> ResolutionError {
    ResolutionError::Config { plugin: plugin.to_owned(), message }
}
