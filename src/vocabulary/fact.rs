//! Facts: observed, publishable statements from successful results of evidence tools (SPEC 1).

use std::sync::Arc;

use serde::Serialize;

use crate::vocabulary::wire::object;

use super::ids::{FactId, ToolCallId};

object! {
    /// What a tool's executor reports as one fact.
    pub struct Statement {
        /// What was observed: not empty, at most `limits.statement_bytes_max`.
        pub statement: String,
        /// What the fact is about: a fact with a known key of the same tool is not new (SPEC 8).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key: Option<String>,
    }
}

impl Statement {
    /// A statement without a key.
    #[must_use]
    pub fn new(statement: impl Into<String>) -> Self {
        Self { statement: statement.into(), key: None }
    }
}

/// One observed fact with its number and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// Its number.
    pub id: FactId,
    /// The call that observed it.
    pub call: ToolCallId,
    /// The tool that observed it.
    pub tool: Arc<str>,
    /// What was observed.
    pub statement: String,
}
