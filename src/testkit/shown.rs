//! What a refusal must leave as it was (SPEC 13.I7).

use crate::engine::Engine;

/// Everything that an engine shows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    state: String,
    identity: String,
    outstanding: String,
    expected: Vec<&'static str>,
    messages: usize,
    facts: usize,
    records: u64,
}

impl Shown {
    /// What `engine` shows now.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        let decider = engine.decider();
        Self {
            state: decider.state_json(),
            identity: decider.identity().to_string(),
            outstanding: serde_json::to_string(&engine.outstanding()).unwrap_or_default(),
            expected: engine.expected(),
            messages: engine.transcript().len(),
            facts: engine.facts().len(),
            records: decider.records(),
        }
    }
}
