//! Arbitrary values, their many spellings, and texts that are nearly JSON.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;

/// Any value, about five levels deep at most.
pub(super) fn any_json() -> impl Strategy<Value = Json> {
    any_scalar().prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::btree_map(any_text(), inner, 0..6).prop_map(Json::Object),
        ]
    })
}

/// Any array, object or string: the values whose every cut is noticed.
pub(super) fn any_delimited() -> impl Strategy<Value = Json> {
    prop_oneof![
        any_text().prop_map(Json::String),
        any_json().prop_map(|json| Json::Array(vec![json])),
        (any_text(), any_json()).prop_map(|(key, json)| Json::Object(BTreeMap::from([(key, json)]))),
    ]
}

fn any_scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any_integer().prop_map(Json::Integer),
        any_double().prop_map(Json::Double),
        any_text().prop_map(Json::String),
    ]
}

pub(super) fn any_integer() -> impl Strategy<Value = Integer> {
    const EDGES: [i128; 9] = [
        0,
        -1,
        1 << 53,
        (1 << 53) + 1,
        i64::MIN as i128,
        i64::MAX as i128,
        i64::MAX as i128 + 1,
        u64::MAX as i128 - 1,
        u64::MAX as i128,
    ];
    prop_oneof![
        prop::sample::select(&EDGES[..]).prop_map(|edge| Integer::try_from(edge).unwrap()),
        any::<i64>().prop_map(Integer::from),
        any::<u64>().prop_map(Integer::from),
        (-9_i64..10).prop_map(Integer::from),
    ]
}

pub(super) fn any_double() -> impl Strategy<Value = Double> {
    const EDGES: [f64; 12] = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        9_007_199_254_740_992.0,
        9_223_372_036_854_775_808.0,
        18_446_744_073_709_551_616.0,
        1e21,
    ];
    prop_oneof![
        prop::sample::select(&EDGES[..]),
        // All bit patterns, so that every exponent is as likely as any other.
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
        (-100_i32..100).prop_map(|hundredths| f64::from(hundredths) / 4.0),
    ]
    .prop_map(|value| Double::try_from(value).unwrap())
}

/// Text rich in what needs an escape, in surrogate pairs, and in runs longer than eight bytes.
pub(super) fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{0,20}",
        1 => any::<char>().prop_map(String::from),
        1 => prop::sample::select(&[
            "\"", "\\", "/", "\n", "\t", "\r", "\0", "\u{8}", "\u{c}", "\u{1f}", "\u{7f}", "é",
            "\u{2028}", "\u{d7ff}", "\u{e000}", "\u{ffff}", "\u{10000}", "😀", "\u{10ffff}",
        ][..]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// A value and one of its spellings: white space anywhere, any character escaped, members in any
/// order.
pub(super) fn any_spelling() -> impl Strategy<Value = (Json, String)> {
    (any_json(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(json, choices)| {
        let mut speller = Speller { text: String::new(), choices, next: 0 };
        speller.value(&json);
        (json, speller.text)
    })
}

struct Speller {
    text: String,
    choices: Vec<u8>,
    next: usize,
}

impl Speller {
    fn choose(&mut self, ways: u8) -> u8 {
        self.next += 1;
        self.choices[self.next % self.choices.len()] % ways
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\n\t", "\r\n "][usize::from(self.choose(6))];
        self.text.push_str(space);
    }

    fn token(&mut self, token: &str) {
        self.space();
        self.text.push_str(token);
        self.space();
    }

    fn value(&mut self, json: &Json) {
        match json {
            Json::Null | Json::Bool(_) | Json::Integer(_) => self.token(&json.to_text()),
            Json::Double(double) => match self.choose(3) {
                0 => self.token(&json.to_text()),
                1 => self.token(&format!("{:e}", double.value())),
                _ => self.token(&format!("{:E}", double.value())),
            },
            Json::String(string) => self.string(string),
            Json::Array(items) => {
                self.token("[");
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.token(",");
                    }
                    self.value(item);
                }
                self.token("]");
            }
            Json::Object(members) => {
                self.token("{");
                let mut members: Vec<_> = members.iter().collect();
                if self.choose(2) == 0 {
                    members.reverse();
                }
                for (index, (key, member)) in members.into_iter().enumerate() {
                    if index > 0 {
                        self.token(",");
                    }
                    self.string(key);
                    self.token(":");
                    self.value(member);
                }
                self.token("}");
            }
        }
    }

    fn string(&mut self, string: &str) {
        self.space();
        self.text.push('"');
        for character in string.chars() {
            let must_escape = matches!(character, '"' | '\\' | '\0'..' ');
            if must_escape || self.choose(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let digits = if self.choose(2) == 0 { format!("{unit:04x}") } else { format!("{unit:04X}") };
                    self.text.push_str(&format!("\\u{digits}"));
                }
            } else {
                self.text.push(character);
            }
        }
        self.text.push('"');
        self.space();
    }
}

/// A good text with a few of its characters replaced, removed, added or doubled.
pub(super) fn any_mutation() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..5_u8, any_scrap()), 1..4);
    (any_spelling(), edits).prop_map(|((_, text), edits)| {
        let mut characters: Vec<char> = text.chars().collect();
        for (index, edit, scrap) in edits {
            let at = index.index(characters.len() + 1);
            let end = (at + 1).min(characters.len());
            match edit {
                0 => drop(characters.drain(at..end)),
                1 => drop(characters.splice(at..end, scrap.chars())),
                2 => drop(characters.splice(at..at, scrap.chars())),
                3 => characters.truncate(at),
                _ => {
                    let again: Vec<char> = characters[..at].to_vec();
                    characters.extend(again);
                }
            }
        }
        characters.into_iter().collect()
    })
}

/// A piece of text that means something to a JSON parser.
fn any_scrap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\\u",
            "\\ud800",
            "\\udc00",
            "\\x",
            "0",
            "00",
            "-",
            "-0",
            "1",
            "9223372036854775808",
            "18446744073709551616",
            "1e400",
            "1e-400",
            ".",
            ".5",
            "1.",
            "e",
            "E+",
            "true",
            "nul",
            "NaN",
            " ",
            "\n",
            "\u{0}",
            "\u{b}",
            "\u{a0}",
            "\u{feff}",
            "é",
            "😀",
            "\"a\":1,",
            "[[",
            "//",
        ][..],
    )
}
