//! Scenarios: one run and the world around it, from one file, in virtual time (SPEC 14).
//!
//! A scenario holds the run's [`Spec`] and a [`Script`]: what the model answers, what became of its tool
//! calls, what the judge, gates, plugins and people say, and what interrupts the run. [`Stage`] lets the runtime
//! drive it, in virtual time or the machine's. Nothing here starts a process or opens a socket: the parts that a
//! scenario calls real are ports which whoever sets the stage has to bring ([`Real`]).
//! `docs/scenario.md` explains the format.

mod expectation;
mod interruption;
mod keyed;
mod playing;
mod plugin_reply;
mod plugins;
mod real;
mod reply;
mod script;
mod stage;
mod tool_call;
mod world;
mod written;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer};

#[cfg(feature = "mcp")]
use crate::adapters::mcp::stated;
use crate::machines::toolbox::Toolbox;
use crate::runtime::plugins::Company;
use crate::vocabulary::environment::{Capability, Environment, Gate, Hook, StateKeySpec};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::RunId;
#[cfg(not(feature = "mcp"))]
use crate::vocabulary::spec::ToolSource;
use crate::vocabulary::spec::{Spec, ToolSpec};

pub use expectation::{Difference, Expectation};
pub use interruption::{EffectKind, Interruption, Moment, Point};
pub use plugin_reply::{PluginReplies, PluginReply, PluginSays};
pub use real::{Part, Real};
pub use reply::{ModelReply, ModelSays};
pub use script::{AnsweredPoint, GateReply, JudgeReply, JudgeSays, Script};
pub use stage::{Audience, Opening, Resumed, Scene, Setting, Stage};
pub use tool_call::{PersonReply, ReconciledReply, ScriptedCall, ToolReply, ToolReturn};

/// One run and the world around it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Where the JSON Schema of this file is, for editors. Not used otherwise.
    #[serde(rename = "$schema", default)]
    pub schema: Option<String>,
    /// What the scenario shows, for people. Default: nothing.
    #[serde(default)]
    pub about: String,
    /// The run's id: it seeds the jitter of retries. Default: made from the file's name.
    #[serde(default)]
    pub run_id: Option<RunId>,
    /// What the run is asked to do and what it may spend on it.
    #[serde(deserialize_with = "checked")]
    pub spec: Box<Spec>,
    /// The parts that are real: models that are asked, tools that are entered. Default: none, everything is scripted.
    #[serde(default)]
    pub real: BTreeSet<Part>,
    /// What resolution finds. Default: the tools of the spec.
    #[serde(default)]
    pub environment: Surroundings,
    /// What the world answers. Default: nothing, so that the first question stays open.
    #[serde(default)]
    pub script: Script,
    /// How the run must end. Default: any way is right.
    #[serde(default)]
    pub expect: Option<Expectation>,
}

/// What resolution finds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Surroundings {
    /// Every tool the model is offered. Default: the tools of the spec.
    pub tools: Option<Vec<ToolSpec>>,
    /// Every gate, in the order in which they are asked. Default: none.
    pub gates: Vec<Gate>,
    /// Every hook, in the order in which they are asked. Default: none.
    pub hooks: Vec<Hook>,
    /// Every state key that may be written, with its policy. Default: none.
    pub state_keys: Vec<StateKeySpec>,
    /// Every action kind that may be scheduled. Default: none.
    pub action_kinds: Vec<String>,
    /// The plugins that took part, in dependency order. Default: those that have an entry in `capabilities`.
    pub plugins: Option<Vec<String>>,
    /// What each plugin may do, and what of all this is its own. A plugin without an entry may do nothing.
    pub capabilities: Vec<Capability>,
}

/// A file that is no scenario: where and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFault {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for ScenarioFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for ScenarioFault {}

impl Scenario {
    /// Reads a file strictly: unknown fields, keys that stand twice and bytes after the end are refused.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn read(bytes: &[u8]) -> Result<Self, ScenarioFault> {
        let read: Self = serde_json::from_slice(bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let whole = error.to_string();
            let place = format!(" at line {line} column {column}");
            let reason = whole.strip_suffix(&place).unwrap_or(&whole).to_owned();
            ScenarioFault { line, column, reason }
        })?;
        match real::fault(&read) {
            Some(reason) => Err(ScenarioFault { line: 1, column: 1, reason }),
            None => Ok(read),
        }
    }

    /// A scenario of `spec` and `script`.
    #[must_use]
    pub fn new(spec: Spec, script: Script) -> Self {
        Self {
            schema: None,
            about: String::new(),
            run_id: None,
            spec: Box::new(spec),
            real: BTreeSet::new(),
            environment: Surroundings::default(),
            script,
            expect: None,
        }
    }

    /// What a run of this scenario would resolve to: the same merge, and the same check by the engine, without a
    /// run. Of real tool sources nobody is asked: the tools that they name themselves stand for the others.
    ///
    /// # Errors
    /// What the run would end with in row 18.
    pub fn check(&self) -> Result<Environment, ResolutionError> {
        if let Some(error) = &self.script.unresolved {
            return Err(error.clone());
        }
        let mut found = self.environment();
        if self.real.contains(&Part::Tools) {
            for source in &self.spec.tool_sources {
                found.tools.extend(stated(source)?);
            }
        }
        let environment = company().merge(&self.spec, found)?;
        Toolbox::new(&self.spec, environment.clone())?;
        Ok(environment)
    }

    /// What resolution finds.
    fn environment(&self) -> Environment {
        let Surroundings { tools, gates, hooks, state_keys, action_kinds, plugins, capabilities } =
            self.environment.clone();
        let named = || capabilities.iter().map(|capability| capability.plugin.clone()).collect();
        Environment {
            tools: tools.unwrap_or_else(|| self.spec.tools.clone()),
            gates,
            hooks,
            state_keys,
            action_kinds,
            plugins: plugins.unwrap_or_else(named),
            capabilities,
        }
    }
}

/// The tools that a source names, as far as the file says.
#[cfg(not(feature = "mcp"))]
#[allow(clippy::unnecessary_wraps)]
fn stated(source: &ToolSource) -> Result<Vec<ToolSpec>, ResolutionError> {
    Ok(source.only.iter().flatten().map(|name| ToolSpec::new(source.tool_name(name))).collect())
}

/// The plugins that a spec may name and that need no script.
fn company() -> Company {
    Company::of(crate::plugins::all())
}

/// A spec that would not begin a run is refused where it stands in the file.
fn checked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Spec>, D::Error> {
    let spec = Box::<Spec>::deserialize(deserializer)?;
    spec.check().map_err(serde::de::Error::custom)?;
    Ok(spec)
}
