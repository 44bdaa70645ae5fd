//! The parts of a scenario that are real: ports in the place of the script.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::Scenario;
use crate::engine::{Engine, Request};
use crate::runtime::Traces;
use crate::runtime::execution::{Error, Trouble};
use crate::runtime::ports::{
    AnyJudge, AnyModel, AnyTools, Judge, Line, Model, Tools, call_model, invoke_tool, judge_semantics,
};
use crate::runtime::world::Performed;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::LiveTool;
use crate::vocabulary::spec::Spec;
use crate::vocabulary::wire::words;

words! {
    /// A part of a scenario that is real.
    pub enum Part {
        /// The models of the spec are asked.
        Model = "model",
        /// The tools of the spec's `tool_sources` are found and entered. Its own `tools` stay scripted.
        Tools = "tools",
        /// The spec's `release.judge_model` judges.
        Judge = "judge",
    }
}

/// The ports that stand in the place of a script.
#[derive(Clone, Default)]
pub struct Real {
    model: Option<Arc<dyn AnyModel>>,
    tools: Option<Arc<dyn AnyTools>>,
    judge: Option<Arc<dyn AnyJudge>>,
}

impl fmt::Debug for Real {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.parts()).finish()
    }
}

impl Real {
    /// What models are asked through.
    #[must_use]
    pub fn model(self, model: impl Model) -> Self {
        Self { model: Some(Arc::new(model)), ..self }
    }

    /// What the tools of sources are found and entered through.
    #[must_use]
    pub fn tools(self, tools: impl Tools) -> Self {
        Self { tools: Some(Arc::new(tools)), ..self }
    }

    /// Who judges conclusions.
    #[must_use]
    pub fn judge(self, judge: impl Judge) -> Self {
        Self { judge: Some(Arc::new(judge)), ..self }
    }

    fn has(&self, part: Part) -> bool {
        match part {
            Part::Model => self.model.is_some(),
            Part::Tools => self.tools.is_some(),
            Part::Judge => self.judge.is_some(),
        }
    }

    fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        Part::ALL.iter().copied().filter(|part| self.has(*part))
    }

    /// The ports that a scenario asks for, and no others: what it does not call real is scripted.
    pub(super) fn of(&self, scenario: &Scenario) -> Result<Self, Error> {
        let wanted = |part| scenario.real.contains(&part);
        if let Some(absent) = scenario.real.iter().find(|part| !self.has(**part)) {
            let absent = match absent {
                Part::Model => "a model",
                Part::Tools => "tools",
                Part::Judge => "a judge",
            };
            return Err(Trouble::Unequipped(absent).into());
        }
        Ok(Self {
            model: self.model.clone().filter(|_| wanted(Part::Model)),
            tools: self.tools.clone().filter(|_| wanted(Part::Tools)),
            judge: self.judge.clone().filter(|_| wanted(Part::Judge)),
        })
    }

    /// Whether everything is scripted.
    pub(super) fn is_nothing(&self) -> bool {
        self.parts().next().is_none()
    }

    /// Performs an effect that is a real port's; `None` when it is the script's.
    pub(super) fn perform(&self, engine: &Engine, effect: &Request, line: &Line) -> Option<Performed> {
        let traces = Traces::Outline;
        let report = match effect {
            Effect::CallModel { call, attempt, .. } => {
                call_model(self.model.as_ref()?, traces, engine, *call, *attempt)
            }
            Effect::InvokeTool { call, attempt, operation_id } if is_sourced(engine, *call) => {
                invoke_tool(self.tools.as_ref()?, traces, engine, (*call, *attempt, operation_id), line)
            }
            Effect::JudgeSemantics { call, attempt, draft } => {
                judge_semantics(self.judge.as_ref()?, engine, *call, *attempt, *draft)
            }
            Effect::InvokeTool { .. }
            | Effect::ResolveEnvironment
            | Effect::StartTimer { .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::PerformAction { .. }
            | Effect::DispatchTools { .. }
            | Effect::AdmitNested { .. }
            | Effect::DenyNested { .. }
            | Effect::AwaitDecision { .. }
            | Effect::ReconcileTool { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => None,
        };
        report.map(Performed::Reports)
    }

    /// What resolution finds: the script's surroundings and the tools of the sources. `None` when those are not
    /// real.
    pub(super) fn resolve(
        &self,
        spec: &Spec,
        scripted: &Environment,
    ) -> Option<BoxFuture<'static, Result<Environment, ResolutionError>>> {
        let tools = Arc::clone(self.tools.as_ref()?);
        let (asked, scripted) = (Spec { tools: Vec::new(), ..spec.clone() }, scripted.clone());
        Some(Box::pin(async move {
            let found = tools.resolve(asked).await?;
            let tools = found.tools.into_iter().chain(scripted.tools).collect();
            Ok(Environment { tools, ..scripted })
        }))
    }

    /// What the tools of the sources declare now.
    pub(super) fn live(&self) -> BoxFuture<'static, Vec<LiveTool>> {
        match &self.tools {
            Some(tools) => Arc::clone(tools).live(),
            None => Box::pin(std::future::ready(Vec::new())),
        }
    }
}

/// Whether the tool of a call belongs to a source of the spec.
fn is_sourced(engine: &Engine, call: ToolCallId) -> bool {
    let (Some(spec), Some(plan)) = (engine.spec(), engine.plan(call)) else { return false };
    spec.tool_sources.iter().any(|source| source.owns(&plan.tool.name))
}

/// Why a scenario's real parts cannot be: the field, and what is missing.
pub(super) fn fault(scenario: &Scenario) -> Option<String> {
    let Scenario { real, spec, environment, .. } = scenario;
    let scripted = || environment.tools.iter().flatten().chain(&spec.tools);
    let claimed = |name: &String| spec.tool_sources.iter().any(|source| source.owns(name));
    if let Some(tool) = scripted().find(|tool| real.contains(&Part::Tools) && claimed(&tool.name)) {
        return Some(format!("the scripted tool {:?} has a name of a tool source", tool.name));
    }
    if let Some(tool) = scripted().next().filter(|_| real.contains(&Part::Model)) {
        return Some(format!(
            "the tool {:?} is scripted, and its results stand with the calls of a scripted model: \
             with \"model\" in `real` only tools of spec.tool_sources can be called",
            tool.name
        ));
    }
    if real.contains(&Part::Tools) && spec.tool_sources.is_empty() {
        return Some("real: \"tools\" are those of spec.tool_sources, and there are none".to_owned());
    }
    if real.contains(&Part::Judge) && spec.release.judge_model.is_none() {
        return Some("real: \"judge\" is spec.release.judge_model, and there is none".to_owned());
    }
    None
}
