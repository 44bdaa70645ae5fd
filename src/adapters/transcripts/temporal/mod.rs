//! Histories of Temporal workflows that run an agent, as JSON.
//!
//! | event | becomes |
//! |---|---|
//! | a model activity (`invoke_model_activity`, or one whose input holds a model's) scheduled | a request: its payload's `input` is the context, `system_instructions` the instructions |
//! | it completed | the reply: the payload's `output` items and `usage` |
//! | it failed or timed out | the model request failed, classed by the failure's type |
//! | another activity completed, failed or timed out | the result of the open call of that name |
//! | an update accepted, a signal, the workflow's input | user messages, unless the next requests hold them |
//! | cancel requested, canceled | the turn was cancelled |
//! | completed; failed, timed out, terminated | success; it failed |
//! | an activity scheduled and never started, or started and never ended | a note by its event's id |
//! | timers, markers, children and all else that is not the workflow's own bookkeeping | left out, with a note |
//!
//! Requests that run side by side under other instructions than the first are a conversation of their own
//! (a guardrail's, as a rule): with Temporal, nothing but the instructions tells whose a request is.
//! Event types are names (`EVENT_TYPE_..` or `ActivityTaskScheduled`) or numbers.

mod activity;
mod kind;
mod payload;
mod reader;

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::node::{Form, Node};
use super::outline::Outline;
use super::reading::ReadOptions;
use reader::Reader;

/// Events that have an id and a type.
pub(super) fn is(outline: &Outline<'_>) -> bool {
    let history = outline.field("history");
    let events = |of: &Outline<'_>| {
        let first = of.field("events").first();
        first.is_some_and(|first| first.get("eventId").is_some() && first.get("eventType").is_some())
    };
    events(outline) || events(&history)
}

/// Reads the workflow of a document.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let root = Node::root(document)?;
    let fields = root.fields()?;
    let inner = fields.of("history", Form::Object);
    let inner = inner.as_ref().map(|inner| inner.fields()).transpose()?;
    let events = fields.get("events").or_else(|| inner.as_ref().and_then(|inner| inner.get("events")));
    let events = events.ok_or(TranscriptError::Unrecognised)?;
    let items = events.items()?;
    options.admit(Format::Temporal, items.len())?;
    let mut reader = Reader::new();
    for (index, raw) in items.into_iter().enumerate() {
        reader.event(&events.index(index, raw), index + 1)?;
    }
    Ok(reader.finish())
}
