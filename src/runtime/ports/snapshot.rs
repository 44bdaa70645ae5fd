//! The state that a run's plugins share, as it is committed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::composition::{StateKey, StateShape};
use crate::machines::shared::Place;
use crate::vocabulary::environment::StateScope;
use crate::vocabulary::json::Json;

/// What was committed when a question was asked. What the open commit batch has staged is not in it, and what is
/// committed later does not change it (SPEC 12).
///
/// Privileged: it holds whatever plugins have written down.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Snapshot(Arc<BTreeMap<Place, Json>>);

impl Snapshot {
    pub(crate) const fn new(committed: Arc<BTreeMap<Place, Json>>) -> Self {
        Self(committed)
    }

    /// The value of a key in a scope.
    #[must_use]
    pub fn get(&self, scope: StateScope, key: &str) -> Option<&Json> {
        self.0.get(&(scope, key.to_owned()))
    }

    /// The value of a typed key; the type's default when there is none.
    ///
    /// # Errors
    /// When a value of another shape stands there.
    pub fn read<T: DeserializeOwned + Default>(&self, key: &StateKey<T>) -> Result<T, StateShape> {
        key.read(&self.0)
    }

    /// Every value, by scope and key.
    pub fn iter(&self) -> impl Iterator<Item = (StateScope, &str, &Json)> {
        self.0.iter().map(|((scope, key), value)| (*scope, key.as_str(), value))
    }

    /// What the thread keeps when the run is over, by key.
    pub(crate) fn of_thread(&self) -> BTreeMap<String, Json> {
        let kept = self.iter().filter(|(scope, _, _)| *scope == StateScope::Thread);
        kept.map(|(_, key, value)| (key.to_owned(), value.clone())).collect()
    }
}

/// Shows scopes and keys, and no values.
impl fmt::Debug for Snapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter().map(|(scope, key, _)| (scope, key))).finish()
    }
}
