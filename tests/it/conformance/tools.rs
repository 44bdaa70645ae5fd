//! Tools.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::runtime::conformance::tools::{Rule, Upstream, tools};
use portcullis::runtime::conformance::{Breach, Turn};
use portcullis::runtime::ports::{Invocation, Tools};
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::input::LiveTool;
use portcullis::vocabulary::llm::ToolRequest;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{Recovery, ToolError, ToolOutput};

use super::{unheeding, wait};

/// Tools in this process, which may break a rule.
struct Port {
    upstream: Upstream,
    broken: Option<Rule>,
    latest: Arc<Mutex<Option<ToolOutput>>>,
}

impl Port {
    fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    async fn send(&self, request: String) -> Turn<ToolOutput, ToolError> {
        let upstream = self.upstream.clone();
        if self.breaks(Rule::GivenUp) {
            return unheeding(async move { upstream.ask(request).await }).await;
        }
        let turn = upstream.ask(request.clone()).await;
        let again = self.breaks(Rule::OneRequest) && turn == Turn::Break;
        if again { upstream.ask(request).await } else { turn }
    }
}

fn unavailable() -> ToolError {
    ToolError::UnavailableBeforeDispatch { message: "nobody answers".to_owned() }
}

impl Tools for Port {
    async fn resolve(&self, _: &Spec) -> Result<Environment, ResolutionError> {
        let name = if self.breaks(Rule::Accepted) { "order parts" } else { "order" };
        let order = ToolSpec { recovery: Some(Recovery::Idempotent), ..ToolSpec::new(name) };
        Ok(Environment { tools: vec![order], ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        if self.upstream.is_away() {
            let gone = self.breaks(Rule::NeverASuccess);
            return if gone { Ok(ToolOutput::text("nobody was there")) } else { Err(unavailable()) };
        }
        let mut request = format!("{} {}", invocation.operation_id.0, invocation.arguments().to_text());
        if self.breaks(Rule::OperationId) && invocation.attempt > 1 {
            request = format!("{}-{}", invocation.attempt, invocation.arguments().to_text());
        }
        match self.send(request).await {
            Turn::Answer(ToolOutput::Error { content }) if self.breaks(Rule::ExactOutput) => {
                Ok(ToolOutput::text(content))
            }
            Turn::Answer(output) if self.breaks(Rule::SideBySide) => {
                *self.latest.lock().unwrap() = Some(output);
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(self.latest.lock().unwrap().clone().unwrap())
            }
            Turn::Answer(output) => Ok(output),
            Turn::Fail(error) => Err(error),
            Turn::Break if self.breaks(Rule::ProofOnly) => Err(unavailable()),
            Turn::Break => Err(ToolError::Execution { message: "the connection broke".to_owned() }),
        }
    }

    async fn live(&self) -> Vec<LiveTool> {
        let recovery = if self.breaks(Rule::LiveAgrees) { Recovery::ReplaySafe } else { Recovery::Idempotent };
        vec![LiveTool { name: "order".to_owned(), recovery }]
    }
}

fn order(marker: &str) -> ToolRequest {
    ToolRequest { name: "order".to_owned(), arguments: format!(r#"{{"part":"{marker}"}}"#), provider_id: None }
}

fn checked(broken: Option<Rule>) -> Result<(), Vec<Breach<Rule>>> {
    let spec = Spec::new("order what is missing", "a-model");
    wait(tools(&spec, order, async |upstream| Port { upstream, broken, latest: Arc::default() }))
}

#[test]
fn tools_that_keep_every_rule_pass() {
    assert_eq!(checked(None), Ok(()));
}

#[test]
fn tools_that_break_a_rule_are_told_which() {
    for rule in Rule::ALL {
        let breaches = checked(Some(*rule)).expect_err(rule.word());
        assert!(breaches.iter().any(|breach| breach.rule == *rule), "{rule} is broken, found were {breaches:#?}");
    }
}

#[test]
fn a_call_that_needs_a_person_is_said_to_be_no_use_here() {
    let spec = Spec::new("order what is missing", "a-model");
    let ask = |_: &str| ToolRequest { name: "nobody".to_owned(), arguments: "{}".to_owned(), provider_id: None };
    let open = async |upstream| Port { upstream, broken: None, latest: Arc::default() };
    let breaches = wait(tools(&spec, ask, open)).expect_err("it passes");
    assert!(breaches.iter().any(|breach| breach.reason.contains("not dispatched")), "{breaches:#?}");
}
