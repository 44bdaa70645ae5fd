use portcullis::adapters::transcripts::Format::Atif;
use portcullis::adapters::transcripts::{Claim, TranscriptError};

use crate::support::{notes, one, refused, told};

fn document(steps: &str, more: &str) -> String {
    format!(
        r#"{{"schema_version":"ATIF-v1.4","session_id":"s","agent":{{"name":"a","model_name":"m"}},"steps":[{steps}]{more}}}"#
    )
}

const ASKED: &str = r#"{"step_id":1,"source":"user","message":"q"}"#;

#[test]
fn a_step_of_the_agent_is_a_reply_with_its_calls_results_and_usage() {
    let called = r#"{"step_id":2,"source":"agent","message":"look","reasoning_content":"hm",
        "tool_calls":[{"tool_call_id":"a","function_name":"f","arguments":{"x":1}},{"tool_call_id":"b","function_name":"g","arguments":{}}],
        "observation":{"results":[{"source_call_id":"b","content":"second"},{"source_call_id":"a","content":[{"type":"text","text":"first"}]}]},
        "metrics":{"prompt_tokens":5,"completion_tokens":2}}"#;
    let system = r#"{"step_id":0,"source":"system","message":"rules"}"#;
    let done = r#"{"step_id":3,"source":"agent","message":"done"}"#;
    let read = one(Atif, &document(&[system, ASKED, called, done].join(","), ""));
    assert_eq!(told(&read), [r#"q: look|f({"x":1})=first|g({})=second; done"#]);
    assert_eq!(
        (read.id.as_deref(), read.model.as_deref(), read.system.as_deref()),
        (Some("s"), Some("m"), Some("rules"))
    );
    let used = read.turns[0].replies[0].usage;
    assert_eq!((used.input_tokens, used.output_tokens), (Some(5), Some(2)));
    assert_eq!(notes(&read), ["step 3: the model's reasoning, left out"]);
}

#[test]
fn results_before_their_calls_wait_for_them_and_one_without_a_call_is_noted() {
    let early = r#"{"source":"system","message":"Tool result for a","observation":{"content":"late","result":{"success":false}}}"#;
    let lost = r#"{"source":"system","message":"Tool result for z","observation":{"content":"lost"}}"#;
    let called = r#"{"source":"agent","message":"","tool_calls":[{"id":"a","name":"f","arguments":"{}"}]}"#;
    let read = one(Atif, &document(&[ASKED, early, lost, called].join(","), ""));
    assert_eq!(told(&read), ["q: f({})!late"]);
    let said = notes(&read);
    for expected in [
        "step 2: no id but in its text: taken from there",
        "step 2: a result before its call, put after it",
        "step 3: a result without a call, left out",
        "step 4: taken from \"tool_calls.name\", which the format does not know",
    ] {
        assert!(said.iter().any(|note| note == expected), "{expected} is not in {said:#?}");
    }
}

#[test]
fn how_it_ended_is_guessed_from_the_extra_field_and_from_nothing_else() {
    let done = r#"{"source":"agent","message":"done"}"#;
    let steps = [ASKED, done].join(",");
    let claim = |more: &str| one(Atif, &document(&steps, more)).turns.remove(0).claim;
    assert_eq!(claim(r#","extra":{"success":true}"#), Claim::Success);
    assert!(matches!(claim(r#","extra":{"success":false}"#), Claim::Failed { .. }));
    assert_eq!(claim(r#","extra":{"success":"who knows"}"#), Claim::Unsaid);
    assert_eq!(claim(""), Claim::Unsaid);
}

#[test]
fn a_step_of_the_wrong_type_is_named_with_its_path() {
    let said = refused(&document(&format!("{ASKED},{{\"source\":7}}"), "")).to_string();
    assert!(said.contains("$.steps[1].source: expected a string, found a number"), "{said}");
    assert!(matches!(refused(&document("", "")), TranscriptError::NoTurn { .. }));
}
