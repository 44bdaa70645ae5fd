//! OTLP JSON with the spans of OpenTelemetry's GenAI conventions.
//!
//! | of the run | span |
//! |---|---|
//! | the run | `invoke_agent`: its status is an error unless a report or a fallback was released |
//! | an attempt of a request | `chat`: what was said since the request before, the answer, finish reason, usage |
//! | a call with its observation | `execute_tool`: arguments and result; an error has the observation's code as type |
//!
//! `gen_ai.input.messages` holds what is new since the request before, so that a trace grows as the run does.
//! Ids are derived from the run's id: an export made again is the same trace. Times are record 0's wall time
//! and the milliseconds since.

use serde_json::{Value, json};

use super::conversation::{Answer, Called, Conversation, Exchange, Said};
use super::time::nanos;
use crate::vocabulary::outcome::{ReleaseOutcome, RunStatus};

/// OTLP's codes of spans.
const INTERNAL: u32 = 1;
const CLIENT: u32 = 3;
const ERROR: u32 = 2;

pub(super) fn document(conversation: &Conversation) -> Value {
    let run = conversation.run.as_ref().map(ToString::to_string).unwrap_or_default();
    let trace = Trace { conversation, run: &run };
    let mut spans = vec![trace.agent()];
    let mut results = Vec::new();
    for exchange in &conversation.exchanges {
        spans.push(trace.chat(exchange, std::mem::take(&mut results)));
        if let Answer::Replied { calls, .. } = &exchange.answer {
            spans.extend(calls.iter().filter_map(|called| trace.tool(called)));
            results = calls.iter().filter_map(response).collect();
        }
    }
    let scope = json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") });
    let resource = json!({ "attributes": [text("service.name", "portcullis")] });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

/// An id of so many bytes, derived from the run's.
fn id<const BYTES: usize>(run: &str, name: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("portcullis.otlp.id.1");
    hasher.update(run.as_bytes()).update(&[0]).update(name.as_bytes());
    let mut bytes = [0; BYTES];
    hasher.finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Trace<'a> {
    conversation: &'a Conversation,
    run: &'a str,
}

impl Trace<'_> {
    fn span(&self, name: &str, kind: u32, own: &str, (from, to): (u64, u64), attributes: Vec<Value>) -> Value {
        json!({
            "traceId": id::<16>(self.run, "trace"),
            "spanId": id::<8>(self.run, own),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": nanos(self.conversation, from),
            "endTimeUnixNano": nanos(self.conversation, to),
            "attributes": attributes,
            "status": {},
        })
    }

    fn below_agent(&self, mut span: Value) -> Value {
        span["parentSpanId"] = Value::from(id::<8>(self.run, "run"));
        span
    }

    fn agent(&self) -> Value {
        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.agent.name", "portcullis"),
            text("gen_ai.conversation.id", self.run),
        ];
        let mut status = json!({});
        if let Some(ending) = &self.conversation.ending {
            attributes.push(number("portcullis.row", u64::from(ending.row)));
            attributes.push(text("portcullis.run_state", ending.run_state.word()));
            attributes.push(text("portcullis.outcome", ending.outcome.word()));
            if !matches!(ending.outcome, ReleaseOutcome::Success | ReleaseOutcome::Fallback) {
                let kind = if ending.run_state == RunStatus::Cancelled { "cancelled" } else { ending.run_state.word() };
                attributes.push(text("error.type", kind));
                status = json!({ "code": ERROR, "message": format!("row {}", ending.row) });
            }
        }
        let mut span =
            self.span("invoke_agent portcullis", INTERNAL, "run", (0, self.conversation.last_ms), attributes);
        span["status"] = status;
        span
    }

    fn chat(&self, exchange: &Exchange, results: Vec<Value>) -> Value {
        let input: Vec<_> = results.into_iter().chain(exchange.told.iter().map(told)).collect();
        let mut attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.conversation.id", self.run),
            text("gen_ai.request.model", &exchange.model),
            text("gen_ai.input.messages", &Value::from(input).to_string()),
        ];
        let mut status = json!({});
        match &exchange.answer {
            Answer::Open => {}
            Answer::Failed(error) => {
                attributes.push(text("error.type", error.code().word()));
                status = json!({ "code": ERROR, "message": error.to_string() });
            }
            Answer::Replied { text: said, calls, finish, usage } => {
                let output = json!([answer(said.as_deref(), calls, finish.word())]);
                attributes.push(text("gen_ai.output.messages", &output.to_string()));
                let reasons = json!({ "arrayValue": { "values": [{ "stringValue": finish.word() }] } });
                attributes.push(json!({ "key": "gen_ai.response.finish_reasons", "value": reasons }));
                attributes.extend(usage.input_tokens.map(|tokens| number("gen_ai.usage.input_tokens", tokens)));
                attributes.extend(usage.output_tokens.map(|tokens| number("gen_ai.usage.output_tokens", tokens)));
            }
        }
        let name = format!("chat {}", exchange.model);
        let times = (exchange.from_ms, exchange.to_ms);
        let mut span = self.below_agent(self.span(&name, CLIENT, &exchange.id, times, attributes));
        span["status"] = status;
        span
    }

    fn tool(&self, called: &Called) -> Option<Value> {
        let outcome = called.outcome.as_ref()?;
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.conversation.id", self.run),
            text("gen_ai.tool.name", &called.name),
            text("gen_ai.tool.call.id", &called.id),
            text("gen_ai.tool.call.arguments", &called.arguments),
            text("gen_ai.tool.call.result", &outcome.text),
        ];
        attributes.extend(called.provider_id.as_deref().map(|id| text("portcullis.provider_call_id", id)));
        let mut status = json!({});
        if let Some(code) = outcome.code {
            attributes.push(text("portcullis.observation_code", code.word()));
            if outcome.is_error() {
                attributes.push(text("error.type", code.word()));
                status = json!({ "code": ERROR });
            }
        }
        let name = format!("execute_tool {}", called.name);
        let times = (called.from_ms, called.to_ms);
        let mut span = self.below_agent(self.span(&name, INTERNAL, &called.id, times, attributes));
        span["status"] = status;
        Some(span)
    }
}

fn told(said: &Said) -> Value {
    let (role, text) = match said {
        Said::System(text) => ("system", text),
        Said::User(text) => ("user", text),
        Said::Assistant(text) => ("assistant", text),
    };
    json!({ "role": role, "parts": [{ "type": "text", "content": text }] })
}

fn response(called: &Called) -> Option<Value> {
    let outcome = called.outcome.as_ref()?;
    let part = json!({ "type": "tool_call_response", "id": called.id, "response": outcome.text });
    Some(json!({ "role": "tool", "parts": [part] }))
}

fn answer(text: Option<&str>, calls: &[Called], finish: &str) -> Value {
    let text = text.map(|text| json!({ "type": "text", "content": text }));
    let calls = calls.iter().map(
        |called| json!({ "type": "tool_call", "id": called.id, "name": called.name, "arguments": called.arguments }),
    );
    let parts: Vec<_> = text.into_iter().chain(calls).collect();
    json!({ "role": "assistant", "parts": parts, "finish_reason": finish })
}
