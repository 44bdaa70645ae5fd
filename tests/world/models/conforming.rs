//! The suite for embedders' models, over a real connection: the adapter for HTTP keeps every rule.

use libtest_mimic::Trial;
use portcullis::adapters::providers::Providers;
use portcullis::runtime::conformance::model::Upstream;
use portcullis::runtime::conformance::{self, Turn};
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::vocabulary::llm::{self, Code};
use portcullis::vocabulary::spec::{Api, ModelSpec};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::asking::{model, providers};
use crate::components::test;
use crate::loopback::{Piece, receive, send, whole};

pub(crate) fn trials() -> Vec<Trial> {
    vec![test("models::conforming::models_over_http_keep_every_rule_of_the_suite", over_http)]
}

/// The adapter, asked for a model at the suite's address.
struct Addressed {
    providers: Providers,
    model: ModelSpec,
    serving: JoinHandle<()>,
}

impl Drop for Addressed {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Model for Addressed {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        self.providers.respond(ModelCall { model: self.model.clone(), ..call }).await
    }
}

async fn over_http() {
    let open = async |upstream: Upstream| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(exchange(stream, upstream.clone()));
            }
        });
        Addressed { providers: providers(), model: model(Api::OpenAi, format!("http://{address}/v1")), serving }
    };
    assert_eq!(conformance::model(open).await, Ok(()));
}

/// One request: what it asks is dropped when its connection closes.
async fn exchange(stream: TcpStream, upstream: Upstream) {
    let mut stream = BufReader::new(stream);
    let Some(request) = receive(&mut stream).await else { return };
    let mut byte = [0];
    let turn = tokio::select! {
        turn = upstream.ask(request.body) => turn,
        _ = stream.read(&mut byte) => return,
    };
    let pieces = match turn {
        Turn::Answer(answer) => said(200, None, &answered(&answer)),
        Turn::Fail(error) => failed(&error),
        Turn::Break => Vec::new(),
    };
    // Whoever hung up meanwhile hears nothing.
    let _sent = send(stream.get_mut(), pieces).await;
}

fn said(status: u16, retry_after: Option<u64>, body: &Value) -> Vec<Piece> {
    let wait = retry_after.map(|wait_ms| (wait_ms / 1_000).to_string()).unwrap_or_default();
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(retry_after.map(|_| ("retry-after", wait.as_str())));
    whole(status, &headers, &body.to_string())
}

fn answered(answer: &ModelAnswer) -> Value {
    let call = |call: &llm::ToolRequest| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call.provider_id, "type": "function", "function": function})
    };
    let calls: Vec<Value> = answer.content.calls.iter().map(call).collect();
    let mut message = json!({"role": "assistant", "content": answer.content.text});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let mut body = json!({"choices": [{"finish_reason": answer.finish.word(), "message": message}]});
    if let (Some(read), Some(written)) = (answer.usage.input_tokens, answer.usage.output_tokens) {
        body["usage"] = json!({"prompt_tokens": read, "completion_tokens": written});
    }
    body
}

fn failed(error: &llm::Error) -> Vec<Piece> {
    let status = match error.code() {
        Code::ProviderError => 500,
        Code::RateLimited => 429,
        Code::Overloaded => 503,
        Code::Timeout => 504,
        Code::BindingRejected => 405,
        Code::ContextOverflow => 413,
        Code::InvalidRequest | Code::ContentFiltered => 400,
        Code::Unauthorized => 401,
        Code::UsageLimit => 402,
        Code::LoginRequired => 407,
        Code::ModelNotFound => 404,
    };
    let code = (error.code() == Code::ContentFiltered).then_some("content_filter");
    let body = json!({"error": {"message": error.message(), "code": code}});
    said(status, error.retry_after_ms(), &body)
}
