use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis::adapters::transcripts::Claim;
use portcullis::adapters::transcripts::Format::Temporal;
use serde_json::{Value, json};

use crate::support::{all, notes, one, told};

fn payloads(value: &Value) -> Value {
    let data = STANDARD.encode(value.to_string());
    json!({"payloads":[{"metadata":{"encoding":STANDARD.encode("json/plain")},"data":data}]})
}

/// An event; ids count from 1.
fn event(id: usize, kind: &str, attributes: Value) -> Value {
    json!({"eventId":id.to_string(),"eventType":kind,"someEventAttributes":attributes})
}

fn history(events: &[Value]) -> String {
    json!({"events":events}).to_string()
}

fn asked(id: usize, instructions: &str, input: Value) -> Value {
    let request = json!({"model_name":"m","system_instructions":instructions,"input":input,"model_settings":{}});
    let attributes = json!({"activityType":{"name":"invoke_model_activity"},"input":payloads(&request)});
    event(id, "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED", attributes)
}

fn completed(id: usize, of: usize, result: &Value) -> Value {
    let attributes = json!({"scheduledEventId":of.to_string(),"result":payloads(result)});
    event(id, "EVENT_TYPE_ACTIVITY_TASK_COMPLETED", attributes)
}

fn user(text: &str) -> Value {
    json!({"role":"user","content":text})
}

fn said(text: &str) -> Value {
    json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":text}]})
}

fn called(id: &str) -> Value {
    json!({"type":"function_call","call_id":id,"name":"f","arguments":"{}"})
}

fn output(items: &[Value]) -> Value {
    json!({"output":items,"usage":{"input_tokens":4,"output_tokens":1}})
}

#[test]
fn requests_and_tools_are_one_conversation() {
    let tool = json!({"activityType":{"name":"f"},"input":payloads(&json!("{}"))});
    let context = json!([user("q"), called("a"), {"type":"function_call_output","call_id":"a","output":"shown"}]);
    let read = one(
        Temporal,
        &history(&[
            event(1, "1", json!({"workflowId":"w","input":payloads(&json!("q"))})),
            asked(2, "rules", json!([user("q")])),
            completed(3, 2, &output(&[called("a")])),
            event(4, "ActivityTaskScheduled", tool),
            completed(5, 4, &json!({"degrees":3})),
            asked(6, "rules", context),
            completed(7, 6, &output(&[said("done")])),
            event(8, "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED", json!({})),
        ]),
    );
    assert_eq!(told(&read), [r#"q: f({})={"degrees":3}; done"#]);
    assert_eq!(
        (read.id.as_deref(), read.model.as_deref(), read.system.as_deref()),
        (Some("w"), Some("m"), Some("rules"))
    );
    assert_eq!(read.turns[0].claim, Claim::Success);
    assert_eq!(read.turns[0].replies[0].usage.input_tokens, Some(4));
    assert_eq!(notes(&read), Vec::<String>::new());
}

#[test]
fn a_request_beside_the_agents_under_other_instructions_is_a_conversation_of_its_own() {
    let read = all(
        Temporal,
        &history(&[
            asked(1, "agent", json!([user("q")])),
            asked(2, "guard", json!([user("q")])),
            completed(3, 2, &output(&[said("fine")])),
            completed(4, 1, &output(&[said("done")])),
        ]),
    );
    assert_eq!(read.iter().flat_map(told).collect::<Vec<_>>(), ["q: done", "q: fine"]);
}

#[test]
fn updates_that_no_request_holds_are_user_messages_with_a_note() {
    let update = |id, text: &str| {
        let input = json!({"name":"say","args":payloads(&json!({"text":text,"length":0}))});
        event(id, "41", json!({"acceptedRequest":{"input":input}}))
    };
    let read = one(
        Temporal,
        &history(&[
            update(1, "heard"),
            asked(2, "", json!([user("heard")])),
            completed(3, 2, &output(&[said("a")])),
            update(4, "unheard"),
        ]),
    );
    assert_eq!(told(&read), ["heard: a", "unheard: "]);
    assert_eq!(notes(&read)[0], "event 4: no request to the model holds this user message");
}

#[test]
fn what_never_started_or_never_ended_is_noted_by_its_event() {
    let started = event(3, "11", json!({"scheduledEventId":"2"}));
    let read = one(Temporal, &history(&[asked(1, "", json!([user("q")])), asked(2, "", json!([user("q")])), started]));
    let said = notes(&read);
    assert!(
        said.contains(&r#"event 1: "invoke_model_activity" was scheduled and never started"#.to_owned()),
        "{said:?}"
    );
    assert!(said.contains(&r#"event 2: "invoke_model_activity" was started and never ended"#.to_owned()), "{said:?}");
}

#[test]
fn the_end_of_the_workflow_is_the_claim() {
    let claim = |kind: &str, attributes: Value| {
        let ask = asked(1, "", json!([user("q")]));
        one(Temporal, &history(&[ask, event(2, kind, attributes)])).turns.remove(0).claim
    };
    assert_eq!(claim("WorkflowExecutionCancelRequested", json!({})), Claim::Cancelled);
    assert_eq!(claim("EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED", json!({})), Claim::Cancelled);
    let failed = claim("3", json!({"failure":{"message":"it broke"}}));
    assert_eq!(failed, Claim::Failed { said: "it broke".to_owned() });
    assert_eq!(claim("4", json!({})), Claim::Failed { said: "timed out".to_owned() });
    let of = json!({"scheduledEventId":"1","failure":{"message":"slow down","applicationFailureInfo":{"type":"RateLimitError"}}});
    match claim("13", of) {
        Claim::ModelFailed { error } => assert_eq!(error.code().word(), "rate_limited"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_payload_that_is_no_json_is_noted_and_left_out() {
    for (payload, reason) in [
        (json!({"metadata":{"encoding":STANDARD.encode("binary/encrypted")},"data":"AAAA"}), "encoded as"),
        (json!({"metadata":{"encoding":STANDARD.encode("json/plain")},"data":"not base64"}), "Invalid"),
        (json!({"metadata":{}}), "no data"),
    ] {
        let started = event(1, "1", json!({"input":{"payloads":[payload]}}));
        let read = one(Temporal, &history(&[started, asked(2, "", json!([user("q")]))]));
        let said = notes(&read);
        assert!(said.iter().any(|note| note.starts_with("event 1: a payload") && note.contains(reason)), "{said:?}");
    }
}
