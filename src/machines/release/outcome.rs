//! The release: the one value that a run hands to its reader (SPEC 11). A success is built from a
//! [`VerifiedDraft`], a fallback from [`ObservedFacts`]; nobody else can build either.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::proof::VerifiedDraft;
use crate::machines::collection::ObservedFacts;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;
use crate::vocabulary::outcome::{FailureCode, FallbackType, ReleaseOutcome};

/// What the reader of a run gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Release {
    run: RunId,
    #[serde(flatten)]
    body: Body,
}

/// What a release says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// A report whose evidence and semantics hold.
    #[non_exhaustive]
    Success {
        /// The conclusion.
        statement: String,
        /// Structured data that was judged with it.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Json>,
        /// The facts it rests on, in the draft's order.
        citations: Vec<Citation>,
        /// Whether a judge was asked; no when the spec switched it off.
        judged: bool,
    },
    /// Observed facts in the report's place.
    #[non_exhaustive]
    Fallback {
        /// Why.
        fallback_type: FallbackType,
        /// Everything that was observed, cited facts first.
        facts: Vec<Arc<Fact>>,
    },
    /// A failure.
    #[non_exhaustive]
    Failed {
        /// The coarse reason.
        failure_code: FailureCode,
        /// A sentence that may be shown to anybody.
        message: String,
    },
    /// The run was cancelled.
    #[non_exhaustive]
    Cancelled {
        /// The coarse reason.
        failure_code: FailureCode,
        /// A sentence that may be shown to anybody.
        message: String,
    },
}

/// A cited fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Citation {
    /// The fact.
    #[serde(flatten)]
    pub fact: Arc<Fact>,
    /// Words taken from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

impl Release {
    pub(crate) fn success(verified: &VerifiedDraft) -> Self {
        let evidenced = verified.evidenced();
        let candidate = evidenced.candidate();
        let draft = candidate.draft();
        let citations = cited(&draft.citations, evidenced.observed())
            .map(|fact| Citation { quote: draft.quotes.get(&fact.id.to_string()).cloned(), fact: Arc::clone(fact) })
            .collect();
        let statement = candidate.conclusion().statement.clone();
        let body = Body::Success { statement, data: draft.data.clone(), citations, judged: verified.judged() };
        Self { run: candidate.run().clone(), body }
    }

    /// A fallback of `observed`, the facts named in `first` before the others.
    pub(crate) fn fallback(run: RunId, kind: FallbackType, observed: &ObservedFacts, first: &[String]) -> Self {
        let leading: Vec<_> = cited(first, observed).map(Arc::clone).collect();
        let named: BTreeSet<_> = leading.iter().map(|fact| fact.id).collect();
        let rest = observed.as_slice().iter().filter(|fact| !named.contains(&fact.id));
        let facts = leading.iter().chain(rest).map(Arc::clone).collect();
        Self { run, body: Body::Fallback { fallback_type: kind, facts } }
    }

    pub(crate) fn failed(run: RunId, failure_code: FailureCode) -> Self {
        Self { run, body: Body::Failed { failure_code, message: failure_code.safe_message().to_owned() } }
    }

    pub(crate) fn cancelled(run: RunId) -> Self {
        let failure_code = FailureCode::RunCancelled;
        Self { run, body: Body::Cancelled { failure_code, message: failure_code.safe_message().to_owned() } }
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// What it says.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// What the reader sees.
    #[must_use]
    pub const fn outcome(&self) -> ReleaseOutcome {
        match self.body {
            Body::Success { .. } => ReleaseOutcome::Success,
            Body::Fallback { .. } => ReleaseOutcome::Fallback,
            Body::Failed { .. } => ReleaseOutcome::Failed,
            Body::Cancelled { .. } => ReleaseOutcome::Cancelled,
        }
    }

    /// Why a fallback stands in the report's place.
    #[must_use]
    pub const fn fallback_type(&self) -> Option<FallbackType> {
        if let Body::Fallback { fallback_type, .. } = self.body { Some(fallback_type) } else { None }
    }

    /// The coarse reason of a failure.
    #[must_use]
    pub const fn failure_code(&self) -> Option<FailureCode> {
        match self.body {
            Body::Failed { failure_code, .. } | Body::Cancelled { failure_code, .. } => Some(failure_code),
            Body::Success { .. } | Body::Fallback { .. } => None,
        }
    }

    /// What a success says beside its conclusion, as a type of yours; `None` when it says nothing or is no
    /// success.
    ///
    /// # Errors
    /// When the data is of another shape. The spec's `draft.data_schema` keeps such data from being released.
    pub fn data<T: serde::de::DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        match &self.body {
            Body::Success { data: Some(data), .. } => serde_json::from_str(&data.to_text()).map(Some),
            Body::Success { data: None, .. } | Body::Fallback { .. } | Body::Failed { .. } | Body::Cancelled { .. } => {
                Ok(None)
            }
        }
    }

    /// The idempotency key: the same bytes have the same key.
    #[must_use]
    pub fn key(&self) -> Digest {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Digest::of("portcullis.release.1", &[&bytes])
    }
}

/// The observed facts that `citations` name, each once, in their order.
fn cited<'a>(citations: &'a [String], observed: &'a ObservedFacts) -> impl Iterator<Item = &'a Arc<Fact>> {
    let mut seen = BTreeSet::new();
    citations.iter().filter_map(|citation| observed.cited(citation)).filter(move |fact| seen.insert(fact.id))
}
