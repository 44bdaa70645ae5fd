//! Bounds: what a plugin publishes that it may contribute and use. The default allows nothing (SPEC 12).

use super::environment::HookPoint;
use super::wire::object;

/// What may stand between a namespace and the rest of an id.
const SEPARATORS: [&str; 4] = [".", "/", ":", "__"];

object! {
    default
    /// What a plugin may contribute, and what its hooks and tools may use of it while the run goes on.
    #[derive(Default)]
    pub struct Bound {
        /// Tools, by name.
        #[serde(skip_serializing_if = "Allowance::is_nothing")]
        pub tools: Allowance,
        /// State keys, by name: those it declares, and those it may set or remove.
        #[serde(skip_serializing_if = "Allowance::is_nothing")]
        pub state_keys: Allowance,
        /// The points at which it may have a hook.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub hooks: Vec<HookPoint>,
        /// Action kinds: those it performs, and those it may schedule.
        #[serde(skip_serializing_if = "Allowance::is_nothing")]
        pub action_kinds: Allowance,
        /// Gates before tool calls, by gate id.
        #[serde(skip_serializing_if = "Allowance::is_nothing")]
        pub tool_gates: Allowance,
        /// Gates before a release, by gate id.
        #[serde(skip_serializing_if = "Allowance::is_nothing")]
        pub release_gates: Allowance,
    }
}

object! {
    default
    /// A set of ids: exact ones, those of a namespace, or both. Empty, it allows nothing.
    #[derive(Default)]
    pub struct Allowance {
        /// Every id that begins with this name and one of `.`, `/`, `:` and `__`. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub namespace: Option<String>,
        /// These ids, letter by letter. Default: none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub ids: Vec<String>,
    }
}

impl Allowance {
    /// Exactly these ids.
    #[must_use]
    pub fn ids<I: Into<String>>(ids: impl IntoIterator<Item = I>) -> Self {
        Self { namespace: None, ids: ids.into_iter().map(Into::into).collect() }
    }

    /// Every id of a namespace.
    #[must_use]
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ids: Vec::new() }
    }

    /// These ids too.
    #[must_use]
    pub fn and<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.ids.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Whether it allows this id.
    #[must_use]
    pub fn allows(&self, id: &str) -> bool {
        self.ids.iter().any(|allowed| allowed == id)
            || self.namespace.as_ref().is_some_and(|namespace| is_within(namespace, id))
    }

    /// Whether it allows nothing at all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.namespace.is_none() && self.ids.is_empty()
    }
}

/// A namespace without a name holds nothing, and neither does one hold its own name.
fn is_within(namespace: &str, id: &str) -> bool {
    let Some(rest) = id.strip_prefix(namespace).filter(|_| !namespace.is_empty()) else {
        return false;
    };
    SEPARATORS.iter().any(|separator| rest.strip_prefix(separator).is_some_and(|name| !name.is_empty()))
}
