//! What the model hands in as its answer, and how it can be bad (SPEC 10).

use std::collections::BTreeMap;

use serde::Serialize;

use super::digest::Digest;
use super::json::{Json, present};
use super::wire::{object, words};

words! {
    /// What is wrong with a bad draft, in the order it is asked.
    pub enum DraftFault {
        /// Nothing but white space.
        Empty = "empty",
        /// Cut by the length limit.
        Truncated = "truncated",
        /// Not strict JSON.
        InvalidJson = "invalid_json",
        /// JSON of another shape, or `data` that its schema refuses.
        Schema = "schema",
    }
}

object! {
    /// A conclusion: one statement that is not empty.
    pub struct Conclusion {
        /// What the model concludes.
        pub statement: String,
    }
}

object! {
    /// The wire form of a draft: `{"conclusion", "citations", "quotes"?, "data"?}`.
    pub struct Draft {
        /// The conclusion, or `null` when the facts carry none.
        #[serde(deserialize_with = "required")]
        pub conclusion: Option<Conclusion>,
        /// The facts it rests on, by id.
        pub citations: Vec<String>,
        /// Words taken from cited facts, by fact id.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub quotes: BTreeMap<String, String>,
        /// Structured data, judged together with the conclusion.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        pub data: Option<Json>,
    }
}

/// Reads an optional field that must be present, be it as `null`.
fn required<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Conclusion>, D::Error> {
    serde::Deserialize::deserialize(deserializer)
}

/// A bad draft is dropped entirely; this is what stays of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BadDraft {
    /// What is wrong.
    pub kind: DraftFault,
    /// Of the text as it came.
    pub digest: Digest,
    /// The length of the text as it came.
    pub bytes: u64,
}
