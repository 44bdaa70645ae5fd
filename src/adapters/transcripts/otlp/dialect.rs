//! What a span says, in whichever dialect it was written.

use super::super::error::TranscriptError;
use super::super::failure::classed;
use super::super::line::{Line, Recorded};
use super::super::node::{Form, Node};
use super::super::note::{NoteKind, Notes};
use super::super::speech::{Said, call, finish, messages, nested};
use super::super::transcript::Reply;
use super::attributes::Attributes;
use super::flat;
use super::span::{Event, Span};
use crate::vocabulary::llm::{self, FinishReason, Usage};

/// The model that answered, else the one that was asked.
pub(super) fn model(span: &Span<'_>) -> Option<String> {
    let keys = ["gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.response.model", "ai.model.id"];
    span.attributes.text(&keys)
}

/// The instructions that stand beside the messages.
pub(super) fn instructions(span: &Span<'_>, notes: &mut Notes) -> Option<String> {
    let text = span.attributes.text(&["gen_ai.system_instructions"])?;
    let mut said = Said::default();
    let read = nested(&text, "gen_ai.system_instructions", span.at, &mut Notes::of(notes), |node, notes| {
        said.content(node, span.at, notes)
    });
    Some(if read.is_some() { said.texts.join("\n") } else { text })
}

/// One of the ways in which a span holds messages. Empty where it does not.
type Dialect = fn(&Span<'_>, &mut Notes) -> Vec<Line>;

/// Where a request's messages are looked for, in this order.
const INPUTS: [Dialect; 6] = [
    |span, _| flat::messages(&span.attributes, "llm.input_messages.", span.at),
    |span, notes| json(span, &["gen_ai.input.messages"], "the input messages", notes),
    |span, _| flat::messages(&span.attributes, "gen_ai.prompt.", span.at),
    |span, notes| json(span, &["ai.prompt.messages"], "the prompt", notes),
    |span, notes| told(span, false, notes),
    |span, notes| json(span, &["input.value"], "the input", notes),
];

/// Where the reply is looked for, in this order.
const OUTPUTS: [Dialect; 6] = [
    |span, _| flat::messages(&span.attributes, "llm.output_messages.", span.at),
    |span, notes| json(span, &["gen_ai.output.messages"], "the output messages", notes),
    |span, _| flat::messages(&span.attributes, "gen_ai.completion.", span.at),
    vercel,
    |span, notes| told(span, true, notes),
    |span, notes| json(span, &["output.value"], "the output", notes),
];

fn first(dialects: &[Dialect], span: &Span<'_>, notes: &mut Notes) -> Vec<Line> {
    dialects.iter().map(|read| read(span, notes)).find(|lines| !lines.is_empty()).unwrap_or_default()
}

/// The context of a request. Empty when the span does not hold it.
pub(super) fn context(span: &Span<'_>, notes: &mut Notes) -> Vec<Line> {
    first(&INPUTS, span, notes)
}

/// What an agent's span says of its conversation.
pub(super) fn agent_context(span: &Span<'_>, notes: &mut Notes) -> Vec<Line> {
    let keys = ["pydantic_ai.all_messages", "gen_ai.input.messages", "all_messages_events"];
    let mut lines = json(span, &keys, "the agent's messages", notes);
    // Only what was asked: what it answered is told by its requests.
    let asked = lines.iter().rposition(|line| matches!(line, Line::User(_))).map_or(0, |index| index + 1);
    lines.truncate(asked);
    lines
}

/// The lines of a reply. Empty when the span does not hold any.
pub(super) fn answer(span: &Span<'_>, notes: &mut Notes) -> Vec<Line> {
    let mut lines = first(&OUTPUTS, span, notes);
    let attributes = &span.attributes;
    let (finish, usage) = (finished(attributes), used(attributes));
    for line in &mut lines {
        if let Line::Assistant(reply) = line {
            reply.finish = finish.or(reply.finish);
            reply.usage = usage;
        }
    }
    lines
}

/// Messages that stand as JSON in an attribute. Of a whole response, its `output` or `choices` are meant.
fn json(span: &Span<'_>, keys: &[&str], what: &'static str, notes: &mut Notes) -> Vec<Line> {
    json_in(&span.attributes, keys, what, span.at, notes)
}

fn json_in(attributes: &Attributes<'_>, keys: &[&str], what: &'static str, at: usize, notes: &mut Notes) -> Vec<Line> {
    let Some(text) = attributes.text(keys) else { return Vec::new() };
    let read = nested(&text, what, at, notes, |node, notes| {
        if node.form() == Form::Object {
            let fields = node.fields()?;
            if let Some(inner) = fields.any(&["output", "messages", "input"]).filter(|inner| inner.form() == Form::List)
            {
                return messages(&inner, at, notes);
            }
            if let Some(choices) = fields.of("choices", Form::List) {
                return choice_messages(&choices, at, notes);
            }
        }
        messages(node, at, notes)
    });
    read.unwrap_or_default()
}

fn choice_messages(choices: &Node<'_, '_>, at: usize, notes: &mut Notes) -> Result<Vec<Line>, TranscriptError> {
    let mut lines = Vec::new();
    for (index, raw) in choices.items()?.into_iter().enumerate() {
        let choice = choices.index(index, raw);
        if let Some(message) = choice.fields()?.get("message") {
            lines.extend(messages(&message, at, notes)?);
        }
    }
    Ok(lines)
}

/// `ai.response.text` and `ai.response.toolCalls`.
fn vercel(span: &Span<'_>, notes: &mut Notes) -> Vec<Line> {
    let (attributes, at) = (&span.attributes, span.at);
    let text = attributes.text(&["ai.response.text"]);
    let listed = attributes.text(&["ai.response.toolCalls"]);
    if text.is_none() && listed.is_none() {
        return Vec::new();
    }
    let mut calls = Vec::new();
    if let Some(listed) = listed {
        nested(&listed, "ai.response.toolCalls", at, notes, |node, notes| {
            for (index, raw) in node.items()?.into_iter().enumerate() {
                let item = node.index(index, raw);
                calls.push(call(&item.fields()?, at, index, notes)?);
            }
            Ok(())
        });
    }
    vec![Line::Assistant(Reply { calls, ..Reply::new(text.unwrap_or_default(), at) })]
}

/// Messages that were told as events: of the span, or in its attribute `events`. Choices are the output.
fn told(span: &Span<'_>, choices: bool, notes: &mut Notes) -> Vec<Line> {
    let mut lines = Vec::new();
    for event in &span.events {
        lines.extend(event_lines(event, span.at, choices, notes));
    }
    if !lines.is_empty() {
        return lines;
    }
    let Some(listed) = span.attributes.text(&["events"]) else { return lines };
    nested(&listed, "events", span.at, notes, |node, notes| {
        for (index, raw) in node.items()?.into_iter().enumerate() {
            let item = node.index(index, raw);
            let fields = item.fields()?;
            let name = fields.text("event.name")?.unwrap_or_default();
            if (name == "gen_ai.choice") != choices {
                continue;
            }
            match fields.of("message", Form::Object) {
                Some(message) => lines.extend(messages(&message, span.at, notes)?),
                None => lines.extend(messages(&item, span.at, notes)?),
            }
        }
        Ok(())
    });
    lines
}

fn event_lines(event: &Event<'_>, at: usize, choices: bool, notes: &mut Notes) -> Vec<Line> {
    let attributes = &event.attributes;
    let inner = if choices { "gen_ai.output.messages" } else { "gen_ai.input.messages" };
    if attributes.has(inner) {
        return json_in(attributes, &[inner], "an event's messages", at, notes);
    }
    let role = match (event.name.as_str(), choices) {
        ("gen_ai.system.message", false) => "system",
        ("gen_ai.user.message", false) => "user",
        ("gen_ai.assistant.message", false) => "assistant",
        ("gen_ai.tool.message", false) => "tool",
        ("gen_ai.choice", true) => "assistant",
        _ => return Vec::new(),
    };
    if let Some(text) = attributes.text(&["message"]) {
        let read = nested(&text, "an event's message", at, &mut Notes::of(notes), |node, notes| {
            if node.form() == Form::Object { messages(node, at, notes) } else { Ok(Vec::new()) }
        });
        if let Some(lines) = read.filter(|lines| !lines.is_empty()) {
            return lines;
        }
    }
    let text = attributes.text(&["content", "message", "gen_ai.event.content"]).unwrap_or_default();
    let mut calls = Vec::new();
    if let Some(listed) = attributes.text(&["tool_calls"]) {
        let message = format!("{{\"role\":\"assistant\",\"tool_calls\":{listed}}}");
        let read = nested(&message, "an event's calls", at, notes, |node, notes| messages(node, at, notes));
        for line in read.into_iter().flatten() {
            if let Line::Assistant(reply) = line {
                calls.extend(reply.calls);
            }
        }
    }
    let id = attributes.text(&["id", "tool_call_id"]);
    vec![match role {
        "system" => Line::Instructions(text),
        "user" => Line::User(text),
        "tool" => Line::Result(Recorded { at, text, id, name: attributes.text(&["name"]), is_error: None }),
        _ => Line::Assistant(Reply { calls, ..Reply::new(text, at) }),
    }]
}

fn finished(attributes: &Attributes<'_>) -> Option<FinishReason> {
    let keys = ["gen_ai.response.finish_reasons", "ai.response.finishReason", "gen_ai.completion.0.finish_reason"];
    let said = attributes.text(&keys)?;
    let words: Vec<String> = serde_json::from_str(&said).unwrap_or_else(|_| vec![said]);
    words.first().and_then(|word| finish(word))
}

fn used(attributes: &Attributes<'_>) -> Usage {
    Usage {
        input_tokens: attributes.number(&[
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
        ]),
        output_tokens: attributes.number(&[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
        ]),
    }
}

/// The type of a span's error, where it names one.
fn error_type(span: &Span<'_>) -> Option<String> {
    let thrown = || span.events.iter().find_map(|event| event.attributes.text(&["exception.type"]));
    span.attributes.text(&["error.type", "exception.type"]).or_else(thrown)
}

/// Whether a span's error is that somebody cancelled it.
pub(super) fn was_cancelled(span: &Span<'_>) -> bool {
    let kind = error_type(span).unwrap_or_default().to_ascii_lowercase();
    matches!(kind.rsplit(['.', ':', '/']).next(), Some("cancelled" | "canceled" | "cancellederror" | "aborterror"))
}

/// The class of a request that failed.
pub(super) fn failure(span: &Span<'_>, said: &str, notes: &mut Notes) -> llm::Error {
    let attributes = &span.attributes;
    let status = attributes.number(&["http.response.status_code", "http.status_code", "gen_ai.response.status_code"]);
    let kind = error_type(span);
    let (error, known) = classed(status, kind.as_deref(), said.to_owned());
    if !known {
        notes.at(span.at, NoteKind::FailureUnclassed);
    }
    error
}

/// What a tool gave back.
pub(super) fn result(span: &Span<'_>) -> Recorded {
    let attributes = &span.attributes;
    let text = attributes.text(&[
        "gen_ai.tool.call.result",
        "tool_response",
        "ai.toolCall.result",
        "output.value",
        "traceloop.entity.output",
    ]);
    let thrown = || span.events.iter().find_map(|event| event.attributes.text(&["exception.message"]));
    let failed = span.error.as_ref().map(|said| Some(said.clone()).filter(|said| !said.is_empty()));
    let text = text.or_else(|| failed.flatten().or_else(thrown)).unwrap_or_default();
    Recorded {
        at: span.at,
        text,
        id: attributes.text(&["gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id"]),
        name: attributes.text(&["gen_ai.tool.name", "ai.toolCall.name", "tool.name", "traceloop.entity.name"]),
        is_error: span.error.is_some().then_some(true),
    }
}
