//! The plugins of a runtime, and those of them that take part in one run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use super::contributions::Handlers;
use super::{ActionQuestion, Handler, HookAnswer, HookFailure, HookQuestion, Plugin};
use crate::composition::{Contribution, PluginConfigError, PluginManifest, Proposal, ResolvedExecutionEnv};
use crate::engine::Engine;
use crate::runtime::ports::{GateFailure, GateQuestion, Invocation, told};
use crate::vocabulary::environment::{Environment, HookPoint};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::input::{GateAnswer, LiveTool};
use crate::vocabulary::spec::{PluginSpec, Spec};
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// The plugins that are registered, and the cast of one run.
#[derive(Clone, Default)]
pub(crate) struct Company {
    registered: Arc<BTreeMap<String, Registered>>,
    cast: Arc<OnceLock<Cast>>,
}

/// One registered plugin.
pub(crate) struct Registered {
    pub(crate) manifest: PluginManifest,
    pub(crate) plugin: Box<dyn Plugin>,
}

/// The plugins of a run's spec, activated, in the spec's order.
pub(crate) struct Cast(Vec<Member>);

/// One of them: what it contributes, or why it does not take part.
struct Member {
    id: String,
    part: Result<Part, Absence>,
}

struct Part {
    manifest: PluginManifest,
    declared: Contribution,
    handlers: Handlers,
}

/// Why a plugin of the spec does not take part.
enum Absence {
    /// Nobody registered it. These are registered.
    Unregistered(Vec<String>),
    /// It could not be activated.
    Inactive(Box<PluginManifest>, PluginConfigError),
}

impl Absence {
    fn reason(&self) -> String {
        match self {
            Self::Unregistered(registered) if registered.is_empty() => {
                "it is not registered here, and neither is any other plugin".to_owned()
            }
            Self::Unregistered(registered) => {
                format!("it is not registered here; registered are {}", registered.join(", "))
            }
            Self::Inactive(_, error) => error.to_string(),
        }
    }
}

impl Company {
    /// These plugins, by id.
    pub(crate) fn new(registered: BTreeMap<String, Registered>) -> Self {
        Self { registered: Arc::new(registered), cast: Arc::default() }
    }

    /// These plugins, each under its own id.
    pub(crate) fn of(plugins: impl IntoIterator<Item = Box<dyn Plugin>>) -> Self {
        let registered = plugins.into_iter().map(|plugin| {
            let manifest = plugin.manifest();
            (manifest.id.clone(), Registered { manifest, plugin })
        });
        Self::new(registered.collect())
    }

    /// Whether a plugin is registered here and the run's spec asks for it.
    pub(crate) fn takes_part(&self, engine: &Engine, plugin: &str) -> bool {
        let named = engine.spec().is_some_and(|spec| spec.plugins.iter().any(|named| named.id == plugin));
        named && self.registered.contains_key(plugin)
    }

    /// The same plugins for another run.
    pub(crate) fn anew(&self) -> Self {
        Self { registered: Arc::clone(&self.registered), cast: Arc::default() }
    }

    /// The environment that the host found, with what the plugins of the spec contribute.
    pub(crate) fn merge(&self, spec: &Spec, host: Environment) -> Result<Environment, ResolutionError> {
        if spec.plugins.is_empty() && host.plugins.is_empty() && host.capabilities.is_empty() {
            return Ok(host);
        }
        let mut proposals = Vec::new();
        for member in &self.cast_of(&spec.plugins).0 {
            match &member.part {
                Ok(part) => {
                    let (manifest, contribution) = (part.manifest.clone(), Ok(part.declared.clone()));
                    proposals.push(Proposal { manifest, contribution });
                }
                Err(Absence::Inactive(manifest, error)) => {
                    proposals.push(Proposal { manifest: (**manifest).clone(), contribution: Err(error.clone()) });
                }
                // A host may bring plugins of its own, which nobody registers.
                Err(Absence::Unregistered(_)) if host.plugins.contains(&member.id) => {}
                Err(absence @ Absence::Unregistered(_)) => {
                    let (plugin, message) = (member.id.clone(), absence.reason());
                    return Err(ResolutionError::Config { plugin, message });
                }
            }
        }
        Ok(ResolvedExecutionEnv::merge(host, proposals)?.into_environment())
    }

    /// The plugins of the run, activated from the spec that its record 0 holds. The error is the reason.
    pub(crate) fn cast(&self, engine: &Engine) -> Result<&Cast, String> {
        let spec = engine.spec().ok_or_else(|| "the run has not begun".to_owned())?;
        Ok(self.cast_of(&spec.plugins))
    }

    fn cast_of(&self, plugins: &[PluginSpec]) -> &Cast {
        self.cast.get_or_init(|| Cast(plugins.iter().map(|named| self.member(named)).collect()))
    }

    fn member(&self, named: &PluginSpec) -> Member {
        let part = match self.registered.get(&named.id) {
            None => Err(Absence::Unregistered(self.registered.keys().cloned().collect())),
            Some(registered) => registered.activated(named).map_err(|error| {
                tracing::error!(plugin = named.id, reason = %error, "a plugin was not activated");
                Absence::Inactive(Box::new(registered.manifest.clone()), error)
            }),
        };
        Member { id: named.id.clone(), part }
    }
}

impl Registered {
    /// Activates the plugin with its configuration.
    fn activated(&self, named: &PluginSpec) -> Result<Part, PluginConfigError> {
        self.manifest.check_config(&named.config)?;
        let activated = catch_unwind(AssertUnwindSafe(|| self.plugin.activate(&named.config)));
        let contributions = activated.unwrap_or_else(|panic| {
            tracing::error!(plugin = named.id, panic = told(panic.as_ref()), "a plugin panicked when it was activated");
            Err(PluginConfigError::new(&named.id, "it panicked when it was activated"))
        })?;
        let (declared, handlers) = contributions.into_parts();
        Ok(Part { manifest: self.manifest.clone(), declared, handlers })
    }
}

impl Cast {
    /// The code behind a tool. The error is the reason.
    pub(crate) fn tool(&self, plugin: &str, name: &str) -> Result<Handler<Invocation, ToolOutput, ToolError>, String> {
        self.found(plugin, |part| part.handlers.tools.get(name).map(Arc::clone), || format!("tool {name:?}"))
    }

    /// The code behind a gate.
    pub(crate) fn gate(
        &self,
        plugin: &str,
        id: &str,
    ) -> Result<Handler<GateQuestion, GateAnswer, GateFailure>, String> {
        self.found(plugin, |part| part.handlers.gates.get(id).map(Arc::clone), || format!("gate {id:?}"))
    }

    /// The code behind a hook.
    pub(crate) fn hook(
        &self,
        plugin: &str,
        point: HookPoint,
    ) -> Result<Handler<HookQuestion, HookAnswer, HookFailure>, String> {
        self.found(plugin, |part| part.handlers.hooks.get(&point).map(Arc::clone), || format!("hook at {point}"))
    }

    /// The code behind an action kind.
    pub(crate) fn action(
        &self,
        plugin: &str,
        kind: &str,
    ) -> Result<Handler<ActionQuestion, HookAnswer, HookFailure>, String> {
        self.found(plugin, |part| part.handlers.actions.get(kind).map(Arc::clone), || format!("action kind {kind:?}"))
    }

    /// What those of these tools (plugin and name) that are there declare now.
    pub(crate) fn live(&self, tools: &[(String, String)]) -> Vec<LiveTool> {
        let live = |(plugin, name): &(String, String)| {
            let declared = &self.part(plugin).ok()?.declared.tools;
            let tool = declared.iter().find(|tool| tool.name == *name)?;
            Some(LiveTool { name: name.clone(), recovery: tool.recovery_mode() })
        };
        tools.iter().filter_map(live).collect()
    }

    fn found<T>(
        &self,
        plugin: &str,
        find: impl Fn(&Part) -> Option<T>,
        what: impl Fn() -> String,
    ) -> Result<T, String> {
        let gone = || format!("the plugin {plugin:?} that is registered here has no {} any more", what());
        find(self.part(plugin)?).ok_or_else(gone)
    }

    fn part(&self, plugin: &str) -> Result<&Part, String> {
        let member = self.0.iter().find(|member| member.id == plugin);
        let member = member.ok_or_else(|| format!("the plugin {plugin:?} is not in the run's spec"))?;
        member
            .part
            .as_ref()
            .map_err(|absence| format!("the plugin {plugin:?} does not take part: {}", absence.reason()))
    }
}
