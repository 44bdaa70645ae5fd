//! What is accepted, and as which value.

use proptest::prelude::*;

use super::super::*;
use super::json;
use super::strategies::{any_delimited, any_json, any_mutation, any_spelling};

proptest! {
    #[test]
    fn a_value_survives_its_own_text(value in any_json()) {
        prop_assert_eq!(Json::parse(&value.to_text()), Ok(value));
    }

    #[test]
    fn every_spelling_of_a_value_is_that_value((value, text) in any_spelling()) {
        prop_assert_eq!(Json::parse(&text), Ok(value.clone()));
        prop_assert_eq!(Json::parse_bytes(text.as_bytes()), Ok(value));
    }

    #[test]
    fn what_is_accepted_is_written_the_same_from_then_on(text in any_mutation()) {
        if let Ok(value) = Json::parse(&text) {
            let written = value.to_text();
            prop_assert_eq!(Json::parse(&written).map(|json| json.to_text()), Ok(written));
        }
    }

    #[test]
    fn serde_json_reads_the_same_value((_, text) in any_spelling()) {
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ours = json(&text);
        // Compared as text that we write, for `Value` may order and compare as features say.
        prop_assert_eq!(json(&theirs.to_string()).canonical(), ours.canonical());
    }

    #[test]
    fn a_text_is_refused_as_by_serde_json_but_for_what_we_refuse_beyond_it(text in any_mutation()) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match Json::parse(&text) {
            Ok(_) => prop_assert!(theirs.is_ok(), "{theirs:?}"),
            Err(error) => match error.kind {
                // Of a double key serde_json keeps the last, and it reads any integer as a double.
                JsonErrorKind::DuplicateKey | JsonErrorKind::NumberOutOfRange => {}
                // It counts to another depth.
                JsonErrorKind::Depth => {}
                JsonErrorKind::Empty
                | JsonErrorKind::Syntax
                | JsonErrorKind::Unterminated
                | JsonErrorKind::Trailing
                | JsonErrorKind::LoneSurrogate
                | JsonErrorKind::ControlCharacter
                | JsonErrorKind::InvalidEscape
                | JsonErrorKind::InvalidUtf8 => prop_assert!(theirs.is_err(), "{error}"),
            },
        }
    }

    #[test]
    fn every_cut_of_a_delimited_value_is_unterminated(value in any_delimited()) {
        let text = value.to_text();
        for at in (1..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let cut = &text[..at];
            prop_assert_eq!(Json::parse(cut), Err(JsonErrorKind::Unterminated.at(at)), "{}", cut);
        }
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error_inside_them(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Err(error) = Json::parse_bytes(&bytes) {
            prop_assert!(error.offset <= bytes.len());
        }
    }

    #[test]
    fn any_nearly_json_bytes_give_a_value_or_an_error_inside_them(
        text in any_mutation(),
        index in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = text.into_bytes();
        if !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Err(error) = Json::parse_bytes(&bytes) {
            prop_assert!(error.offset <= bytes.len());
        }
    }

    #[test]
    fn a_special_byte_is_found_at_every_place_of_a_run(
        before in 0..20_usize,
        after in 0..20_usize,
        filler in prop::sample::select(&['a', ' ', '!', '#', '[', ']', '\u{7f}', 'é', '😀'][..]),
    ) {
        let [head, tail] = [before, after].map(|count| filler.to_string().repeat(count));
        for (spelled, meant) in [("\\\"", "\""), ("\\\\", "\\"), ("\\u0000", "\0"), ("\\u001F", "\u{1f}")] {
            let string = json(&format!("\"{head}{spelled}{tail}\""));
            prop_assert_eq!(string, Json::from(format!("{head}{meant}{tail}")));
        }
        for bare in '\0'..' ' {
            let refused = Json::parse(&format!("\"{head}{bare}{tail}\"")).unwrap_err();
            prop_assert_eq!(refused, JsonErrorKind::ControlCharacter.at(1 + head.len()));
        }
    }
}

#[test]
fn every_kind_of_value_is_read() {
    let value = json(r#" { "n": null, "t": true, "f": false, "i": -7, "d": 0.5, "s": "x", "a": [1, []], "o": {} } "#);
    let kinds: Vec<_> = value.as_object().unwrap().iter().map(|(key, json)| (key.as_str(), json.kind_name())).collect();
    assert_eq!(
        kinds,
        [
            ("a", "array"),
            ("d", "number"),
            ("f", "boolean"),
            ("i", "integer"),
            ("n", "null"),
            ("o", "object"),
            ("s", "string"),
            ("t", "boolean"),
        ]
    );
    assert_eq!(value.kind_name(), "object");
}

#[test]
fn every_escape_is_undone() {
    assert_eq!(
        json(r#""\" \\ \/ \b \f \n \r \t \u0041 \u00e9 \u20AC \uD83D\uDE00""#).as_str(),
        Some("\" \\ / \u{8} \u{c} \n \r \t A é € 😀")
    );
}

#[test]
fn the_borders_of_the_surrogates_are_characters() {
    assert_eq!(json(r#""\uD7FF\uE000\uD800\uDC00\uDBFF\uDFFF""#).as_str(), Some("\u{d7ff}\u{e000}\u{10000}\u{10ffff}"));
}

#[test]
fn only_a_fraction_or_an_exponent_makes_a_double() {
    for (text, kind) in [
        ("0", "integer"),
        ("-0", "integer"),
        ("10", "integer"),
        ("0.0", "number"),
        ("1e0", "number"),
        ("1E+2", "number"),
        ("-1.25e-2", "number"),
    ] {
        assert_eq!(json(text).kind_name(), kind, "{text}");
    }
}

#[test]
fn minus_zero_is_an_integer_and_minus_zero_point_zero_keeps_its_sign() {
    assert_eq!(json("-0"), Json::from(0_i64));
    let Json::Double(zero) = json("-0.0") else { panic!("a double") };
    assert!(zero.value().is_sign_negative());
    assert_eq!(json("-0.0").to_text(), "-0.0");
    assert_eq!(json("-0e9").to_text(), "-0.0");
}

#[test]
fn integers_are_exact_up_to_both_ends() {
    for text in ["-9223372036854775808", "9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        assert_eq!(json(text).to_text(), text);
    }
}

#[test]
fn a_double_literal_is_the_nearest_double() {
    for (text, value) in [
        ("1.7976931348623157e308", f64::MAX),
        ("4.9e-324", 5e-324),
        ("2.2250738585072011e-308", 2.225_073_858_507_201e-308),
        ("0.1000000000000000055511151231257827", 0.1),
        ("9007199254740993.0", 9_007_199_254_740_992.0),
        ("0e999999999999999999999", 0.0),
        ("0E5", 0.0),
    ] {
        assert_eq!(json(text), Json::from(Double::try_from(value).unwrap()), "{text}");
    }
}

#[test]
fn sixty_four_levels_are_accepted_and_one_more_is_refused() {
    let nested =
        |open: &str, inner: &str, close: &str, levels: usize| open.repeat(levels) + inner + &close.repeat(levels);
    for (open, inner, close) in [("[", "", "]"), ("[", "1", "]"), ("{\"a\":", "{}", "}"), ("[{\"a\":", "0", "}]")] {
        let per_repeat = open.matches(['[', '{']).count();
        let own = usize::from(inner == "{}");
        let levels = (DEPTH_MAX - own) / per_repeat;
        let deepest = nested(open, inner, close, levels);
        assert_eq!(json(&deepest).depth(), DEPTH_MAX);
        let beyond = Json::parse(&format!("[{deepest}]")).unwrap_err();
        assert_eq!(beyond.kind, JsonErrorKind::Depth, "{beyond}");
    }
    assert_eq!(Json::parse(&"[".repeat(1_000_000)), Err(JsonErrorKind::Depth.at(DEPTH_MAX)));
}

#[test]
fn siblings_do_not_add_to_the_depth() {
    let deepest = "[".repeat(DEPTH_MAX - 1) + &"]".repeat(DEPTH_MAX - 1);
    assert_eq!(json(&format!("[{deepest},{deepest}]")).depth(), DEPTH_MAX);
}
