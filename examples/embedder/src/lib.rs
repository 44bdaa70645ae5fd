//! A small embedder: it answers questions about a shop's machines. Each port sends its requests over a line of
//! the embedder's own, a client of whatever is on the other side.

use std::future::Future;

use portcullis::machines::release::Body;
use portcullis::runtime::ports::{
    Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall, ModelFailure, Tools,
};
use portcullis::runtime::{Outcome, Runtime};
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::input::LiveTool;
use portcullis::vocabulary::llm;
use portcullis::vocabulary::outcome::ReleaseOutcome;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{Recovery, ToolError, ToolOutput};

/// Sends a request. An error is what the other side reports; `None` is a connection that broke.
pub trait Line<A, E>: Send + Sync + 'static {
    /// Sends it, once.
    fn send(&self, request: String) -> impl Future<Output = Result<A, Option<E>>> + Send;
}

impl<A, E, F, S> Line<A, E> for S
where
    S: Fn(String) -> F + Send + Sync + 'static,
    F: Future<Output = Result<A, Option<E>>> + Send,
{
    fn send(&self, request: String) -> impl Future<Output = Result<A, Option<E>>> + Send {
        self(request)
    }
}

fn broke(what: &str) -> llm::Error {
    llm::Error::Provider { message: format!("the connection to {what} broke") }
}

/// Writes the answers.
pub struct Writer<L>(pub L);

impl<L: Line<ModelAnswer, llm::Error>> Model for Writer<L> {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let messages = serde_json::to_string(&call.messages).unwrap_or_default();
        let answered = self.0.send(format!("{}: {messages}", call.model.name)).await;
        answered.map_err(|error| error.unwrap_or_else(|| broke("the model")).into())
    }
}

/// Judges them.
pub struct Reviewer<L>(pub L);

impl<L: Line<Judgement, llm::Error>> Judge for Reviewer<L> {
    async fn judge(&self, question: JudgeQuestion) -> Result<Judgement, llm::Error> {
        let citations = serde_json::to_string(&question.citations).unwrap_or_default();
        let request = format!("{}\n{}\n{citations}", question.task, question.statement);
        self.0.send(request).await.map_err(|error| error.unwrap_or_else(|| broke("the reviewer")))
    }
}

/// Orders parts: the other side removes repetitions by operation id.
pub struct Orders<L>(pub L);

impl<L: Line<ToolOutput, ToolError>> Tools for Orders<L> {
    async fn resolve(&self, _: &Spec) -> Result<Environment, ResolutionError> {
        let order = ToolSpec { recovery: Some(Recovery::Idempotent), ..ToolSpec::new("order") };
        Ok(Environment { tools: vec![order], ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let request = format!("{} {}", invocation.operation_id.0, invocation.arguments().to_text());
        let message = || "the connection to the orders broke".to_owned();
        self.0.send(request).await.map_err(|error| error.unwrap_or_else(|| ToolError::Execution { message: message() }))
    }

    async fn live(&self) -> Vec<LiveTool> {
        vec![LiveTool { name: "order".to_owned(), recovery: Recovery::Idempotent }]
    }
}

/// What stands over a release on the page: this embedder's own rule is that nothing but a success is an answer.
#[must_use]
pub const fn headline(outcome: ReleaseOutcome) -> &'static str {
    match outcome {
        ReleaseOutcome::Success => "Answer",
        ReleaseOutcome::Fallback => "What we saw, without an answer",
        ReleaseOutcome::Failed => "No answer",
        ReleaseOutcome::Cancelled => "Cancelled",
    }
}

/// What a reader sees.
pub trait Page {
    /// A release, as what it is.
    fn release(&self, outcome: ReleaseOutcome, text: String);
    /// Anything else.
    fn notice(&self, text: &str);
}

/// Serves one run: its release is shown, and then acknowledged.
pub async fn serve(runtime: &Runtime, spec: Spec, page: &impl Page) {
    let outcome = match runtime.start(spec).await {
        Ok(run) => run.outcome().await.map(|outcome| (run, outcome)),
        Err(error) => Err(error),
    };
    match outcome {
        Ok((run, Outcome::Ended(ended))) => {
            let outcome = ended.release.outcome();
            page.release(outcome, format!("{}\n{}", headline(outcome), text(ended.release.body())));
            // Without a receipt it is offered again, by `Runtime::recover`.
            let _unstored = run.delivered("shown").await;
        }
        Ok((_, Outcome::Awaiting(_))) => page.notice("Somebody has to decide before this goes on."),
        Err(error) => page.notice(error.failure_code().safe_message()),
    }
}

fn text(body: &Body) -> String {
    match body {
        Body::Success { statement, .. } => statement.clone(),
        Body::Fallback { facts, .. } => facts.iter().map(|fact| format!("- {}\n", fact.statement)).collect(),
        Body::Failed { message, .. } | Body::Cancelled { message, .. } => message.clone(),
        // What a later version may release is nothing that this page knows how to show.
        _ => String::new(),
    }
}
