//! What a run leaves to the next one of its thread (SPEC 12).

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;

use super::ports::Snapshot;
use crate::composition::{StateKey, StateShape};
use crate::engine::Engine;
use crate::vocabulary::environment::StateScope;
use crate::vocabulary::fact::PriorFact;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;

/// What a run leaves to its thread. Privileged: nothing of it was released.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// For the next spec's `prior_state`: what is committed in the thread's scope, by key.
    pub state: BTreeMap<String, Json>,
    /// For the next spec's `prior_facts`: every fact of the run, those that it imported among them, with the run
    /// that observed it.
    pub facts: Vec<PriorFact>,
}

impl Thread {
    pub(super) fn of(run: &RunId, engine: &Engine) -> Self {
        let facts = engine.facts().iter().map(|fact| fact.carried_from(run)).collect();
        Self { state: Snapshot::new(engine.shared_state()).of_thread(), facts }
    }
}

impl Thread {
    /// The value of a key in the thread's scope; the type's default when none stands there, as of every key of
    /// another scope.
    ///
    /// # Errors
    /// When another shape of value stands there.
    pub fn read<T: DeserializeOwned + Default>(&self, key: &StateKey<T>) -> Result<T, StateShape> {
        let state = self.state.iter().map(|(key, value)| ((StateScope::Thread, key.clone()), value.clone()));
        key.read(&state.collect())
    }
}

/// Shows keys and how many facts there are.
impl fmt::Debug for Thread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&String> = self.state.keys().collect();
        out.debug_struct("Thread").field("state", &keys).field("facts", &self.facts.len()).finish()
    }
}
