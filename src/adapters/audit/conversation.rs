//! What can only be seen across the turns of a conversation, by turn.

use std::collections::{BTreeMap, BTreeSet};

use super::super::transcripts::{NoteKind, Transcript};
use super::finding::Finding;

/// Findings of a conversation, by turn, from 0.
#[derive(Debug)]
pub(super) struct Conversation(BTreeMap<usize, Counts>);

#[derive(Debug, Default)]
struct Counts {
    after_end: u32,
    orphan_results: u32,
    reused: u32,
}

impl Conversation {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut counts: BTreeMap<usize, Counts> = BTreeMap::new();
        for note in &transcript.notes {
            let Some(at) = note.at else { continue };
            // What comes before the first turn is counted there.
            let turn = transcript.turns.partition_point(|turn| turn.at <= at).saturating_sub(1);
            if note.kind == NoteKind::ReplyAfterAnswer {
                counts.entry(turn).or_default().after_end += 1;
            } else if note.kind == NoteKind::OrphanResult {
                counts.entry(turn).or_default().orphan_results += 1;
            }
        }
        let mut ids = BTreeSet::new();
        for call in transcript.opening.iter().flat_map(|reply| &reply.calls) {
            ids.extend(call.provider_id.as_deref());
        }
        for (index, turn) in transcript.turns.iter().enumerate() {
            let calls = turn.replies.iter().flat_map(|reply| &reply.calls);
            let reused = calls.filter_map(|call| call.provider_id.as_deref()).filter(|id| !ids.insert(*id)).count();
            if reused > 0 {
                counts.entry(index).or_default().reused = u32::try_from(reused).unwrap_or(u32::MAX);
            }
        }
        Self(counts)
    }

    /// The findings of one turn.
    pub(super) fn findings(&self, turn: usize) -> impl Iterator<Item = Finding> {
        let counts = self.0.get(&turn);
        let some = |count: fn(&Counts) -> u32| counts.map(count).filter(|count| *count > 0);
        let after = some(|counts| counts.after_end).map(|replies| Finding::WorkAfterEnd { replies });
        let orphans = some(|counts| counts.orphan_results).map(|results| Finding::OrphanResults { results });
        let reused = some(|counts| counts.reused).map(|calls| Finding::ReusedCallIds { calls });
        [after, orphans, reused].into_iter().flatten()
    }
}
