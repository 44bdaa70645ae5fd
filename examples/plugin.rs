//! A plugin: a tool, a hook, a state key and their bound, beside a plugin that is shipped. Two runs of one thread.
//!
//! `cargo run --example plugin`

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::composition::{PluginConfigError, PluginManifest, StateKey};
use portcullis::plugins::ToolPermission;
use portcullis::runtime::plugins::{Contributions, HookAnswer, HookQuestion, Plugin};
use portcullis::runtime::ports::{Invocation, Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::runtime::{Outcome, Runtime};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{HookPoint, MergePolicy, StateScope};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::ToolRequest;
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::spec::{JudgePolicy, PluginSpec, ReleaseSpec, Spec, ToolSpec};
use portcullis::vocabulary::tool::ToolOutput;
use serde::Deserialize;

/// How often the shelf was looked at, in all runs of the thread. Sets add up.
const LOOKS: StateKey<u64> = StateKey::new(StateScope::Thread, "shelf.looks", MergePolicy::Commutative);

/// A shelf of books that a run may look at.
struct Shelf;

/// Its configuration in a spec.
#[derive(Deserialize)]
struct Books {
    books: Vec<String>,
}

/// The arguments of its tool.
#[derive(Deserialize)]
struct Look {
    place: usize,
}

impl Plugin for Shelf {
    fn manifest(&self) -> PluginManifest {
        // Whatever it contributes or stages beyond this ends the run.
        let bound = Bound {
            tools: Allowance::ids(["shelf.look"]),
            state_keys: Allowance::ids(["shelf.looks"]),
            hooks: vec![HookPoint::RoundStart],
            ..Bound::default()
        };
        let config = r#"{"type":"object","required":["books"],"additionalProperties":false,
                         "properties":{"books":{"type":"array","items":{"type":"string"}}}}"#;
        PluginManifest { config: Json::parse(config).ok(), ..PluginManifest::new("shelf", bound) }
    }

    fn activate(&self, config: &Json) -> Result<Contributions, PluginConfigError> {
        let Books { books } = serde_json::from_str(&config.to_text())
            .map_err(|error| PluginConfigError::new("shelf", error.to_string()))?;
        let look = move |look: Look, _: Invocation| {
            let book = books.get(look.place).cloned();
            async move {
                let Some(book) = book else { return Ok(ToolOutput::error("there is no such place")) };
                let fact = Statement::new(format!("place {} holds {book:?}", look.place));
                Ok(ToolOutput::facts(book, [fact]).staging([LOOKS.set(&1)?]))
            }
        };
        let count = |question: HookQuestion| async move {
            let looks = question.state().read(&LOOKS)?;
            Ok(HookAnswer::nothing().saying(format!("The shelf was looked at {looks} times so far.")))
        };
        Ok(Contributions::new()
            .state_key(&LOOKS)
            .tool(ToolSpec::evidence("shelf.look"), look)
            .hook(HookPoint::RoundStart, count))
    }
}

/// Stands for a provider: it looks once, and then concludes from what it saw.
struct SmallModel;

impl Model for SmallModel {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        for message in &call.messages {
            if let Message::Context { by, text } = &**message {
                println!("{by} says: {text}");
            }
        }
        if call.messages.iter().any(|message| matches!(**message, Message::Observation(_))) {
            let draft = r#"{"conclusion":{"statement":"It is Emma."},"citations":["f1"]}"#;
            return Ok(ModelAnswer::text(draft));
        }
        let arguments = r#"{"place":0}"#.to_owned();
        Ok(ModelAnswer::calls([ToolRequest { name: "shelf.look".to_owned(), arguments, provider_id: None }]))
    }
}

fn plugin(id: &str, config: &str) -> Result<PluginSpec, Box<dyn std::error::Error>> {
    Ok(PluginSpec { id: id.to_owned(), config: Json::parse(config)? })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime =
        Runtime::builder().model(SmallModel).store(MemoryStore::new()).plugin(Shelf).plugin(ToolPermission).build()?;
    let mut spec = Spec {
        plugins: vec![
            plugin("shelf", r#"{"books":["Emma","Ulysses"]}"#)?,
            plugin("tool-permission", r#"{"rules":[{"tool":"shelf.*","action":"allow"}]}"#)?,
        ],
        release: ReleaseSpec { judge: JudgePolicy::Off, ..ReleaseSpec::default() },
        ..Spec::new("What is the first book?", "small-model")
    };
    for _ in 0..2 {
        let run = runtime.start(spec.clone()).await?;
        let Outcome::Ended(ended) = run.outcome().await? else { return Err("nobody is asked here".into()) };
        println!("row {}: {}", ended.ending.row, serde_json::to_string(&ended.release)?);
        // What the thread keeps is where its next run begins.
        let thread = runtime.thread(run.run()).await?;
        spec.prior_state = thread.state;
        spec.prior_facts = thread.facts;
    }
    Ok(())
}
