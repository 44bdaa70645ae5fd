//! An agent in your own program: ports, a run, its events, its release.
//!
//! `cargo run --example embed`

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::ports::{
    Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall, ModelFailure, Toolset,
};
use portcullis::runtime::{Event, Outcome, Runtime};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::input::Verdict;
use portcullis::vocabulary::llm::{self, ToolRequest};
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::ToolOutput;
use serde::Deserialize;

/// Stands for a provider: it looks once, and then concludes from what it saw.
struct SmallModel;

impl Model for SmallModel {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        if call.messages.iter().any(|message| matches!(**message, Message::Observation(_))) {
            let draft = r#"{"conclusion":{"statement":"The pool of orders-db is used up."},"citations":["f1"],
                            "data":{"service":"orders-db","page":true}}"#;
            return Ok(ModelAnswer::text(draft));
        }
        let arguments = r#"{"service":"orders-db"}"#.to_owned();
        Ok(ModelAnswer::calls([ToolRequest { name: "metrics".to_owned(), arguments, provider_id: None }]))
    }
}

/// Stands for a second model that judges whether the cited facts carry the conclusion.
struct SmallJudge;

impl Judge for SmallJudge {
    async fn judge(&self, question: JudgeQuestion) -> Result<Judgement, llm::Error> {
        let said = question.citations.iter().any(|citation| citation.fact.statement.contains("100 of 100"));
        let verdict = if said { Verdict::Supported } else { Verdict::Unsupported };
        Ok(Judgement { verdict, usage: None })
    }
}

/// The arguments of `metrics`.
#[derive(Deserialize)]
struct Query {
    service: String,
}

/// The `data` of the report.
#[derive(Debug, Deserialize)]
struct Report {
    service: String,
    page: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Toolset::new().with(ToolSpec::evidence("metrics"), |query: Query, _| async move {
        let fact = Statement::new(format!("{} uses 100 of 100 connections", query.service));
        Ok(ToolOutput::facts("connections: 100/100", [fact]))
    });
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::builder()
        .model(SmallModel)
        .tools(tools)
        .judge(SmallJudge)
        .store(SqliteStore::create_or_open(folder.path().join("portcullis.db"))?)
        .build()?;
    runtime.recover().await?; // what an earlier process left

    let run = runtime.start(Spec::new("Why is checkout slow?", "small-model")).await?;
    let mut events = run.events();
    while let Some(event) = events.next().await {
        if let Event::ToolCalled { call, .. } | Event::ToolResult { call, .. } = &event {
            println!("{call}: {event:?}");
        }
    }
    match run.outcome().await? {
        Outcome::Ended(ended) => {
            println!("row {}: {}", ended.ending.row, serde_json::to_string(&ended.release)?);
            if let Some(report) = ended.release.data::<Report>()? {
                println!("page somebody for {}: {}", report.service, report.page);
            }
            run.delivered("printed").await?;
        }
        Outcome::Awaiting(waiting) => println!("waits for {:?}", waiting.questions),
    }
    Ok(())
}
