//! Gemini's `generateContent`.
//!
//! Signatures of thoughts are wanted back with the part that they came with, so they are kept by its place:
//! `{"text": signature, "calls": [signature or null, ..]}`. Calls are matched with their results by name and
//! order, which ours always have.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use reqwest::header::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{object, schema, with_parameters};
use super::dialect::{Dialect, Framing, Gathering, Reply};
use super::failure;
use super::key::Key;
use super::names;
use super::prompt::{Prompt, Spoken, Turn};
use super::reading::{self, Few, Kept, own_text, parse, unknown_finish};
use crate::machines::toolbox::Tool;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};

/// The dialect.
pub(super) struct Gemini;

/// What a spec's parameters never say. Names are taken there in two spellings.
const OWNED: &[&str] = &[
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "cachedContent",
    "generationConfig.responseMimeType",
    "generationConfig.responseSchema",
    "generationConfig.responseJsonSchema",
    "generationConfig.candidateCount",
];

impl Dialect for Gemini {
    fn body(&self, prompt: &Prompt<'_>) -> Result<Json, llm::Error> {
        let system = object([("parts", vec![part(&prompt.system)].into())]);
        let mut body = BTreeMap::from([
            ("systemInstruction".to_owned(), system),
            ("contents".to_owned(), Json::Array(contents(&prompt.turns))),
        ]);
        if !prompt.tools.is_empty() {
            let declared: Vec<Json> = prompt.tools.iter().map(|tool| declared(tool)).collect();
            let tools = vec![object([("functionDeclarations", declared.into())])];
            body.insert("tools".to_owned(), tools.into());
        }
        if let Some(schema) = &prompt.schema {
            let held =
                object([("responseMimeType", "application/json".into()), ("responseJsonSchema", schema.clone())]);
            body.insert("generationConfig".to_owned(), held);
        }
        with_parameters(Json::Object(body), &prompt.model.parameters, OWNED)
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, llm::Error> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-goog-api-key"), key.header("")?);
        }
        Ok(headers)
    }

    /// A whole answer is a stream of one piece.
    fn read(&self, body: &[u8]) -> Result<Reply, llm::Error> {
        let mut answer = Stream::default();
        answer.add(body)?;
        answer.whole()
    }

    fn used(&self, body: &[u8]) -> Option<Usage> {
        reading::stated::<Stated<'_>>(body)?.usage.map(used)
    }

    fn stream(&self) -> (Framing, Box<dyn Gathering>) {
        (Framing::Events, Box::<Stream>::default())
    }
}

fn part(text: &str) -> Json {
    object([("text", text.into())])
}

fn declared(tool: &Tool) -> Json {
    object([
        ("name", names::given(&tool.name).into()),
        ("description", tool.spec.description.as_str().into()),
        ("parametersJsonSchema", schema(&tool.advertised)),
    ])
}

/// Turns by role: neighbours of one role are one content.
fn contents(turns: &[Turn]) -> Vec<Json> {
    let mut contents: Vec<(&str, Vec<Json>)> = Vec::new();
    for turn in turns {
        let (role, parts) = match turn {
            Turn::User(text) => ("user", vec![part(text)]),
            Turn::Observed(observed) => {
                let result = object([("result", observed.text.as_str().into())]);
                let response = object([("name", observed.name.as_str().into()), ("response", result)]);
                ("user", vec![object([("functionResponse", response)])])
            }
            Turn::Assistant(spoken) => ("model", spoken_parts(spoken)),
        };
        match contents.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    let content = |(role, parts): (&str, Vec<Json>)| object([("role", role.into()), ("parts", parts.into())]);
    contents.into_iter().map(content).collect()
}

fn spoken_parts(spoken: &Spoken) -> Vec<Json> {
    let kept = spoken.kept.as_ref().and_then(Json::as_object);
    let of_text = kept.and_then(|kept| kept.get("text"));
    let of_calls = kept.and_then(|kept| kept.get("calls")).and_then(Json::as_array).unwrap_or_default();
    let text = spoken.text.as_deref().map(|text| signed(("text", text.into()), of_text));
    let calls = spoken.calls.iter().enumerate().map(|(place, call)| {
        let call = object([("name", call.name.as_str().into()), ("args", call.arguments.clone())]);
        signed(("functionCall", call), of_calls.get(place))
    });
    text.into_iter().chain(calls).collect()
}

fn signed(part: (&str, Json), signature: Option<&Json>) -> Json {
    match signature.filter(|signature| signature.as_str().is_some()) {
        Some(signature) => object([part, ("thoughtSignature", signature.clone())]),
        None => object([part]),
    }
}

/// What was used, of an answer of which the rest may be anything.
#[derive(Deserialize)]
struct Stated<'a> {
    #[serde(borrow, rename = "usageMetadata")]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default = "Few::default")]
    candidates: Few<Candidate<'a>>,
    #[serde(rename = "promptFeedback")]
    feedback: Option<Feedback>,
    #[serde(borrow, rename = "usageMetadata")]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Feedback {
    #[serde(rename = "blockReason")]
    block_reason: Option<String>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    content: Option<Parts<'a>>,
    #[serde(rename = "finishReason")]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default = "Few::default")]
    parts: Few<Part<'a>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(rename = "thoughtSignature")]
    signature: Option<String>,
    #[serde(borrow, rename = "functionCall")]
    call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

/// Cached tokens are in the prompt's count; thoughts are not in the candidates'.
fn used(raw: &RawValue) -> Usage {
    let tokens: Tokens = reading::object(raw).unwrap_or_default();
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    Usage {
        input_tokens: sum(tokens.prompt_token_count, tokens.tool_use_prompt_token_count),
        output_tokens: sum(tokens.candidates_token_count, tokens.thoughts_token_count),
    }
}

/// A malformed call of the model's own (`MALFORMED_FUNCTION_CALL` and its like) is the provider's failure: the
/// same request may do better.
fn finish(reason: Option<&str>) -> Result<FinishReason, llm::Error> {
    match reason {
        Some("STOP") => Ok(FinishReason::Stop),
        Some("MAX_TOKENS") => Ok(FinishReason::Length),
        Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => Ok(FinishReason::ContentFilter),
        other => Err(unknown_finish(other)),
    }
}

/// An answer that comes piece by piece.
#[derive(Default)]
struct Stream {
    text: String,
    text_signature: Option<String>,
    calls: Vec<ToolRequest>,
    call_signatures: Vec<Json>,
    /// The last call, as long as no text comes behind it.
    last_object: Option<usize>,
    finish: Option<String>,
    usage: Option<Usage>,
    kept: Kept,
}

impl Gathering for Stream {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, llm::Error> {
        self.add(piece)?;
        Ok(ControlFlow::Continue(()))
    }

    fn used(&self) -> Option<Usage> {
        self.usage
    }

    /// The piece with the reason is the last; there is no other mark.
    fn end(self: Box<Self>) -> Result<Reply, llm::Error> {
        if self.finish.is_none() {
            return Err(reading::cut_off());
        }
        self.whole()
    }
}

impl Stream {
    fn add(&mut self, piece: &[u8]) -> Result<(), llm::Error> {
        let response: Response<'_> = parse(piece)?;
        self.usage = response.usage.map(used).or(self.usage);
        if let Some(error) = response.error {
            return Err(failure::of_error(error));
        }
        if response.feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
            return Err(llm::Error::ContentFiltered { message: "the prompt is blocked".to_owned() });
        }
        for candidate in response.candidates.0.into_iter().filter(|candidate| candidate.index.unwrap_or(0) == 0) {
            if let Some(reason) = candidate.finish_reason {
                self.finish = Some(reason);
            }
            for part in candidate.content.map(|content| content.parts.0).unwrap_or_default() {
                self.part(part)?;
            }
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>) -> Result<(), llm::Error> {
        if let Some(call) = part.call {
            Kept::item(self.calls.len())?;
            let arguments = own_text(call.args);
            self.kept.count(call.name.len() + arguments.len())?;
            self.last_object = Some(self.calls.len());
            self.calls.push(ToolRequest { name: call.name, arguments, provider_id: call.id });
            self.call_signatures.push(part.signature.map_or(Json::Null, Json::from));
        } else if !part.thought {
            let text = part.text.unwrap_or_default();
            if !text.is_empty() {
                self.last_object = None;
            }
            self.kept.push(&mut self.text, &text)?;
            self.text_signature = part.signature.or(self.text_signature.take());
        }
        Ok(())
    }

    fn whole(self) -> Result<Reply, llm::Error> {
        let Self { text, text_signature, calls, call_signatures, last_object, finish: reason, usage, kept: _ } = self;
        let finish = finish(reason.as_deref())?;
        let signed = text_signature.is_some() || call_signatures.iter().any(|signature| signature.as_str().is_some());
        let opaque = signed.then(|| {
            let text = text_signature.map_or(Json::Null, Json::from);
            object([("text", text), ("calls", call_signatures.into())])
        });
        let content = Content { text: Some(text), calls, opaque };
        Ok(Reply { content, finish, usage: usage.unwrap_or_default(), last_object })
    }
}
