//! Tools as functions.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::tools::{Invocation, Tools};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::input::LiveTool;
use crate::vocabulary::spec::{Spec, ToolSpec};
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// Tools of this process, each a declaration and an async function.
#[derive(Default)]
pub struct Toolset {
    tools: BTreeMap<String, Entry>,
    /// The order in which they were added, which is the order in which the model is offered them.
    order: Vec<String>,
}

struct Entry {
    spec: ToolSpec,
    function: Function,
}

type Function = Arc<dyn Fn(Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

/// A function whose arguments come as a type of its own.
pub(crate) fn typed<A, F>(function: impl Fn(A, Invocation) -> F + Send + Sync + 'static) -> Function
where
    A: DeserializeOwned,
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(move |invocation| match invocation.typed::<A>() {
        Ok(arguments) => Box::pin(function(arguments, invocation)),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    })
}

impl Toolset {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool whose arguments come as a type of yours. A second tool of one name takes the first one's
    /// place.
    #[must_use]
    pub fn with<A, F>(self, spec: ToolSpec, function: impl Fn(A, Invocation) -> F + Send + Sync + 'static) -> Self
    where
        A: DeserializeOwned,
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        self.add(spec, typed(function))
    }

    fn add(mut self, spec: ToolSpec, function: Function) -> Self {
        let name = spec.name.clone();
        if self.tools.insert(name.clone(), Entry { spec, function }).is_none() {
            self.order.push(name);
        }
        self
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.order.iter().filter_map(|name| self.tools.get(name))
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(&self.order).finish()
    }
}

impl Tools for Toolset {
    /// The tools of this set. A spec that declares tools of its own chooses among them, and its declarations
    /// count.
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        if let Some(source) = spec.tool_sources.first() {
            let message = format!("nothing here reaches the tool server {:?}", source.name);
            return Err(ResolutionError::Routing { message });
        }
        if let Some(tool) = spec.tools.iter().find(|tool| !self.tools.contains_key(&tool.name)) {
            return Err(ResolutionError::Routing { message: format!("nothing here runs the tool {:?}", tool.name) });
        }
        let tools = if spec.tools.is_empty() {
            self.entries().map(|entry| entry.spec.clone()).collect()
        } else {
            spec.tools.clone()
        };
        Ok(Environment { tools, ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        match self.tools.get(&invocation.tool().name) {
            Some(entry) => (entry.function)(invocation).await,
            None => {
                let message = format!("{:?} is not one of the tools here", invocation.tool().name);
                Err(ToolError::UnavailableBeforeDispatch { message })
            }
        }
    }

    async fn live(&self) -> Vec<LiveTool> {
        let live = |entry: &Entry| LiveTool { name: entry.spec.name.clone(), recovery: entry.spec.recovery_mode() };
        self.entries().map(live).collect()
    }
}
