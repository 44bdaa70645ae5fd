//! Payloads: values that were encoded to JSON, and that to base64.
//!
//! Base64 only shrinks, and nothing here is unpacked, so that the payloads of a document decode to less than
//! its size. JSON that stands in a payload as a string is decoded where its reader asks for it, once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::error::TranscriptError;
use super::super::node::{Fields, Form, Node};
use super::super::note::{NoteKind, Notes};

/// The JSON texts of the payloads in a field, in order. One that is no JSON is noted and left out.
pub(super) fn texts(
    fields: &Fields<'_, '_>,
    key: &'static str,
    at: usize,
    notes: &mut Notes,
) -> Result<Vec<String>, TranscriptError> {
    let Some(node) = fields.get(key) else { return Ok(Vec::new()) };
    let inner = if node.form() == Form::Object { Some(node.fields()?) } else { None };
    let list = match &inner {
        Some(inner) => inner.get("payloads"),
        None => Some(node),
    };
    let Some(list) = list else { return Ok(Vec::new()) };
    let mut texts = Vec::new();
    for (index, raw) in list.items()?.into_iter().enumerate() {
        match decoded(&list.index(index, raw))? {
            Ok(text) => texts.push(text),
            Err(reason) => notes.at(at, NoteKind::NotJson { what: "a payload", reason }),
        }
    }
    Ok(texts)
}

/// The JSON text of a payload, or why there is none.
fn decoded(payload: &Node<'_, '_>) -> Result<Result<String, String>, TranscriptError> {
    let fields = payload.fields()?;
    let metadata = fields.of("metadata", Form::Object);
    let metadata = metadata.as_ref().map(|metadata| metadata.fields()).transpose()?;
    let encoding = metadata.as_ref().map(|metadata| metadata.text("encoding")).transpose()?.flatten();
    let encoding = encoding.map(|encoding| plain(&encoding));
    if let Some(Ok(encoding)) = &encoding {
        match encoding.as_str() {
            "binary/null" => return Ok(Ok("null".to_owned())),
            encoding if encoding.starts_with("json/") => {}
            encoding => return Ok(Err(format!("encoded as {encoding:?}"))),
        }
    }
    let Some(data) = fields.text("data")? else { return Ok(Err("it holds no data".to_owned())) };
    Ok(plain(&data))
}

fn plain(base64: &str) -> Result<String, String> {
    let bytes = STANDARD.decode(base64).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
