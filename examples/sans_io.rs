//! A whole run, driven by hand: a model, a tool and a judge that are plain functions. Put yours in their place.
//!
//! `cargo run --example sans_io`

#![allow(clippy::expect_used)]

use portcullis::engine::{Engine, Request};
use portcullis::history::{Policy, Recorder, replay};
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::input::{Input, Verdict};
use portcullis::vocabulary::llm::{Content, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::ToolOutput;

/// A model: it looks first, and then answers in the form of a draft, citing what it saw.
fn model(engine: &Engine) -> Content {
    let request = engine.model_request().expect("a request is open");
    assert!(!request.messages.is_empty());
    match engine.facts().first() {
        None => {
            let arguments = r#"{"service":"orders-db"}"#.to_owned();
            let look = ToolRequest { name: "metrics".to_owned(), arguments, provider_id: None };
            Content { calls: vec![look], ..Content::default() }
        }
        Some(fact) => {
            let conclusion = r#"{"statement":"Checkout waits for a connection."}"#;
            let text = format!(r#"{{"conclusion":{conclusion},"citations":["{}"]}}"#, fact.id);
            Content { text: Some(text), ..Content::default() }
        }
    }
}

/// Does what an effect asks and reports what came of it. Nothing here may retry: the engine does.
fn perform(engine: &Engine, effect: Request) -> Option<Input> {
    Some(match effect {
        Effect::ResolveEnvironment => {
            let tools = engine.spec()?.tools.clone();
            Input::EnvironmentResolved { environment: Box::new(Environment { tools, ..Environment::default() }) }
        }
        Effect::CallModel { call, attempt, .. } => {
            let content = model(engine);
            let finish = if content.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
            Input::ModelResponded { call, attempt, content, finish, usage: Usage::default() }
        }
        Effect::DispatchTools { calls } => Input::ToolsDispatched { calls },
        Effect::InvokeTool { call, attempt, .. } => {
            let plan = engine.plan(call)?;
            let fact = Statement::new(format!("{} uses 100 of 100 connections", plan.arguments));
            Input::ToolCompleted { call, attempt, output: ToolOutput::facts("read", [fact]) }
        }
        Effect::JudgeSemantics { call, attempt, draft } => {
            let judged = engine.evidence()?;
            let verdict = if judged.conclusion().statement.is_empty() { Verdict::Unknown } else { Verdict::Supported };
            Input::SemanticsJudged { call, attempt, draft, verdict, usage: None }
        }
        Effect::Publish { release, .. } => {
            println!("{}", serde_json::to_string_pretty(&release).ok()?);
            Input::ReleaseDelivered { receipt: "printed".to_owned() }
        }
        // This world has no clock, no gates and nobody to ask.
        Effect::StartTimer { .. }
        | Effect::AskGate { .. }
        | Effect::CallHook { .. }
        | Effect::PerformAction { .. }
        | Effect::AdmitNested { .. }
        | Effect::DenyNested { .. }
        | Effect::AwaitDecision { .. }
        | Effect::ReconcileTool { .. }
        | Effect::AbortInFlight => return None,
    })
}

fn main() {
    let mut spec = Spec::new("Why is checkout slow?", "a-model");
    spec.tools = vec![ToolSpec::evidence("metrics")];
    let mut reports = vec![Input::RunStarted {
        run_id: "by-hand".parse().expect("a run id"),
        spec: Box::new(spec),
        nonce: "a number used once".to_owned(),
        wall_time: "2026-01-01T00:00:00Z".to_owned(),
        forked_from: None,
    }];
    let (mut engine, mut recorder, mut history) = (Engine::new(), Recorder::new(), Vec::new());
    let mut at_ms = 0;
    while !reports.is_empty() {
        match engine.step(at_ms, reports.remove(0)) {
            Ok(step) => {
                history.extend_from_slice(recorder.record(&engine, &step)); // a real store makes this durable
                reports.extend(step.effects.into_iter().filter_map(|effect| perform(&engine, effect)));
            }
            Err(refusal) => eprintln!("{refusal}"),
        }
        at_ms += 10;
    }
    let ending = engine.ending().expect("the run has ended");
    println!("row {}, {}, {} records", ending.row, ending.outcome, history.iter().filter(|b| **b == b'\n').count());
    let summary = replay(&history[..], Policy::Stop).expect("the history is whole");
    assert!(summary.divergences.is_empty());
}
