//! What a dialect is: how a request is written, and how an answer is read.

use std::ops::ControlFlow;

use reqwest::header::HeaderMap;

use super::anthropic::Anthropic;
use super::gemini::Gemini;
use super::key::Key;
use super::ollama::Ollama;
use super::openai::OpenAi;
use super::prompt::Prompt;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, Usage};
use crate::vocabulary::spec::Api;

/// One provider's language.
pub(super) trait Dialect: Send + Sync {
    /// The body of a request.
    ///
    /// # Errors
    /// What the prompt wants cannot be said in this language, or its parameters say what the engine says.
    fn body(&self, prompt: &Prompt<'_>) -> Result<Json, llm::Error>;

    /// The headers of a request: the key, and what else the language wants.
    ///
    /// # Errors
    /// The key can stand in no header.
    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, llm::Error>;

    /// Reads a whole answer.
    ///
    /// # Errors
    /// It is an error object, or no answer.
    fn read(&self, body: &[u8]) -> Result<Reply, llm::Error>;

    /// What a whole answer says it used, whatever else is wrong with it.
    fn used(&self, body: &[u8]) -> Option<Usage>;

    /// How its streams are cut into pieces, and who gathers them.
    fn stream(&self) -> (Framing, Box<dyn Gathering>);
}

/// An answer as its dialect reads it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) content: Content,
    pub(super) finish: FinishReason,
    pub(super) usage: Usage,
    /// The place of the call that stands last in the answer, if its arguments came as an object: nobody can see
    /// whether the model closed it.
    pub(super) last_object: Option<usize>,
}

/// How a stream is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events: the data of one event is a piece.
    Events,
    /// One JSON value a line.
    Lines,
}

/// An answer that comes piece by piece.
pub(super) trait Gathering: Send {
    /// Takes one piece. `Break` is the end mark: nothing follows it.
    ///
    /// # Errors
    /// An error object, or what is no piece.
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, llm::Error>;

    /// What the answer used, as far as it was said.
    fn used(&self) -> Option<Usage>;

    /// The whole answer.
    ///
    /// # Errors
    /// It ended before its end mark.
    fn end(self: Box<Self>) -> Result<Reply, llm::Error>;
}

pub(super) fn of(api: Api) -> &'static dyn Dialect {
    match api {
        Api::OpenAi => &OpenAi,
        Api::Anthropic => &Anthropic,
        Api::Gemini => &Gemini,
        Api::Ollama => &Ollama,
    }
}
