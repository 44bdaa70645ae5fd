//! Answers that are cut, or say two things at once.

use libtest_mimic::Trial;
use portcullis::runtime::ports::{ModelAnswer, ModelFailure};
use portcullis::vocabulary::llm::{Code, FinishReason};
use portcullis::vocabulary::spec::Api;

use super::answers::{read, stream};
use super::asking::failure;
use crate::components::test;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::damaged::a_piece_of_one_call_is_not_taken_for_another", other_call),
        test("models::damaged::arguments_that_come_with_the_start_of_a_block_are_taken_once", given),
        test("models::damaged::a_block_begins_once", begun_twice),
        test("models::damaged::an_end_for_calls_needs_calls", no_calls),
        test("models::damaged::an_empty_refusal_is_none", empty_refusal),
        test("models::damaged::the_first_choice_is_taken_wherever_it_stands", choices),
        test("models::damaged::a_byte_order_mark_hides_no_event", marked),
        test("models::damaged::a_stream_that_is_cut_at_any_byte_is_whole_or_a_failure", cut_anywhere),
    ]
}

/// The events of a stream whose data these are.
fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

fn refused(answer: Result<ModelAnswer, ModelFailure>, why: &str) {
    let (error, _) = failure(answer);
    assert_eq!((error.code(), error.message()), (Code::ProviderError, why));
}

async fn openai(calls: &[&str]) -> Result<ModelAnswer, ModelFailure> {
    let pieces = calls.iter().map(|call| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}"#));
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned();
    let pieces: Vec<String> = pieces.chain([end, "[DONE]".to_owned()]).collect();
    stream(Api::OpenAi, &events(&pieces.iter().map(String::as_str).collect::<Vec<_>>()), 4_096).await
}

async fn other_call() {
    const BEGIN: &str = r#"{"index":0,"id":"a","function":{"name":"delete","arguments":"{\"x\""}}"#;
    let why = "a piece of a call names another call";
    for other in [
        r#"{"index":0,"id":"b","function":{"name":"read","arguments":":1}"}}"#,
        r#"{"index":0,"id":"b","function":{"arguments":":1}"}}"#,
        r#"{"index":0,"id":"b"}"#,
        r#"{"index":0,"function":{"name":"read","arguments":":1}"}}"#,
        r#"{"function":{"name":"read","arguments":":1}"}}"#,
    ] {
        refused(openai(&[BEGIN, other]).await, why);
    }
    // Some say again whose piece it is, or say nothing in its place.
    for same in [
        r#"{"index":0,"id":"a","function":{"name":"delete","arguments":":1}"}}"#,
        r#"{"index":0,"id":"","function":{"name":"","arguments":":1}"}}"#,
        r#"{"id":"","function":{"arguments":":1}"}}"#,
    ] {
        let calls = openai(&[BEGIN, same]).await.unwrap().content.calls;
        assert_eq!(calls.len(), 1, "{same}");
        assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str()), ("delete", r#"{"x":1}"#), "{same}");
        assert_eq!(calls[0].provider_id.as_deref(), Some("a"));
    }
}

async fn anthropic(data: &[&str]) -> Result<ModelAnswer, ModelFailure> {
    let end = [r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#, r#"{"type":"message_stop"}"#];
    stream(Api::Anthropic, &events(&[data, &end].concat()), 4_096).await
}

async fn given() {
    let begin = |input: &str| {
        format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"a","name":"x","input":{input}}}}}"#
        )
    };
    let piece = |text: &str| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":{text}}}}}"#
        )
    };
    let (nothing, something) = (piece(r#""""#), piece(r#""{\"n\":1}""#));
    for pieces in [vec![], vec![nothing.as_str()]] {
        let start = begin(r#"{ "days":90}"#);
        let answer = anthropic(&[&[start.as_str()][..], &pieces].concat()).await.unwrap();
        assert_eq!(answer.content.calls[0].arguments, r#"{ "days":90}"#);
    }
    let both = anthropic(&[&begin(r#"{"days":90}"#), &something]).await;
    refused(both, "the arguments of a call come twice");
    for empty in ["{}", "{ }", "null"] {
        let answer = anthropic(&[&begin(empty), &nothing, &something]).await.unwrap();
        assert_eq!(answer.content.calls[0].arguments, r#"{"n":1}"#);
        assert_eq!(anthropic(&[&begin(empty)]).await.unwrap().content.calls[0].arguments, "{}");
    }
}

async fn begun_twice() {
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}"#;
    refused(anthropic(&[begin, begin]).await, "a block of the stream begins twice");
    let other = begin.replace(r#""index":0"#, r#""index":1"#);
    assert_eq!(anthropic(&[begin, &other]).await.unwrap().content.calls.len(), 2);
}

async fn no_calls() {
    let why = "the answer ends for tool calls and has none";
    let body = r#"{"choices":[{"finish_reason":"tool_calls","message":{"content":"x"}}]}"#;
    refused(read(Api::OpenAi, body).await, why);
    refused(read(Api::OpenAi, &body.replace(r#""x""#, r#""x","tool_calls":[]"#)).await, why);
    refused(read(Api::Anthropic, r#"{"stop_reason":"tool_use","content":[{"type":"text","text":"x"}]}"#).await, why);
    refused(openai(&[]).await, why);
    refused(anthropic(&[]).await, why);
}

async fn empty_refusal() {
    let body = r#"{"choices":[{"finish_reason":"stop","message":{"content":"x","refusal":""}}]}"#;
    assert_eq!(read(Api::OpenAi, body).await.unwrap().finish, FinishReason::Stop);
    let delta = events(&[&body.replace("message", "delta"), "[DONE]"]);
    assert_eq!(stream(Api::OpenAi, &delta, 4_096).await.unwrap().finish, FinishReason::Stop);
}

async fn choices() {
    let choice = |index: u32, text: &str| {
        format!(r#"{{"index":{index},"finish_reason":"stop","message":{{"content":"{text}"}}}}"#)
    };
    let body = format!(r#"{{"choices":[{},{}]}}"#, choice(1, "second"), choice(0, "first"));
    assert_eq!(read(Api::OpenAi, &body).await.unwrap().content.text.as_deref(), Some("first"));
    refused(
        read(Api::OpenAi, &format!(r#"{{"choices":[{}]}}"#, choice(1, "second"))).await,
        "the answer has no choice",
    );
}

async fn marked() {
    let begin = r#"{"choices":[{"index":0,"delta":{"content":"not "}}]}"#;
    let end = r#"{"choices":[{"index":0,"delta":{"content":"so"},"finish_reason":"stop"}]}"#;
    for size in [1, 2, 4_096] {
        let marked = format!("\u{feff}{}", events(&[begin, end, "[DONE]"]));
        assert_eq!(stream(Api::OpenAi, &marked, size).await.unwrap().content.text.as_deref(), Some("not so"), "{size}");
    }
}

async fn cut_anywhere() {
    let openai = events(&[
        r#"{"choices":[{"index":0,"delta":{"content":"ab"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    let anthropic = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ab"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let gemini = events(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#,
    ]);
    let ollama = "{\"message\":{\"content\":\"a\"},\"done\":false}\n\
                  {\"message\":{\"content\":\"b\"},\"done\":true,\"done_reason\":\"stop\"}"
        .to_owned();
    for (api, events) in
        [(Api::OpenAi, openai), (Api::Anthropic, anthropic), (Api::Gemini, gemini), (Api::Ollama, ollama)]
    {
        for end in 0..=events.len() {
            match stream(api, &events[..end], 4_096).await {
                Ok(answer) => assert_eq!(answer.content.text.as_deref(), Some("ab"), "{api} {end}"),
                Err(failed) => {
                    assert!(end < events.len(), "{api} {failed:?}");
                    assert_eq!(failure(Err(failed)).0.code(), Code::ProviderError, "{api} {end}");
                }
            }
        }
    }
}
