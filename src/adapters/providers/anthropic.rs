//! Anthropic's messages.
//!
//! Thinking blocks carry signatures and are wanted back where they stood, so an answer's order of blocks is
//! kept with them: `"text"` and `"call"` stand for what our own content holds.
//!
//! A prompt that is too long is an `invalid_request_error` there like any other, and only its text says more:
//! it stays `invalid_request` (SPEC 6: never by text).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{object, schema, text_part, with_parameters};
use super::dialect::{Dialect, Framing, Gathering, Reply};
use super::failure;
use super::key::Key;
use super::names;
use super::prompt::{Prompt, Spoken, Turn};
use super::reading::{self, Few, Kept, own_text, parse, provider, strict, unknown_finish};
use crate::machines::toolbox::Tool;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};

/// The dialect.
pub(super) struct Anthropic;

/// What a spec's parameters never say.
const OWNED: &[&str] = &[
    "model",
    "system",
    "messages",
    "stream",
    "tools",
    "tool_choice",
    "mcp_servers",
    "output_config.format",
    "output_format",
];

/// It has to be said, and a spec need not.
const MAX_TOKENS: u32 = 4_096;

impl Dialect for Anthropic {
    fn body(&self, prompt: &Prompt<'_>) -> Result<Json, llm::Error> {
        let mut body = BTreeMap::from([
            ("model".to_owned(), prompt.model.name.as_str().into()),
            ("system".to_owned(), prompt.system.as_str().into()),
            ("messages".to_owned(), Json::Array(messages(&prompt.turns))),
            ("stream".to_owned(), prompt.model.streaming.into()),
        ]);
        if let Some(schema) = &prompt.schema {
            let format = object([("type", "json_schema".into()), ("schema", schema.clone())]);
            body.insert("output_config".to_owned(), object([("format", format)]));
        }
        if prompt.tools.is_empty() {
            withdraw(&mut body, prompt);
        } else {
            let declared = |tool: &Arc<Tool>| {
                object([
                    ("name", names::given(&tool.name).into()),
                    ("description", tool.spec.description.as_str().into()),
                    ("input_schema", schema(&tool.advertised)),
                ])
            };
            body.insert("tools".to_owned(), Json::Array(prompt.tools.iter().map(declared).collect()));
        }
        let parameters = &prompt.model.parameters;
        if parameters.as_object().is_none_or(|parameters| !parameters.contains_key("max_tokens")) {
            body.insert("max_tokens".to_owned(), MAX_TOKENS.into());
        }
        with_parameters(Json::Object(body), parameters, OWNED)
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, llm::Error> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-api-key"), key.header("")?);
        }
        Ok(headers)
    }

    fn read(&self, body: &[u8]) -> Result<Reply, llm::Error> {
        let answer: Message<'_> = parse(body)?;
        if let Some(error) = answer.error {
            return Err(failure::of_error(error));
        }
        let mut read = Blocks::default();
        for raw in answer.content.ok_or_else(|| provider("the answer has no content"))?.0 {
            read.whole(raw)?;
        }
        let finish = finish(answer.stop_reason.as_deref())?;
        Ok(read.reply(finish, answer.usage.map(used).unwrap_or_default()))
    }

    fn used(&self, body: &[u8]) -> Option<Usage> {
        reading::stated::<Stated<'_>>(body)?.usage.map(used)
    }

    fn stream(&self) -> (Framing, Box<dyn Gathering>) {
        (Framing::Events, Box::<Stream>::default())
    }
}

/// A conversation with calls needs tools, also when none may be called any more.
fn withdraw(body: &mut BTreeMap<String, Json>, prompt: &Prompt<'_>) {
    let any = || object([("type", "object".into())]);
    let named: BTreeMap<&str, Json> =
        prompt.called().map(|name| (name, object([("name", name.into()), ("input_schema", any())]))).collect();
    if !named.is_empty() {
        body.insert("tools".to_owned(), Json::Array(named.into_values().collect()));
        body.insert("tool_choice".to_owned(), object([("type", "none".into())]));
    }
}

/// Turns by role: neighbours of one role are one message.
fn messages(turns: &[Turn]) -> Vec<Json> {
    let mut messages: Vec<(&str, Vec<Json>)> = Vec::new();
    for turn in turns {
        let (role, blocks) = match turn {
            Turn::User(text) => ("user", vec![text_part(text)]),
            Turn::Observed(observed) => {
                let result = object([
                    ("type", "tool_result".into()),
                    ("tool_use_id", observed.id.as_str().into()),
                    ("content", observed.text.as_str().into()),
                ]);
                ("user", vec![result])
            }
            Turn::Assistant(spoken) => ("assistant", spoken_blocks(spoken)),
        };
        match messages.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    let message = |(role, blocks): (&str, Vec<Json>)| object([("role", role.into()), ("content", blocks.into())]);
    messages.into_iter().map(message).collect()
}

/// The blocks in the order that was kept; without one, text before calls.
fn spoken_blocks(spoken: &Spoken) -> Vec<Json> {
    let mut text = spoken.text.as_deref().map(text_part);
    let mut calls = spoken.calls.iter().map(|call| {
        object([
            ("type", "tool_use".into()),
            ("id", call.id.as_str().into()),
            ("name", call.name.as_str().into()),
            ("input", call.arguments.clone()),
        ])
    });
    let mut blocks = Vec::new();
    for kept in spoken.kept.as_ref().and_then(Json::as_array).unwrap_or_default() {
        match kept.as_str() {
            Some("text") => blocks.extend(text.take()),
            Some(_) => blocks.extend(calls.next()),
            None => blocks.push(kept.clone()),
        }
    }
    blocks.extend(text.take());
    blocks.extend(calls);
    blocks
}

/// What was used, of an answer of which the rest may be anything.
#[derive(Deserialize)]
struct Stated<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Few<&'a RawValue>>,
    stop_reason: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize, Default, Clone, Copy)]
struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Tokens {
    /// Later numbers go before earlier ones: they are running totals.
    fn updated(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_creation_input_tokens: later.cache_creation_input_tokens.or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
        }
    }

    fn usage(self) -> Usage {
        let cached = [self.cache_creation_input_tokens, self.cache_read_input_tokens];
        let cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
        let input_tokens = self.input_tokens.map(|input| input.saturating_add(cached));
        Usage { input_tokens, output_tokens: self.output_tokens }
    }
}

fn used(raw: &RawValue) -> Usage {
    reading::object::<Tokens>(raw).unwrap_or_default().usage()
}

fn finish(reason: Option<&str>) -> Result<FinishReason, llm::Error> {
    match reason {
        Some("end_turn" | "stop_sequence") => Ok(FinishReason::Stop),
        Some("tool_use") => Ok(FinishReason::ToolCalls),
        Some("max_tokens" | "model_context_window_exceeded") => Ok(FinishReason::Length),
        Some("refusal") => Ok(FinishReason::ContentFilter),
        other => Err(unknown_finish(other)),
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// The blocks of an answer, as far as they were read.
#[derive(Default)]
struct Blocks {
    text: String,
    calls: Vec<ToolRequest>,
    order: Vec<Json>,
    /// Something stands there that is not ours.
    foreign: bool,
}

impl Blocks {
    fn whole(&mut self, raw: &RawValue) -> Result<(), llm::Error> {
        let block: Block<'_> = parse(raw.get().as_bytes())?;
        match block.kind.as_str() {
            "text" => self.text(block.text.as_deref().unwrap_or_default()),
            "tool_use" => self.call(block.id, block.name, own_text(block.input))?,
            _ => self.foreign(strict(raw)?),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(text);
        self.order.push("text".into());
    }

    fn call(&mut self, id: Option<String>, name: Option<String>, arguments: String) -> Result<(), llm::Error> {
        let name = name.ok_or_else(|| provider("a tool call has no name"))?;
        self.calls.push(ToolRequest { name, arguments, provider_id: id });
        self.order.push("call".into());
        Ok(())
    }

    fn foreign(&mut self, block: Json) {
        self.order.push(block);
        self.foreign = true;
    }

    /// Also where arguments come piece by piece, they are the text of an object that the provider may have closed.
    fn reply(self, finish: FinishReason, usage: Usage) -> Reply {
        let is_call = self.order.last().and_then(Json::as_str) == Some("call");
        let last_object = self.calls.len().checked_sub(1).filter(|_| is_call);
        let opaque = self.foreign.then_some(Json::Array(self.order));
        Reply { content: Content { text: Some(self.text), calls: self.calls, opaque }, finish, usage, last_object }
    }
}

/// An answer that comes event by event.
#[derive(Default)]
struct Stream {
    blocks: BTreeMap<u32, Begun>,
    tokens: Option<Tokens>,
    stop_reason: Option<String>,
    kept: Kept,
    ended: bool,
}

/// A block as far as it came.
enum Begun {
    Text(String),
    Call {
        id: Option<String>,
        name: Option<String>,
        arguments: String,
    },
    /// Its arguments came with its start, so that no piece of them follows.
    Given {
        id: Option<String>,
        name: Option<String>,
        arguments: String,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    /// It comes whole.
    Redacted(Json),
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    delta: Option<Delta>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

impl Gathering for Stream {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, llm::Error> {
        let event: Event<'_> = parse(piece)?;
        if let Some(usage) = event.message.as_ref().and_then(|message| message.usage).or(event.usage) {
            let later = reading::object(usage).unwrap_or_default();
            self.tokens = Some(self.tokens.unwrap_or_default().updated(later));
        }
        match event.kind.as_str() {
            "error" => {
                return Err(event.error.map_or_else(|| provider("an error in the answer"), failure::of_error));
            }
            "message_stop" => {
                self.ended = true;
                return Ok(ControlFlow::Break(()));
            }
            "content_block_start" => self.begin(event.index, event.content_block)?,
            "content_block_delta" => self.go_on(event.index, event.delta)?,
            "message_delta" => self.stop_reason = event.delta.and_then(|delta| delta.stop_reason),
            // `message_start`, `content_block_stop`, `ping`, and what may come yet.
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn used(&self) -> Option<Usage> {
        self.tokens.map(Tokens::usage)
    }

    fn end(self: Box<Self>) -> Result<Reply, llm::Error> {
        if !self.ended {
            return Err(reading::cut_off());
        }
        let usage = self.used().unwrap_or_default();
        let finish = finish(self.stop_reason.as_deref())?;
        let mut read = Blocks::default();
        for block in self.blocks.into_values() {
            block.end(&mut read)?;
        }
        Ok(read.reply(finish, usage))
    }
}

impl Stream {
    fn begin(&mut self, index: u32, raw: Option<&RawValue>) -> Result<(), llm::Error> {
        let raw = raw.ok_or_else(|| provider("a block of the stream is empty"))?;
        let block: Block<'_> = parse(raw.get().as_bytes())?;
        let begun = match block.kind.as_str() {
            "text" => Begun::Text(block.text.unwrap_or_default()),
            "tool_use" => Begun::call(block),
            "thinking" => Begun::Thinking { thinking: String::new(), signature: String::new() },
            "redacted_thinking" => Begun::Redacted(strict(raw)?),
            _ => return Err(provider("the stream has a block of an unknown kind")),
        };
        Kept::item(self.blocks.len())?;
        self.kept.count(raw.get().len())?;
        match self.blocks.entry(index) {
            Entry::Vacant(free) => {
                free.insert(begun);
                Ok(())
            }
            Entry::Occupied(_) => Err(provider("a block of the stream begins twice")),
        }
    }

    fn go_on(&mut self, index: u32, delta: Option<Delta>) -> Result<(), llm::Error> {
        let block = self.blocks.get_mut(&index).ok_or_else(|| provider("a piece of no block"))?;
        let Some(delta) = delta else { return Ok(()) };
        let more = |more: Option<String>| more.unwrap_or_default();
        match block {
            Begun::Text(text) => self.kept.push(text, &more(delta.text)),
            Begun::Call { arguments, .. } => self.kept.push(arguments, &more(delta.partial_json)),
            Begun::Given { .. } if delta.partial_json.is_some_and(|more| !more.is_empty()) => {
                Err(provider("the arguments of a call come twice"))
            }
            Begun::Given { .. } => Ok(()),
            Begun::Thinking { thinking, signature } => {
                self.kept.push(thinking, &more(delta.thinking))?;
                self.kept.push(signature, &more(delta.signature))
            }
            Begun::Redacted(_) => Ok(()),
        }
    }
}

impl Begun {
    /// An empty object stands where the arguments are going to come.
    fn call(block: Block<'_>) -> Self {
        let Block { id, name, input, .. } = block;
        let is_empty = |input: &RawValue| input.get().bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}");
        match input.filter(|input| !is_empty(input)) {
            Some(input) => Self::Given { id, name, arguments: input.get().to_owned() },
            None => Self::Call { id, name, arguments: String::new() },
        }
    }

    fn end(self, read: &mut Blocks) -> Result<(), llm::Error> {
        match self {
            Self::Text(text) => read.text(&text),
            // A call without arguments has no piece of any.
            Self::Call { id, name, arguments } if arguments.is_empty() => read.call(id, name, "{}".to_owned())?,
            Self::Call { id, name, arguments } | Self::Given { id, name, arguments } => {
                read.call(id, name, arguments)?
            }
            Self::Thinking { thinking, signature } => read.foreign(object([
                ("type", "thinking".into()),
                ("thinking", thinking.into()),
                ("signature", signature.into()),
            ])),
            Self::Redacted(block) => read.foreign(block),
        }
        Ok(())
    }
}
