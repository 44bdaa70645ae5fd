//! What an importer gives: one recorded conversation as entries, not yet cut into turns.

use super::line::Entry;
use super::note::Notes;

/// One conversation of a document.
#[derive(Debug)]
pub(super) struct Draft {
    /// Its id as recorded, such as a trace's or a session's.
    pub(super) id: Option<String>,
    /// The model that answered first, as recorded.
    pub(super) model: Option<String>,
    /// What was said and done, in order.
    pub(super) entries: Vec<Entry>,
    /// What was left out or guessed on the way.
    pub(super) notes: Notes,
}
