//! The merge: what the embedder and its plugins bring becomes one environment, or an error. Nothing is dropped to
//! make a run start (SPEC 12).

use std::collections::{BTreeMap, BTreeSet};

use super::configuration;
use super::contribution::{Contribution, Proposal};
use super::error::{MergeError, PluginConfigError};
use super::manifest::PluginManifest;
use super::order::in_order;
use super::party::Party;
use crate::vocabulary::environment::{Capability, Environment, Hook};

/// The owner of what the embedder itself brings, in errors. No plugin may be called that.
pub const HOST: &str = crate::machines::capabilities::HOST;

/// An environment that is whole: every contribution lies inside a bound, every id is there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedExecutionEnv {
    environment: Environment,
}

/// A plugin whose configuration is good.
struct Plugin {
    manifest: PluginManifest,
    contribution: Contribution,
}

impl Plugin {
    fn party(&self) -> Party<'_> {
        Party::proposed(&self.manifest, Some(&self.contribution))
    }
}

impl ResolvedExecutionEnv {
    /// Merges what the embedder brings, `host`, with what its plugins propose. Lists are the host's first, then
    /// the plugins' in topological order: dependencies first, ties as in `proposals`. A state key that several
    /// declare with one policy is one key. `host` may hold plugins of its own, such as those of an earlier merge.
    ///
    /// The checks come in this order, and the first that fails is the error: plugin ids, bounds, missing
    /// dependencies, circles, tools, action kinds, configuration. Bounds and dependencies are checked in the order
    /// of `proposals`, the rest in topological order (SPEC 12.2).
    ///
    /// What a tool's declaration says (its schema, its limits) is judged by the engine, which has the spec: a bad
    /// one is [`InvalidTool`](crate::vocabulary::failure::ResolutionError::InvalidTool) there.
    ///
    /// # Errors
    /// [`MergeError`], a class of its own for each of the checks.
    pub fn merge(host: Environment, proposals: Vec<Proposal>) -> Result<Self, MergeError> {
        refuse_plugins_twice(&host, &proposals)?;
        let parties = everybody(&host, &proposals);
        parties.iter().try_for_each(Party::check_bound)?;
        drop(parties);
        let proposals = in_order(&host.plugins, proposals)?;
        let parties = everybody(&host, &proposals);
        refuse_tools_twice(&parties)?;
        refuse_action_kinds_twice(&parties)?;
        drop(parties);
        let plugins = configured(&host, proposals)?;
        Ok(Self { environment: joined(host, plugins) })
    }

    /// The environment.
    #[must_use]
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The environment, as an engine is given it.
    #[must_use]
    pub fn into_environment(self) -> Environment {
        self.environment
    }
}

fn everybody<'a>(host: &'a Environment, proposals: &'a [Proposal]) -> Vec<Party<'a>> {
    let mut parties = Party::of_host(host);
    let proposed = |proposal: &'a Proposal| Party::proposed(&proposal.manifest, proposal.contribution.as_ref().ok());
    parties.extend(proposals.iter().map(proposed));
    parties
}

fn refuse_plugins_twice(host: &Environment, proposals: &[Proposal]) -> Result<(), MergeError> {
    let mut seen = BTreeSet::new();
    let mut plugins = host.plugins.iter().chain(proposals.iter().map(|proposal| &proposal.manifest.id));
    let twice = plugins.find(|id| !seen.insert(*id));
    let mut seen = BTreeSet::new();
    let mut capable = host.capabilities.iter().map(|capability| &capability.plugin);
    match twice.or_else(|| capable.find(|id| !seen.insert(*id))) {
        Some(id) => Err(MergeError::DuplicatePlugin { id: id.clone() }),
        None => Ok(()),
    }
}

/// An id that stands twice, and with whom.
fn twice<'a>(ids: impl Iterator<Item = (&'a str, &'a str)>) -> Option<(String, String, String)> {
    let mut owners = BTreeMap::new();
    for (id, owner) in ids {
        if let Some(first) = owners.insert(id, owner) {
            return Some((id.to_owned(), first.to_owned(), owner.to_owned()));
        }
    }
    None
}

fn refuse_tools_twice(parties: &[Party<'_>]) -> Result<(), MergeError> {
    let tools = parties.iter().flat_map(|party| party.tools.iter().map(|tool| (*tool, party.id)));
    match twice(tools) {
        Some((id, first, second)) => Err(MergeError::DuplicateTool { id, first, second }),
        None => Ok(()),
    }
}

fn refuse_action_kinds_twice(parties: &[Party<'_>]) -> Result<(), MergeError> {
    let kinds = parties.iter().flat_map(|party| party.action_kinds.iter().map(|kind| (*kind, party.id)));
    match twice(kinds) {
        Some((id, first, second)) => Err(MergeError::DuplicateActionKind { id, first, second }),
        None => Ok(()),
    }
}

/// The last class of checks: first what each says of itself, then what they say of each other. A plugin whose
/// configuration failed would otherwise be missed in the checks of those who build on it.
fn configured(host: &Environment, proposals: Vec<Proposal>) -> Result<Vec<Plugin>, PluginConfigError> {
    Party::of_host(host).iter().try_for_each(configuration::check_party)?;
    let mut plugins = Vec::new();
    for Proposal { manifest, contribution } in proposals {
        // Whoever a plugin says it is: the error is about the one that was asked.
        let contribution = contribution.map_err(|error| PluginConfigError { plugin: manifest.id.clone(), ..error })?;
        configuration::check_id(&manifest.id)?;
        let plugin = Plugin { manifest, contribution };
        configuration::check_party(&plugin.party())?;
        plugins.push(plugin);
    }
    configuration::check_host(host)?;
    let mut parties = Party::of_host(host);
    parties.extend(plugins.iter().map(Plugin::party));
    configuration::check_together(&parties)?;
    drop(parties);
    Ok(plugins)
}

fn joined(host: Environment, plugins: Vec<Plugin>) -> Environment {
    let mut all = host;
    let mut state_keys = std::mem::take(&mut all.state_keys);
    for Plugin { manifest, contribution } in plugins {
        let PluginManifest { id, bound, .. } = manifest;
        all.capabilities.push(Capability {
            plugin: id.clone(),
            bound,
            tools: contribution.tools.iter().map(|tool| tool.name.clone()).collect(),
            gates: contribution.gates.iter().map(|gate| gate.id.clone()).collect(),
            action_kinds: contribution.action_kinds.clone(),
        });
        all.hooks.extend(contribution.hooks.into_iter().map(|point| Hook { plugin: id.clone(), point }));
        all.tools.extend(contribution.tools);
        all.gates.extend(contribution.gates);
        all.action_kinds.extend(contribution.action_kinds);
        all.plugins.push(id);
        state_keys.extend(contribution.state_keys);
    }
    for state in state_keys {
        if !all.state_keys.contains(&state) {
            all.state_keys.push(state);
        }
    }
    all
}
