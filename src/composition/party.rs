//! Whose each contribution is: the embedder's own, or a plugin's, which has a bound.

use super::contribution::Contribution;
use super::error::{BoundViolation, ContributionKind};
use super::manifest::PluginManifest;
use super::merge::HOST;
use crate::vocabulary::bound::{Allowance, Bound};
use crate::vocabulary::environment::{Capability, Environment, Gate, GateOf, HookPoint, StateKeySpec};

/// The bound of a plugin that the embedder brings without a capability.
const NOTHING: &Bound = &Bound {
    tools: Allowance { namespace: None, ids: Vec::new() },
    state_keys: Allowance { namespace: None, ids: Vec::new() },
    hooks: Vec::new(),
    action_kinds: Allowance { namespace: None, ids: Vec::new() },
    tool_gates: Allowance { namespace: None, ids: Vec::new() },
    release_gates: Allowance { namespace: None, ids: Vec::new() },
};

/// Somebody who contributes, and what.
pub(super) struct Party<'a> {
    pub(super) id: &'a str,
    /// The embedder itself has none.
    pub(super) bound: Option<&'a Bound>,
    pub(super) tools: Vec<&'a str>,
    pub(super) gates: Vec<&'a Gate>,
    pub(super) hooks: Vec<HookPoint>,
    pub(super) state_keys: Vec<&'a StateKeySpec>,
    pub(super) action_kinds: Vec<&'a str>,
}

impl<'a> Party<'a> {
    /// A plugin that is proposed; one whose configuration failed contributes nothing.
    pub(super) fn proposed(manifest: &'a PluginManifest, contribution: Option<&'a Contribution>) -> Self {
        let tools = contribution.iter().flat_map(|own| &own.tools);
        let kinds = contribution.iter().flat_map(|own| &own.action_kinds);
        Self {
            id: &manifest.id,
            bound: Some(&manifest.bound),
            tools: tools.map(|tool| tool.name.as_str()).collect(),
            gates: contribution.iter().flat_map(|own| &own.gates).collect(),
            hooks: contribution.iter().flat_map(|own| &own.hooks).copied().collect(),
            state_keys: contribution.iter().flat_map(|own| &own.state_keys).collect(),
            action_kinds: kinds.map(String::as_str).collect(),
        }
    }

    /// The embedder, and then the plugins that stand in its environment already.
    pub(super) fn of_host(host: &'a Environment) -> Vec<Self> {
        let mut ids: Vec<&str> = Vec::new();
        let named = host.plugins.iter().chain(host.capabilities.iter().map(|capability| &capability.plugin));
        for id in named.chain(host.hooks.iter().map(|hook| &hook.plugin)) {
            if !ids.contains(&id.as_str()) {
                ids.push(id);
            }
        }
        let mut parties = vec![Self::host_itself(host)];
        parties.extend(ids.into_iter().map(|id| Self::hosted(host, id)));
        parties
    }

    /// What nobody else has claimed is the embedder's own.
    fn host_itself(host: &'a Environment) -> Self {
        let claimed = |list: fn(&Capability) -> &Vec<String>, id: &str| {
            host.capabilities.iter().any(|capability| list(capability).iter().any(|claimed| claimed == id))
        };
        let tools = host.tools.iter().map(|tool| tool.name.as_str());
        let kinds = host.action_kinds.iter().map(String::as_str);
        Self {
            id: HOST,
            bound: None,
            tools: tools.filter(|name| !claimed(|own| &own.tools, name)).collect(),
            gates: host.gates.iter().filter(|gate| !claimed(|own| &own.gates, &gate.id)).collect(),
            hooks: Vec::new(),
            state_keys: host.state_keys.iter().collect(),
            action_kinds: kinds.filter(|kind| !claimed(|own| &own.action_kinds, kind)).collect(),
        }
    }

    fn hosted(host: &'a Environment, id: &'a str) -> Self {
        let capability = host.capabilities.iter().find(|capability| capability.plugin == id);
        let claims = |list: fn(&Capability) -> &Vec<String>, id: &str| {
            capability.is_some_and(|own| list(own).iter().any(|claimed| claimed == id))
        };
        let tools = host.tools.iter().map(|tool| tool.name.as_str());
        let kinds = host.action_kinds.iter().map(String::as_str);
        Self {
            id,
            bound: Some(capability.map_or(NOTHING, |capability| &capability.bound)),
            tools: tools.filter(|name| claims(|own| &own.tools, name)).collect(),
            gates: host.gates.iter().filter(|gate| claims(|own| &own.gates, &gate.id)).collect(),
            hooks: host.hooks.iter().filter(|hook| hook.plugin == id).map(|hook| hook.point).collect(),
            state_keys: Vec::new(),
            action_kinds: kinds.filter(|kind| claims(|own| &own.action_kinds, kind)).collect(),
        }
    }

    /// Refuses what lies outside the bound.
    pub(super) fn check_bound(&self) -> Result<(), BoundViolation> {
        let Some(bound) = self.bound else {
            return Ok(());
        };
        let tools = self.tools.iter().map(|id| (ContributionKind::Tool, *id, bound.tools.allows(id)));
        let state_keys = self.state_keys.iter().map(|state| {
            let key = state.key.as_str();
            (ContributionKind::StateKey, key, bound.state_keys.allows(key))
        });
        let hooks = self.hooks.iter().map(|point| (ContributionKind::Hook, point.word(), bound.hooks.contains(point)));
        let kinds =
            self.action_kinds.iter().map(|id| (ContributionKind::ActionKind, *id, bound.action_kinds.allows(id)));
        let gates = self.gates.iter().map(|gate| match gate.of {
            GateOf::Tool => (ContributionKind::ToolGate, gate.id.as_str(), bound.tool_gates.allows(&gate.id)),
            GateOf::Release => (ContributionKind::ReleaseGate, gate.id.as_str(), bound.release_gates.allows(&gate.id)),
        });
        let mut all = tools.chain(state_keys).chain(hooks).chain(kinds).chain(gates);
        match all.find(|(_, _, allowed)| !allowed) {
            Some((kind, id, _)) => Err(BoundViolation { plugin: self.id.to_owned(), kind, id: id.to_owned() }),
            None => Ok(()),
        }
    }
}
