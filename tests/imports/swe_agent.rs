use portcullis::adapters::transcripts::Claim;
use portcullis::adapters::transcripts::Format::SweAgent;

use crate::support::{notes, one, told};

fn document(history: &str, info: &str) -> String {
    format!(r#"{{"environment":"e","history":[{history}],"trajectory":[],"info":{info}}}"#)
}

const ASKED: &str = r#"{"role":"user","content":"fix it","agent":"main"}"#;
const LISTED: &str =
    r#"{"role":"assistant","content":"look\n```\nls -l\n```","thought":"look","action":"ls -l\n","agent":"main"}"#;
const SHOWN: &str = r#"{"role":"user","content":"a file","agent":"main"}"#;

#[test]
fn a_command_is_a_call_and_the_message_after_it_its_result() {
    let read = one(SweAgent, &document(&[ASKED, LISTED, SHOWN].join(","), "{}"));
    assert_eq!(told(&read), [r#"fix it: look|ls({"command":"ls -l"})=a file"#]);
    assert!(notes(&read).contains(&"commands name no tool: their first word was taken".to_owned()));
}

#[test]
fn a_demonstration_is_left_out() {
    let shown = r#"{"role":"user","content":"an example","is_demo":true,"agent":"main"}"#;
    let read = one(SweAgent, &document(&[shown, ASKED, LISTED].join(","), "{}"));
    assert_eq!(told(&read), [r#"fix it: look|ls({"command":"ls -l"})?"#]);
    assert_eq!(notes(&read)[1], "message 0: a demonstration, left out");
}

#[test]
fn what_was_submitted_is_the_answer() {
    let submit = r#"{"role":"assistant","content":"done","thought":"done","action":"submit","agent":"main","tool_calls":[{"id":"a","function":{"name":"submit","arguments":"{}"}}]}"#;
    let patch = r#"{"role":"tool","content":"diff","tool_call_ids":["a"],"agent":"main"}"#;
    let submitted = |more: &[&str], info: &str| {
        let history = [&[ASKED, submit], more].concat().join(",");
        told(&one(SweAgent, &document(&history, info)))
    };
    assert_eq!(submitted(&[], r#"{"submission":"the patch"}"#), ["fix it: the patch"]);
    assert_eq!(submitted(&[patch], "{}"), ["fix it: diff"]);
    // Another word after it: it was a call like any other.
    let after = r#"{"role":"assistant","content":"more","agent":"main"}"#;
    assert_eq!(submitted(&[patch, after], "{}"), ["fix it: done|submit({})=diff; more"]);
}

#[test]
fn the_exit_status_is_the_claim() {
    let claim = |status: &str| {
        let info = format!(r#"{{"exit_status":{status}}}"#);
        one(SweAgent, &document(&[ASKED, LISTED].join(","), &info)).turns.remove(0).claim
    };
    assert_eq!(claim(r#""submitted""#), Claim::Success);
    for limit in ["exit_cost", "exit_context", "submitted (exit_cost)"] {
        assert_eq!(claim(&format!("{limit:?}")), Claim::LimitReached { said: limit.to_owned() });
    }
    assert!(matches!(claim(r#""exit_api""#), Claim::ModelFailed { .. }));
    assert!(matches!(claim(r#""early_exit""#), Claim::Failed { .. }));
    assert_eq!(claim("null"), Claim::Unsaid);
}

#[test]
fn a_trajectory_without_a_history_has_its_steps_and_no_task() {
    let read = one(
        SweAgent,
        r#"{"trajectory":[{"action":"pwd\n","observation":"/","thought":"where"},{"action":"","observation":"","thought":"here"}]}"#,
    );
    assert_eq!(told(&read), [r#": where|pwd({"command":"pwd"})=/; here"#]);
    assert!(notes(&read).contains(&"message 0: the user message has no text".to_owned()));
}
