//! One message of a server, read strictly: duplicate keys, inexact numbers and deep nesting are found here,
//! before the client's reader would merge, round or follow them (SPEC 4).

use std::collections::BTreeMap;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::Deserialize;

use super::Message;
use crate::vocabulary::json::Json;

/// What a server says.
#[derive(Debug)]
pub(super) enum Said {
    /// An answer. One that is malformed has become the refusal of its request.
    Answer(Box<Message>),
    /// A request of its own, with this id.
    Asks {
        /// What it wants.
        method: String,
        /// How it counts.
        id: Json,
    },
    /// A notification: progress, logs, a list that changed. Nothing here depends on any.
    Tells,
    /// No strict JSON, or more than a message may hold, and nobody's answer: the reason.
    Unreadable(String),
    /// No message.
    Noise,
}

/// The most JSON values of one message. Read, each takes many times its bytes.
const VALUES_MAX: usize = 100_000;

/// The most bytes of the id of a server's request, which it gets back.
const ID_BYTES_MAX: usize = 256;

/// JSON-RPC's code for what could not be read. It stands for an answer that is none.
const UNREADABLE: ErrorCode = ErrorCode(-32700);

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Said {
    let message = if has_too_many_values(bytes) {
        Err(format!("the answer holds more than {VALUES_MAX} values"))
    } else {
        Json::parse_bytes(bytes).map_err(|error| format!("the answer is no strict JSON: {error}"))
    };
    match message {
        Ok(message) => sort(message, bytes),
        Err(reason) => match lenient_id(bytes) {
            Some(id) => unreadable(id, &reason),
            None => Said::Unreadable(reason),
        },
    }
}

/// Counts what may begin a value, outside strings. Nothing is taken apart for it.
fn has_too_many_values(bytes: &[u8]) -> bool {
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in bytes {
        match (byte, in_text) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_text = !in_text,
            (b',' | b'[' | b'{', false) => values += 1,
            (_, true | false) => {}
        }
    }
    values > VALUES_MAX
}

/// The answer to a request that the server makes: pings are answered, everything else is not supported here.
pub(super) fn answer_to(method: &str, id: Json) -> Vec<u8> {
    let text = |text: &str| Json::from(text);
    let (name, body) = if method == "ping" {
        ("result", Json::Object([].into()))
    } else {
        let code = Json::from(-32601_i64);
        let message = text("not supported");
        ("error", Json::Object([("code".to_owned(), code), ("message".to_owned(), message)].into()))
    };
    let fields = [("jsonrpc".to_owned(), text("2.0")), ("id".to_owned(), id), (name.to_owned(), body)];
    Json::Object(fields.into()).to_text().into_bytes()
}

fn sort(message: Json, bytes: &[u8]) -> Said {
    let Json::Object(mut fields) = message else { return Said::Noise };
    let id = fields.remove("id");
    if let Some(method) = fields.get("method").and_then(Json::as_str) {
        return match id {
            Some(id) if id.to_text().len() > ID_BYTES_MAX => Said::Noise,
            Some(id) => Said::Asks { method: method.to_owned(), id },
            None => Said::Tells,
        };
    }
    // An error to a request that could not be read has no id.
    if id.is_none() && !fields.contains_key("error") {
        return Said::Noise;
    }
    answer(fields, &id.unwrap_or(Json::Null), bytes)
}

fn answer(fields: BTreeMap<String, Json>, id: &Json, bytes: &[u8]) -> Said {
    // Some servers answer a number with its text, which the client's reader takes for the number.
    let known = id.as_integer().and_then(|id| id.as_i64()).or_else(|| id.as_str()?.parse().ok());
    // The client's reader takes any list for an empty object, and a result beside an error for one of them.
    let formed = match (fields.get("result"), fields.get("error")) {
        (Some(Json::Object(result)), None) => has_form(result),
        (None, Some(Json::Object(_))) => Ok(()),
        (Some(_) | None, Some(_) | None) => Err("the answer is neither one result nor one error"),
    };
    // It takes much more than its bytes, and the client's reader takes as much again.
    drop(fields);
    if let Err(reason) = formed {
        return known.map_or(Said::Noise, |id| unreadable(id, reason));
    }
    match (serde_json::from_slice::<Message>(bytes), known) {
        (Ok(message @ (Message::Response(_) | Message::Error(_))), _) => Said::Answer(Box::new(message)),
        (Ok(_), Some(id)) => unreadable(id, "the answer is neither one result nor one error"),
        (Err(error), Some(id)) => unreadable(id, &format!("the answer has not the protocol's form: {error}")),
        (Ok(_) | Err(_), None) => Said::Noise,
    }
}

/// Whether a result is what it may be: the handshake's, a list of tools, or a call's, which the client's reader
/// takes for a success whatever is missing. A call has `content` or structured content, and says with a boolean
/// whether it failed.
fn has_form(result: &BTreeMap<String, Json>) -> Result<(), &'static str> {
    const FORMLESS: Result<(), &str> = Err("the answer has not the protocol's form: it is no result of a tool");
    let has = |name: &str| result.contains_key(name);
    let is_a_calls = has("content") || has("structuredContent") || has("isError");
    if !is_a_calls && (has("protocolVersion") || has("tools") || is_incomplete(result)) {
        return Ok(());
    }
    let structured = result.get("structuredContent").is_some_and(|content| content.as_object().is_some());
    match (result.get("content"), result.get("isError")) {
        (Some(Json::Array(_)), Some(Json::Bool(_)) | None) => Ok(()),
        (None, Some(Json::Bool(_)) | None) if structured => Ok(()),
        (Some(_) | None, Some(_) | None) => FORMLESS,
    }
}

/// Whether it says itself that it is not the end: the client has an answer to that.
fn is_incomplete(result: &BTreeMap<String, Json>) -> bool {
    result.get("resultType").and_then(Json::as_str).is_some_and(|kind| kind != "complete")
}

fn unreadable(id: i64, reason: &str) -> Said {
    let error = ErrorData::new(UNREADABLE, reason.to_owned(), None);
    Said::Answer(Box::new(Message::error(error, Some(RequestId::Number(id)))))
}

/// Whose answer a malformed message was meant to be.
fn lenient_id(bytes: &[u8]) -> Option<i64> {
    #[derive(Deserialize)]
    struct Envelope {
        id: i64,
        method: Option<serde::de::IgnoredAny>,
    }
    let text = String::from_utf8_lossy(bytes);
    let envelope: Envelope = serde_json::from_str(&text).ok()?;
    envelope.method.is_none().then_some(envelope.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(said: &Said) -> Option<(i64, i32)> {
        let Said::Answer(message) = said else { return None };
        let Message::Error(error) = &**message else { return None };
        let Some(RequestId::Number(id)) = error.id else { return None };
        Some((id, error.error.code.0))
    }

    #[test]
    fn a_malformed_answer_is_the_refusal_of_its_request() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"n":1e999}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":[]}"#,
        ] {
            assert_eq!(code(&read(text.as_bytes())), Some((7, -32700)), "{text}");
        }
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":{}{}}}}}"#, "[".repeat(500), "]".repeat(500));
        assert_eq!(code(&read(deep.as_bytes())), Some((7, -32700)));
        assert_eq!(code(&read(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\xff\"}}")), Some((7, -32700)));
    }

    #[test]
    fn a_call_without_the_protocols_form_is_the_refusal_of_its_request() {
        for result in [
            "{}",
            r#"{"_meta":{}}"#,
            r#"{"isError":true}"#,
            r#"{"isError":false}"#,
            r#"{"isError":"true","content":[]}"#,
            r#"{"isError":null,"content":[]}"#,
            r#"{"isError":true,"content":"no"}"#,
            r#"{"content":null,"structuredContent":{}}"#,
            r#"{"structuredContent":7}"#,
            r#"{"isError":false,"tools":[]}"#,
            r#"{"isError":false,"protocolVersion":"x"}"#,
            r#"{"resultType":"complete"}"#,
            r#"{"toolResult":"x"}"#,
            r#"{"is_error":true}"#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
            assert_eq!(code(&read(text.as_bytes())), Some((7, -32700)), "{result}");
        }
    }

    #[test]
    fn a_message_of_too_many_values_is_the_refusal_of_its_request() {
        let with = |values: String| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[],"x":[{values}0]}}}}"#);
        assert_eq!(code(&read(with("0,".repeat(100_000)).as_bytes())), Some((7, -32700)));
        assert_eq!(code(&read(with("{},".repeat(60_000)).as_bytes())), Some((7, -32700)));
        assert_eq!(code(&read(with("0,".repeat(90_000)).as_bytes())), None);
        let text = format!("{:?},", "\\\",[{".repeat(60_000));
        assert_eq!(code(&read(with(text).as_bytes())), None, "text is one value");
        assert!(matches!(read(format!("[{}0]", "0,".repeat(100_000)).as_bytes()), Said::Unreadable(_)));
    }

    #[test]
    fn an_id_that_is_given_back_has_a_limit() {
        let asked = |id: &str| read(format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#).as_bytes());
        assert!(matches!(asked(&"x".repeat(254)), Said::Asks { .. }));
        assert!(matches!(asked(&"x".repeat(255)), Said::Noise));
    }

    #[test]
    fn an_error_to_nobody_is_an_answer() {
        for id in ["", r#""id":null,"#] {
            let text = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32600,"message":"no"}}}}"#);
            assert!(matches!(read(text.as_bytes()), Said::Answer(_)), "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_noise_and_what_is_told_is_not_asked() {
        for text in ["[]", "{}", "7", r#"{"jsonrpc":"2.0","id":"x","result":[]}"#] {
            assert!(matches!(read(text.as_bytes()), Said::Noise), "{text}");
        }
        for text in ["", "x", "{\"id\":"] {
            assert!(matches!(read(text.as_bytes()), Said::Unreadable(_)), "{text}");
        }
        assert!(matches!(read(br#"{"jsonrpc":"2.0","method":"m","params":[]}"#), Said::Tells));
        assert!(matches!(read(br#"{"jsonrpc":"2.0","method":"m","id":null}"#), Said::Asks { .. }));
    }

    #[test]
    fn a_good_answer_stays_what_it_is() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#,
        ] {
            let Said::Answer(message) = read(text.as_bytes()) else { panic!("{text}") };
            assert!(!matches!(code(&Said::Answer(message)), Some((_, -32700))), "{text}");
        }
    }
}
