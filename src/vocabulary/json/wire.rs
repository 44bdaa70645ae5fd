//! Value to text, and both ways through serde.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::number::Exact;
use super::{DEPTH_MAX, Double, Integer, Json, JsonErrorKind};

/// Compact, keys sorted, integers by their digits, doubles as [`Double`] displays them.
///
/// # Errors
///
/// A value deeper than [`DEPTH_MAX`] is refused: what is written can be read again.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { json: self, room: DEPTH_MAX }.serialize(serializer)
    }
}

/// The same text that serialising gives, at any depth.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unbounded = Nested { json: self, room: usize::MAX };
        f.write_str(&serde_json::to_string(&unbounded).map_err(|_| fmt::Error)?)
    }
}

/// As `i64` where that holds it, else as `u64`.
impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.exact() {
            Exact::Signed(value) => serializer.serialize_i64(value),
            Exact::Beyond(value) => serializer.serialize_u64(value),
        }
    }
}

/// As it is displayed, by way of [`RawValue`]: serde_json's own spelling of doubles has changed
/// between its releases, and a history is hashed. Any format but JSON shows the detour.
impl Serialize for Double {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spelling = RawValue::from_string(self.to_string()).map_err(S::Error::custom)?;
        spelling.serialize(serializer)
    }
}

impl Json {
    /// The compact text of the value. [`Json::parse`] gives the same value back.
    pub fn to_text(&self) -> String {
        self.to_string()
    }
}

/// A value and the levels of arrays and objects that are left for it.
struct Nested<'json> {
    json: &'json Json,
    room: usize,
}

impl Nested<'_> {
    fn inner_room<E: serde::ser::Error>(&self) -> Result<usize, E> {
        self.room.checked_sub(1).ok_or_else(|| E::custom(JsonErrorKind::Depth))
    }
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.json {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Integer(value) => value.serialize(serializer),
            Json::Double(value) => value.serialize(serializer),
            Json::String(text) => serializer.serialize_str(text),
            Json::Array(items) => {
                let room = self.inner_room()?;
                serializer.collect_seq(items.iter().map(|json| Nested { json, room }))
            }
            Json::Object(members) => {
                let room = self.inner_room()?;
                serializer.collect_map(members.iter().map(|(key, json)| (key, Nested { json, room })))
            }
        }
    }
}

/// Reads one payload out of JSON, from text, bytes or a reader.
///
/// serde_json only finds where the payload ends; its text then goes through [`Json::parse`]. So
/// no feature that another crate switches on in serde_json can change a value, and the offset of
/// an error counts from the start of the payload.
///
/// A payload cannot stand inside a container that serde buffers: an internally tagged or untagged
/// enum, or beside a `flatten`. The buffer has rounded numbers by then, so this refuses to
/// read from it. Such a container reads its fields by hand. Reading from a `serde_json::Value`
/// works, but what that has rounded or merged stays so.
///
/// # Errors
///
/// The text of the [`JsonError`](super::JsonError), or a format that is not JSON.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Owned, for a borrowed one cannot come from a reader. The copy is one memcpy.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Json::parse(raw.get()).map_err(D::Error::custom)
    }
}

/// Reads a payload that may be absent, for `#[serde(default, deserialize_with = "...")]`.
///
/// A plain `Option<Json>` reads `null` as absent and would drop it silently. Here `null` is
/// `Some(Json::Null)` and only a missing field is `None`.
///
/// # Errors
///
/// As when a [`Json`] is read.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
