//! The wire as JSON Schema: what goes in, what stands in a record, what is refused.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::engine::{Ending, Request};
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::Refusal;
use crate::vocabulary::signal::Signal;

/// Everything that crosses the wire.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Wire {
    /// What moves a run.
    input: Input,
    /// What machines tell each other inside a step.
    signal: Signal,
    /// What the world is asked.
    effect: Request,
    /// What is answered to an input that is not accepted.
    refusal: Refusal,
    /// How a run ends.
    ending: Ending,
}

/// The schema of the wire, generated from the types.
#[must_use]
pub fn schema() -> Schema {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<Wire>();
    schema.insert("title".to_owned(), "Portcullis wire, version 1".into());
    schema
}
