//! State keys with a type: what a plugin writes is what it reads, or an error that says what stood there.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::machines::shared::Place;
use crate::vocabulary::environment::{MergePolicy, StateKeySpec, StateScope};
use crate::vocabulary::input::StagedCommand;
use crate::vocabulary::json::Json;

/// A state key and the type of its value. Make it a constant beside the plugin:
///
/// ```
/// use portcullis::composition::StateKey;
/// use portcullis::vocabulary::environment::{MergePolicy, StateScope};
///
/// const SEEN: StateKey<u64> = StateKey::new(StateScope::Run, "acme.seen", MergePolicy::Commutative);
/// assert_eq!(SEEN.read(&Default::default()), Ok(0));
/// ```
pub struct StateKey<T> {
    scope: StateScope,
    name: &'static str,
    policy: MergePolicy,
    value: PhantomData<fn() -> T>,
}

/// A value that does not have its key's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {scope} state key {key:?} should be {expected}: {reason}")]
pub struct StateShape {
    /// The key's scope.
    pub scope: StateScope,
    /// The key's name.
    pub key: &'static str,
    /// The type that the value should have, as Rust spells it.
    pub expected: &'static str,
    /// What is wrong with it, for people. It may quote the value.
    pub reason: String,
}

impl<T> StateKey<T> {
    /// A key.
    #[must_use]
    pub const fn new(scope: StateScope, name: &'static str, policy: MergePolicy) -> Self {
        Self { scope, name, policy, value: PhantomData }
    }

    /// Its declaration, for a [`Contribution`](super::Contribution).
    #[must_use]
    pub fn spec(&self) -> StateKeySpec {
        StateKeySpec { scope: self.scope, key: self.name.to_owned(), policy: self.policy }
    }

    /// The command that removes the value.
    #[must_use]
    pub fn remove(&self) -> StagedCommand {
        StagedCommand::Remove { scope: self.scope, key: self.name.to_owned() }
    }

    fn misshapen(&self, reason: String) -> StateShape {
        StateShape { scope: self.scope, key: self.name, expected: std::any::type_name::<T>(), reason }
    }
}

impl<T: DeserializeOwned> StateKey<T> {
    /// The value that stands in the committed state; the type's default when none does.
    ///
    /// # Errors
    /// When another shape of value stands there. Nothing is reset: whoever wants to begin anew removes the key.
    pub fn read(&self, state: &BTreeMap<Place, Json>) -> Result<T, StateShape>
    where
        T: Default,
    {
        match state.get(&(self.scope, self.name.to_owned())) {
            Some(value) => self.typed(value),
            None => Ok(T::default()),
        }
    }

    /// The command that sets the value; with a policy other than exclusive, the part that is to be joined.
    ///
    /// # Errors
    /// When the value is no JSON, or could not be read again: a number that is not finite, one outside the range
    /// of 64 bits, a nesting that is too deep.
    pub fn set(&self, value: &T) -> Result<StagedCommand, StateShape>
    where
        T: Serialize,
    {
        let text = serde_json::to_string(value).map_err(|error| self.misshapen(said(&error)))?;
        let value = Json::parse(&text).map_err(|error| self.misshapen(error.to_string()))?;
        self.typed(&value)?;
        Ok(StagedCommand::Set { scope: self.scope, key: self.name.to_owned(), value })
    }

    fn typed(&self, value: &Json) -> Result<T, StateShape> {
        serde_json::from_str(&value.to_text()).map_err(|error| self.misshapen(said(&error)))
    }
}

/// The message without a place in a text that nobody wrote.
fn said(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = error.to_string();
    message.strip_suffix(&place).map_or_else(|| message.clone(), str::to_owned)
}

impl<T> Clone for StateKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StateKey<T> {}

impl<T> std::fmt::Debug for StateKey<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} state key {:?} ({})", self.scope, self.name, self.policy)
    }
}
