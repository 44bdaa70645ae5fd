//! Shared state: what a commit batch has staged, and what it becomes when the batch commits (SPEC 12). Nothing is
//! visible before that.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::vocabulary::digest::Digest;
use crate::vocabulary::environment::{MergePolicy, StateScope};
use crate::vocabulary::json::{Integer, Json};

/// A key in its scope.
pub type Place = (StateScope, String);

/// The state that the plugins of a run share.
#[derive(Debug, Clone)]
pub struct Shared {
    committed: Arc<BTreeMap<Place, Json>>,
    digest: Digest,
    staged: BTreeMap<Place, Slot>,
    commands: u32,
    staged_digest: Digest,
    /// Of keys and values, as they would be if the batch were committed now.
    bytes: u64,
    bytes_committed: u64,
}

/// What the open batch has made of one key.
#[derive(Debug, Clone, Serialize)]
struct Slot {
    value: Option<Json>,
    /// Who set the key as a whole, who set members of it (it may be none), and who set which. A remove forgets
    /// nothing of it.
    whole: Option<String>,
    parts: Option<String>,
    members: BTreeMap<String, String>,
    /// Of a commutative key that was set: what its value is the sum of.
    sum: Option<Sum>,
}

/// A value in two halves, the numbers that are added and those that are taken away, so that a sum that leaves the
/// range of numbers leaves it in every order of its parts.
#[derive(Debug, Clone, Serialize)]
struct Sum {
    rising: Json,
    falling: Json,
}

/// Two writes of one batch that do not go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who wrote before.
    pub earlier: String,
}

/// What is written to one key.
#[derive(Debug, Clone, Copy)]
pub enum Write<'a> {
    /// A value.
    Set(&'a Json),
    /// Its removal.
    Remove,
}

impl Shared {
    /// The state that a run begins with: the thread's, from its spec.
    #[must_use]
    pub fn new(prior: &BTreeMap<String, Json>) -> Self {
        let committed: BTreeMap<Place, Json> =
            prior.iter().map(|(key, value)| ((StateScope::Thread, key.clone()), value.clone())).collect();
        let bytes = committed.iter().map(|((_, key), value)| size(key, value)).sum();
        Self {
            committed: Arc::new(committed),
            digest: Digest::ZERO,
            staged: BTreeMap::new(),
            commands: 0,
            staged_digest: Digest::ZERO,
            bytes,
            bytes_committed: bytes,
        }
    }

    /// What is committed.
    #[must_use]
    pub const fn committed(&self) -> &Arc<BTreeMap<Place, Json>> {
        &self.committed
    }

    /// How many commands the open batch has staged.
    #[must_use]
    pub const fn commands(&self) -> u32 {
        self.commands
    }

    /// How many bytes keys and values would have if the batch were committed now.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Stages one write.
    ///
    /// # Errors
    /// When the key's policy does not let it stand beside an earlier write of the batch.
    pub fn stage(&mut self, by: &str, policy: MergePolicy, place: &Place, write: Write<'_>) -> Result<(), Conflict> {
        let held = self.committed.get(place);
        let mut slot = self.staged.get(place).cloned().unwrap_or_else(|| Slot::of(held));
        let before = slot.value.as_ref().map_or(0, |value| size(&place.1, value));
        match (write, policy) {
            (Write::Remove, _) => (slot.value, slot.sum) = (None, None),
            (Write::Set(value), MergePolicy::Exclusive) => slot.replace(by, value)?,
            (Write::Set(value), MergePolicy::Disjoint) => slot.put_members(by, value)?,
            (Write::Set(value), MergePolicy::Commutative) => slot.join(by, value)?,
        }
        let after = slot.value.as_ref().map_or(0, |value| size(&place.1, value));
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
        self.commands = self.commands.saturating_add(1);
        self.staged_digest = changed(self.staged_digest, by, place, slot.value.as_ref());
        self.staged.insert(place.clone(), slot);
        Ok(())
    }

    /// The batch commits: what it staged takes effect. How many commands that were comes back.
    pub fn commit(&mut self) -> u32 {
        let staged = std::mem::take(&mut self.staged);
        if !staged.is_empty() {
            let committed = Arc::make_mut(&mut self.committed);
            for (place, slot) in staged {
                self.digest = changed(self.digest, "", &place, slot.value.as_ref());
                match slot.value {
                    Some(value) => committed.insert(place, value),
                    None => committed.remove(&place),
                };
            }
        }
        self.bytes_committed = self.bytes;
        self.close()
    }

    /// The batch is dropped. How many commands that were comes back.
    pub fn roll_back(&mut self) -> u32 {
        self.staged.clear();
        self.bytes = self.bytes_committed;
        self.close()
    }

    fn close(&mut self) -> u32 {
        self.staged_digest = Digest::ZERO;
        std::mem::take(&mut self.commands)
    }

    /// What decides about every later command: two states that share it are alike.
    #[cfg(feature = "explorer")]
    pub(crate) fn identity(&self) -> Identity {
        let committed = self.committed.iter().map(|((scope, key), value)| (*scope, key.clone(), value.clone()));
        let staged = self.staged.iter().map(|((scope, key), slot)| (*scope, key.clone(), slot.clone()));
        Identity { committed: committed.collect(), staged: staged.collect() }
    }

    /// What a record shows; nothing while nobody has ever staged anything.
    #[must_use]
    pub fn view(&self) -> Option<SharedView> {
        let untouched = self.digest == Digest::ZERO && self.commands == 0;
        (!untouched).then(|| SharedView {
            keys: self.committed.len() as u64,
            digest: self.digest,
            staged: self.commands,
            staged_digest: (self.commands > 0).then_some(self.staged_digest),
        })
    }
}

/// The state in a record: bounded, whatever it holds (SPEC 13).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SharedView {
    keys: u64,
    digest: Digest,
    staged: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    staged_digest: Option<Digest>,
}

/// Everything in it.
#[cfg(feature = "explorer")]
#[derive(Debug, Serialize)]
pub(crate) struct Identity {
    committed: Vec<(StateScope, String, Json)>,
    staged: Vec<(StateScope, String, Slot)>,
}

impl Slot {
    fn of(held: Option<&Json>) -> Self {
        Self { value: held.cloned(), whole: None, parts: None, members: BTreeMap::new(), sum: None }
    }

    /// Exclusive: the second set of a batch is a conflict, whatever stood between them.
    fn replace(&mut self, by: &str, value: &Json) -> Result<(), Conflict> {
        self.free_as_a_whole()?;
        self.value = Some(value.clone());
        self.whole = Some(by.to_owned());
        Ok(())
    }

    /// Disjoint: each set names members of an object, and no two sets of a batch name the same. Members that
    /// nobody names keep their value. What is no object is set as a whole, once.
    fn put_members(&mut self, by: &str, value: &Json) -> Result<(), Conflict> {
        let Some(members) = value.as_object() else {
            return self.replace(by, value);
        };
        if let Some(earlier) = &self.whole {
            return Err(Conflict { earlier: earlier.clone() });
        }
        if let Some(earlier) = members.keys().find_map(|name| self.members.get(name)) {
            return Err(Conflict { earlier: earlier.clone() });
        }
        let mut all = self.value.as_ref().and_then(Json::as_object).cloned().unwrap_or_default();
        for (name, member) in members {
            all.insert(name.clone(), member.clone());
            self.members.insert(name.clone(), by.to_owned());
        }
        self.value = Some(Json::Object(all));
        self.parts.get_or_insert_with(|| by.to_owned());
        Ok(())
    }

    /// Commutative: a set is joined to what is there, so that no order of sets changes the outcome.
    fn join(&mut self, by: &str, value: &Json) -> Result<(), Conflict> {
        let more = Sum::of(value);
        let sum = match (self.sum.take(), &self.value) {
            (Some(sum), _) => sum.and(&more),
            (None, Some(held)) => Sum::of(held).and(&more),
            (None, None) => Some(more),
        };
        let whole = sum.as_ref().and_then(|sum| joined(&sum.rising, &sum.falling));
        let earlier = || self.whole.clone().unwrap_or_else(|| "an earlier batch".to_owned());
        self.value = Some(whole.ok_or_else(|| Conflict { earlier: earlier() })?);
        self.whole = Some(by.to_owned());
        self.sum = sum;
        Ok(())
    }

    fn free_as_a_whole(&self) -> Result<(), Conflict> {
        match self.whole.as_ref().or(self.parts.as_ref()) {
            Some(earlier) => Err(Conflict { earlier: earlier.clone() }),
            None => Ok(()),
        }
    }
}

/// Joins two values so that neither their order nor their grouping matters: whole numbers add up, lists become
/// the set of what is in either, objects are joined member by member, equal values stay. What else differs does
/// not go together.
fn joined(one: &Json, other: &Json) -> Option<Json> {
    match (one, other) {
        (Json::Integer(one), Json::Integer(other)) => one.checked_add(*other).map(Json::Integer),
        (Json::Array(one), Json::Array(other)) => Some(set(one.iter().chain(other))),
        (Json::Object(one), Json::Object(other)) => {
            let mut all = one.clone();
            for (name, member) in other {
                let member = match one.get(name) {
                    Some(held) => joined(held, member)?,
                    None => member.clone(),
                };
                all.insert(name.clone(), member);
            }
            Some(Json::Object(all))
        }
        (one, other) if one == other => Some(one.clone()),
        (_, _) => None,
    }
}

impl Sum {
    fn of(value: &Json) -> Self {
        let zero = Integer::from(0u32);
        Self { rising: half(value, |number| number >= zero), falling: half(value, |number| number < zero) }
    }

    fn and(&self, more: &Self) -> Option<Self> {
        Some(Self { rising: joined(&self.rising, &more.rising)?, falling: joined(&self.falling, &more.falling)? })
    }
}

/// A value as a join would leave it, where a list is a set, with the numbers that are `taken` and 0 for the others.
fn half(value: &Json, taken: impl Fn(Integer) -> bool + Copy) -> Json {
    match value {
        Json::Integer(number) if taken(*number) => value.clone(),
        Json::Integer(_) => Json::from(0u32),
        Json::Array(items) => set(items),
        Json::Object(members) => {
            let half = |(name, member): (&String, &Json)| (name.clone(), half(member, taken));
            Json::Object(members.iter().map(half).collect())
        }
        Json::Null | Json::Bool(_) | Json::Double(_) | Json::String(_) => value.clone(),
    }
}

/// Each item once, in the order of its canonical text. Of two spellings of one item, such as 1 and 1.0, the same
/// one stays whichever came first.
fn set<'a>(items: impl IntoIterator<Item = &'a Json>) -> Json {
    let mut once: BTreeMap<String, &Json> = BTreeMap::new();
    for item in items {
        let kept = once.entry(item.canonical()).or_insert(item);
        *kept = item.min(*kept);
    }
    Json::Array(once.into_values().cloned().collect())
}

fn size(key: &str, value: &Json) -> u64 {
    (key.len() + value.to_text().len()) as u64
}

fn changed(before: Digest, by: &str, (scope, key): &Place, value: Option<&Json>) -> Digest {
    let value = value.map_or_else(|| "removed".to_owned(), |value| format!("set {}", value.canonical()));
    let parts: [&[u8]; 5] =
        [before.as_bytes(), by.as_bytes(), scope.word().as_bytes(), key.as_bytes(), value.as_bytes()];
    Digest::of("portcullis.state.1", &parts)
}
