//! Documents that cannot be read: where, why, and the way out.

use portcullis::adapters::transcripts::{Transcript, TranscriptError};

fn refused(document: &[u8]) -> TranscriptError {
    Transcript::read(document).expect_err("not a transcript")
}

fn says(document: &str) -> String {
    refused(document.as_bytes()).to_string()
}

#[test]
fn an_unknown_shape_lists_the_shapes_known() {
    let said = says(r#"{"something":[]}"#);
    for part in [r#"[{"role":"#, r#""messages""#, r#""traj""#, r#""answer_generation""#, "`spec`"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert_eq!(refused(b"[]"), TranscriptError::Unrecognised);
}

#[test]
fn what_is_not_json_is_named_with_its_line_column_and_byte() {
    let said = says("[{\"role\":\"user\",\n  \"content\" \"q\"}]");
    assert!(said.starts_with("line 2, column 13 (byte 29): not JSON: expected `:`"), "{said}");
    let said = says("[]\n x");
    assert!(said.starts_with("line 2, column 2 (byte 4): not JSON: trailing characters"), "{said}");
    assert_eq!(refused(b"request: plain text"), TranscriptError::Unrecognised, "it does not begin as JSON");
    let said = says("");
    assert!(said.starts_with("line 1, column 1 (byte 0): not JSON: EOF"), "{said}");
}

#[test]
fn bytes_that_are_not_utf8_are_named_with_their_place() {
    let said = refused(b"[\n\"\xff\"]").to_string();
    assert!(said.starts_with("line 2, column 2 (byte 3): not UTF-8"), "{said}");
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_path_and_place() {
    let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"id":"x"}]}"#;
    let cases = [
        (
            "{\"traj\":[{\"role\":\"user\"},\n[\"user\",\"q\"]]}".to_owned(),
            "line 2, column 1 (byte 26): $.traj[1]: expected an object, found a list",
        ),
        (
            "[{\"role\":\"user\"},\n{\"content\":\"q\"}]".to_owned(),
            "line 2, column 15 (byte 32): $[1]: missing field `role`",
        ),
        (
            format!("{{\"messages\":[\n{call}]}}"),
            "line 2, column 87 (byte 100): $.messages[0].tool_calls[1]: missing field `function`",
        ),
        (r#"[{"role":"user","content":"\ud800"}]"#.to_owned(), "line 1, column 34 (byte 33): $[0].content: "),
        (
            r#"{"answer_generation":{"train_messages":[[{"role":"user","content":["a",{"text":"\udc00"}]}]]}}"#
                .to_owned(),
            "line 1, column 86 (byte 85): $.answer_generation.train_messages[0][0].content[1].text: ",
        ),
        (
            r#"[{"role":"assistant","function_call":"f"}]"#.to_owned(),
            "line 1, column 38 (byte 37): $[0].function_call: expected an object, found a string",
        ),
    ];
    for (document, expected) in cases {
        let said = says(&document);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_list_that_asks_nothing_is_refused() {
    for document in [r#"{"messages":[]}"#, r#"[{"role":"assistant","content":"hello"}]"#, r#"{"answer_generation":{}}"#]
    {
        assert!(matches!(refused(document.as_bytes()), TranscriptError::NoTurn { .. }), "{document}");
    }
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(refused(deep.as_bytes()), TranscriptError::Unrecognised);
    let ignored = format!(r#"[{{"role":"user","content":"q","extra":{deep}}}]"#);
    assert!(Transcript::read(ignored.as_bytes()).is_ok());
    let content = format!(r#"[{{"role":"user","content":{deep}}}]"#);
    assert!(Transcript::read(content.as_bytes()).is_ok(), "a part that is a list is noted and left out");
    let open = "[".repeat(500_000);
    assert!(matches!(refused(open.as_bytes()), TranscriptError::Malformed { .. }));
}
