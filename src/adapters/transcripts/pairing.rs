//! Which result belongs to which call of one assistant message.

use std::collections::BTreeMap;

use super::line::Recorded;
use super::note::{NoteKind, Notes};
use super::outcome::is_error;
use super::transcript::{Call, ToolResult};

/// Gives the calls of one assistant message the results that follow it.
///
/// By position, since recorded ids repeat within a file; by id only when within this group the ids
/// of the calls and of the results are unique and every result names a call. Never across groups:
/// the caller hands over one group at a time. A result that finds no call is noted.
pub(super) fn pair(calls: &mut [Call], results: Vec<Recorded>, notes: &mut Notes) {
    let places = places_by_id(calls, &results).unwrap_or_else(|| (0..results.len()).collect());
    for (result, place) in results.into_iter().zip(places) {
        match calls.get_mut(place) {
            Some(call) => attach(call, result, notes),
            None => notes.at(result.at, NoteKind::OrphanResult),
        }
    }
}

/// For each result the index of its call; `None` when the ids do not settle it.
fn places_by_id(calls: &[Call], results: &[Recorded]) -> Option<Vec<usize>> {
    let mut call_by_id = BTreeMap::new();
    for (index, call) in calls.iter().enumerate() {
        if call_by_id.insert(call.provider_id.as_deref()?, index).is_some() {
            return None;
        }
    }
    // Taking the entry out makes a second result of the same id fail.
    results.iter().map(|result| call_by_id.remove(result.id.as_deref()?)).collect()
}

fn attach(call: &mut Call, result: Recorded, notes: &mut Notes) {
    let differ = |a: &Option<String>, b: &Option<String>| matches!((a, b), (Some(a), Some(b)) if a != b);
    if differ(&call.provider_id, &result.id) {
        notes.at(result.at, NoteKind::IdDiffers);
    }
    if result.name.as_ref().is_some_and(|name| *name != call.name) {
        notes.at(result.at, NoteKind::NameDiffers);
    }
    if result.text.trim().is_empty() {
        notes.at(result.at, NoteKind::EmptyResult);
    }
    let is_error = result.is_error.unwrap_or_else(|| is_error(&result.text));
    call.result = Some(ToolResult { is_error, text: result.text });
}
