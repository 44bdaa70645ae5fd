//! The last class of checks: what somebody declares of himself, and what several declare of one thing.

use std::collections::{BTreeMap, BTreeSet};

use super::error::PluginConfigError;
use super::merge::HOST;
use super::party::Party;
use crate::vocabulary::bound::{Allowance, Bound};
use crate::vocabulary::environment::{Capability, Environment, GateOf};
use crate::vocabulary::spec::ToolSpec;

type Checked = Result<(), PluginConfigError>;

fn require(holds: bool, plugin: &str, reason: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(PluginConfigError::new(plugin, reason())) }
}

fn is_blank(id: &str) -> bool {
    id.trim().is_empty()
}

/// What a plugin may be called.
pub(super) fn check_id(id: &str) -> Checked {
    require(!is_blank(id), id, || "its id is empty: give it one".to_owned())?;
    require(id != HOST, id, || format!("{HOST:?} is what the embedder is called: give the plugin another id"))
}

/// What somebody declares, by itself.
pub(super) fn check_party(party: &Party<'_>) -> Checked {
    let plugin = party.id;
    if let Some(bound) = party.bound {
        check_bound(plugin, bound)?;
    }
    for name in &party.tools {
        let reason = || format!("the tool name {name:?} is not 1 to 128 of [A-Za-z0-9_.-]");
        require(ToolSpec::is_name(name), plugin, reason)?;
    }
    for gate in &party.gates {
        require(!is_blank(&gate.id), plugin, || "it has a gate with an empty id".to_owned())?;
        let idle = gate.of == GateOf::Release && !gate.tools.is_empty();
        require(!idle, plugin, || format!("the release gate {:?} names tools, and stands before none", gate.id))?;
    }
    let named = party.state_keys.iter().all(|state| !is_blank(&state.key));
    require(named, plugin, || "it has a state key with an empty name".to_owned())?;
    let named = party.action_kinds.iter().all(|kind| !is_blank(kind));
    require(named, plugin, || "it has an action kind with an empty name".to_owned())?;
    let mut points = BTreeSet::new();
    match party.hooks.iter().find(|point| !points.insert(**point)) {
        Some(point) => Err(PluginConfigError::new(plugin, format!("it has two hooks at {point}: make them one"))),
        None => Ok(()),
    }
}

/// A name that is empty allows nothing, which is hardly what was meant.
fn check_bound(plugin: &str, bound: &Bound) -> Checked {
    let Bound { tools, state_keys, hooks: _, action_kinds, tool_gates, release_gates } = bound;
    let all: [(&str, &Allowance); 5] = [
        ("tools", tools),
        ("state_keys", state_keys),
        ("action_kinds", action_kinds),
        ("tool_gates", tool_gates),
        ("release_gates", release_gates),
    ];
    for (field, allowance) in all {
        let named = allowance.namespace.as_deref().is_none_or(|namespace| !is_blank(namespace));
        require(named, plugin, || format!("the namespace in `bound.{field}` is empty: name it, or leave it out"))?;
        let named = allowance.ids.iter().all(|id| !is_blank(id));
        require(named, plugin, || format!("an id in `bound.{field}` is empty: name it, or leave it out"))?;
    }
    Ok(())
}

/// Whether the embedder's environment holds together: what its plugins claim is there, and is performed.
pub(super) fn check_host(host: &Environment) -> Checked {
    host.plugins.iter().try_for_each(|plugin| check_id(plugin))?;
    for Capability { plugin, tools, gates, action_kinds, .. } in &host.capabilities {
        let part = host.plugins.contains(plugin);
        require(part, HOST, || format!("plugin {plugin:?} has a capability, and takes no part"))?;
        check_claims(plugin, "tool", tools, |name| host.tools.iter().any(|tool| tool.name == *name))?;
        check_claims(plugin, "gate", gates, |id| host.gates.iter().any(|gate| gate.id == *id))?;
        check_claims(plugin, "action kind", action_kinds, |kind| host.action_kinds.contains(kind))?;
    }
    let performed = |kind: &&String| host.capabilities.iter().any(|own| own.action_kinds.contains(kind));
    match host.action_kinds.iter().find(|kind| !performed(kind)) {
        Some(kind) => {
            let reason = format!("nobody performs the action kind {kind:?}: let a plugin of yours contribute it");
            Err(PluginConfigError::new(HOST, reason))
        }
        None => Ok(()),
    }
}

fn check_claims(plugin: &str, what: &str, claimed: &[String], there: impl Fn(&String) -> bool) -> Checked {
    match claimed.iter().find(|id| !there(id)) {
        Some(id) => {
            Err(PluginConfigError::new(HOST, format!("plugin {plugin:?} claims the {what} {id:?}, which is not there")))
        }
        None => Ok(()),
    }
}

/// What several declare of one thing.
pub(super) fn check_together(parties: &[Party<'_>]) -> Checked {
    check_gates(parties)?;
    check_policies(parties)
}

fn check_gates(parties: &[Party<'_>]) -> Checked {
    let tools: BTreeSet<&str> = parties.iter().flat_map(|party| party.tools.iter().copied()).collect();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (party, gate) in parties.iter().flat_map(|party| party.gates.iter().map(move |gate| (party, *gate))) {
        if let Some(first) = owners.insert(&gate.id, party.id) {
            let reason = format!("the gate {:?} comes from {first:?} already: rename one of the two", gate.id);
            return Err(PluginConfigError::new(party.id, reason));
        }
        if let Some(tool) = gate.tools.iter().find(|tool| !tools.contains(tool.as_str())) {
            let reason = format!("the gate {:?} stands before {tool:?}, and there is no such tool", gate.id);
            return Err(PluginConfigError::new(party.id, reason));
        }
    }
    Ok(())
}

fn check_policies(parties: &[Party<'_>]) -> Checked {
    let mut declared = BTreeMap::new();
    for (party, state) in parties.iter().flat_map(|party| party.state_keys.iter().map(move |state| (party, *state))) {
        let (policy, first) = declared.entry((state.scope, &state.key)).or_insert((state.policy, party.id));
        if *policy != state.policy {
            let reason = format!(
                "the {} state key {:?} is {} here, and {policy} to {first:?}: agree on one policy",
                state.scope, state.key, state.policy
            );
            return Err(PluginConfigError::new(party.id, reason));
        }
    }
    Ok(())
}
