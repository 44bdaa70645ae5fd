//! What JSON Schema generators are told of payloads and pointers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Json, Pointer};

/// Any JSON: which values a payload may take is up to the tool or draft that it belongs to.
impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

impl JsonSchema for Pointer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pointer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "json-pointer" })
    }
}
