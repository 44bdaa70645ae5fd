//! The meeting point with JSON Schema libraries, and the only place where `serde_json::Value`
//! appears: features that other crates switch on change what it holds and how it is ordered.

use serde_json::Value;

use super::number::Exact;
use super::{Integer, Json};

impl Json {
    /// The value as a schema validator wants it; for nothing else. No number is changed.
    pub fn to_value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Integer(value) => value.to_value(),
            // serde_json has `null` for a double that is not finite; this one is.
            Json::Double(value) => Value::from(value.value()),
            Json::String(text) => Value::String(text.clone()),
            Json::Array(items) => Value::Array(items.iter().map(Json::to_value).collect()),
            Json::Object(members) => {
                Value::Object(members.iter().map(|(key, json)| (key.clone(), json.to_value())).collect())
            }
        }
    }
}

impl Integer {
    fn to_value(self) -> Value {
        match self.exact() {
            Exact::Signed(value) => Value::from(value),
            Exact::Beyond(value) => Value::from(value),
        }
    }
}
