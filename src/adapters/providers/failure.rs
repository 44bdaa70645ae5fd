//! From a status and an error object to [`llm::Error`], by type: codes and types count, messages never do
//! (SPEC 6).
//!
//! 1. A word that means one thing wherever it stands ([`decisive`]).
//! 2. The status: HTTP's, or the number in an error object that came with a success.
//! 3. A word that is no more exact than a status ([`general`]), where there is none.
//! 4. The provider failed.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reading::{Few, object, word};
use super::retry_after;
use crate::adapters::printable::is_hidden;
use crate::runtime::ports::ModelFailure;
use crate::vocabulary::llm::{self, Code, Usage};

/// An attempt that failed, and what it used all the same.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: llm::Error,
    pub(super) usage: Option<Usage>,
}

impl From<Failed> for ModelFailure {
    fn from(failed: Failed) -> Self {
        Self::Classified { error: failed.error, usage: failed.usage }
    }
}

/// A word that decides alone.
fn decisive(word: &str) -> Option<Code> {
    Some(match word {
        "context_length_exceeded" | "exceed_context_size_error" => Code::ContextOverflow,
        "content_filter" | "content_policy_violation" => Code::ContentFiltered,
        "model_not_found" | "not_found_error" | "DeploymentNotFound" => Code::ModelNotFound,
        "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" | "billing_not_active" => {
            Code::UsageLimit
        }
        "invalid_api_key" | "authentication_error" | "permission_error" | "API_KEY_INVALID" => Code::Unauthorized,
        "overloaded_error" => Code::Overloaded,
        // The provider refuses what its own model wrote: the same request may do better the next time.
        "tool_use_failed" | "json_validate_failed" => Code::ProviderError,
        _ => return None,
    })
}

/// A word that says what a status would.
fn general(word: &str) -> Option<Code> {
    Some(match word {
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => Code::RateLimited,
        "timeout_error" | "DEADLINE_EXCEEDED" => Code::Timeout,
        "UNAVAILABLE" => Code::Overloaded,
        "request_too_large" => Code::ContextOverflow,
        "invalid_request_error" | "INVALID_ARGUMENT" | "FAILED_PRECONDITION" => Code::InvalidRequest,
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => Code::Unauthorized,
        "NOT_FOUND" => Code::ModelNotFound,
        _ => return None,
    })
}

/// What a status says; `None` for what is no failure.
fn of_number(status: u16) -> Option<Code> {
    Some(match status {
        401 | 403 => Code::Unauthorized,
        402 => Code::UsageLimit,
        404 | 410 => Code::ModelNotFound,
        405 => Code::BindingRejected,
        407 => Code::LoginRequired,
        408 | 504 | 522 | 524 => Code::Timeout,
        // Another request is in the way.
        409 | 425 => Code::ProviderError,
        // Less would fit, or would fit another model.
        413 => Code::ContextOverflow,
        429 => Code::RateLimited,
        498 | 503 | 529 => Code::Overloaded,
        400..=499 => Code::InvalidRequest,
        500..=599 => Code::ProviderError,
        _ => return None,
    })
}

/// What a provider says about its failure.
#[derive(Debug, Default)]
struct Said {
    /// Codes, types and reasons, the most exact one first.
    words: Vec<String>,
    /// A code that is a number.
    number: Option<u16>,
    message: String,
    wait_ms: Option<u64>,
    /// A moderation flagged the input.
    flagged: bool,
}

/// A status that is no success, and its body as far as it was read.
pub(super) fn of_status(status: u16, headers: &HeaderMap, body: &[u8]) -> llm::Error {
    let said = Said::in_body(body);
    let code = classified(Some(status), &said);
    let wait_ms = retry_after::wait_ms(headers).or(said.wait_ms);
    error(code, said.told(&format!("HTTP {status}")), wait_ms)
}

/// An error object inside an answer that began as a success.
pub(super) fn of_error(raw: &RawValue) -> llm::Error {
    let said = Said::in_error(raw).unwrap_or_default();
    let code = classified(said.number, &said);
    error(code, said.told("an error in the answer"), said.wait_ms)
}

fn classified(status: Option<u16>, said: &Said) -> Code {
    let words = || said.words.iter().map(String::as_str);
    let flagged = said.flagged.then_some(Code::ContentFiltered);
    words()
        .find_map(decisive)
        .or(flagged)
        .or_else(|| status.and_then(of_number))
        .or_else(|| words().find_map(general))
        .unwrap_or(Code::ProviderError)
}

fn error(code: Code, message: String, wait_ms: Option<u64>) -> llm::Error {
    match code {
        Code::ProviderError => llm::Error::Provider { message },
        Code::RateLimited => llm::Error::RateLimited { message, retry_after_ms: wait_ms },
        Code::Overloaded => llm::Error::Overloaded { message, retry_after_ms: wait_ms },
        Code::Timeout => llm::Error::Timeout { message },
        Code::BindingRejected => llm::Error::Binding { message },
        Code::ContextOverflow => llm::Error::ContextOverflow { message },
        Code::InvalidRequest => llm::Error::InvalidRequest { message },
        Code::Unauthorized => llm::Error::Unauthorized { message },
        Code::UsageLimit => llm::Error::UsageLimit { message, reset_after_ms: wait_ms },
        Code::LoginRequired => llm::Error::LoginRequired { message },
        Code::ModelNotFound => llm::Error::ModelNotFound { message },
        Code::ContentFiltered => llm::Error::ContentFiltered { message },
    }
}

/// The same error with another message.
pub(super) fn reworded(failed: llm::Error, words: impl FnOnce(&str) -> String) -> llm::Error {
    let reset_after_ms =
        if let llm::Error::UsageLimit { reset_after_ms, .. } = &failed { *reset_after_ms } else { None };
    let wait_ms = reset_after_ms.or(failed.retry_after_ms());
    error(failed.code(), words(failed.message()), wait_ms)
}

/// The longest message, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 500;

impl Failed {
    /// The same with a message that is not too long.
    pub(super) fn shortened(self) -> Self {
        let short = |message: &str| message.chars().take(MESSAGE_CHARACTERS_MAX).collect();
        Self { error: reworded(self.error, short), ..self }
    }
}

/// `{"error": ..}` as most have it, or the error itself as the whole body.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

/// One of Gemini's details.
#[derive(Deserialize)]
struct Detail<'a> {
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
    #[serde(borrow, rename = "retryDelay")]
    retry_delay: Option<&'a RawValue>,
}

/// OpenRouter's, for an input that its moderation flagged.
#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    flagged_input: Option<&'a RawValue>,
}

impl Said {
    fn in_body(body: &[u8]) -> Self {
        let said = || {
            let whole: &RawValue = serde_json::from_slice(body).ok()?;
            // Gemini wraps a stream's error in a list.
            let first =
                serde_json::from_str::<Few<&RawValue>>(whole.get()).ok().and_then(|few| few.0.into_iter().next());
            let whole = first.unwrap_or(whole);
            let error = object::<Body<'_>>(whole)?.error;
            Self::in_error(error.unwrap_or(whole))
        };
        said().unwrap_or_default()
    }

    fn in_error(raw: &RawValue) -> Option<Self> {
        if let Ok(message) = serde_json::from_str::<String>(raw.get()) {
            return Some(Self { message, ..Self::default() });
        }
        let said: ErrorObject<'_> = object(raw)?;
        let texts = |raw: Option<&RawValue>| raw.and_then(word);
        let details: Vec<Detail<'_>> = said
            .details
            .and_then(|raw| serde_json::from_str::<Few<&RawValue>>(raw.get()).ok())
            .map(|few| few.0.into_iter().filter_map(object).collect())
            .unwrap_or_default();
        let code = texts(said.code);
        let reasons = details.iter().filter_map(|detail| texts(detail.reason));
        let delays = || details.iter().filter_map(|detail| texts(detail.retry_delay));
        Some(Self {
            number: code.as_deref().and_then(|code| code.parse().ok()),
            words: code.clone().into_iter().chain(reasons).chain(texts(said.status)).chain(texts(said.kind)).collect(),
            message: said.message.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default(),
            wait_ms: delays().find_map(|delay| retry_after::duration_ms(&delay)),
            flagged: said.metadata.and_then(object::<Metadata<'_>>).is_some_and(|meta| meta.flagged_input.is_some()),
        })
    }

    /// Where it failed, the most exact word, and the provider's own sentence.
    fn told(&self, place: &str) -> String {
        let mut told = place.to_owned();
        if let Some(word) = self.words.first() {
            told.push_str(&format!(" ({word})"));
        }
        if !self.message.is_empty() {
            told.push_str(&format!(": {}", self.message));
        }
        told.chars().filter(|letter| !is_hidden(*letter)).collect()
    }
}
