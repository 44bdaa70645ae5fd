//! Chat completions, as OpenAI and many others have them.
//!
//! Reasoning comes under three names. `reasoning_content` and `reasoning_details` of an answer with tool calls
//! are given back with it, since some providers refuse the next request of a round without them; of an answer
//! without calls they are not kept, since others refuse them there. `reasoning` is never wanted back. Details
//! that come piece by piece are fragments whose joining no page defines, so a stream keeps none.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{object, schema, with_parameters};
use super::dialect::{Dialect, Framing, Gathering, Reply};
use super::failure;
use super::key::Key;
use super::names;
use super::prompt::{Called, Prompt, Spoken, Turn};
use super::reading::{self, Few, Kept, parse, provider, strict, unknown_finish};
use crate::machines::toolbox::Tool;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};

/// The dialect.
pub(super) struct OpenAi;

/// What a spec's parameters never say.
const OWNED: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options.include_usage",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "response_format",
    "n",
];

impl Dialect for OpenAi {
    fn body(&self, prompt: &Prompt<'_>) -> Result<Json, llm::Error> {
        let system = object([("role", "system".into()), ("content", prompt.system.as_str().into())]);
        let messages: Vec<Json> = [system].into_iter().chain(prompt.turns.iter().map(message)).collect();
        let mut body = BTreeMap::from([
            ("model".to_owned(), prompt.model.name.as_str().into()),
            ("messages".to_owned(), Json::Array(messages)),
            ("stream".to_owned(), prompt.model.streaming.into()),
        ]);
        if prompt.model.streaming {
            body.insert("stream_options".to_owned(), object([("include_usage", true.into())]));
        }
        if !prompt.tools.is_empty() {
            body.insert("tools".to_owned(), Json::Array(prompt.tools.iter().map(|tool| declared(tool)).collect()));
        }
        if let Some(schema) = &prompt.schema {
            let named = [("name", "answer".into()), ("schema", schema.clone()), ("strict", true.into())];
            let format = object([("type", "json_schema".into()), ("json_schema", object(named))]);
            body.insert("response_format".to_owned(), format);
        }
        with_parameters(Json::Object(body), &prompt.model.parameters, OWNED)
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, llm::Error> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key.header("Bearer ")?);
        }
        Ok(headers)
    }

    fn read(&self, body: &[u8]) -> Result<Reply, llm::Error> {
        let answer: Chunk<'_> = parse(body)?;
        answer.check()?;
        let choice = answer.choices.0.into_iter().find(Choice::is_first);
        let choice = choice.ok_or_else(|| provider("the answer has no choice"))?;
        let said = choice.message.unwrap_or_default();
        let (opaque, refused) = (said.kept()?, said.is_refusal());
        let calls = said.tool_calls.unwrap_or_default().0;
        let last_object = calls.len().checked_sub(1).filter(|_| calls.last().is_some_and(Call::is_object));
        let calls = calls.into_iter().map(Call::request).collect::<Result<Vec<_>, _>>()?;
        let opaque = opaque.filter(|_| !calls.is_empty());
        let text = said.content.map(text).transpose()?;
        let finish = finish(choice.finish_reason.as_deref(), refused)?;
        let usage = answer.usage.map(used).unwrap_or_default();
        Ok(Reply { content: Content { text, calls, opaque }, finish, usage, last_object })
    }

    fn used(&self, body: &[u8]) -> Option<Usage> {
        reading::stated::<Stated<'_>>(body)?.usage.map(used)
    }

    fn stream(&self) -> (Framing, Box<dyn Gathering>) {
        (Framing::Events, Box::<Stream>::default())
    }
}

/// A function that may be called.
pub(super) fn declared(tool: &Tool) -> Json {
    let function = object([
        ("name", names::given(&tool.name).into()),
        ("description", tool.spec.description.as_str().into()),
        ("parameters", schema(&tool.advertised)),
    ]);
    object([("type", "function".into()), ("function", function)])
}

fn message(turn: &Turn) -> Json {
    match turn {
        Turn::User(text) => object([("role", "user".into()), ("content", text.as_str().into())]),
        Turn::Observed(observed) => object([
            ("role", "tool".into()),
            ("tool_call_id", observed.id.as_str().into()),
            ("content", observed.text.as_str().into()),
        ]),
        Turn::Assistant(spoken) => spoken_message(spoken),
    }
}

fn spoken_message(spoken: &Spoken) -> Json {
    let mut message = spoken.kept.as_ref().and_then(Json::as_object).cloned().unwrap_or_default();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), spoken.text.as_deref().map_or(Json::Null, Json::from));
    if !spoken.calls.is_empty() {
        let call = |call: &Called| {
            let function =
                object([("name", call.name.as_str().into()), ("arguments", call.arguments.to_text().into())]);
            object([("id", call.id.as_str().into()), ("type", "function".into()), ("function", function)])
        };
        message.insert("tool_calls".to_owned(), Json::Array(spoken.calls.iter().map(call).collect()));
    }
    Json::Object(message)
}

/// What was used, of an answer of which the rest may be anything.
#[derive(Deserialize)]
struct Stated<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// A whole answer, or a chunk of a stream.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default = "Few::default")]
    choices: Few<Choice<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    index: Option<u32>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    delta: Option<Said<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Few<Call<'a>>>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    index: Option<u32>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl Chunk<'_> {
    /// An error object that comes with a success.
    fn check(&self) -> Result<(), llm::Error> {
        let error = self.error.or_else(|| self.choices.0.iter().find_map(|choice| choice.error));
        error.map_or(Ok(()), |error| Err(failure::of_error(error)))
    }
}

impl Choice<'_> {
    /// One answer is asked for. Others that come beside it are not read.
    fn is_first(&self) -> bool {
        self.index.unwrap_or(0) == 0
    }
}

/// Some providers leave reasoning out of what was completed, and none leaves it out of the total.
fn used(raw: &RawValue) -> Usage {
    let tokens: Tokens = reading::object(raw).unwrap_or_default();
    let rest = tokens.total_tokens.zip(tokens.prompt_tokens).map(|(total, read)| total.saturating_sub(read));
    Usage { input_tokens: tokens.prompt_tokens, output_tokens: tokens.completion_tokens.max(rest) }
}

impl Said<'_> {
    /// Some say with every answer that nothing was refused.
    fn is_refusal(&self) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| !refusal.is_empty())
    }

    /// What is given back with the message.
    fn kept(&self) -> Result<Option<Json>, llm::Error> {
        let kept = [("reasoning_content", self.reasoning_content), ("reasoning_details", self.reasoning_details)];
        let kept = kept.into_iter().filter_map(|(name, raw)| raw.map(|raw| (name, raw)));
        let kept: BTreeMap<String, Json> =
            kept.map(|(name, raw)| Ok((name.to_owned(), strict(raw)?))).collect::<Result<_, llm::Error>>()?;
        Ok(Some(Json::Object(kept)).filter(|kept| kept.as_object().is_some_and(|kept| !kept.is_empty())))
    }
}

impl Call<'_> {
    /// Whether a server sends its arguments as an object.
    fn is_object(&self) -> bool {
        let arguments = self.function.as_ref().and_then(|function| function.arguments);
        arguments.is_some_and(|arguments| arguments.get().starts_with('{'))
    }

    fn request(self) -> Result<ToolRequest, llm::Error> {
        let function = self.function.ok_or_else(|| provider("a tool call has no function"))?;
        let name = function.name.ok_or_else(|| provider("a tool call has no name"))?;
        Ok(ToolRequest { name, arguments: arguments(function.arguments)?, provider_id: self.id })
    }
}

/// Arguments are text. Where a server sends an object instead, its text is meant.
fn arguments(raw: Option<&RawValue>) -> Result<String, llm::Error> {
    match raw {
        None => Ok(String::new()),
        Some(raw) if raw.get().starts_with('"') => parse(raw.get().as_bytes()),
        Some(raw) => Ok(raw.get().to_owned()),
    }
}

/// One part of a content that comes in parts.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
}

/// Text, or parts of which the texts count.
fn text(raw: &RawValue) -> Result<String, llm::Error> {
    if raw.get().starts_with('"') {
        return parse(raw.get().as_bytes());
    }
    let parts: Few<Part> = parse(raw.get().as_bytes())?;
    let texts = parts.0.into_iter().filter(|part| part.kind.as_deref() == Some("text")).filter_map(|part| part.text);
    Ok(texts.collect())
}

fn finish(reason: Option<&str>, refused: bool) -> Result<FinishReason, llm::Error> {
    match reason {
        _ if refused => Ok(FinishReason::ContentFilter),
        Some("stop") => Ok(FinishReason::Stop),
        Some("tool_calls") => Ok(FinishReason::ToolCalls),
        Some("length" | "model_length") => Ok(FinishReason::Length),
        Some("content_filter") => Ok(FinishReason::ContentFilter),
        other => Err(unknown_finish(other)),
    }
}

/// An answer that comes chunk by chunk.
#[derive(Default)]
struct Stream {
    text: String,
    refused: bool,
    reasoning: String,
    calls: BTreeMap<u32, ToolRequest>,
    /// The call that came last, if its arguments came as an object.
    last_object: Option<u32>,
    finish: Option<String>,
    usage: Option<Usage>,
    kept: Kept,
    ended: bool,
}

impl Gathering for Stream {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, llm::Error> {
        if piece == b"[DONE]" {
            self.ended = true;
            return Ok(ControlFlow::Break(()));
        }
        let chunk: Chunk<'_> = parse(piece)?;
        self.usage = chunk.usage.map(used).or(self.usage);
        chunk.check()?;
        for choice in chunk.choices.0.into_iter().filter(Choice::is_first) {
            self.choose(choice)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn used(&self) -> Option<Usage> {
        self.usage
    }

    fn end(self: Box<Self>) -> Result<Reply, llm::Error> {
        if !self.ended {
            return Err(reading::cut_off());
        }
        let finish = finish(self.finish.as_deref(), self.refused)?;
        let last_object = self.last_object.and_then(|last| self.calls.keys().position(|index| *index == last));
        let calls: Vec<ToolRequest> = self.calls.into_values().collect();
        let reasoning = Some(self.reasoning).filter(|reasoning| !reasoning.is_empty() && !calls.is_empty());
        let opaque = reasoning.map(|reasoning| object([("reasoning_content", reasoning.into())]));
        let content = Content { text: Some(self.text), calls, opaque };
        Ok(Reply { content, finish, usage: self.usage.unwrap_or_default(), last_object })
    }
}

impl Stream {
    fn choose(&mut self, choice: Choice<'_>) -> Result<(), llm::Error> {
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(reason);
        }
        let Some(said) = choice.delta else { return Ok(()) };
        self.refused |= said.is_refusal();
        if let Some(content) = said.content {
            self.kept.push(&mut self.text, &text(content)?)?;
        }
        if let Some(Ok(reasoning)) = said.reasoning_content.map(|raw| serde_json::from_str::<String>(raw.get())) {
            self.kept.push(&mut self.reasoning, &reasoning)?;
        }
        said.tool_calls.unwrap_or_default().0.into_iter().try_for_each(|call| self.call(call))
    }

    /// A piece of a call. Without an index, a piece with an id begins a new call. Some say the id and the name
    /// again with every piece; another one would be another call's.
    fn call(&mut self, mut call: Call<'_>) -> Result<(), llm::Error> {
        call.id = call.id.filter(|id| !id.is_empty());
        let is_object = call.is_object();
        let last = self.calls.last_key_value().map(|(index, _)| *index);
        let next = last.map_or(0, |last| last.saturating_add(1));
        let begun = if call.id.is_some() { next } else { last.unwrap_or(0) };
        let index = call.index.unwrap_or(begun);
        if !self.calls.contains_key(&index) {
            Kept::item(self.calls.len())?;
        }
        let request = self.calls.entry(index).or_insert_with(|| ToolRequest {
            name: String::new(),
            arguments: String::new(),
            provider_id: None,
        });
        let other = || provider("a piece of a call names another call");
        match (&request.provider_id, call.id) {
            (Some(before), Some(id)) if *before != id => return Err(other()),
            (Some(_), _) | (None, None) => {}
            (None, Some(id)) => request.provider_id = Some(id),
        }
        self.last_object = Some(index).filter(|_| is_object || self.last_object == Some(index));
        let Some(function) = call.function else { return Ok(()) };
        let name = function.name.unwrap_or_default();
        if request.name.is_empty() {
            self.kept.push(&mut request.name, &name)?;
        } else if !name.is_empty() && name != request.name {
            return Err(other());
        }
        self.kept.push(&mut request.arguments, &arguments(function.arguments)?)
    }
}
