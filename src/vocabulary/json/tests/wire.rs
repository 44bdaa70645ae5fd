//! Both ways through serde, and the door to schema validators.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::super::*;
use super::json;
use super::strategies::{any_json, any_spelling};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Carrier {
    before: u8,
    payload: Json,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    maybe: Option<Json>,
}

proptest! {
    #[test]
    fn a_value_survives_the_wire(value in any_json(), maybe in proptest::option::of(any_json())) {
        let carrier = Carrier { before: 1, payload: value, maybe };
        let text = serde_json::to_string(&carrier).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Carrier>(&text).unwrap(), &carrier);
        prop_assert_eq!(&serde_json::from_slice::<Carrier>(text.as_bytes()).unwrap(), &carrier);
        prop_assert_eq!(&serde_json::from_reader::<_, Carrier>(text.as_bytes()).unwrap(), &carrier);
    }

    #[test]
    fn serde_and_display_write_the_same_text(value in any_json()) {
        prop_assert_eq!(serde_json::to_string(&value).unwrap(), value.to_string());
    }

    #[test]
    fn equal_values_are_equal_bytes((value, text) in any_spelling()) {
        prop_assert_eq!(json(&text).to_text(), value.to_text());
    }

    #[test]
    fn a_schema_validator_sees_the_same_value(value in any_json()) {
        let seen = value.to_value();
        // Its own text, whatever the order of its keys, reads back as the value.
        prop_assert_eq!(json(&seen.to_string()), value);
    }
}

#[test]
fn keys_are_written_sorted_and_nothing_is_added() {
    assert_eq!(
        json(r#" {"b" : [ 1 , 2.50 ] , "a\u0062" : null , "B" : "\/" } "#).to_text(),
        r#"{"B":"/","ab":null,"b":[1,2.5]}"#
    );
}

/// Doubles stand in histories that are hashed: a writer that spells one differently breaks them.
#[test]
fn the_spelling_of_doubles_is_pinned() {
    for (literal, written) in [
        ("0.0", "0.0"),
        ("-0.0", "-0.0"),
        ("1.0", "1.0"),
        ("0.1", "0.1"),
        ("1e2", "100.0"),
        ("123456789.125", "123456789.125"),
        ("0.00001", "0.00001"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "10000000000000000.0"),
        ("-1e20", "-100000000000000000000.0"),
        ("1e21", "1e+21"),
        ("1.5e300", "1.5e+300"),
        ("-1.25e-7", "-1.25e-7"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157E+308", "1.7976931348623157e+308"),
    ] {
        assert_eq!(json(literal).to_text(), written);
        assert_eq!(serde_json::to_string(&json(literal)).unwrap(), written);
    }
}

#[test]
fn a_refusal_keeps_its_code_and_its_offset_inside_the_payload() {
    for (payload, reason) in [
        (r#"{"a":1,"a":2}"#, "duplicate_key at byte 7"),
        (r#"["\ud800"]"#, "lone_surrogate at byte 2"),
        ("[1e400]", "number_out_of_range at byte 1"),
        ("18446744073709551616", "number_out_of_range at byte 0"),
        ("1e-400", "number_out_of_range at byte 0"),
    ] {
        let text = format!(r#"{{"before":1,"payload":  {payload}}}"#);
        let borrowed = serde_json::from_str::<Carrier>(&text).unwrap_err().to_string();
        let read = serde_json::from_reader::<_, Carrier>(text.as_bytes()).unwrap_err().to_string();
        assert!(borrowed.starts_with(reason), "{borrowed}");
        assert!(read.starts_with(reason), "{read}");
    }
}

#[test]
fn the_depth_is_counted_from_the_root_of_the_payload() {
    let deepest = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
    let wrapped = format!(r#"[[[{{"before":1,"payload":{deepest}}}]]]"#);
    let [[[carrier]]] = serde_json::from_str::<[[[Carrier; 1]; 1]; 1]>(&wrapped).unwrap();
    assert_eq!(carrier.payload.depth(), DEPTH_MAX);
    let beyond = wrapped.replace(&deepest, &format!("[{deepest}]"));
    let refused = serde_json::from_str::<[[[Carrier; 1]; 1]; 1]>(&beyond).unwrap_err();
    assert!(refused.to_string().starts_with("depth at byte 64"), "{refused}");
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let deeper = |json: Json, levels| (0..levels).fold(json, |json, _| Json::from(vec![json]));
    let deepest = deeper(json("{}"), DEPTH_MAX - 1);
    assert!(serde_json::to_string(&deepest).is_ok());
    let beyond = Json::Object([("a".to_owned(), deepest)].into());
    assert_eq!(beyond.depth(), DEPTH_MAX + 1);
    assert!(serde_json::to_string(&beyond).is_err());
    assert_eq!(Json::parse(&beyond.to_text()).unwrap_err().kind, JsonErrorKind::Depth);
}

#[test]
fn null_is_present_and_only_a_missing_field_is_absent() {
    let read = |text| serde_json::from_str::<Carrier>(text).unwrap().maybe;
    assert_eq!(read(r#"{"before":1,"payload":0,"maybe":null}"#), Some(Json::Null));
    assert_eq!(read(r#"{"before":1,"payload":0}"#), None);
}

/// A buffered container has rounded and merged before a payload could look.
#[test]
fn a_payload_inside_a_buffered_container_is_refused() {
    #[derive(Debug, Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Report {
            #[serde(rename = "payload")]
            _payload: Json,
        },
    }
    assert!(serde_json::from_str::<Tagged>(r#"{"type":"report","payload":1}"#).is_err());
}

#[cfg(feature = "schema")]
#[test]
fn the_json_schema_allows_everything() {
    assert_eq!(schemars::schema_for!(Json).as_value().pointer("/type"), None);
    let mut generator = schemars::SchemaGenerator::default();
    assert_eq!(generator.subschema_for::<Json>().as_bool(), Some(true));
    let pointer = generator.root_schema_for::<super::super::Pointer>();
    assert_eq!(pointer.get("format").and_then(|format| format.as_str()), Some("json-pointer"));
}

#[test]
fn accessors_answer_for_their_own_kind_only() {
    let samples = ["null", "true", "1", "1.5", "\"x\"", "[1]", "{\"a\":1}"].map(json);
    let answers = samples.each_ref().map(|json| {
        [
            json.as_bool().is_some(),
            json.as_integer().is_some(),
            json.as_str().is_some(),
            json.as_array().is_some(),
            json.as_object().is_some(),
        ]
    });
    assert_eq!(
        answers,
        [
            [false, false, false, false, false],
            [true, false, false, false, false],
            [false, true, false, false, false],
            [false, false, false, false, false],
            [false, false, true, false, false],
            [false, false, false, true, false],
            [false, false, false, false, true],
        ]
    );
    assert_eq!(json("false").as_bool(), Some(false));
    assert_eq!(json("7").as_integer().and_then(Integer::as_i64), Some(7));
    assert_eq!(json("\"x\"").as_str(), Some("x"));
    assert_eq!(json("[1,2]").as_array(), Some(&[Json::from(1_i64), Json::from(2_i64)][..]));
}

#[test]
fn a_member_is_removed_once_and_only_from_an_object() {
    let mut object = json(r#"{"a":1,"b":2}"#);
    assert_eq!(object.remove("a"), Some(Json::from(1_i64)));
    assert_eq!(object.remove("a"), None);
    assert_eq!(object, json(r#"{"b":2}"#));
    assert_eq!(json("[1]").remove("0"), None);
}

#[test]
fn values_are_made_from_what_rust_has() {
    for (made, text) in [
        (Json::from(true), "true"),
        (Json::from(7_u32), "7"),
        (Json::from(-7_i64), "-7"),
        (Json::from(u64::MAX), "18446744073709551615"),
        (Json::from("x"), "\"x\""),
        (Json::from(String::from("y")), "\"y\""),
        (Json::from(vec![Json::Null]), "[null]"),
        (Json::from(BTreeMap::from([(String::from("k"), Json::Null)])), "{\"k\":null}"),
    ] {
        assert_eq!(made, json(text));
    }
}
