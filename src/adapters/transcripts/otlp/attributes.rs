//! Attributes: names with values of OTLP's own form, of which a text or JSON is wanted.

use super::super::error::TranscriptError;
use super::super::node::{Form, Node};

/// How deep a value may nest; what is deeper is cut off as `null`.
const DEPTH_MAX: usize = 64;

/// The attributes of a span or an event, each value's JSON text still to be decoded.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a>(Vec<(String, &'a str)>);

impl<'a> Attributes<'a> {
    /// Reads the list of a span or an event.
    pub(super) fn read(list: Option<Node<'a, '_>>) -> Result<Self, TranscriptError> {
        let Some(list) = list else { return Ok(Self::default()) };
        let mut read = Vec::new();
        for (index, raw) in list.items()?.into_iter().enumerate() {
            let item = list.index(index, raw);
            let fields = item.fields()?;
            if let (Some(key), Some(value)) = (fields.text("key")?, fields.get("value")) {
                read.push((key, value.raw()));
            }
        }
        Ok(Self(read))
    }

    /// Whether it is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// The first of these that is there and not empty: a string's text, the JSON of anything else.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        let found = keys.iter().find_map(|key| self.0.iter().rev().find(|(name, _)| name == key));
        found.and_then(|(_, value)| value_text(value)).filter(|text| !text.is_empty())
    }

    /// The first of these that is there, as a whole number.
    pub(super) fn number(&self, keys: &[&str]) -> Option<u64> {
        self.text(keys)?.parse().ok()
    }

    /// Those whose name begins so: what comes after it, and the text.
    pub(super) fn under<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (&'s str, String)> {
        self.0.iter().filter_map(move |(name, value)| {
            let rest = name.strip_prefix(prefix)?;
            Some((rest, value_text(value)?))
        })
    }
}

/// The text of a value, or its JSON.
fn value_text(value: &str) -> Option<String> {
    let node = Node::root(value).ok()?;
    if node.form() == Form::Text {
        // Not OTLP, but written by some.
        return node.text().ok();
    }
    let fields = node.fields().ok()?;
    if let Some(text) = fields.any(&["stringValue", "string_value"]) {
        return text.loose_text().ok();
    }
    if let Some(plain) =
        fields.any(&["intValue", "int_value", "boolValue", "bool_value", "doubleValue", "double_value"])
    {
        return plain.loose_text().ok();
    }
    drop(fields);
    let mut json = String::new();
    write_json(&node, DEPTH_MAX, &mut json);
    Some(json)
}

/// Writes a value as plain JSON.
fn write_json(value: &Node<'_, '_>, depth: usize, json: &mut String) {
    let whole = json.len();
    if depth == 0 || value_json(value, depth, json).is_err() {
        json.truncate(whole);
        json.push_str("null");
    }
}

fn value_json(value: &Node<'_, '_>, depth: usize, json: &mut String) -> Result<(), TranscriptError> {
    let fields = value.fields()?;
    if let Some(list) = fields.any(&["arrayValue", "array_value"]) {
        let list = list.fields()?;
        json.push('[');
        if let Some(values) = list.get("values") {
            for (index, raw) in values.items()?.into_iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                write_json(&values.index(index, raw), depth - 1, json);
            }
        }
        json.push(']');
    } else if let Some(list) = fields.any(&["kvlistValue", "kvlist_value"]) {
        let list = list.fields()?;
        json.push('{');
        if let Some(values) = list.get("values") {
            for (index, raw) in values.items()?.into_iter().enumerate() {
                let item = values.index(index, raw);
                let item = item.fields()?;
                json.push_str(if index == 0 { "" } else { "," });
                json.push_str(item.get("key").map_or("\"\"", |key| key.raw()));
                json.push(':');
                match item.get("value") {
                    Some(value) => write_json(&value, depth - 1, json),
                    None => json.push_str("null"),
                }
            }
        }
        json.push('}');
    } else if let Some(number) = fields.any(&["intValue", "int_value"]) {
        json.push_str(number.raw().trim_matches('"'));
    } else if let Some((_, raw)) = fields.iter().next() {
        json.push_str(raw.get());
    } else {
        json.push_str("null");
    }
    Ok(())
}
