//! Worlds: small bounds under which a run is explored, and what may be answered there.

use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{MalformedId, RunId};
use crate::vocabulary::input::{Decision, GateAnswer, Input, Reconciliation, StagedCommand, Verdict};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, FinishReason, ToolRequest, Usage};
use crate::vocabulary::spec::Spec;
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// One set of small bounds.
#[derive(Debug, Clone)]
pub struct World {
    /// Its name.
    pub name: &'static str,
    /// What the run is asked to do, and what it may spend.
    pub spec: Spec,
    /// What the world may answer.
    pub menu: Menu,
    /// How many times a driver may take the run over.
    pub recoveries_max: u64,
}

/// What the world may answer to each effect. An empty list leaves that answer out.
#[derive(Debug, Clone, Default)]
pub struct Menu {
    /// What resolution finds.
    pub environments: Vec<Environment>,
    /// How resolution fails.
    pub unresolved: Vec<ResolutionError>,
    /// Answers without tool calls.
    pub drafts: Vec<(String, FinishReason)>,
    /// Answers with tool calls.
    pub batches: Vec<(Vec<ToolRequest>, FinishReason)>,
    /// What every answer of a model uses.
    pub usage: Usage,
    /// How a model request fails.
    pub model_errors: Vec<llm::Error>,
    /// What an invocation returns.
    pub outputs: Vec<Output>,
    /// How an invocation fails.
    pub tool_errors: Vec<ToolError>,
    /// What a running tool asks for of its own.
    pub nested: Vec<NestedAsk>,
    /// How many times one call asks: what is denied costs nothing, so no budget ends it.
    pub nested_max: u32,
    /// What a gate before a tool call answers.
    pub tool_gates: Vec<GateAnswer>,
    /// What a gate before a release answers.
    pub release_gates: Vec<GateAnswer>,
    /// What a hook answers, and what a plugin that performs an action does.
    pub hooks: Vec<HookReply>,
    /// What a person decides.
    pub decisions: Vec<Decision>,
    /// What the judge finds.
    pub verdicts: Vec<Verdict>,
    /// What a person finds out about an interrupted call.
    pub reconciliations: Vec<Reconciliation>,
}

/// What a hook answers.
#[derive(Debug, Clone, Default)]
pub struct HookReply {
    /// What it stages.
    pub commands: Vec<StagedCommand>,
    /// What it adds to the next model request.
    pub context: Option<String>,
}

/// A call that a running tool wants to make.
#[derive(Debug, Clone)]
pub enum NestedAsk {
    /// A tool's.
    Tool {
        /// Which.
        tool: String,
        /// With what.
        arguments: Json,
    },
    /// A model's.
    Model,
}

/// What an invocation returns.
#[derive(Debug, Clone)]
pub enum Output {
    /// A fact that names its call, so that no other call gave it.
    Fresh,
    /// This.
    Given(ToolOutput),
}

impl World {
    /// The input that begins its run.
    ///
    /// # Errors
    /// When the name is no run id.
    pub fn start(&self) -> Result<Input, MalformedId> {
        let run_id: RunId = self.name.parse()?;
        let spec = Box::new(self.spec.clone());
        Ok(Input::RunStarted {
            run_id,
            spec,
            nonce: "explored".to_owned(),
            wall_time: String::new(),
            forked_from: None,
        })
    }
}
