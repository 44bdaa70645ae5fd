//! What is refused, why and where.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::JsonErrorKind::*;
use super::super::*;

/// One text for each way to be wrong, with the kind and the offset of its error.
const REFUSED: &[(&str, JsonErrorKind, usize)] = &[
    ("", Empty, 0),
    (" \n", Empty, 2),
    ("x", Syntax, 0),
    ("\u{feff}1", Syntax, 0),
    ("\u{a0}1", Syntax, 0),
    ("'a'", Syntax, 0),
    ("NaN", Syntax, 0),
    ("Infinity", Syntax, 0),
    ("tru ", Syntax, 3),
    ("nil", Syntax, 1),
    ("True", Syntax, 0),
    ("]", Syntax, 0),
    ("[1,]", Syntax, 3),
    ("[,1]", Syntax, 1),
    ("[1 2]", Syntax, 3),
    ("[1}", Syntax, 2),
    ("{,}", Syntax, 1),
    ("{\"a\":1,}", Syntax, 7),
    ("{\"a\" 1}", Syntax, 5),
    ("{\"a\",1}", Syntax, 4),
    ("{\"a\":}", Syntax, 5),
    ("{a:1}", Syntax, 1),
    ("{1:1}", Syntax, 1),
    ("[1] // x", Trailing, 4),
    ("/**/1", Syntax, 0),
    ("+1", Syntax, 0),
    (".5", Syntax, 0),
    ("01", Syntax, 1),
    ("-01", Syntax, 2),
    ("00", Syntax, 1),
    ("-x", Syntax, 1),
    ("1.x", Syntax, 2),
    ("[1.]", Syntax, 3),
    ("[1e]", Syntax, 3),
    ("[1e+]", Syntax, 4),
    ("[1.e5]", Syntax, 3),
    ("[0x10]", Syntax, 2),
    ("-", Unterminated, 1),
    ("1.", Unterminated, 2),
    ("1e", Unterminated, 2),
    ("tru", Unterminated, 3),
    ("[", Unterminated, 1),
    ("[1", Unterminated, 2),
    ("[1, ", Unterminated, 4),
    // Could have gone on as a double.
    ("[18446744073709552000", Unterminated, 21),
    ("{\"a\":1e400", Unterminated, 10),
    ("{\"a", Unterminated, 3),
    ("{\"a\"", Unterminated, 4),
    ("{\"a\":", Unterminated, 5),
    ("\"a\\", Unterminated, 3),
    ("\"\\u00", Unterminated, 5),
    ("\"\\ud83d", Unterminated, 7),
    ("\"\\ud83d\\", Unterminated, 8),
    ("\"\\ud83d\\ude", Unterminated, 11),
    ("1 2", Trailing, 2),
    ("1x", Trailing, 1),
    ("{}}", Trailing, 2),
    ("\"a\"b", Trailing, 3),
    ("1\0", Trailing, 1),
    ("{\"a\":1,\"a\":2}", DuplicateKey, 7),
    ("{\"a\":1,\"b\":2, \"\\u0061\":1}", DuplicateKey, 14),
    ("{\"\":1,\"\":1}", DuplicateKey, 6),
    ("[{\"a\":{\"b\":1,\"b\":{}}}]", DuplicateKey, 13),
    ("\"\\ud800\"", LoneSurrogate, 1),
    ("\"a\\udc00\"", LoneSurrogate, 2),
    ("\"\\udc00", LoneSurrogate, 1),
    ("\"\\ud800x\"", LoneSurrogate, 1),
    ("\"\\ud800\\n\"", LoneSurrogate, 1),
    ("\"\\ud800\\u0041\"", LoneSurrogate, 1),
    ("\"\\ud800\\ud800\\udc00\"", LoneSurrogate, 1),
    ("\"\\udfff\\ud800\"", LoneSurrogate, 1),
    ("{\"\\udbff\":1}", LoneSurrogate, 2),
    ("\"a\nb\"", ControlCharacter, 2),
    ("\"\0\"", ControlCharacter, 1),
    ("{\"a\tb\":1}", ControlCharacter, 3),
    ("\"a\\x\"", InvalidEscape, 2),
    ("\"\\'\"", InvalidEscape, 1),
    ("\"\\U0041\"", InvalidEscape, 1),
    ("\"\\u12\"", InvalidEscape, 1),
    ("\"\\u00g0\"", InvalidEscape, 1),
    ("\"\\u+041\"", InvalidEscape, 1),
    ("\"\\ud800\\u12\"", InvalidEscape, 7),
    ("\"\\é\"", InvalidEscape, 1),
    ("18446744073709551616", NumberOutOfRange, 0),
    ("[-9223372036854775809]", NumberOutOfRange, 1),
    ("-18446744073709551616", NumberOutOfRange, 0),
    ("[0, 100000000000000000000000000000000000000000]", NumberOutOfRange, 4),
    ("1e400", NumberOutOfRange, 0),
    ("[1e400 ", NumberOutOfRange, 1),
    ("-1.8e308", NumberOutOfRange, 0),
    ("1e99999999999999999999", NumberOutOfRange, 0),
    ("1e-400", NumberOutOfRange, 0),
    ("0.001e-400", NumberOutOfRange, 0),
    ("-2e-324", NumberOutOfRange, 0),
];

#[test]
fn each_wrong_text_is_refused_for_its_reason_at_its_place() {
    for &(text, kind, offset) in REFUSED {
        assert_eq!(Json::parse(text), Err(JsonError { kind, offset }), "{text:?}");
        assert_eq!(Json::parse_bytes(text.as_bytes()), Err(JsonError { kind, offset }), "{text:?}");
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_refused_before_anything_else() {
    for (bytes, offset) in
        [(&b"\"a\xff\""[..], 2), (b"x \xc0\x80", 2), (b"\"\xed\xa0\x80\"", 1), (b"\"\xf0\x9f\x98", 1)]
    {
        assert_eq!(Json::parse_bytes(bytes), Err(InvalidUtf8.at(offset)), "{bytes:?}");
    }
}

#[test]
fn every_kind_is_provoked() {
    let elsewhere = BTreeSet::from([Depth, InvalidUtf8]);
    let here: BTreeSet<_> = REFUSED.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(&here | &elsewhere, BTreeSet::from(JsonErrorKind::ALL));
}

#[test]
fn codes_are_permanent() {
    assert_eq!(
        JsonErrorKind::ALL.map(JsonErrorKind::code),
        [
            "empty",
            "syntax",
            "unterminated",
            "trailing",
            "depth",
            "duplicate_key",
            "lone_surrogate",
            "control_character",
            "invalid_escape",
            "number_out_of_range",
            "invalid_utf8",
        ]
    );
}

#[test]
fn an_error_shows_its_code_its_place_and_a_reason_of_its_own() {
    let error = Json::parse(r#"{"a":1,"a":2}"#).unwrap_err();
    assert_eq!(error.to_string(), "duplicate_key at byte 7: an object names the same key twice");
    let reasons: BTreeSet<_> = JsonErrorKind::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), JsonErrorKind::ALL.len());
}

#[test]
fn an_error_is_located_by_line_and_by_character() {
    for (text, place) in [
        ("", (1, 1)),
        ("[1,]", (1, 4)),
        ("[\n 1,\n ]", (3, 2)),
        ("[\"é😀\" x]", (1, 7)),
        ("[\"é\",\r\n\"😀\" x]", (2, 5)),
        ("[\n", (2, 1)),
    ] {
        assert_eq!(Json::parse(text).unwrap_err().locate(text), place, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_offset_is_located_in_any_text(text in any::<String>(), offset in 0..200_usize) {
        let (line, column) = Syntax.at(offset).locate(&text);
        prop_assert!((1..=text.matches('\n').count() + 1).contains(&line));
        prop_assert!((1..=text.chars().count() + 1).contains(&column));
    }
}
