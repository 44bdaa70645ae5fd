//! JSON Pointers.

use proptest::prelude::*;

use super::super::*;
use super::json;
use super::strategies::{any_json, any_text};

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Every value inside `json` with the pointer to it, built without the code under test.
fn places<'json>(json: &'json Json, here: String, all: &mut Vec<(String, &'json Json)>) {
    all.push((here.clone(), json));
    for (index, item) in json.as_array().unwrap_or_default().iter().enumerate() {
        places(item, format!("{here}/{index}"), all);
    }
    for (key, member) in json.as_object().into_iter().flatten() {
        let token: String = key
            .chars()
            .map(|character| match character {
                '~' => "~0".to_owned(),
                '/' => "~1".to_owned(),
                other => other.to_string(),
            })
            .collect();
        places(member, format!("{here}/{token}"), all);
    }
}

proptest! {
    #[test]
    fn every_place_of_a_value_is_found(value in any_json()) {
        let mut all = Vec::new();
        places(&value, String::new(), &mut all);
        for (text, expected) in all {
            let found = value.pointer(&pointer(&text));
            prop_assert!(found.is_some_and(|found| std::ptr::eq(found, expected)), "{}", text);
        }
    }

    #[test]
    fn a_pointer_survives_its_text_and_the_wire(tokens in prop::collection::vec("[~/01a-é]{0,6}", 0..4)) {
        let text: String =
            tokens.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect();
        let parsed = pointer(&text);
        prop_assert_eq!(parsed.tokens(), &tokens[..]);
        prop_assert_eq!(parsed.to_string(), &text[..]);
        let wire = serde_json::to_string(&parsed).unwrap();
        prop_assert_eq!(&wire, &serde_json::to_string(&text).unwrap());
        prop_assert_eq!(serde_json::from_str::<Pointer>(&wire).unwrap(), parsed);
    }

    #[test]
    fn any_text_that_is_a_pointer_is_written_as_it_was(text in prop_oneof!["[/~01a]{0,8}", any_text()]) {
        if let Ok(pointer) = Pointer::parse(&text) {
            prop_assert_eq!(pointer.to_string(), text);
        }
    }
}

#[test]
fn the_sample_of_the_rfc_is_reproduced() {
    let document =
        json(r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#);
    assert_eq!(document.pointer(&pointer("")), Some(&document));
    assert_eq!(document.pointer(&Pointer::default()), Some(&document));
    for (text, value) in [
        ("/foo", r#"["bar","baz"]"#),
        ("/foo/0", r#""bar""#),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ] {
        assert_eq!(document.pointer(&pointer(text)), Some(&json(value)), "{text}");
    }
}

#[test]
fn escapes_are_undone_once() {
    let document = json(r#"{"~1":1,"/":2}"#);
    assert_eq!(document.pointer(&pointer("/~01")), Some(&json("1")));
    assert_eq!(document.pointer(&pointer("/~1")), Some(&json("2")));
}

#[test]
fn what_is_not_there_is_not_found() {
    let document = json(r#"{"a":[10,11],"s":"x","n":null}"#);
    for text in [
        "/b",
        "/a/2",
        "/a/-",
        "/a/00",
        "/a/01",
        "/a/+1",
        "/a/-1",
        "/a/ 1",
        "/a/",
        "/a/１",
        "/a/0/0",
        "/a/99999999999999999999",
        "/s/0",
        "/n/",
        "/A",
    ] {
        assert_eq!(document.pointer(&pointer(text)), None, "{text}");
    }
}

#[test]
fn a_text_that_is_no_pointer_is_refused() {
    for (text, error) in [
        ("a", PointerError::NoLeadingSlash),
        ("#/a", PointerError::NoLeadingSlash),
        ("~", PointerError::NoLeadingSlash),
        ("/~", PointerError::BareTilde { offset: 1 }),
        ("/a~2", PointerError::BareTilde { offset: 2 }),
        ("/é~0~/", PointerError::BareTilde { offset: 5 }),
        ("/~~0", PointerError::BareTilde { offset: 1 }),
    ] {
        assert_eq!(Pointer::parse(text), Err(error), "{text}");
        assert_eq!(text.parse::<Pointer>(), Err(error), "{text}");
        let wire = serde_json::to_string(text).unwrap();
        assert!(serde_json::from_str::<Pointer>(&wire).is_err(), "{text}");
    }
}
