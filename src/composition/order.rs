//! Dependencies first; whoever is free to come next comes in the order of the input (SPEC 12).

use std::collections::BTreeSet;

use super::contribution::Proposal;
use super::error::MergeError;

/// The proposals in topological order. `present` are plugins that take part already, and come before all of them.
pub(super) fn in_order(present: &[String], proposals: Vec<Proposal>) -> Result<Vec<Proposal>, MergeError> {
    refuse_missing(present, &proposals)?;
    let mut ahead: BTreeSet<String> = proposals.iter().map(|proposal| proposal.manifest.id.clone()).collect();
    let (mut placed, mut waiting) = (Vec::new(), proposals);
    while !waiting.is_empty() {
        let free = |proposal: &Proposal| proposal.manifest.requires.iter().all(|id| !ahead.contains(id));
        let Some(next) = waiting.iter().position(free) else {
            return Err(MergeError::DependencyCycle { plugins: circle(&waiting) });
        };
        let proposal = waiting.remove(next);
        ahead.remove(&proposal.manifest.id);
        placed.push(proposal);
    }
    Ok(placed)
}

fn refuse_missing(present: &[String], proposals: &[Proposal]) -> Result<(), MergeError> {
    let there: BTreeSet<&String> =
        present.iter().chain(proposals.iter().map(|proposal| &proposal.manifest.id)).collect();
    for proposal in proposals {
        if let Some(missing) = proposal.manifest.requires.iter().find(|id| !there.contains(id)) {
            let plugin = proposal.manifest.id.clone();
            return Err(MergeError::MissingDependency { plugin, missing: missing.clone() });
        }
    }
    Ok(())
}

/// One circle among plugins each of which waits for another: follow who waits for whom until somebody comes again.
fn circle(waiting: &[Proposal]) -> Vec<String> {
    let find = |id: &str| waiting.iter().find(|proposal| proposal.manifest.id == id);
    let awaited = |proposal: &Proposal| proposal.manifest.requires.iter().find_map(|id| find(id));
    let mut path: Vec<String> = Vec::new();
    let mut next = waiting.first();
    while let Some(proposal) = next {
        if let Some(start) = path.iter().position(|id| *id == proposal.manifest.id) {
            return path.split_off(start);
        }
        path.push(proposal.manifest.id.clone());
        next = awaited(proposal);
    }
    path
}
