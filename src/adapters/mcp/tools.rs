//! The port of tools, over the servers of a live configuration.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;

use super::fault::Fault;
use super::names::split;
use super::rendering::{carried, rendered};
use super::source::Source;
use crate::machines::capabilities::HOST;
use crate::runtime::ports::{AnyTools, Invocation, Tools};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::input::LiveTool;
use crate::vocabulary::spec::{Spec, ToolSource, ToolSpec};
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// Tools of MCP servers.
///
/// The sources are the live configuration: nothing else starts a process or opens a socket, whatever a spec or a
/// history names. Each server is started when a run first needs it and is shared by all runs. Clones are the same
/// tools. Dropping the last one ends every server in the background; [`McpTools::close`] waits for that.
#[derive(Clone)]
pub struct McpTools {
    sources: Arc<[Source]>,
    /// Tools of this process.
    beside: Option<Arc<dyn AnyTools>>,
}

impl McpTools {
    /// The servers that may be used.
    #[must_use]
    pub fn new(sources: Vec<ToolSource>) -> Self {
        Self { sources: sources.into_iter().map(Source::new).collect(), beside: None }
    }

    /// The same with tools of this process beside those of servers. What a spec declares itself is theirs.
    #[must_use]
    pub fn beside(self, tools: impl Tools) -> Self {
        Self { beside: Some(Arc::new(tools)), ..self }
    }

    /// Ends every server and waits until it has ended.
    pub async fn close(&self) {
        join_all(self.sources.iter().map(Source::end)).await;
    }

    fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.live.name == name)
    }

    /// The live source that a spec names, if it is the same.
    fn named(&self, asked: &ToolSource) -> Result<&Source, ResolutionError> {
        let routing = |message: String| ResolutionError::Routing { message };
        let Some(source) = self.source(&asked.name) else {
            return Err(routing(format!("nothing here names the tool server {:?}", asked.name)));
        };
        if source.live.transport != asked.transport {
            return Err(routing(format!("nothing here names the tool server {:?} with this transport", asked.name)));
        }
        let permitted =
            |only: &Vec<String>| asked.only.as_ref().is_some_and(|asked| asked.iter().all(|name| only.contains(name)));
        match &source.live.only {
            Some(only) if !permitted(only) => Err(routing(format!(
                "of the tool server {:?} only these are offered here: {}",
                asked.name,
                only.join(", ")
            ))),
            Some(_) | None => Ok(source),
        }
    }

    /// What the tools of this process are for a run.
    async fn resolve_beside(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        if let Some(beside) = &self.beside {
            let own = Spec { tool_sources: Vec::new(), ..spec.clone() };
            return Arc::clone(beside).resolve(own).await;
        }
        match spec.tools.first() {
            Some(tool) => {
                Err(ResolutionError::Routing { message: format!("nothing here runs the tool {:?}", tool.name) })
            }
            None => Ok(Environment::default()),
        }
    }

    async fn call(&self, source: &Source, tool: &str, invocation: &Invocation) -> Result<ToolOutput, Fault> {
        if source.live.only.as_ref().is_some_and(|only| !only.iter().any(|name| name == tool)) {
            return Err(Fault::Unwritten("`only` of the live configuration leaves this tool out".to_owned()));
        }
        let arguments = carried(invocation.arguments()).map_err(Fault::Unwritten)?;
        let connection = source.connected(tool).await?;
        let result = connection.call(tool, arguments).await;
        let answered = match &result {
            Ok(_) => true,
            Err(fault) => fault.is_an_answer(),
        };
        if answered {
            source.answered(&connection).await;
        }
        connection.without_secrets(rendered(&result?, &invocation.tool().projection))
    }
}

impl Tools for McpTools {
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        // Before anything is started: what cannot be is refused.
        let mut sources: Vec<(&ToolSource, &Source)> = Vec::new();
        for asked in &spec.tool_sources {
            if sources.iter().any(|(other, _)| other.name == asked.name) {
                let message = format!("the spec names the tool server {:?} twice", asked.name);
                return Err(ResolutionError::Routing { message });
            }
            sources.push((asked, self.named(asked)?));
        }
        let mut environment = self.resolve_beside(spec).await?;
        check_namespaces(&environment.tools, &sources)?;
        let resolved = join_all(sources.iter().map(|(asked, source)| source.resolve(asked))).await;
        for tools in resolved {
            let tools = tools?;
            for tool in &tools {
                let invalid = |message| ResolutionError::InvalidTool { id: tool.name.clone(), message };
                tool.check(spec).map_err(invalid)?;
            }
            environment.tools.extend(tools);
        }
        Ok(environment)
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let name = invocation.tool().name.clone();
        let of_server = split(&name).and_then(|(source, tool)| Some((self.source(source)?, tool)));
        match (of_server, &self.beside) {
            (Some((source, tool)), _) => {
                self.call(source, tool, &invocation).await.map_err(|fault| fault.of_call(&source.live.name))
            }
            (None, Some(beside)) => Arc::clone(beside).invoke(invocation).await,
            (None, None) => {
                Err(ToolError::UnavailableBeforeDispatch { message: format!("nothing here runs the tool {name:?}") })
            }
        }
    }

    async fn live(&self) -> Vec<LiveTool> {
        let declared = join_all(self.sources.iter().map(Source::declares)).await;
        let live = |tool: ToolSpec| LiveTool { recovery: tool.recovery_mode(), name: tool.name };
        let mut live: Vec<LiveTool> = declared.into_iter().flatten().map(live).collect();
        if let Some(beside) = &self.beside {
            live.extend(Arc::clone(beside).live().await);
        }
        live
    }
}

/// A tool of this process may not have a name that belongs to a server.
fn check_namespaces(tools: &[ToolSpec], sources: &[(&ToolSource, &Source)]) -> Result<(), ResolutionError> {
    for tool in tools {
        let owner = split(&tool.name).and_then(|(name, _)| sources.iter().find(|(asked, _)| asked.name == name));
        if let Some((asked, _)) = owner {
            let (first, second) = (HOST.to_owned(), asked.name.clone());
            return Err(ResolutionError::DuplicateTool { id: tool.name.clone(), first, second });
        }
    }
    Ok(())
}

impl fmt::Debug for McpTools {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("McpTools").field("sources", &self.sources).finish_non_exhaustive()
    }
}
