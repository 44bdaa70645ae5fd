//! JSON payloads: tool arguments, results and draft data (`SPEC 4`).
//!
//! [`Json`] is a type of our own, because a payload is hashed, compared and replayed. One text
//! gives one value or one refusal, in every build and with every feature set:
//!
//! - an integer keeps every digit, a double is finite, and what fits neither is refused;
//! - a key that stands twice, a lone surrogate and a nesting beyond [`DEPTH_MAX`] are refused;
//! - keys are sorted when written, so equal values are equal bytes.
//!
//! | file | holds |
//! |---|---|
//! | `number` | [`Integer`] and [`Double`], the two numbers |
//! | `parse` | text to value |
//! | `error` | why a text was refused, and where |
//! | `wire` | value to text, and both ways through serde |
//! | `canonical` | the RFC 8785 text, for keys that compare |
//! | `pointer` | [`Pointer`], RFC 6901 |
//! | `schema` | the one door to `serde_json::Value`, and the JSON Schema |

mod canonical;
#[cfg(feature = "schema")]
mod described;
mod error;
mod number;
mod parse;
mod pointer;
mod schema;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use error::{JsonError, JsonErrorKind};
pub use number::{Double, DoubleNotFinite, Integer, IntegerOutOfRange};
pub use pointer::{Pointer, PointerError};
pub use wire::present;

/// Arrays and objects that may stand inside one another, the outermost included (`SPEC 4`).
///
/// A scalar has depth 0, `[]` has depth 1. A payload is counted from its own root, wherever it
/// stands in a record.
pub const DEPTH_MAX: usize = 64;

/// One JSON payload (`SPEC 4`).
///
/// `Eq`, `Ord` and `Hash` compare the value as written: the integer `1` and the double `1.0`
/// differ here, though [`Json::canonical`] gives both the same text.
///
/// Parsing and deserialising enforce [`DEPTH_MAX`]. A value that was built in memory may be
/// deeper: whoever accepts one asks [`Json::depth`] first, and serialising refuses it, so that
/// nothing is stored that could not be read again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that was written without fraction and exponent.
    Integer(Integer),
    /// A number that was written with a fraction or an exponent.
    Double(Double),
    /// Any Unicode text, control characters included.
    String(String),
    /// Values in order.
    Array(Vec<Json>),
    /// Values under distinct keys, sorted by the keys' UTF-8 bytes.
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// The value, if this is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Json::Bool(value) = self { Some(*value) } else { None }
    }

    /// The value, if this is an integer. A double is none, not even `1.0`.
    pub fn as_integer(&self) -> Option<Integer> {
        if let Json::Integer(value) = self { Some(*value) } else { None }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Json::String(text) = self { Some(text) } else { None }
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        if let Json::Array(items) = self { Some(items) } else { None }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&BTreeMap<String, Json>> {
        if let Json::Object(members) = self { Some(members) } else { None }
    }

    /// Takes the member `key` out of an object. `None` if there is none, or this is no object.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        if let Json::Object(members) = self { members.remove(key) } else { None }
    }

    /// What kind of value this is, in the words of JSON Schema: `null`, `boolean`, `integer`,
    /// `number` (a double), `string`, `array`, `object`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Integer(_) => "integer",
            Json::Double(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// Arrays and objects on the longest way from the root to a leaf. See [`DEPTH_MAX`].
    pub fn depth(&self) -> usize {
        match self {
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => 0,
            Json::Array(items) => 1 + items.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(members) => 1 + members.values().map(Json::depth).max().unwrap_or(0),
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Bool(value)
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Json::Integer(value.into())
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Json::Integer(value.into())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Json::Integer(value.into())
    }
}

impl From<Integer> for Json {
    fn from(value: Integer) -> Self {
        Json::Integer(value)
    }
}

impl From<Double> for Json {
    fn from(value: Double) -> Self {
        Json::Double(value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Json::String(text)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Self {
        Json::Array(items)
    }
}

impl From<BTreeMap<String, Json>> for Json {
    fn from(members: BTreeMap<String, Json>) -> Self {
        Json::Object(members)
    }
}
