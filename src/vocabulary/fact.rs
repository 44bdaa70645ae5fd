//! Facts: observed, publishable statements from successful results of evidence tools (SPEC 1).

use std::sync::Arc;

use serde::Serialize;

use crate::vocabulary::wire::object;

use super::ids::{FactId, RunId, ToolCallId};

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
    /// The run that observed it, when it was an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What it is about, as the tool reported it: kept for the thread's next run, and shown to nobody.
    #[serde(skip)]
    pub key: Option<String>,
}

impl Fact {
    /// The fact as a later run of the thread may import it. `run` is the one that it was taken from; a fact that
    /// was imported there keeps the origin that it has.
    #[must_use]
    pub fn carried_from(&self, run: &RunId) -> PriorFact {
        let observed_here = || Origin { run: run.clone(), fact: self.id };
        PriorFact {
            origin: self.origin.clone().unwrap_or_else(observed_here),
            call: self.call,
            tool: self.tool.to_string(),
            statement: self.statement.clone(),
            key: self.key.clone(),
        }
    }
}

object! {
    /// Where an imported fact was observed.
    pub struct Origin {
        /// The run.
        pub run: RunId,
        /// The fact's number there.
        pub fact: FactId,
    }
}

object! {
    /// A fact that an earlier run observed, imported with where it comes from (SPEC 12).
    pub struct PriorFact {
        /// Where it was observed.
        pub origin: Origin,
        /// The call that observed it, in that run.
        pub call: ToolCallId,
        /// The tool that observed it.
        pub tool: String,
        /// What was observed: not empty, at most `limits.statement_bytes_max`.
        pub statement: String,
        /// What it is about, as the tool reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key: Option<String>,
    }
}
