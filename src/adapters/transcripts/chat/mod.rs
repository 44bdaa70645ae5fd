//! Chat-completions message lists, with `tool_calls` or the older `function_call`, in four wrappings.
//!
//! | in the file | becomes |
//! |---|---|
//! | `system`, `developer` before the rest | the instructions |
//! | `user` | a turn's task |
//! | `assistant` | a reply: `content` its text, `tool_calls` or `function_call` its calls |
//! | `tool`, `function` | the result of a call of the message before it: by id where ids are unique, else by position |
//! | a call of a terminal tool without a result, last in its turn | the answer |

mod chain;
mod content;
mod message;
mod shape;

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::node::Node;
use super::note::Notes;

pub use shape::{Shape, recognise};

/// Reads the one conversation of a document.
pub(super) fn read(document: &str) -> Result<Vec<Draft>, TranscriptError> {
    let root = Node::root(document)?;
    let found = shape::located(&root).ok_or(TranscriptError::Unrecognised)?;
    let mut notes = Notes::new(Format::ChatCompletions);
    let entries = chain::chain(&root, found, &mut notes)?;
    Ok(vec![Draft { id: None, model: None, entries, notes }])
}
