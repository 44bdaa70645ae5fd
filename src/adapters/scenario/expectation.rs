//! How a run must end: the whole tuple, column by column (SPEC 3.C3).

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::engine::Ending;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::outcome::{FailureCode, FallbackType, ReleaseOutcome, RunStatus, StopReason};

/// The ending that a scenario expects. Every column counts: one that is left out must be empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The row of the closed table, 1 to 20.
    pub row: u8,
    /// The execution layer.
    pub run_state: RunStatus,
    /// The committed cause of a failed run.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// The progress layer.
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    /// How many facts were observed.
    pub facts: u32,
    /// The release layer.
    pub outcome: ReleaseOutcome,
    /// Why a fallback stands in the report's place.
    #[serde(default)]
    pub fallback_type: Option<FallbackType>,
    /// The coarse reason of a failure.
    #[serde(default)]
    pub failure_code: Option<FailureCode>,
}

/// A column in which a run ended otherwise than expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The column.
    pub column: &'static str,
    /// What the scenario expects, as JSON.
    pub expected: String,
    /// What came out, as JSON.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: expected {}, got {}", self.column, self.expected, self.got)
    }
}

impl Expectation {
    /// The columns in which `ending` differs; none when it is the expected one.
    #[must_use]
    pub fn differences(&self, ending: &Ending) -> Vec<Difference> {
        let columns = [
            difference("row", &self.row, &ending.row),
            difference("run_state", &self.run_state, &ending.run_state),
            difference("failure", &self.failure, &ending.failure),
            difference("stop_reason", &self.stop_reason, &ending.stop_reason),
            difference("facts", &self.facts, &ending.facts),
            difference("outcome", &self.outcome, &ending.outcome),
            difference("fallback_type", &self.fallback_type, &ending.fallback_type),
            difference("failure_code", &self.failure_code, &ending.failure_code),
        ];
        columns.into_iter().flatten().collect()
    }
}

fn difference<T: PartialEq + Serialize>(column: &'static str, expected: &T, got: &T) -> Option<Difference> {
    let shown = |value: &T| serde_json::to_string(value).unwrap_or_default();
    (expected != got).then(|| Difference { column, expected: shown(expected), got: shown(got) })
}
