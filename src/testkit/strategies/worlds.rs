//! Worlds: a spec, an environment, and what may be answered there.

use std::collections::BTreeMap;

use proptest::prelude::Strategy;
use proptest::sample::select;

use super::specs::{environment, spec};
use crate::testkit::explorer::worlds;
use crate::testkit::world::{Menu, NestedAsk, Output, World};
use crate::vocabulary::environment::Environment;
use crate::vocabulary::fact::Statement;
use crate::vocabulary::input::{Decision, GateAnswer, Reconciliation, Verdict};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, FinishReason, ToolRequest, Usage};
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// What the models of drawn worlds conclude: it stands in no release before it was verified.
pub const UNVERIFIED: &str = "what nobody has verified";

/// A wide world: runs may go on for hundreds of reports.
pub fn world() -> impl Strategy<Value = World> {
    (spec(), environment()).prop_map(|(spec, environment)| {
        let menu = menu(environment);
        World { name: "wide", spec, menu, recoveries_max: 40 }
    })
}

/// One of the explorer's worlds: runs end soon, and in every way.
pub fn small_world() -> impl Strategy<Value = World> {
    select(worlds())
}

fn menu(environment: Environment) -> Menu {
    let answers = vec![
        GateAnswer::Allow,
        GateAnswer::Block { reason: None },
        GateAnswer::SetResult { content: "set".to_owned() },
        GateAnswer::Confirm { expires_ms: Some(30) },
    ];
    let message = || "for people".to_owned();
    let fact = |statement: &str| ToolOutput::facts("seen", [Statement::new(statement)]);
    Menu {
        environments: vec![environment],
        drafts: drafts(),
        batches: batches(),
        usage: Usage { input_tokens: Some(10), output_tokens: Some(5) },
        model_errors: vec![
            llm::Error::Timeout { message: message() },
            llm::Error::ModelNotFound { message: message() },
            llm::Error::InvalidRequest { message: message() },
        ],
        outputs: vec![
            Output::Fresh,
            Output::Given(fact("seen before")),
            Output::Given(ToolOutput::text("nothing")),
            Output::Given(ToolOutput::error("refused")),
        ],
        tool_errors: vec![
            ToolError::UnavailableBeforeDispatch { message: message() },
            ToolError::Execution { message: message() },
        ],
        nested: vec![
            NestedAsk::Tool { tool: "act".to_owned(), arguments: Json::Object(BTreeMap::new()) },
            NestedAsk::Tool { tool: "pay".to_owned(), arguments: Json::Object(BTreeMap::new()) },
            NestedAsk::Model,
        ],
        nested_max: 3,
        tool_gates: answers.clone(),
        release_gates: answers,
        decisions: vec![
            Decision::Allow,
            Decision::AllowWith { arguments: Json::Object(BTreeMap::new()) },
            Decision::Deny { note: None },
        ],
        verdicts: Verdict::ALL.to_vec(),
        reconciliations: vec![
            Reconciliation::Applied { output: fact("done") },
            Reconciliation::NotApplied,
            Reconciliation::Unknown,
        ],
        ..Menu::default()
    }
}

/// The good one first.
fn drafts() -> Vec<(String, FinishReason)> {
    let drafts = [
        format!(r#"{{"conclusion":{{"statement":"{UNVERIFIED}"}},"citations":["f1"],"quotes":{{"f1":"seen"}}}}"#),
        format!(r#"{{"conclusion":{{"statement":"{UNVERIFIED}"}},"citations":[]}}"#),
        r#"{"conclusion":null,"citations":["f1"]}"#.to_owned(),
        UNVERIFIED.to_owned(),
    ];
    drafts.into_iter().map(|text| (text, FinishReason::Stop)).collect()
}

fn batches() -> Vec<(Vec<ToolRequest>, FinishReason)> {
    let assessed = r#"{"at":7,"previous_observation":{"assessment":"uninformative"}}"#;
    let batches: [&[(&str, &str)]; 8] = [
        &[("look", r#"{"at":1}"#)],
        &[("look", r#"{"at":2}"#), ("look", r#"{"at":3}"#), ("look", r#"{"at":2}"#)],
        &[("poll", "{}"), ("poll", r#"{"previous_observation":{"assessment":"informative"}}"#)],
        &[("look", assessed), ("act", "{}")],
        &[("act", "{}"), ("act", "{}")],
        &[("pay", "{}"), ("note", "{}"), ("poll", "{}")],
        &[("nobody", "{}"), ("look", "{")],
        &[("act", r#"{"to":"them"}"#), ("poll", assessed)],
    ];
    let request = |(name, arguments): &(&str, &str)| ToolRequest {
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
        provider_id: Some("call_1".to_owned()),
    };
    batches.iter().map(|calls| (calls.iter().map(request).collect(), FinishReason::ToolCalls)).collect()
}
