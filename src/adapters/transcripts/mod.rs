//! Recorded chat-completions transcripts, read as the script of one run per user turn.
//!
//! A transcript is what another agent loop said and got. Its assistant messages become the model's
//! replies, its recorded results become what the tools gave back. Nothing here knows the engine,
//! starts a process or opens a socket (`SPEC 13`).
//!
//! What is recognised, by shape alone:
//!
//! | shape | looks like | the message list is |
//! |---|---|---|
//! | [`Shape::List`] | `[{"role":..}, ..]` | the document |
//! | [`Shape::Messages`] | `{"messages":[..]}` | `messages` |
//! | [`Shape::TauBench`] | `{"traj":[..], ..}` | `traj` |
//! | [`Shape::ToolBench`] | `{"answer_generation":{..}, ..}` | one of `train_messages` |
//!
//! The format is foreign, so unknown fields are ignored; but no message is dropped without a
//! [`Note`], and what cannot be read is an error with its place, never a guess.

mod answer;
mod assemble;
mod chain;
mod content;
mod error;
mod line;
mod node;
mod note;
mod outcome;
mod pairing;
mod position;
mod shape;
mod transcript;

pub use error::TranscriptError;
pub use note::{Note, NoteKind};
pub use position::Position;
pub use shape::{Shape, recognise};
pub use transcript::{Call, ReadOptions, Reply, Said, ToolResult, Transcript, Turn};
