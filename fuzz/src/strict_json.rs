//! The strict JSON of payloads, beside `serde_json` as the second opinion (SPEC 4.W).

use std::fmt;

use portcullis::vocabulary::json::{DEPTH_MAX, Json, JsonError, JsonErrorKind};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// What must hold:
///
/// - A text that we read, `serde_json` reads too, as an equal value; only `-0` is our integer 0.
/// - A text that `serde_json` reads and we refuse has a repeated key, a nesting beyond 64, or a number that would
///   have been rounded: and it is the reason that we give, at its place.
/// - What was read is written, and read again as itself, through both doors.
/// - The canonical text is its own canonical text.
pub fn check(bytes: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(bytes);
    let through_serde = serde_json::from_slice::<Json>(bytes);
    match Json::parse_bytes(bytes) {
        Ok(ours) => {
            assert!(same(&ours, &theirs.expect("serde_json reads what we read")), "another value: {ours:?}");
            assert_eq!(through_serde.expect("both doors read the same texts"), ours);
            let found = serde_json::from_slice::<Found>(bytes).expect("serde_json reads what we read");
            assert!(!found.repeated && found.depth == ours.depth() && found.depth <= DEPTH_MAX);
            assert!(!literals(bytes).any(is_rounded), "a number was rounded");
            check_round_trip(&ours);
            check_canonical(&ours);
        }
        Err(error) => {
            through_serde.expect_err("both doors refuse the same texts");
            check_refusal(error, bytes, theirs.is_ok());
        }
    }
}

fn check_round_trip(json: &Json) {
    let text = json.to_text();
    assert_eq!(Json::parse(&text).as_ref(), Ok(json), "{text}");
    assert_eq!(serde_json::to_string(json).expect("what is not too deep is written"), text);
}

/// The canonical text is read back, unless it holds an integer that only a double could name; then again it is
/// its own canonical text, and it says the same.
fn check_canonical(json: &Json) {
    let canonical = json.canonical();
    match Json::parse(&canonical) {
        Ok(again) => {
            assert_eq!(again.canonical(), canonical);
            assert_eq!(Json::parse(&again.to_text()).expect("a text").canonical(), canonical);
        }
        Err(error) => assert_eq!(error.kind, JsonErrorKind::NumberOutOfRange, "{canonical}"),
    }
}

/// A refusal points into the text. Where `serde_json` reads the text, the reason is one of three, and is there.
fn check_refusal(error: JsonError, bytes: &[u8], readable: bool) {
    assert!(error.offset <= bytes.len(), "{error}");
    let Ok(text) = std::str::from_utf8(bytes) else {
        return assert_eq!(error.kind, JsonErrorKind::InvalidUtf8);
    };
    assert!(text.is_char_boundary(error.offset), "{error}");
    let (line, column) = error.locate(text);
    assert!(line > 0 && column > 0 && line <= bytes.len() + 1 && column <= bytes.len() + 1);
    if !readable {
        return;
    }
    let found = serde_json::from_slice::<Found>(bytes).expect("it is readable");
    match error.kind {
        JsonErrorKind::DuplicateKey => assert!(found.repeated, "no key is repeated: {error}"),
        JsonErrorKind::Depth => assert!(found.depth > DEPTH_MAX, "{} levels: {error}", found.depth),
        JsonErrorKind::NumberOutOfRange => {
            assert!(is_rounded(literal_at(&text[error.offset..])), "it would be exact: {error}")
        }
        other => panic!("{other:?} is no reason to refuse what is JSON: {error}"),
    }
}

/// Whether a literal names a number that neither an `i64`, a `u64` nor a finite double holds: an integer too long, or
/// digits that come to zero or infinity.
fn is_rounded(literal: &str) -> bool {
    if !literal.contains(['.', 'e', 'E']) {
        return literal.parse::<i64>().is_err() && literal.parse::<u64>().is_err();
    }
    let value: f64 = literal.parse().expect("a JSON number");
    let significand = literal.split(['e', 'E']).next().unwrap_or_default();
    value.is_infinite() || value == 0.0 && significand.contains(|letter| matches!(letter, '1'..='9'))
}

/// The literal that stands first.
fn literal_at(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter));
    &text[..end.unwrap_or(text.len())]
}

/// The numbers of a text that is JSON, as they are written.
fn literals(text: &[u8]) -> impl Iterator<Item = &str> {
    let (mut inside, mut escaped) = (false, false);
    let mut of_number = move |byte: &u8| {
        (inside, escaped) = match byte {
            b'"' if !escaped => (!inside, false),
            b'\\' => (inside, !escaped),
            _ => (inside, false),
        };
        !inside && (byte.is_ascii_digit() || b"+-.eE".contains(byte))
    };
    let tokens = text.split(move |byte| !of_number(byte)).map(|token| std::str::from_utf8(token).unwrap_or_default());
    // `true` and `false` have an `e` too.
    tokens.filter(|token| token.contains(|letter: char| letter.is_ascii_digit()))
}

/// Whether both say the same.
fn same(ours: &Json, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(ours), Value::Bool(theirs)) => ours == theirs,
        (Json::String(ours), Value::String(theirs)) => ours == theirs,
        (Json::Integer(ours), Value::Number(theirs)) => {
            // `-0` is the integer 0 here and a double there.
            let zero = theirs.is_f64() && theirs.as_f64() == Some(0.0) && ours.as_u64() == Some(0);
            zero || (ours.as_i64(), ours.as_u64()) == (theirs.as_i64(), theirs.as_u64())
        }
        (Json::Double(ours), Value::Number(theirs)) => {
            theirs.is_f64() && theirs.as_f64().map(f64::to_bits) == Some(ours.value().to_bits())
        }
        (Json::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        (Json::Object(ours), Value::Object(theirs)) => {
            let member = |(key, ours): (&String, &Json)| theirs.get(key).is_some_and(|theirs| same(ours, theirs));
            ours.len() == theirs.len() && ours.iter().all(member)
        }
        _ => false,
    }
}

/// What a text holds that has a value and is refused all the same, found by `serde_json`'s own reader.
#[derive(Default)]
struct Found {
    depth: usize,
    repeated: bool,
}

impl Found {
    fn inside(&mut self, inner: Self) {
        self.depth = self.depth.max(inner.depth + 1);
        self.repeated |= inner.repeated;
    }
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Found;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found, A::Error> {
        let mut found = Found { depth: 1, repeated: false };
        while let Some(inner) = items.next_element()? {
            found.inside(inner);
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let mut found = Found { depth: 1, repeated: false };
        let mut keys = std::collections::BTreeSet::new();
        while let Some((key, inner)) = members.next_entry::<String, Found>()? {
            found.repeated |= !keys.insert(key);
            found.inside(inner);
        }
        Ok(found)
    }
}
