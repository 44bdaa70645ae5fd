//! The canonical text of a payload: RFC 8785 with exact integers (`SPEC 7`, scope keys).
//!
//! Two payloads have the same canonical text exactly when they say the same: the same members in
//! any order, the same numbers in any spelling. RFC 8785 gets there by reading every number as a
//! double, which is why `1` and `1.0` share a text. It also makes one text of integers beyond
//! 2^53 that differ, and two record numbers that differ must never count as the same scope. So an
//! integral number that an [`Integer`] holds is written by its digits, whether it was spelled as
//! an integer or as a double; every other number has its ECMAScript text. Up to 2^53 both are the
//! text of RFC 8785.

use super::{Double, Integer, Json};

impl Json {
    /// The text by which payloads are compared: RFC 8785, except that integers beyond 2^53 keep
    /// their digits (`SPEC 7`).
    ///
    /// No white space; keys sorted by their UTF-16 code units; as few escapes as JSON allows; no
    /// Unicode normalisation. It is for comparing and hashing, not for reading back: `1.0` has
    /// become `1`, and a double from 2^64 to below 10^21 the digits of an integer out of range.
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        write_value(&mut text, self);
        text
    }
}

fn write_value(text: &mut String, json: &Json) {
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(true) => text.push_str("true"),
        Json::Bool(false) => text.push_str("false"),
        Json::Integer(value) => text.push_str(&value.to_string()),
        Json::Double(value) => write_double(text, *value),
        Json::String(string) => write_string(text, string),
        Json::Array(items) => write_list(text, ['[', ']'], items, write_value),
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            // Differs from the order of the map where a character beyond U+FFFF meets one from
            // U+E000 up.
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            write_list(text, ['{', '}'], members, |text, (key, value)| {
                write_string(text, key);
                text.push(':');
                write_value(text, value);
            });
        }
    }
}

fn write_list<Item>(
    text: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = Item>,
    mut write: impl FnMut(&mut String, Item),
) {
    text.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, item);
    }
    text.push(close);
}

fn write_double(text: &mut String, double: Double) {
    match integral(double) {
        Some(integer) => text.push_str(&integer.to_string()),
        None => text.push_str(ryu_js::Buffer::new().format_finite(double.value())),
    }
}

/// The integer that a double is equal to. `-0.0` is equal to 0.
fn integral(double: Double) -> Option<Integer> {
    let value = double.value();
    // Exact for an integral double in the range of `i128`; one beyond ends at its border, which
    // is no `Integer` either.
    if value.fract() == 0.0 { Integer::try_from(value as i128).ok() } else { None }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    let mut rest = string;
    while let Some((plain, special, after)) = split_at_special(rest) {
        text.push_str(plain);
        write_escape(text, special);
        rest = after;
    }
    text.push_str(rest);
    text.push('"');
}

/// The text before the first character that must be escaped, that character, and what follows.
fn split_at_special(string: &str) -> Option<(&str, char, &str)> {
    let (plain, tail) = string.split_at_checked(string.find(is_special)?)?;
    let mut characters = tail.chars();
    let special = characters.next()?;
    Some((plain, special, characters.as_str()))
}

fn is_special(character: char) -> bool {
    matches!(character, '"' | '\\' | '\0'..' ')
}

fn write_escape(text: &mut String, special: char) {
    match special {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\u{8}' => text.push_str("\\b"),
        '\t' => text.push_str("\\t"),
        '\n' => text.push_str("\\n"),
        '\u{c}' => text.push_str("\\f"),
        '\r' => text.push_str("\\r"),
        control => text.push_str(&format!("\\u{:04x}", u32::from(control))),
    }
}
