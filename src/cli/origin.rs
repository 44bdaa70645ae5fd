//! What a scripted run was started from, kept beside it in the store, so that another process can play on.

use serde::{Deserialize, Serialize};

use crate::adapters::scenario::{Scenario, Script};
use crate::vocabulary::spec::Spec;

/// The script of a run and its pace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// How time goes on.
    pub(crate) pace: Pace,
    /// The scenario as it was written; none for a recorded transcript.
    pub(crate) scenario: Option<String>,
}

/// How time goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pace {
    /// Waits take no time, and between two processes none passes.
    Virtual,
    /// Waits take as long as they say.
    Real,
}

impl Origin {
    /// Reads what was kept. The error is for people.
    pub(crate) fn read(kept: Option<&[u8]>) -> Result<Self, String> {
        match kept {
            None => Ok(Self { pace: Pace::Real, scenario: None }),
            Some(kept) => serde_json::from_slice(kept).map_err(|error| format!("its script cannot be read: {error}")),
        }
    }

    /// The script, if there is one.
    pub(crate) fn scenario(&self) -> Result<Option<Scenario>, String> {
        let read = |text: &String| Scenario::read(text.as_bytes()).map_err(|fault| format!("its script: {fault}"));
        self.scenario.as_ref().map(read).transpose()
    }

    /// A world that answers nothing: enough for a run that is to be cancelled.
    pub(crate) fn silence() -> Scenario {
        Scenario::new(Spec::new("", ""), Script::default())
    }
}
