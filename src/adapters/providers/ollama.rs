//! Ollama's chat.
//!
//! A prompt that is too long is cut there silently unless a request forbids it, and ours does: a model that
//! lost its instructions must not answer. `format` holds every answer, so it goes with `json_steps` and not
//! with tools of its own form.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{object, with_parameters};
use super::dialect::{Dialect, Framing, Gathering, Reply};
use super::failure;
use super::key::Key;
use super::openai::{OpenAi, declared};
use super::prompt::{Called, Prompt, Turn};
use super::reading::{self, Few, Kept, own_text, parse, unknown_finish};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};

/// The dialect.
pub(super) struct Ollama;

/// What a spec's parameters never say.
const OWNED: &[&str] = &["model", "messages", "stream", "truncate", "tools", "tool_choice", "format"];

impl Dialect for Ollama {
    fn body(&self, prompt: &Prompt<'_>) -> Result<Json, llm::Error> {
        let system = object([("role", "system".into()), ("content", prompt.system.as_str().into())]);
        let messages: Vec<Json> = [system].into_iter().chain(prompt.turns.iter().map(message)).collect();
        let mut body = BTreeMap::from([
            ("model".to_owned(), prompt.model.name.as_str().into()),
            ("messages".to_owned(), Json::Array(messages)),
            ("stream".to_owned(), prompt.model.streaming.into()),
            ("truncate".to_owned(), false.into()),
        ]);
        if !prompt.tools.is_empty() {
            body.insert("tools".to_owned(), Json::Array(prompt.tools.iter().map(|tool| declared(tool)).collect()));
        }
        match &prompt.schema {
            Some(_) if !prompt.tools.is_empty() => {
                let message = "a structured answer leaves no room for tool calls here: set tool_calling to json_steps";
                return Err(llm::Error::Binding { message: message.to_owned() });
            }
            Some(schema) => {
                body.insert("format".to_owned(), schema.clone());
            }
            None => {}
        }
        with_parameters(Json::Object(body), &prompt.model.parameters, OWNED)
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, llm::Error> {
        OpenAi.headers(key)
    }

    /// A whole answer is a stream of one piece.
    fn read(&self, body: &[u8]) -> Result<Reply, llm::Error> {
        let mut answer = Box::<Stream>::default();
        let _ = answer.take(body)?;
        answer.end()
    }

    fn used(&self, body: &[u8]) -> Option<Usage> {
        reading::stated::<Tokens>(body)?.usage()
    }

    fn stream(&self) -> (Framing, Box<dyn Gathering>) {
        (Framing::Lines, Box::<Stream>::default())
    }
}

fn message(turn: &Turn) -> Json {
    match turn {
        Turn::User(text) => object([("role", "user".into()), ("content", text.as_str().into())]),
        Turn::Observed(observed) => object([
            ("role", "tool".into()),
            ("tool_name", observed.name.as_str().into()),
            ("content", observed.text.as_str().into()),
        ]),
        Turn::Assistant(spoken) => {
            let call = |call: &Called| {
                let function = object([("name", call.name.as_str().into()), ("arguments", call.arguments.clone())]);
                object([("function", function)])
            };
            object([
                ("role", "assistant".into()),
                ("content", spoken.text.as_deref().unwrap_or_default().into()),
                ("tool_calls", Json::Array(spoken.calls.iter().map(call).collect())),
            ])
        }
    }
}

/// What was used, of a piece of which the rest may be anything.
#[derive(Deserialize)]
struct Tokens {
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
}

impl Tokens {
    fn usage(&self) -> Option<Usage> {
        let said = self.prompt_eval_count.is_some() || self.eval_count.is_some();
        said.then_some(Usage { input_tokens: self.prompt_eval_count, output_tokens: self.eval_count })
    }
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
}

#[derive(Deserialize)]
struct Said<'a> {
    content: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Few<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

fn finish(reason: Option<&str>) -> Result<FinishReason, llm::Error> {
    match reason {
        Some("stop") => Ok(FinishReason::Stop),
        Some("length") => Ok(FinishReason::Length),
        other => Err(unknown_finish(other)),
    }
}

/// An answer that comes line by line.
#[derive(Default)]
struct Stream {
    text: String,
    calls: Vec<ToolRequest>,
    /// The last call, as long as no text comes behind it.
    last_object: Option<usize>,
    finish: Option<String>,
    usage: Usage,
    kept: Kept,
    ended: bool,
}

impl Gathering for Stream {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, llm::Error> {
        let piece: Piece<'_> = parse(piece)?;
        self.usage.input_tokens = piece.prompt_eval_count.or(self.usage.input_tokens);
        self.usage.output_tokens = piece.eval_count.or(self.usage.output_tokens);
        if let Some(error) = piece.error {
            return Err(failure::of_error(error));
        }
        if let Some(said) = piece.message {
            let text = said.content.unwrap_or_default();
            if !text.is_empty() {
                self.last_object = None;
            }
            self.kept.push(&mut self.text, &text)?;
            for call in said.tool_calls.unwrap_or_default().0 {
                Kept::item(self.calls.len())?;
                let (name, arguments) = (call.function.name, own_text(call.function.arguments));
                self.kept.count(name.len() + arguments.len())?;
                self.last_object = Some(self.calls.len());
                self.calls.push(ToolRequest { name, arguments, provider_id: call.id });
            }
        }
        if !piece.done {
            return Ok(ControlFlow::Continue(()));
        }
        self.ended = true;
        self.finish = piece.done_reason;
        Ok(ControlFlow::Break(()))
    }

    fn used(&self) -> Option<Usage> {
        Some(self.usage).filter(|usage| *usage != Usage::default())
    }

    fn end(self: Box<Self>) -> Result<Reply, llm::Error> {
        if !self.ended {
            return Err(reading::cut_off());
        }
        let finish = finish(self.finish.as_deref())?;
        let content = Content { text: Some(self.text), calls: self.calls, opaque: None };
        Ok(Reply { content, finish, usage: self.usage, last_object: self.last_object })
    }
}
