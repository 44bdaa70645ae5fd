//! The tools port.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::Snapshot;
use super::nested::{Line, Nested};
use crate::machines::batch::Plan;
use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{OperationId, RunId, ToolCallId};
use crate::vocabulary::input::LiveTool;
use crate::vocabulary::json::Json;
use crate::vocabulary::spec::{Spec, ToolSpec};
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// Finds tools and enters them.
pub trait Tools: Send + Sync + 'static {
    /// Finds what a run may use. The default takes the tools that the spec declares, and refuses a spec that
    /// names servers, which nobody would contact.
    fn resolve(&self, spec: &Spec) -> impl Future<Output = Result<Environment, ResolutionError>> + Send {
        let found = declared(spec);
        async move { found }
    }

    /// Enters a tool, once.
    ///
    /// [`ToolError::UnavailableBeforeDispatch`] is a proof that nothing happened, and the only one. After any
    /// other failure the call's effect is unknown. A failure that the model should see as a result is
    /// [`ToolOutput::error`].
    fn invoke(&self, invocation: Invocation) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// What the tools declare now, asked when a run is recovered. A call that a crash interrupted is entered
    /// again only when its tool still declares a mode that allows it (SPEC 7). The default declares nothing, so
    /// nothing is entered again.
    fn live(&self) -> impl Future<Output = Vec<LiveTool>> + Send {
        std::future::ready(Vec::new())
    }
}

fn declared(spec: &Spec) -> Result<Environment, ResolutionError> {
    if let Some(source) = spec.tool_sources.first() {
        let message = format!("nothing here reaches the tool server {:?}", source.name);
        return Err(ResolutionError::Routing { message });
    }
    Ok(Environment { tools: spec.tools.clone(), ..Environment::default() })
}

/// One attempt of a tool call. Its dispatch is durable.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: ToolCallId,
    /// Which attempt, from 1. Later ones follow a proof that nothing happened, or a crash of a call that may run
    /// again.
    pub attempt: u32,
    /// The idempotency key: the same for every attempt, whatever crashed in between.
    pub operation_id: OperationId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) state: Snapshot,
    pub(crate) line: Line,
}

impl Invocation {
    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &ToolSpec {
        &self.plan.tool.spec
    }

    /// The arguments as they were validated.
    #[must_use]
    pub fn arguments(&self) -> &Json {
        &self.plan.arguments
    }

    /// The state that the run's plugins share, as it was committed when the call was entered.
    #[must_use]
    pub const fn state(&self) -> &Snapshot {
        &self.state
    }

    /// What the tool asks its run with before it makes a call of its own. Every copy is the same.
    #[must_use]
    pub fn nested(&self) -> Nested {
        Nested { parent: self.call, attempt: self.attempt, line: self.line.clone() }
    }

    /// The arguments as a type of yours.
    ///
    /// # Errors
    /// [`ToolError::InvalidArguments`] when the tool's schema let something through that the type does not
    /// take. Nothing happened then, but only you know that: to the engine the effect is unknown.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_json::from_str(&self.plan.arguments.to_text())
            .map_err(|error| ToolError::InvalidArguments { message: error.to_string() })
    }
}

/// Any tools, whatever their futures are.
pub(crate) trait AnyTools: Send + Sync {
    fn resolve(self: Arc<Self>, spec: Spec) -> BoxFuture<'static, Result<Environment, ResolutionError>>;
    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
    fn live(self: Arc<Self>) -> BoxFuture<'static, Vec<LiveTool>>;
}

impl<T: Tools> AnyTools for T {
    fn resolve(self: Arc<Self>, spec: Spec) -> BoxFuture<'static, Result<Environment, ResolutionError>> {
        Box::pin(async move { Tools::resolve(&*self, &spec).await })
    }

    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Tools::invoke(&*self, invocation).await })
    }

    fn live(self: Arc<Self>) -> BoxFuture<'static, Vec<LiveTool>> {
        Box::pin(async move { Tools::live(&*self).await })
    }
}
