//! The observed facts of a run: numbered in publication order, judged for novelty (SPEC 8).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::vocabulary::digest::Digest;
use crate::vocabulary::fact::{Fact, Origin, PriorFact, Statement};
use crate::vocabulary::ids::{FactId, ToolCallId};

/// Every fact that this run has observed.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    observed: Vec<Arc<Fact>>,
    known: BTreeSet<Digest>,
    running: Option<Digest>,
}

/// A set of observed facts that is not empty: the only ground a fallback can stand on. Nothing but
/// [`Facts`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedFacts(Vec<Arc<Fact>>);

impl ObservedFacts {
    /// The facts, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Arc<Fact>] {
        &self.0
    }

    /// The fact of that name, `None` for anything that is no id of one of them.
    #[must_use]
    pub fn cited(&self, citation: &str) -> Option<&Arc<Fact>> {
        named(&self.0, citation)
    }
}

/// Facts are numbered from 1 in order, so a name is a place.
fn named<'a>(facts: &'a [Arc<Fact>], citation: &str) -> Option<&'a Arc<Fact>> {
    let id: FactId = citation.parse().ok()?;
    facts.get(id.0.checked_sub(1)? as usize)
}

impl Facts {
    /// Whether anything was observed ("F" of SPEC 3).
    #[must_use]
    pub fn any(&self) -> bool {
        !self.observed.is_empty()
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.observed.len()).unwrap_or(u32::MAX)
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Fact>> {
        self.observed.iter()
    }

    /// The fact of that name, `None` for anything that is no id of an observed fact.
    #[must_use]
    pub fn cited(&self, citation: &str) -> Option<&Arc<Fact>> {
        named(&self.observed, citation)
    }

    /// A digest of all facts so far, kept as they come.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.running.unwrap_or(Digest::ZERO)
    }

    /// What was said before: statements and keys, by tool. A fact is new when it is not among them.
    #[cfg(feature = "explorer")]
    pub(crate) const fn known(&self) -> &BTreeSet<Digest> {
        &self.known
    }

    /// The proof that something was observed.
    #[must_use]
    pub(crate) fn proof(&self) -> Option<ObservedFacts> {
        (!self.observed.is_empty()).then(|| ObservedFacts(self.observed.clone()))
    }

    /// Numbers one more fact. A fact that is not new is numbered too; it is not new when the same tool
    /// already gave the same statement, or the same key, under any scope (SPEC 8).
    pub(crate) fn observe(&mut self, call: ToolCallId, tool: &Arc<str>, found: Statement) -> (Arc<Fact>, bool) {
        self.number(call, tool, found, None)
    }

    /// Numbers a fact that an earlier run observed: the same tool gives nothing new when it gives it again.
    pub(crate) fn import(&mut self, prior: &PriorFact) -> Arc<Fact> {
        let found = Statement { statement: prior.statement.clone(), key: prior.key.clone() };
        self.number(prior.call, &Arc::from(prior.tool.as_str()), found, Some(prior.origin.clone())).0
    }

    fn number(
        &mut self,
        call: ToolCallId,
        tool: &Arc<str>,
        found: Statement,
        origin: Option<Origin>,
    ) -> (Arc<Fact>, bool) {
        let statement = Digest::of("portcullis.statement.1", &[tool.as_bytes(), found.statement.as_bytes()]);
        let key = found.key.as_ref().map(|key| Digest::of("portcullis.fact_key.1", &[tool.as_bytes(), key.as_bytes()]));
        let new_statement = self.known.insert(statement);
        let new_key = key.is_none_or(|key| self.known.insert(key));
        self.running = Some(Digest::of("portcullis.facts.1", &[self.digest().as_bytes(), statement.as_bytes()]));
        let id = FactId(self.count().saturating_add(1));
        let Statement { statement, key } = found;
        let fact = Arc::new(Fact { id, call, tool: Arc::clone(tool), statement, origin, key });
        self.observed.push(Arc::clone(&fact));
        (fact, new_statement && new_key)
    }
}
