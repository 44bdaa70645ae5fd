//! JSON Schema, pinned: draft 2020-12, no formats, no references to the outside, linear-time patterns.
//! What it says of a breach is our code, a pointer and a keyword, never the library's wording (SPEC 7.3).

use jsonschema::{Draft, PatternOptions, Validator};

use crate::vocabulary::json::{Json, Pointer};

/// The largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The most parts that a schema may have once its references are followed.
const UNFOLDED_MAX: u32 = 10_000;

/// Follows references, to bound what one check may cost: a few definitions that name each other twice unfold
/// into more work than any deadline allows, and no deadline can fire inside a step. Recursion is refused for
/// the same reason: with two ways back, the work doubles at each level of the value.
struct Unfolding<'a> {
    root: &'a Json,
    left: u32,
}

impl<'a> Unfolding<'a> {
    /// Takes one part; `open` are the references that are being followed.
    fn take(&mut self, part: &'a Json, open: &mut Vec<&'a str>) -> Result<(), String> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| format!("the schema unfolds into more than {UNFOLDED_MAX} parts"))?;
        match part {
            Json::Object(fields) => fields.iter().try_for_each(|(name, value)| match (name.as_str(), value) {
                // Definitions cost nothing until they are named.
                ("$defs" | "definitions", Json::Object(_)) => Ok(()),
                ("$ref", Json::String(target)) => self.follow(target, open),
                ("$dynamicRef" | "$recursiveRef", Json::String(_)) => {
                    Err(format!("the schema uses `{name}`, which cannot be bounded"))
                }
                (_, value) => self.take(value, open),
            }),
            Json::Array(items) => items.iter().try_for_each(|item| self.take(item, open)),
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => Ok(()),
        }
    }

    fn follow(&mut self, target: &'a str, open: &mut Vec<&'a str>) -> Result<(), String> {
        if open.contains(&target) || target == "#" {
            return Err(format!("the schema is recursive at {target:?}"));
        }
        let pointer = target.strip_prefix('#').and_then(|pointer| pointer.parse::<Pointer>().ok());
        let part = pointer.and_then(|pointer| self.root.pointer(&pointer));
        let part = part.ok_or_else(|| format!("the schema refers to {target:?}, which is not inside it"))?;
        open.push(target);
        let taken = self.take(part, open);
        open.pop();
        taken
    }
}

/// A compiled schema.
#[derive(Debug, Clone)]
pub(crate) struct Schema(std::sync::Arc<Validator>);

/// Where a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Breach {
    /// A JSON Pointer into the value.
    pub(crate) pointer: String,
    /// The keyword that refuses it.
    pub(crate) keyword: String,
}

impl Schema {
    /// Compiles `schema`; the error is for people.
    pub(crate) fn compile(schema: &Json) -> Result<Self, String> {
        Unfolding { root: schema, left: UNFOLDED_MAX }.take(schema, &mut Vec::new())?;
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX),
            )
            .build(&schema.to_value())
            .map(|validator| Self(std::sync::Arc::new(validator)))
            .map_err(|error| format!("the schema cannot be used: {error}"))
    }

    /// Checks `value`.
    pub(crate) fn check(&self, value: &Json) -> Result<(), Breach> {
        self.0.validate(&value.to_value()).map_err(|error| Breach {
            pointer: error.instance_path().as_str().to_owned(),
            keyword: error.kind().keyword().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(schema: &str) -> String {
        Schema::compile(&Json::parse(schema).unwrap()).expect_err(schema)
    }

    #[test]
    fn a_schema_that_unfolds_without_end_is_refused() {
        let twice =
            |next: usize| format!(r##"{{"allOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}}"##);
        let defs: Vec<String> = (0..30).map(|number| format!(r#""d{number}":{}"#, twice(number + 1))).collect();
        let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d30":true}}}}"##, defs.join(","));
        assert!(refused(&schema).contains("unfolds"));
    }

    #[test]
    fn recursion_and_references_to_the_outside_are_refused() {
        assert!(refused(r##"{"properties":{"a":{"$ref":"#"}}}"##).contains("recursive"));
        let circle =
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"items":{"$ref":"#/$defs/a"}}}}"##;
        assert!(refused(circle).contains("recursive"));
        assert!(refused(r#"{"$ref":"http://localhost/schema"}"#).contains("not inside"));
        assert!(refused(r#"{"$ref":"file:///etc/passwd"}"#).contains("not inside"));
        assert!(refused(r##"{"$dynamicRef":"#x"}"##).contains("bounded"));
    }

    #[test]
    fn definitions_that_are_named_once_are_followed() {
        let schema = r##"{"properties":{"at":{"$ref":"#/$defs/place"}},"$defs":{"place":{"type":"integer"}}}"##;
        let schema = Schema::compile(&Json::parse(schema).unwrap()).unwrap();
        let breach = schema.check(&Json::parse(r#"{"at":"x"}"#).unwrap()).unwrap_err();
        assert_eq!((breach.pointer.as_str(), breach.keyword.as_str()), ("/at", "type"));
    }
}
