//! The text of a message's content.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::TranscriptError;
use super::super::node::{Form, Node};
use super::super::note::{NoteKind, Notes};

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Reads a content that is not null; `at` is the message's index.
///
/// A string is itself. Of a list of parts the texts are joined by a line break. Anything else, such
/// as a tool's result that was recorded as an object, is taken as its JSON text.
pub(super) fn content_text(content: &Node<'_, '_>, at: usize, notes: &mut Notes) -> Result<String, TranscriptError> {
    match content.form() {
        Form::Text => content.text(),
        Form::List => parts_text(content, at, notes),
        Form::Object | Form::Scalar => {
            notes.at(at, NoteKind::ContentNotText);
            Ok(content.raw().to_owned())
        }
    }
}

fn parts_text(list: &Node<'_, '_>, at: usize, notes: &mut Notes) -> Result<String, TranscriptError> {
    let mut texts = Vec::new();
    for (index, raw) in list.items()?.into_iter().enumerate() {
        match part_text(&list.index(index, raw))? {
            Some(text) => texts.push(text),
            None => notes.at(at, NoteKind::PartNotText { part: index }),
        }
    }
    Ok(texts.join("\n"))
}

fn part_text(part: &Node<'_, '_>) -> Result<Option<String>, TranscriptError> {
    match part.form() {
        Form::Text => part.text().map(Some),
        Form::Object => match part.object::<Part>()?.text {
            Some(raw) if Form::of(raw) == Form::Text => part.key("text", raw).text().map(Some),
            Some(_) | None => Ok(None),
        },
        Form::List | Form::Scalar => Ok(None),
    }
}
