//! Fields of a record by name; what is absent reads as nothing.

use crate::vocabulary::json::Json;

pub(in crate::testkit) fn member<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    json.as_object()?.get(name)
}

/// The text of a member; empty when there is none.
pub(in crate::testkit) fn word<'a>(json: &'a Json, name: &str) -> &'a str {
    member(json, name).and_then(Json::as_str).unwrap_or_default()
}

/// The whole number of a member.
pub(in crate::testkit) fn integer(json: &Json, name: &str) -> Option<u64> {
    member(json, name)?.as_integer()?.to_string().parse().ok()
}

/// The items of a member; none when there is none.
pub(in crate::testkit) fn list<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    member(json, name).and_then(Json::as_array).unwrap_or_default()
}
