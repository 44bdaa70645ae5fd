//! Whether a recorded result is an error, told by its structure and by nothing else.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::node::Form;

/// A result is an error when its text starts with `Error:` (tau-bench writes so), or opens with a
/// JSON object whose `error` is a non-empty string (ToolBench).
///
/// ToolBench cuts long results in the middle of their JSON. An error that stands whole before the
/// cut still counts, lest a failure become a fact because it was long.
pub(super) fn is_error(text: &str) -> bool {
    text.starts_with("Error:") || names_error(text)
}

fn names_error(text: &str) -> bool {
    let mut seen = false;
    let mut parser = serde_json::Deserializer::from_str(text);
    // Where the object stops being JSON does not matter: what was seen until then does.
    let _ = ErrorField(&mut seen).deserialize(&mut parser);
    seen
}

struct ErrorField<'s>(&'s mut bool);

impl<'de> DeserializeSeed<'de> for ErrorField<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ErrorField<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "error" {
                let value: &RawValue = map.next_value()?;
                *self.0 |= Form::of(value) == Form::Text && value.get() != r#""""#;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_error;

    #[test]
    fn a_result_is_an_error_by_its_prefix_or_its_error_field_and_by_nothing_else() {
        let errors = [
            "Error: no seats",
            "Error:",
            r#"{"error":"no such function","response":""}"#,
            r#"  {"response":{"a":[1]},"error":" "}"#,
            r#"{"\u0065rror":"escaped key"}"#,
            r#"{"error":"whole","response":"cut in the mid..."#,
            r#"{"error":"","error":"the second one speaks"}"#,
        ];
        let ordinary = [
            "",
            "error: lower case",
            " Error: indented",
            "There was an Error: no",
            r#"{"error":"","response":"fine"}"#,
            r#"{"error":null}"#,
            r#"{"error":{"code":1}}"#,
            r#"{"error":true}"#,
            r#"{"nested":{"error":"inner"}}"#,
            r#"[{"error":"in a list"}]"#,
            r#"{"error":"cut in the mid..."#,
            r#""{\"error\":\"a string\"}""#,
            r#"{"success":false}"#,
        ];
        assert_eq!(errors.map(is_error), [true; 7]);
        assert_eq!(ordinary.map(is_error), [false; 13]);
    }

    #[test]
    fn a_deeply_nested_result_costs_no_stack() {
        let deep = format!("{{\"a\":{}{},\"error\":\"x\"}}", "[".repeat(200_000), "]".repeat(200_000));
        assert!(is_error(&deep));
    }
}
