//! The evidence guard: pure, in a fixed order (SPEC 11).

use super::proof::{Candidate, EvidencedDraft};
use crate::machines::collection::Facts;
use crate::vocabulary::outcome::EvidenceViolation;

/// Every citation names an observed fact, there is at least one, and quotes stand in cited facts.
pub(crate) fn check(candidate: Candidate, facts: &Facts) -> Result<EvidencedDraft, (Candidate, EvidenceViolation)> {
    match violation(&candidate, facts) {
        Some(violation) => Err((candidate, violation)),
        None => match facts.proof() {
            Some(observed) => Ok(EvidencedDraft::new(candidate, observed)),
            None => Err((candidate, EvidenceViolation::Missing)),
        },
    }
}

fn violation(candidate: &Candidate, facts: &Facts) -> Option<EvidenceViolation> {
    let draft = candidate.draft();
    if draft.citations.iter().any(|citation| facts.cited(citation).is_none()) {
        return Some(EvidenceViolation::UnknownReference);
    }
    if draft.citations.is_empty() {
        return Some(EvidenceViolation::Missing);
    }
    let stands = |(citation, quote): (&String, &String)| {
        draft.citations.contains(citation)
            && facts.cited(citation).is_some_and(|fact| fact.statement.contains(quote.as_str()))
    };
    (!draft.quotes.iter().all(stands)).then_some(EvidenceViolation::Mismatch)
}
