//! Messages that were flattened into attributes, one a field: `llm.input_messages.0.message.content`,
//! `gen_ai.prompt.0.content`.

use std::collections::BTreeMap;

use super::super::line::{Line, Recorded};
use super::super::transcript::{Call, Reply};
use super::attributes::Attributes;

/// One message's fields.
#[derive(Debug, Default)]
struct Flat {
    role: String,
    content: String,
    parts: BTreeMap<usize, String>,
    calls: BTreeMap<usize, Call>,
    call_id: Option<String>,
    name: Option<String>,
}

/// The messages under a prefix such as `llm.input_messages.`, in order of their numbers.
pub(super) fn messages(attributes: &Attributes<'_>, prefix: &str, at: usize) -> Vec<Line> {
    let mut flats: BTreeMap<usize, Flat> = BTreeMap::new();
    for (path, text) in attributes.under(prefix) {
        let Some((number, rest)) = numbered(path) else { continue };
        flats.entry(number).or_default().set(rest.strip_prefix("message.").unwrap_or(rest), text);
    }
    flats.into_values().map(|flat| flat.line(at)).collect()
}

/// A number, and what comes after its point.
fn numbered(path: &str) -> Option<(usize, &str)> {
    let (number, rest) = path.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

impl Flat {
    fn set(&mut self, field: &str, text: String) {
        match field {
            "role" => self.role = text,
            "content" => self.content = text,
            "tool_call_id" => self.call_id = Some(text),
            "name" => self.name = Some(text),
            _ => {
                if let Some((number, "message_content.text")) = field.strip_prefix("contents.").and_then(numbered) {
                    self.parts.insert(number, text);
                } else if let Some((number, rest)) = field.strip_prefix("tool_calls.").and_then(numbered) {
                    let call = self.calls.entry(number).or_insert_with(|| Call {
                        name: String::new(),
                        arguments: String::new(),
                        provider_id: None,
                        result: None,
                    });
                    match rest.strip_prefix("tool_call.").unwrap_or(rest) {
                        "id" => call.provider_id = Some(text),
                        "name" | "function.name" => call.name = text,
                        "arguments" | "function.arguments" => call.arguments = text,
                        _ => {}
                    }
                }
            }
        }
    }

    fn line(self, at: usize) -> Line {
        let parts: Vec<_> =
            Some(self.content).filter(|text| !text.is_empty()).into_iter().chain(self.parts.into_values()).collect();
        let text = parts.join("\n");
        match self.role.as_str() {
            "system" | "developer" => Line::Instructions(text),
            "user" => Line::User(text),
            "assistant" | "model" => {
                Line::Assistant(Reply { calls: self.calls.into_values().collect(), ..Reply::new(text, at) })
            }
            "tool" | "function" => {
                Line::Result(Recorded { at, text, id: self.call_id, name: self.name, is_error: None })
            }
            _ => Line::Unknown(self.role),
        }
    }
}
