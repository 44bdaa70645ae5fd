//! Reading answers: bounded, typed, and strict in what is used of them.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::exchange::BODY_BYTES_MAX;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm;

/// The longest list: more calls than this no spec allows in a response.
const ITEMS_MAX: usize = 1_024;

/// A list that is not too long. A long one fails where it becomes too long.
#[derive(Debug)]
pub(super) struct Few<T>(pub(super) Vec<T>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Few<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a list of at most {ITEMS_MAX}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    if items.len() == ITEMS_MAX {
                        return Err(serde::de::Error::invalid_length(ITEMS_MAX + 1, &self));
                    }
                    items.push(item);
                }
                Ok(Few(items))
            }
        }

        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// Reads a whole answer or a piece of one. The error says where, and quotes nothing.
pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, llm::Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        provider(format!("the answer is not of its form, at line {} column {}", error.line(), error.column()))
    })
}

/// An object of that form, or nothing.
pub(super) fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// What a whole body says in that form; the rest of it may be anything.
pub(super) fn stated<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    serde_json::from_slice::<&RawValue>(body).ok().and_then(object)
}

/// The longest word of a provider that is repeated. A longer one is none, and is never shortened: half a key
/// would not be known for one.
const WORD_BYTES_MAX: usize = 64;

/// A text or a number, as a short text.
pub(super) fn word(raw: &RawValue) -> Option<String> {
    let text: String = match raw.get().as_bytes().first()? {
        b'"' => serde_json::from_str(raw.get()).ok()?,
        b'0'..=b'9' | b'-' => raw.get().to_owned(),
        _ => return None,
    };
    (text.len() <= WORD_BYTES_MAX).then_some(text)
}

/// The model's own text of an object that a provider hands over as JSON.
pub(super) fn own_text(raw: Option<&RawValue>) -> String {
    raw.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned())
}

/// What is given back later has to be strict JSON: a history holds it.
pub(super) fn strict(raw: &RawValue) -> Result<Json, llm::Error> {
    Json::parse(raw.get()).map_err(|_| provider("what is to be given back is no strict JSON"))
}

/// Why a model stopped, in a word that nobody told us of. It may be cut or filtered: it is not taken.
pub(super) fn unknown_finish(reason: Option<&str>) -> llm::Error {
    match reason {
        None => provider("the answer does not say why it ends"),
        Some(reason) if is_word(reason) => provider(format!("the answer ends for an unknown reason: {reason}")),
        Some(_) => provider("the answer ends for an unknown reason"),
    }
}

/// Whether a word may be repeated as it is.
pub(super) fn is_word(text: &str) -> bool {
    text.len() <= WORD_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(super) fn cut_off() -> llm::Error {
    provider("the stream ends before its end mark")
}

pub(super) fn provider(message: impl Into<String>) -> llm::Error {
    llm::Error::Provider { message: message.into() }
}

/// How much of a stream is kept.
#[derive(Debug, Default)]
pub(super) struct Kept(usize);

impl Kept {
    /// Appends to what is kept.
    pub(super) fn push(&mut self, text: &mut String, more: &str) -> Result<(), llm::Error> {
        self.count(more.len())?;
        text.push_str(more);
        Ok(())
    }

    /// Counts what is kept elsewhere.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), llm::Error> {
        self.0 += bytes;
        if self.0 > BODY_BYTES_MAX {
            return Err(provider(format!("the answer is larger than {BODY_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// Room for one more item of a list.
    pub(super) fn item(items: usize) -> Result<(), llm::Error> {
        if items >= ITEMS_MAX {
            return Err(provider(format!("the answer has more than {ITEMS_MAX} parts")));
        }
        Ok(())
    }
}
