//! JSON Schema, pinned: draft 2020-12, no formats, no references to the outside, linear-time patterns.
//! What it says of a breach is our code, a pointer and a keyword, never the library's wording (SPEC 7.3).

use jsonschema::{Draft, PatternOptions, Validator};

use crate::vocabulary::json::Json;

/// The largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

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
