//! The reader of recorded transcripts: shapes, notes, errors, and what holds for any of them.

mod errors;
mod notes;
mod properties;
mod recorded;
mod shapes;
