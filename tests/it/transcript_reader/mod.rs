//! The reader of recorded transcripts: shapes, notes, errors, and what holds for any of them.

mod errors;
mod notes;
pub(crate) mod properties;
mod recorded;
mod shapes;
