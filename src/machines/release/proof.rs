//! Proofs: values that only a check can make. None of them can be deserialised, defaulted or built from
//! outside (SPEC 3, "make wrong endings unrepresentable").

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::machines::collection::ObservedFacts;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::draft::{Conclusion, Draft};
use crate::vocabulary::ids::RunId;

/// A draft with a conclusion, bound to its run and to the text it came from. It proves nothing yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Candidate(Arc<Bound>);

#[derive(PartialEq, Eq)]
struct Bound {
    run: RunId,
    digest: Digest,
    conclusion: Conclusion,
    draft: Draft,
}

/// Shows the digest alone: unreleased text stays out of traces (SPEC 13.I10).
impl fmt::Debug for Candidate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Candidate({})", self.0.digest)
    }
}

impl Candidate {
    /// Binds a draft; the draft comes back when it concludes nothing.
    pub(crate) fn new(run: RunId, digest: Digest, draft: Draft) -> Result<Self, Draft> {
        match draft.conclusion.clone() {
            Some(conclusion) => Ok(Self(Arc::new(Bound { run, digest, conclusion, draft }))),
            None => Err(draft),
        }
    }

    /// The run it belongs to.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.0.run
    }

    /// Of the text it came from.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// The draft. Privileged: it is not released yet.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.0.draft
    }

    /// What it concludes. Privileged: it is not released yet.
    #[must_use]
    pub fn conclusion(&self) -> &Conclusion {
        &self.0.conclusion
    }
}

/// A draft whose evidence holds. Only the evidence guard makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidencedDraft {
    candidate: Candidate,
    observed: ObservedFacts,
}

impl EvidencedDraft {
    pub(super) const fn new(candidate: Candidate, observed: ObservedFacts) -> Self {
        Self { candidate, observed }
    }

    /// The draft's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.candidate.digest()
    }

    pub(crate) const fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    pub(crate) const fn observed(&self) -> &ObservedFacts {
        &self.observed
    }

    /// The judge supports it.
    pub(crate) const fn supported(self) -> VerifiedDraft {
        VerifiedDraft { evidenced: self, judged: true }
    }

    /// The spec switched the judge off, and the release will say so.
    pub(crate) const fn unjudged(self) -> VerifiedDraft {
        VerifiedDraft { evidenced: self, judged: false }
    }
}

/// A draft whose evidence and semantics hold: the only ground a success can stand on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedDraft {
    evidenced: EvidencedDraft,
    judged: bool,
}

impl VerifiedDraft {
    /// The draft's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.evidenced.digest()
    }

    /// Whether a judge was asked.
    #[must_use]
    pub const fn judged(&self) -> bool {
        self.judged
    }

    pub(crate) const fn evidenced(&self) -> &EvidencedDraft {
        &self.evidenced
    }
}

/// States show a draft by its digest alone: unreleased text stays out of them.
impl Serialize for EvidencedDraft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digest().serialize(serializer)
    }
}

impl Serialize for VerifiedDraft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digest().serialize(serializer)
    }
}
