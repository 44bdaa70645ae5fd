use portcullis::adapters::transcripts::Claim;
use portcullis::adapters::transcripts::Format::OpenHands;

use crate::support::{all, notes, one, told};

const ASKED: &str = r#"{"id":0,"source":"user","action":"message","args":{"content":"do it"}}"#;

/// An action that came from a model response, and how it is named.
fn action(response: &str, action: &str, calls: &[(&str, &str, &str)]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name, arguments)| {
            serde_json::json!({"id":id,"type":"function","function":{"name":name,"arguments":arguments}})
        })
        .collect();
    let message = serde_json::json!({"role":"assistant","content":"so","tool_calls":calls});
    let usage = serde_json::json!({"prompt_tokens":3,"completion_tokens":1});
    let response = serde_json::json!({"id":response,"model":"m","choices":[{"finish_reason":"tool_calls","message":message}],"usage":usage});
    serde_json::json!({"source":"agent","action":action,"args":{"thought":"so"},"tool_call_metadata":{"model_response":response}}).to_string()
}

fn observation(call: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"source":"agent","observation":"run","content":{text:?},"tool_call_metadata":{{"tool_call_id":{call:?}}}{more}}}"#
    )
}

#[test]
fn actions_of_one_response_are_one_reply_and_observations_find_their_calls() {
    let calls = [("a", "f", "{}"), ("b", "g", "{}")];
    let events = [
        ASKED.to_owned(),
        action("r1", "run", &calls),
        action("r1", "read", &calls),
        observation("b", "second", r#","success":false"#),
        observation("a", "first", ""),
    ];
    let read = one(OpenHands, &format!("[{}]", events.join(",")));
    assert_eq!(told(&read), ["do it: so|f({})=first|g({})!second"]);
    assert_eq!(read.model.as_deref(), Some("m"));
    assert_eq!(read.turns[0].replies[0].usage.input_tokens, Some(3));
}

#[test]
fn the_finish_call_is_the_answer_and_says_how_it_ended() {
    let finished = |arguments: &str| {
        let finish = action("r1", "finish", &[("a", "finish", arguments)]);
        let turn = one(OpenHands, &format!("[{ASKED},{finish}]")).turns.remove(0);
        (turn.replies.last().and_then(|reply| reply.text.clone()).unwrap_or_default(), turn.claim)
    };
    assert_eq!(
        finished(r#"{"message":"it is done","task_completed":"true"}"#),
        ("it is done".to_owned(), Claim::Success)
    );
    assert!(matches!(finished(r#"{"message":"no","task_completed":"false"}"#), (_, Claim::Failed { .. })));
    assert_eq!(finished("{}"), ("so".to_owned(), Claim::Unsaid));
}

#[test]
fn the_iteration_limit_and_any_other_error_are_told_apart() {
    let claim = |error: &str| {
        let run = format!(r#"{{"instance_id":"i","history":[{ASKED}],"error":{error}}}"#);
        one(OpenHands, &run).turns.remove(0).claim
    };
    let limit = "RuntimeError: Agent reached maximum iteration. Current iteration: 5";
    assert_eq!(claim(&format!("{limit:?}")), Claim::LimitReached { said: limit.to_owned() });
    assert_eq!(claim(r#""it broke""#), Claim::Failed { said: "it broke".to_owned() });
    assert_eq!(claim("null"), Claim::Unsaid);
}

#[test]
fn an_event_that_nobody_said_is_noted_and_an_action_without_a_response_is_a_call_of_its_own() {
    let recall = r#"{"id":1,"source":"environment","observation":"recall","content":"facts"}"#;
    let run = r#"{"id":2,"source":"agent","action":"run","args":{"command":"ls","thought":"look"}}"#;
    let ran = r#"{"id":3,"source":"agent","observation":"run","content":"files","cause":2}"#;
    let read = one(OpenHands, &format!("[{ASKED},{recall},{run},{ran}]"));
    assert_eq!(told(&read), [r#"do it: look|run({"command":"ls","thought":"look"})=files"#]);
    assert_eq!(
        notes(&read)[..2],
        [
            "event 1: event observation recall, left out",
            "event 2: the model's call was not recorded: it was made of the action"
        ]
    );
}

#[test]
fn runs_may_stand_one_a_line_and_so_may_events() {
    let run = |id: &str| format!(r#"{{"instance_id":"{id}","history":[{ASKED}]}}"#);
    let read = all(OpenHands, &format!("{}\nbroken\n{}\n", run("a"), run("b")));
    assert_eq!(read.iter().map(|read| read.id.as_deref()).collect::<Vec<_>>(), [Some("a"), Some("b")]);
    assert!(notes(&read[0])[0].starts_with("line 2, column 1 (byte 103): skipped: not JSON"), "{:?}", notes(&read[0]));
    let answer = r#"{"id":1,"source":"agent","action":"message","args":{"content":"done"}}"#;
    assert_eq!(told(&one(OpenHands, &format!("{ASKED}\n{answer}\n"))), ["do it: done"]);
}
