//! One recorded message, decoded from its foreign form.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::TranscriptError;
use super::super::line::{Entry, Line, Recorded};
use super::super::node::{Form, Node};
use super::super::note::{NoteKind, Notes};
use super::super::transcript::{Call, Reply};
use super::content::content_text;

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    tool_call_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    valid: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: &'a RawValue,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Only ToolBench writes `valid`, and only user messages are ever withdrawn.
    fn is_withdrawn(&self) -> bool {
        self.role == "user" && self.valid.is_some_and(|valid| valid.get() == "false")
    }
}

/// Whether the message is a prompt that the recording loop withdrew after one model call.
pub(super) fn is_withdrawn(message: &Node<'_, '_>) -> Result<bool, TranscriptError> {
    message.object::<Message>().map(|fields| fields.is_withdrawn())
}

/// Decodes a message list, in order.
pub(super) fn entries(list: &Node<'_, '_>, notes: &mut Notes) -> Result<Vec<Entry>, TranscriptError> {
    let items = list.items()?;
    let read = |(at, raw)| Ok(Entry { at, line: line(&list.index(at, raw), at, notes)? });
    items.into_iter().enumerate().map(read).collect()
}

fn line(node: &Node<'_, '_>, at: usize, notes: &mut Notes) -> Result<Line, TranscriptError> {
    let message: Message = node.object()?;
    if message.is_withdrawn() {
        return Ok(Line::Withdrawn);
    }
    let text = match message.content {
        Some(raw) => content_text(&node.key("content", raw), at, notes)?,
        None => String::new(),
    };
    Ok(match message.role.as_str() {
        "system" | "developer" => Line::Instructions(text),
        "user" => Line::User(text),
        "assistant" => Line::Assistant(reply(node, &message, text, at, notes)?),
        "tool" | "function" => {
            Line::Result(Recorded { at, text, id: message.tool_call_id, name: message.name, is_error: None })
        }
        _ => Line::Unknown(message.role),
    })
}

fn reply<'a>(
    node: &Node<'a, '_>,
    message: &Message<'a>,
    text: String,
    at: usize,
    notes: &mut Notes,
) -> Result<Reply, TranscriptError> {
    let calls = calls(node, message, at, notes)?;
    if message.refusal.is_some_and(|refusal| refusal.get() != r#""""#) {
        notes.at(at, NoteKind::Refusal);
    }
    if calls.is_empty() && text.trim().is_empty() {
        notes.at(at, NoteKind::EmptyReply);
    }
    Ok(Reply { calls, ..Reply::new(text, at) })
}

fn calls<'a>(
    node: &Node<'a, '_>,
    message: &Message<'a>,
    at: usize,
    notes: &mut Notes,
) -> Result<Vec<Call>, TranscriptError> {
    let mut calls = Vec::new();
    if let Some(raw) = message.tool_calls {
        let list = node.key("tool_calls", raw);
        for (index, raw) in list.items()?.into_iter().enumerate() {
            let item = list.index(index, raw);
            let fields: ToolCall = item.object()?;
            calls.push(call(&item.key("function", fields.function), fields.id, (at, index), notes)?);
        }
    }
    if let Some(raw) = message.function_call {
        if calls.is_empty() {
            calls.push(call(&node.key("function_call", raw), None, (at, 0), notes)?);
        } else {
            notes.at(at, NoteKind::BothCallForms);
        }
    }
    Ok(calls)
}

fn call(
    function: &Node<'_, '_>,
    provider_id: Option<String>,
    (at, index): (usize, usize),
    notes: &mut Notes,
) -> Result<Call, TranscriptError> {
    let fields: Function = function.object()?;
    let arguments = match fields.arguments {
        Some(raw) if Form::of(raw) == Form::Text => function.key("arguments", raw).text()?,
        other => {
            notes.at(at, NoteKind::ArgumentsNotText { call: index });
            other.map_or_else(String::new, |raw| raw.get().to_owned())
        }
    };
    Ok(Call { name: fields.name, arguments, provider_id, result: None })
}
