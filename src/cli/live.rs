//! The real ports of a run.

#[cfg(feature = "mcp")]
use crate::adapters::mcp::McpTools;
#[cfg(feature = "providers")]
use crate::adapters::providers::{ModelJudge, Providers};
use crate::adapters::scenario::{Part, Real, Scenario};
use crate::vocabulary::spec::{ModelSpec, ToolSource};

/// The ports of a run's real parts, and what has to be ended after it.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) real: Real,
    #[cfg(feature = "mcp")]
    servers: Option<McpTools>,
}

impl Live {
    /// Ends the tool servers, and waits until they have ended.
    pub(crate) async fn close(self) {
        #[cfg(feature = "mcp")]
        if let Some(servers) = self.servers {
            servers.close().await;
        }
    }
}

/// The ports. Nothing is started or contacted yet.
pub(crate) fn made(scenario: &Scenario) -> Result<Live, String> {
    let mut live = Live::default();
    for part in &scenario.real {
        match part {
            Part::Model => live.model()?,
            Part::Tools => live.tools(&scenario.spec.tool_sources)?,
            Part::Judge => live.judge(scenario.spec.release.judge_model.as_ref())?,
        }
    }
    Ok(live)
}

#[cfg(feature = "providers")]
impl Live {
    fn model(&mut self) -> Result<(), String> {
        let providers = Providers::new().map_err(|error| error.to_string())?;
        self.real = std::mem::take(&mut self.real).model(providers);
        Ok(())
    }

    fn judge(&mut self, model: Option<&ModelSpec>) -> Result<(), String> {
        let Some(model) = model else { return Ok(()) };
        let providers = Providers::new().map_err(|error| error.to_string())?;
        self.real = std::mem::take(&mut self.real).judge(ModelJudge::new(model.clone(), providers));
        Ok(())
    }
}

#[cfg(not(feature = "providers"))]
impl Live {
    fn model(&mut self) -> Result<(), String> {
        Err(without("providers"))
    }

    fn judge(&mut self, _: Option<&ModelSpec>) -> Result<(), String> {
        Err(without("providers"))
    }
}

#[cfg(feature = "mcp")]
impl Live {
    fn tools(&mut self, sources: &[ToolSource]) -> Result<(), String> {
        let servers = McpTools::new(sources.to_vec());
        self.real = std::mem::take(&mut self.real).tools(servers.clone());
        self.servers = Some(servers);
        Ok(())
    }
}

#[cfg(not(feature = "mcp"))]
impl Live {
    fn tools(&mut self, _: &[ToolSource]) -> Result<(), String> {
        Err(without("mcp"))
    }
}

/// What a program says that lacks a feature, and the way out.
#[cfg(not(all(feature = "providers", feature = "mcp")))]
pub(super) fn without(feature: &str) -> String {
    format!("this program was built without `{feature}`; `cargo install portcullis --features full` brings everything")
}
