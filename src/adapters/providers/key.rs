//! Keys: they are sent, and never shown.

use std::fmt;
use std::sync::Arc;

use memchr::memmem;
use reqwest::header::HeaderValue;

use super::endpoint::Endpoint;
use super::failure::{Failed, reworded};
use crate::runtime::ports::ModelAnswer;
use crate::vocabulary::llm;

/// Where keys are kept: the value of a variable, by its name.
pub(super) type Keys = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// An answer that holds a shorter key may do so by chance.
const TELLING_BYTES_MIN: usize = 8;

/// A key. Nothing prints it.
pub(super) struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(..)")
    }
}

impl Key {
    /// The key that goes to an endpoint, if one does.
    ///
    /// # Errors
    /// The variable is not set, or is empty.
    pub(super) fn find(keys: &Keys, endpoint: &Endpoint) -> Result<Option<Self>, llm::Error> {
        let Some(variable) = &endpoint.key else { return Ok(None) };
        match keys(variable).filter(|key| !key.is_empty()) {
            Some(key) => Ok(Some(Self(key))),
            None => {
                let message = format!("the environment variable {variable} is not set: it should hold the key");
                Err(llm::Error::Unauthorized { message })
            }
        }
    }

    /// The value of a header, marked so that no trace of the transport shows it.
    pub(super) fn header(&self, before: &str) -> Result<HeaderValue, llm::Error> {
        let mut value = HeaderValue::try_from(format!("{before}{}", self.0)).map_err(|_| {
            let message = "the key has characters that no HTTP header may hold, a line end perhaps".to_owned();
            llm::Error::Unauthorized { message }
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// What came back, without the key in it: a server that returns it would have it written into the history.
    pub(super) fn guarded(&self, answer: Result<ModelAnswer, Failed>) -> Result<ModelAnswer, Failed> {
        match answer {
            Ok(answer) if self.stands_in(&answer) => {
                let message = "the answer holds the key that was sent, and is dropped".to_owned();
                Err(Failed { error: llm::Error::Provider { message }, usage: Some(answer.usage) })
            }
            Ok(answer) => Ok(answer),
            Err(failed) => Err(Failed { error: reworded(failed.error, |message| self.struck(message)), ..failed }),
        }
    }

    /// A text with the key struck out of it.
    fn struck(&self, text: &str) -> String {
        text.replace(self.0.as_str(), "[key]")
    }

    fn stands_in(&self, answer: &ModelAnswer) -> bool {
        let key = memmem::Finder::new(&self.0);
        let holds = |text: &str| key.find(text.as_bytes()).is_some();
        let content = &answer.content;
        self.0.len() >= TELLING_BYTES_MIN
            && (content.text.as_deref().is_some_and(holds)
                || content.opaque.as_ref().is_some_and(|opaque| holds(&opaque.to_text()))
                || content.calls.iter().any(|call| {
                    holds(&call.name) || holds(&call.arguments) || call.provider_id.as_deref().is_some_and(holds)
                }))
    }
}
