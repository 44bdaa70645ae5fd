//! One message in any of the dialects in which agent runtimes write what was said.
//!
//! | written as | dialect | becomes |
//! |---|---|---|
//! | `{"role":..,"content":".."}`, `tool_calls`, `function_call`, `tool_call_id` | chat completions | instructions, user, reply, result |
//! | `{"role":..,"parts":[..]}`, parts `text`, `tool_call`, `tool_call_response` | GenAI conventions | the same |
//! | parts `tool_use`, `tool_result`, `thinking` | Anthropic | the same |
//! | parts `tool-call`, `tool-result` | Vercel | the same |
//! | items `message`, `function_call`, `function_call_output`, `reasoning` | OpenAI responses | the same; neighbouring items of the model are one reply |
//!
//! A part that is neither text, a call nor a result is left out with a note.

use super::error::TranscriptError;
use super::line::{Line, Recorded};
use super::node::{Fields, Form, Node};
use super::note::{NoteKind, Notes};
use super::transcript::{Call, Reply};
use crate::vocabulary::llm::{FinishReason, Usage};

/// Reads a list of messages, one message, or a text, which is then the user's. `at` is their place.
pub(super) fn messages(said: &Node<'_, '_>, at: usize, notes: &mut Notes) -> Result<Vec<Line>, TranscriptError> {
    let mut lines = Vec::new();
    match said.form() {
        Form::Text => lines.push(Line::User(said.text()?)),
        Form::Object => message(said, at, notes, &mut lines)?,
        Form::List => {
            for (index, raw) in said.items()?.into_iter().enumerate() {
                let item = said.index(index, raw);
                match item.form() {
                    // Some exporters keep each message as a string of JSON.
                    Form::Text => {
                        nested(&item.text()?, "a message", at, notes, |node, notes| {
                            message(node, at, notes, &mut lines)
                        });
                    }
                    Form::Object | Form::List | Form::Scalar => message(&item, at, notes, &mut lines)?,
                }
            }
        }
        Form::Scalar => notes.at(at, NoteKind::LeftOut { what: "a message that is no object".to_owned() }),
    }
    Ok(lines)
}

/// Reads JSON that stands in a string. What cannot be read is noted, since it is no fault of the document.
pub(super) fn nested<T>(
    text: &str,
    what: &'static str,
    at: usize,
    notes: &mut Notes,
    read: impl FnOnce(&Node<'_, '_>, &mut Notes) -> Result<T, TranscriptError>,
) -> Option<T> {
    let found = Node::root(text).and_then(|node| read(&node, notes));
    found.map_err(|error| notes.at(at, NoteKind::NotJson { what, reason: short(&error) })).ok()
}

fn short(error: &TranscriptError) -> String {
    match error {
        TranscriptError::Malformed { reason, .. } => reason.clone(),
        TranscriptError::Unreadable { path, reason, .. } => format!("{path}: {reason}"),
        TranscriptError::TooLarge { .. }
        | TranscriptError::TooMany { .. }
        | TranscriptError::NotUtf8 { .. }
        | TranscriptError::Unrecognised
        | TranscriptError::NoTurn { .. } => error.to_string(),
    }
}

/// Reads one message.
pub(super) fn message(
    node: &Node<'_, '_>,
    at: usize,
    notes: &mut Notes,
    lines: &mut Vec<Line>,
) -> Result<(), TranscriptError> {
    let fields = node.fields()?;
    let kind = fields.text("type")?;
    match kind.as_deref() {
        Some("function_call") => {
            push_reply(Reply { calls: vec![call(&fields, at, 0, notes)?], ..Reply::new("", at) }, true, lines);
            return Ok(());
        }
        Some("function_call_output") => {
            lines.push(Line::Result(result(&fields, at, notes)?));
            return Ok(());
        }
        Some("reasoning") => {
            notes.at(at, NoteKind::Reasoning);
            return Ok(());
        }
        Some(_) | None => {}
    }
    let Some(role) = fields.text("role")? else {
        notes.at(at, NoteKind::LeftOut { what: format!("a message of type {:?}", kind.unwrap_or_default()) });
        return Ok(());
    };
    let mut said = Said::default();
    if let Some(content) = fields.any(&["parts", "content"]) {
        said.content(&content, at, notes)?;
    }
    let text = said.texts.join("\n");
    match role.to_ascii_lowercase().as_str() {
        "system" | "developer" => lines.push(Line::Instructions(text)),
        "user" | "human" => {
            let only_results = said.texts.is_empty() && !said.results.is_empty();
            lines.extend(said.results.into_iter().map(Line::Result));
            if !only_results {
                lines.push(Line::User(text));
            }
        }
        "assistant" | "ai" | "model" => {
            said.listed(&fields, at, notes)?;
            let finish = fields.text("finish_reason")?.as_deref().and_then(finish);
            let reply = Reply { calls: said.calls, finish, ..Reply::new(text, at) };
            push_reply(reply, kind.is_some(), lines);
            lines.extend(said.results.into_iter().map(Line::Result));
        }
        "tool" | "function" if said.results.is_empty() => {
            let id = fields.any(&["tool_call_id", "id"]).filter(|id| id.form() == Form::Text);
            let id = id.map(|id| id.text()).transpose()?;
            lines.push(Line::Result(Recorded { at, text, id, name: fields.text("name")?, is_error: None }));
        }
        "tool" | "function" => lines.extend(said.results.into_iter().map(Line::Result)),
        _ => lines.push(Line::Unknown(role)),
    }
    Ok(())
}

/// Items of the model that stand side by side are one reply.
fn push_reply(reply: Reply, is_item: bool, lines: &mut Vec<Line>) {
    match lines.last_mut() {
        Some(Line::Assistant(before)) if is_item => join(before, reply),
        Some(_) | None => lines.push(Line::Assistant(reply)),
    }
}

/// Adds what the model said in the same reply.
pub(super) fn join(reply: &mut Reply, more: Reply) {
    reply.calls.extend(more.calls);
    reply.finish = more.finish.or(reply.finish);
    match (&mut reply.text, more.text) {
        (Some(text), Some(more)) => {
            text.push('\n');
            text.push_str(&more);
        }
        (text @ None, more) => *text = more,
        (Some(_), None) => {}
    }
}

/// What the parts of one message hold.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) texts: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) results: Vec<Recorded>,
}

impl Said {
    /// Reads a message's content: a text, a list of parts, or an object, whose JSON text is taken.
    pub(super) fn content(
        &mut self,
        content: &Node<'_, '_>,
        at: usize,
        notes: &mut Notes,
    ) -> Result<(), TranscriptError> {
        match content.form() {
            Form::Text => self.texts.push(content.text()?),
            Form::List => {
                for (index, raw) in content.items()?.into_iter().enumerate() {
                    self.part(&content.index(index, raw), (at, index), notes)?;
                }
            }
            Form::Object | Form::Scalar => {
                notes.at(at, NoteKind::ContentNotText);
                self.texts.push(content.raw().to_owned());
            }
        }
        Ok(())
    }

    fn part(
        &mut self,
        part: &Node<'_, '_>,
        (at, index): (usize, usize),
        notes: &mut Notes,
    ) -> Result<(), TranscriptError> {
        if part.form() == Form::Text {
            self.texts.push(part.text()?);
            return Ok(());
        }
        if part.form() != Form::Object {
            notes.at(at, NoteKind::PartNotText { part: index });
            return Ok(());
        }
        let fields = part.fields()?;
        match fields.text("type")?.as_deref() {
            Some("tool_call" | "tool_use" | "tool-call" | "function_call" | "server_tool_use") => {
                let index = self.calls.len();
                self.calls.push(call(&fields, at, index, notes)?);
            }
            Some(
                "tool_call_response"
                | "tool_result"
                | "tool-result"
                | "function_call_output"
                | "web_search_tool_result",
            ) => {
                self.results.push(result(&fields, at, notes)?);
            }
            Some("reasoning" | "thinking" | "redacted_thinking") => notes.at(at, NoteKind::Reasoning),
            Some(_) | None => match fields.any(&["text", "content"]).filter(|text| text.form() == Form::Text) {
                Some(text) => self.texts.push(text.text()?),
                None => notes.at(at, NoteKind::PartNotText { part: index }),
            },
        }
        Ok(())
    }

    /// Reads the calls that stand beside the content.
    fn listed(&mut self, fields: &Fields<'_, '_>, at: usize, notes: &mut Notes) -> Result<(), TranscriptError> {
        if let Some(list) = fields.of("tool_calls", Form::List) {
            for (index, raw) in list.items()?.into_iter().enumerate() {
                let item = list.index(index, raw);
                let (outer, index) = (item.fields()?, self.calls.len());
                let Some(function) = outer.get("function") else {
                    self.calls.push(call(&outer, at, index, notes)?);
                    continue;
                };
                let inner = call(&function.fields()?, at, index, notes)?;
                self.calls.push(Call { provider_id: outer.loose(&["id", "tool_call_id"])?, ..inner });
            }
        }
        if let Some(function) = fields.of("function_call", Form::Object) {
            if self.calls.is_empty() {
                self.calls.push(call(&function.fields()?, at, 0, notes)?);
            } else {
                notes.at(at, NoteKind::BothCallForms);
            }
        }
        Ok(())
    }
}

/// Reads one call, whatever its fields are called.
pub(super) fn call(
    fields: &Fields<'_, '_>,
    at: usize,
    index: usize,
    notes: &mut Notes,
) -> Result<Call, TranscriptError> {
    let name = fields.loose(&["name", "toolName", "tool_name", "function_name"])?.unwrap_or_default();
    let arguments = fields.loose(&["arguments", "args", "input"])?;
    if arguments.is_none() {
        notes.at(at, NoteKind::ArgumentsNotText { call: index });
    }
    let provider_id = fields.loose(&["call_id", "toolCallId", "tool_call_id", "id"])?;
    Ok(Call { name, arguments: arguments.unwrap_or_default(), provider_id, result: None })
}

/// Reads one result, whatever its fields are called.
fn result(fields: &Fields<'_, '_>, at: usize, notes: &mut Notes) -> Result<Recorded, TranscriptError> {
    let mut is_error = fields.any(&["is_error", "isError"]).and_then(|flag| flag.truth());
    let text = match fields.any(&["response", "result", "output", "content"]) {
        Some(node) if node.form() == Form::Object => {
            let inner = node.fields()?;
            match (inner.text("type").unwrap_or_default(), inner.get("value")) {
                (Some(kind), Some(value)) => {
                    is_error = is_error.or(kind.starts_with("error").then_some(true));
                    value.loose_text()?
                }
                _ => node.raw().to_owned(),
            }
        }
        Some(node) => output_text(&node, at, notes)?,
        None => String::new(),
    };
    let id = fields.loose(&["call_id", "tool_use_id", "toolCallId", "tool_call_id", "id"])?;
    Ok(Recorded { at, text, id, name: fields.loose(&["name", "toolName", "tool_name"])?, is_error })
}

/// What a tool gave back: a text, the texts of a list of parts, or the JSON text of anything else.
pub(super) fn output_text(node: &Node<'_, '_>, at: usize, notes: &mut Notes) -> Result<String, TranscriptError> {
    if node.form() != Form::List {
        return node.loose_text();
    }
    let mut texts = Vec::new();
    let mut others = Vec::new();
    for (index, raw) in node.items()?.into_iter().enumerate() {
        let part = node.index(index, raw);
        let text = match part.form() {
            Form::Object => part.fields()?.of("text", Form::Text).map(|text| text.text()).transpose()?,
            Form::Text | Form::List | Form::Scalar => None,
        };
        match text {
            Some(text) => texts.push(text),
            None => others.push(index),
        }
    }
    if texts.is_empty() {
        return Ok(node.raw().to_owned());
    }
    for part in others {
        notes.at(at, NoteKind::PartNotText { part });
    }
    Ok(texts.join("\n"))
}

/// What a recorded word says of why the model stopped. `None` for a word that says nothing known.
pub(super) fn finish(word: &str) -> Option<FinishReason> {
    match word.to_ascii_lowercase().replace('-', "_").as_str() {
        "stop" | "end_turn" | "stop_sequence" | "completed" | "complete" => Some(FinishReason::Stop),
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Some(FinishReason::ToolCalls),
        "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
        "content_filter" | "refusal" | "safety" => Some(FinishReason::ContentFilter),
        _ => None,
    }
}

/// What a reply used, whatever the fields are called.
pub(super) fn usage(fields: &Fields<'_, '_>) -> Usage {
    Usage {
        input_tokens: fields.number(&["input_tokens", "prompt_tokens", "inputTokens", "promptTokens"]),
        output_tokens: fields.number(&["output_tokens", "completion_tokens", "outputTokens", "completionTokens"]),
    }
}
