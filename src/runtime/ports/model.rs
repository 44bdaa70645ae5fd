//! The model port.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::machines::toolbox::Tool;
use crate::vocabulary::effect::{Purpose, ToolOffer};
use crate::vocabulary::ids::{ModelCallId, RunId};
use crate::vocabulary::llm::{self, Content, FinishReason, Usage};
use crate::vocabulary::message::Message;
use crate::vocabulary::spec::{DraftSpec, ModelSpec};

/// Asks a model, once. Retries, delays and fallback models are the engine's (SPEC 6).
pub trait Model: Send + Sync + 'static {
    /// Answers one attempt of a request.
    fn respond(&self, call: ModelCall) -> impl Future<Output = Result<ModelAnswer, ModelFailure>> + Send;
}

/// One attempt of a model request. Privileged: it holds text that may never be released.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// The run.
    pub run: RunId,
    /// The request.
    pub call: ModelCallId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// What for.
    pub purpose: Purpose,
    /// The model and how it is asked.
    pub model: ModelSpec,
    /// Everything the model is shown, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools it is offered: none when they are withdrawn.
    pub tools: Vec<Arc<Tool>>,
    /// Whether tools are offered.
    pub offer: ToolOffer,
    /// The form that an answer must have; the model has to be told.
    pub answer: DraftSpec,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// Text and tool calls.
    pub content: Content,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it used; absent numbers are unknown, not zero.
    pub usage: Usage,
}

impl ModelAnswer {
    /// A text without tool calls whose usage is not known.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let content = Content { text: Some(text.into()), ..Content::default() };
        Self { content, finish: FinishReason::Stop, usage: Usage::default() }
    }

    /// Tool calls whose usage is not known.
    #[must_use]
    pub fn calls(calls: impl IntoIterator<Item = llm::ToolRequest>) -> Self {
        let content = Content { calls: calls.into_iter().collect(), ..Content::default() };
        Self { content, finish: FinishReason::ToolCalls, usage: Usage::default() }
    }
}

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFailure {
    /// In a way that has a class, which decides what follows.
    Classified {
        /// The class.
        error: llm::Error,
        /// What was used all the same.
        usage: Option<Usage>,
    },
    /// In a way that nobody classified: the run fails as `internal`.
    Unclassified {
        /// For people; it never reaches a release.
        message: String,
    },
}

impl From<llm::Error> for ModelFailure {
    fn from(error: llm::Error) -> Self {
        Self::Classified { error, usage: None }
    }
}

impl ModelFailure {
    /// Reads an error's cause chain: the first classified error in it decides (SPEC 6).
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        match llm::Error::first_classified(error) {
            Some(classified) => classified.clone().into(),
            None => Self::Unclassified { message: error.to_string() },
        }
    }
}

/// Any model, whatever its futures are.
pub(crate) trait AnyModel: Send + Sync {
    fn respond(self: Arc<Self>, call: ModelCall) -> BoxFuture<'static, Result<ModelAnswer, ModelFailure>>;
}

impl<M: Model> AnyModel for M {
    fn respond(self: Arc<Self>, call: ModelCall) -> BoxFuture<'static, Result<ModelAnswer, ModelFailure>> {
        Box::pin(async move { Model::respond(&*self, call).await })
    }
}
