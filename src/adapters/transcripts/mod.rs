//! Recorded runs of other agent loops, read as the script of one run per user turn.
//!
//! A recording is what another agent loop said and got. Its assistant messages become the model's
//! replies, its recorded results become what the tools gave back. Nothing here knows the engine,
//! starts a process or opens a socket (`SPEC 13`).
//!
//! | the way of a document | |
//! |---|---|
//! | [`recognise`] | tells its [`Format`] by its shape |
//! | one importer a format | gives its conversations as entries, each with its place |
//! | `speech` | one message in any of the dialects that agent runtimes write |
//! | `thread` | model requests that each repeat the conversation, as one conversation |
//! | `assemble` | cuts entries into turns and pairs results with calls, alike for every format |
//! | [`Transcript`] | what was said, and a [`Note`] for everything that was guessed or left out |
//!
//! The formats are foreign, so unknown fields are ignored; but no entry is dropped without a
//! [`Note`], and what cannot be read is an error with its place, never a guess.

mod answer;
mod assemble;
mod atif;
pub mod chat;
mod claude_code;
mod draft;
mod error;
mod failure;
mod format;
mod line;
mod lines;
mod node;
mod note;
mod openhands;
mod otlp;
mod outcome;
mod outline;
mod pairing;
mod position;
mod react;
mod reading;
mod speech;
mod swe_agent;
mod temporal;
mod thread;
mod transcript;

pub use error::TranscriptError;
pub use format::{Format, recognise};
pub use note::{Note, NoteKind};
pub use position::Position;
pub use reading::{ReadOptions, read};
pub use transcript::{Call, Claim, Reply, Said, ToolResult, Transcript, Turn};
