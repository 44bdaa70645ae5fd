//! JSON Schema, pinned: draft 2020-12, no formats, no references to the outside, linear-time patterns.
//! What it says of a breach is our code, a pointer and a keyword, never the library's wording (SPEC 7.3).

use jsonschema::{Draft, PatternOptions, Validator};

use crate::vocabulary::json::{Json, Pointer};

/// The largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The most parts that a schema may have once its references are followed.
const UNFOLDED_MAX: u32 = 10_000;
/// The most references that may lead from one to the next.
const CHAIN_MAX: usize = 64;

/// Follows references, to bound what one check may cost: a few definitions that name each other twice unfold
/// into more work than any deadline allows, and no deadline can fire inside a step. Recursion is refused for
/// the same reason: with two ways back, the work doubles at each level of the value. What would make the
/// validator resolve a reference otherwise than we do is refused too.
struct Unfolding<'a> {
    root: &'a Json,
    left: u32,
    /// The parts that are being followed.
    open: Vec<&'a Json>,
}

impl<'a> Unfolding<'a> {
    /// Takes a schema.
    fn schema(&mut self, part: &'a Json) -> Result<(), String> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| format!("the schema unfolds into more than {UNFOLDED_MAX} parts"))?;
        match part {
            Json::Object(fields) => fields.iter().try_for_each(|(name, value)| self.keyword(part, name, value)),
            Json::Array(items) => items.iter().try_for_each(|item| self.schema(item)),
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => Ok(()),
        }
    }

    fn keyword(&mut self, part: &'a Json, name: &str, value: &'a Json) -> Result<(), String> {
        match (name, value) {
            ("$ref", Json::String(target)) => self.follow(target),
            ("$dynamicRef" | "$recursiveRef", _) => Err(format!("the schema uses `{name}`, which cannot be bounded")),
            ("$id", _) if !std::ptr::eq(part, self.root) => {
                Err("the schema has an `$id` below its root, which would move its references".to_owned())
            }
            // Definitions cost nothing until they are named; values are no schemas.
            ("$defs" | "definitions" | "enum" | "const" | "default" | "examples" | "example", _) => Ok(()),
            // Here the keys are names of their own.
            ("properties" | "patternProperties" | "dependentSchemas" | "dependencies", Json::Object(named)) => {
                named.values().try_for_each(|schema| self.schema(schema))
            }
            (_, value) => self.schema(value),
        }
    }

    fn follow(&mut self, target: &str) -> Result<(), String> {
        let pointer = target.strip_prefix('#').and_then(decoded).and_then(|pointer| pointer.parse::<Pointer>().ok());
        let part = pointer.and_then(|pointer| self.root.pointer(&pointer));
        let part = part.ok_or_else(|| format!("the schema refers to {target:?}, which is no pointer into it"))?;
        if std::ptr::eq(part, self.root) || self.open.iter().any(|open| std::ptr::eq(*open, part)) {
            return Err(format!("the schema is recursive at {target:?}"));
        }
        if self.open.len() >= CHAIN_MAX {
            return Err(format!("the schema has more than {CHAIN_MAX} references in a row"));
        }
        self.open.push(part);
        let taken = self.schema(part);
        self.open.pop();
        taken
    }
}

/// A fragment without its percent-encoding, as the validator reads it.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    String::from_utf8(bytes).ok()
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
        Unfolding { root: schema, left: UNFOLDED_MAX, open: Vec::new() }.schema(schema)?;
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
        assert!(refused(r#"{"$ref":"http://localhost/schema"}"#).contains("no pointer into it"));
        assert!(refused(r#"{"$ref":"file:///etc/passwd"}"#).contains("no pointer into it"));
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
