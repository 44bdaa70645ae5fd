//! How a model is asked here, without a run around it: the calls are those that real runs make.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use portcullis::adapters::providers::Providers;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::ports::{Invocation, Model, ModelAnswer, ModelCall, ModelFailure, Tools};
use portcullis::runtime::{Runtime, VirtualClock};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{self, Usage};
use portcullis::vocabulary::spec::{Api, ModelSpec, SecretRef, Spec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

/// A key that nobody else has.
pub(crate) const KEY: &str = "sk-portcullis-7f3a9d5e-never-to-be-seen";

/// Providers whose environment holds one key, under `THE_KEY`.
pub(crate) fn providers() -> Providers {
    Providers::with_keys(|name| (name == "THE_KEY").then(|| KEY.to_owned())).unwrap()
}

/// A model behind an address, asked with the key.
pub(crate) fn model(api: Api, base_url: String) -> ModelSpec {
    let key = Some(SecretRef { env: "THE_KEY".to_owned() });
    ModelSpec { api: Some(api), base_url: Some(base_url), key, timeout_ms: 20_000, ..ModelSpec::new("the-model") }
}

/// The base of an API at a server's address.
pub(crate) fn openai(server: &crate::loopback::Loopback) -> ModelSpec {
    model(Api::OpenAi, server.url("/v1"))
}

/// Gives its answers in order and writes down what it was asked; then it fails.
#[derive(Clone, Default)]
struct Scribe {
    answers: Arc<Mutex<VecDeque<ModelAnswer>>>,
    asked: Arc<Mutex<Vec<ModelCall>>>,
}

impl Model for Scribe {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        self.asked.lock().unwrap().push(call);
        let next = self.answers.lock().unwrap().pop_front();
        next.ok_or_else(|| ModelFailure::Unclassified { message: "that was all".to_owned() })
    }
}

/// Tools that observe one fact in each call.
#[derive(Clone, Copy)]
pub(crate) struct Eyes;

impl Tools for Eyes {
    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::facts("seen", [Statement::new(format!("what {} saw", invocation.call))]))
    }
}

/// What a run asks while its model answers this.
pub(crate) async fn asked(spec: Spec, answers: impl IntoIterator<Item = ModelAnswer>) -> Vec<ModelCall> {
    let scribe = Scribe { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Scribe::default() };
    let builder = Runtime::builder().clock(VirtualClock::default()).store(MemoryStore::new());
    let runtime = builder.model(scribe.clone()).tools(Eyes).build().unwrap();
    runtime.start(spec).await.unwrap().outcome().await.unwrap();
    scribe.asked.lock().unwrap().clone()
}

/// What a run without tools asks first.
pub(crate) async fn first(model: ModelSpec) -> ModelCall {
    let spec = Spec { instructions: "be brief".to_owned(), model, ..Spec::new("say hello", "") };
    asked(spec, []).await.remove(0)
}

/// Asks a model once.
pub(crate) async fn ask(model: ModelSpec) -> Result<ModelAnswer, ModelFailure> {
    providers().respond(first(model).await).await
}

/// Why an attempt failed, and what it used.
pub(crate) fn failure(answer: Result<ModelAnswer, ModelFailure>) -> (llm::Error, Option<Usage>) {
    match answer {
        Err(ModelFailure::Classified { error, usage }) => (error, usage),
        other => panic!("no classified failure: {other:?}"),
    }
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
