//! Models over HTTP (SPEC 6): OpenAI-compatible ones, Anthropic, Gemini and Ollama.
//!
//! A request goes one way: what is asked becomes a prompt, a dialect writes it, one bounded exchange
//! carries it, and the dialect reads what comes back. Nothing here retries or decides.
//!
//! | module | what |
//! |---|---|
//! | `endpoint` | where a model is, what it speaks, and which key goes there |
//! | `key` | keys: they are sent, and never shown |
//! | `prompt` | what a model is asked, in no provider's form |
//! | `names` | tools' names and calls' ids, as providers take them |
//! | `answer` | the form of an answer, told in words and as a schema |
//! | `steps` | tool calls as JSON in text (`tool_calling: json_steps`) |
//! | `dialect` | what a dialect is; `openai`, `anthropic`, `gemini`, `ollama` are ours |
//! | `body` | request bodies |
//! | `reading` | answers: bounded, typed, and strict where they are used |
//! | `exchange` | one HTTP exchange within limits |
//! | `stream` | the events of an answer that comes piece by piece |
//! | `failure` | from a status and an error object to [`llm::Error`] |
//! | `retry_after` | how long a provider asks to wait |
//! | `judge` | a model as the semantic judge |
//!
//! [`llm::Error`]: crate::vocabulary::llm::Error

mod answer;
mod anthropic;
mod body;
mod dialect;
mod endpoint;
mod exchange;
mod failure;
mod gemini;
mod judge;
mod key;
mod names;
mod ollama;
mod openai;
mod prompt;
mod reading;
mod retry_after;
mod steps;
mod stream;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::exchange::Transport;
use self::failure::Failed;
use self::key::{Key, Keys};
use self::prompt::Prompt;
use crate::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use crate::vocabulary::llm::{self, Usage};

pub use self::endpoint::Endpoint;
pub use self::exchange::{BODY_BYTES_MAX, EVENT_BYTES_MAX, STREAM_BYTES_MAX};
pub use self::judge::ModelJudge;

/// Every model that is reached over HTTP. A clone shares the connections.
#[derive(Clone)]
pub struct Providers {
    keys: Keys,
    transport: Transport,
}

/// The HTTP client could not be made: no TLS roots, or an unusable proxy in the environment.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be made")]
pub struct BuildError(#[source] reqwest::Error);

impl Providers {
    /// Takes keys from the environment of this process.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new() -> Result<Self, BuildError> {
        Self::with_keys(|name| std::env::var(name).ok())
    }

    /// Takes keys from wherever they are kept, by the name of the variable that a spec gives.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn with_keys(keys: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Result<Self, BuildError> {
        let transport = Transport::new().map_err(BuildError)?;
        Ok(Self { keys: Arc::new(keys), transport })
    }

    /// One attempt, within its time.
    async fn ask(&self, prompt: Prompt<'_>) -> Result<ModelAnswer, Failed> {
        let endpoint = Endpoint::of(prompt.model)?;
        let key = Key::find(&self.keys, &endpoint)?;
        let limit = Duration::from_millis(prompt.model.timeout_ms);
        // It outlives the exchange, so that an attempt that is given up has used what it said until then.
        let mut used = None;
        let answer = tokio::time::timeout(limit, self.exchange(&prompt, &endpoint, key.as_ref(), &mut used)).await;
        let answer = answer.unwrap_or_else(|_| {
            let message = format!("no whole answer within {} ms", prompt.model.timeout_ms);
            Err(llm::Error::Timeout { message })
        });
        let answer = answer.map_err(|error| Failed { error, usage: used });
        let answer = match key {
            Some(key) => key.guarded(answer),
            None => answer,
        };
        // Only now, for half a key would not be found.
        answer.map_err(Failed::shortened)
    }

    async fn exchange(
        &self,
        prompt: &Prompt<'_>,
        endpoint: &Endpoint,
        key: Option<&Key>,
        used: &mut Option<Usage>,
    ) -> Result<ModelAnswer, llm::Error> {
        let dialect = dialect::of(endpoint.api);
        let body = dialect.body(prompt)?.to_text();
        let response = self.transport.post(endpoint, dialect, key, body).await?;
        let reply = if prompt.model.streaming && !response.is_whole() {
            response.stream(dialect.stream(), used).await?
        } else {
            let body = response.whole().await?;
            *used = dialect.used(&body);
            dialect.read(&body)?
        };
        prompt.received(endpoint, reply)
    }
}

impl Model for Providers {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let prompt = Prompt::of(&call)?;
        Ok(self.ask(prompt).await?)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Providers").finish_non_exhaustive()
    }
}
