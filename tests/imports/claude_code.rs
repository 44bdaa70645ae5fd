use portcullis::adapters::transcripts::Claim;
use portcullis::adapters::transcripts::Format::ClaudeCode;

use crate::support::{all, notes, one, told};

fn user(uuid: &str, content: &str) -> String {
    format!(r#"{{"type":"user","sessionId":"s","uuid":"{uuid}","message":{{"role":"user","content":{content}}}}}"#)
}

fn assistant(uuid: &str, id: &str, part: &str) -> String {
    format!(
        r#"{{"type":"assistant","sessionId":"s","uuid":"{uuid}","message":{{"id":"{id}","role":"assistant","model":"m","content":[{part}],"stop_reason":null,"usage":{{"input_tokens":2,"cache_read_input_tokens":5,"output_tokens":1}}}}}}"#
    )
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#)
}

fn result(id: &str, more: &str) -> String {
    format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"of {id}"{more}}}]"#)
}

fn session(lines: &[String]) -> String {
    lines.join("\n")
}

#[test]
fn lines_of_one_message_are_one_reply_also_with_results_between_them() {
    let read = one(
        ClaudeCode,
        &session(&[
            user("1", r#""go""#),
            assistant("2", "m1", r#"{"type":"thinking","thinking":"hm"}"#),
            assistant("3", "m1", r#"{"type":"text","text":"look"}"#),
            assistant("4", "m1", &call("a")),
            user("5", &result("a", "")),
            assistant("6", "m1", &call("b")),
            user("7", &result("b", r#","is_error":true"#)),
            assistant("8", "m2", r#"{"type":"text","text":"done"}"#),
        ]),
    );
    assert_eq!(told(&read), ["go: look|f({})=of a|f({})!of b; done"]);
    assert_eq!(read.turns[0].replies[0].usage.input_tokens, Some(7), "what came from the cache was input too");
    assert_eq!(notes(&read), ["line 2: the model's reasoning, left out"]);
}

#[test]
fn a_message_id_that_comes_again_later_is_another_reply() {
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let read = one(
        ClaudeCode,
        &session(&[
            user("1", r#""a""#),
            assistant("2", "m1", &text("x")),
            user("3", r#""b""#),
            assistant("4", "m1", &text("y")),
        ]),
    );
    assert_eq!(told(&read), ["a: x", "b: y"]);
    assert_eq!(notes(&read), ["line 4: its id was used before: taken as another entry"]);
}

#[test]
fn a_sidechain_is_a_recording_of_its_own() {
    let aside = |uuid: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#"{{"type":"{role}","isSidechain":true,"sessionId":"s","uuid":"{uuid}","parentUuid":{parent},"message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let read = all(
        ClaudeCode,
        &session(&[
            user("1", r#""go""#),
            aside("2", "null", "user", "sub one"),
            aside("3", "null", "user", "sub two"),
            aside("4", r#""2""#, "assistant", "one"),
            aside("5", r#""3""#, "assistant", "two"),
            assistant("6", "m1", r#"{"type":"text","text":"done"}"#),
        ]),
    );
    assert_eq!(read.iter().flat_map(told).collect::<Vec<_>>(), ["go: done", "sub one: one", "sub two: two"]);
    assert_eq!(notes(&read[1]), ["line 2: a conversation of its own: a subagent"]);
}

#[test]
fn what_the_runtime_wrote_is_left_out_and_what_is_no_object_is_skipped_with_its_place() {
    let meta =
        r#"{"type":"user","isMeta":true,"sessionId":"s","uuid":"9","message":{"role":"user","content":"Caveat"}}"#;
    let read = one(
        ClaudeCode,
        &session(&[
            user("1", r#""go""#),
            "42".to_owned(),
            "[1]".to_owned(),
            String::new(),
            "{\"cut".to_owned(),
            meta.to_owned(),
            r#"{"type":"summary","summary":"s","leafUuid":"1"}"#.to_owned(),
            r#"{"type":"system","subtype":"init","sessionId":"s"}"#.to_owned(),
            assistant("2", "m1", r#"{"type":"text","text":"done"}"#),
        ]),
    );
    assert_eq!(told(&read), ["go: done"]);
    assert_eq!(
        notes(&read),
        [
            "line 2, column 1 (byte 84): 2 lines skipped, the first since: $: expected an object, found a number, a boolean or null",
            "line 5, column 5 (byte 96): skipped: not JSON: EOF while parsing a string",
            "line 6: a message that the runtime wrote, left out",
            r#"line 7: a line of type "summary", left out"#,
            r#"line 8: a line of type "system" "init", left out"#,
        ]
    );
}

#[test]
fn an_interruption_a_failed_request_and_a_streamed_result_are_claims() {
    let claim = |line: &str| one(ClaudeCode, &session(&[user("1", r#""go""#), line.to_owned()])).turns.remove(0).claim;
    assert_eq!(claim(&user("2", r#"[{"type":"text","text":"[Request interrupted by user]"}]"#)), Claim::Cancelled);
    let failed = r#"{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","sessionId":"s","uuid":"2","message":{"id":"x","role":"assistant","content":[{"type":"text","text":"API Error"}]}}"#;
    let error = match claim(failed) {
        Claim::ModelFailed { error } => error.code().to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(error, "rate_limited");
    let result = |subtype: &str| claim(&format!(r#"{{"type":"result","subtype":"{subtype}","session_id":"s"}}"#));
    assert_eq!(result("success"), Claim::Success);
    assert!(matches!(result("error_max_turns"), Claim::LimitReached { .. }));
    assert!(matches!(result("error_during_execution"), Claim::Failed { .. }));
}
