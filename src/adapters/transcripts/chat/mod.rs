//! Chat-completions message lists, with `tool_calls` or the older `function_call`, in four wrappings, or one a line.
//!
//! | in the file | becomes |
//! |---|---|
//! | `system`, `developer` before the rest | the instructions |
//! | `user` | a turn's task |
//! | `assistant` | a reply: `content` its text, `tool_calls` or `function_call` its calls |
//! | `tool`, `function` | the result of a call of the message before it: by id where ids are unique, else by position |
//! | a line that is no conversation, of a file of lines | skipped, with its place and the reason |
//! | a call of a terminal tool without a result, last in its turn | the answer |

mod chain;
mod content;
mod message;
mod shape;

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::lines::{Skips, lines};
use super::node::Node;
use super::note::Notes;
use super::reading::ReadOptions;

pub(super) use shape::is;
pub use shape::{Shape, recognise};

/// Reads the conversation of a document, or those of its lines, where each line is one.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let whole = match Node::root(document) {
        Ok(root) => return Ok(vec![conversation(&root, options)?]),
        Err(error) => error,
    };
    let (mut drafts, mut skips) = (Vec::new(), Skips::default());
    for line in lines(document) {
        options.admit(Format::ChatCompletions, line.number)?;
        match Node::root(line.text).and_then(|root| conversation(&root, options)) {
            Ok(draft) => drafts.push(draft),
            Err(TranscriptError::Unrecognised) => skips.foreign(line, "no list of messages"),
            Err(error) => skips.add(line, &error),
        }
    }
    skips.settle(drafts, Some(whole))
}

fn conversation(root: &Node<'_, '_>, options: &ReadOptions) -> Result<Draft, TranscriptError> {
    let found = shape::located(root).ok_or(TranscriptError::Unrecognised)?;
    let mut notes = Notes::new(Format::ChatCompletions);
    let entries = chain::chain(root, found, &mut notes)?;
    options.admit(Format::ChatCompletions, entries.len())?;
    Ok(Draft { id: None, model: None, entries, notes })
}
