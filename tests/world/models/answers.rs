//! What is read: finish reasons, usage, streams cut anywhere, steps.

use libtest_mimic::Trial;
use portcullis::runtime::ports::{Model, ModelAnswer, ModelFailure};
use portcullis::vocabulary::llm::{Code, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::spec::{Api, DraftFormat, DraftSpec, ModelSpec, Spec, ToolCalling, ToolSpec};

use super::asking::{ask, asked, failure, model, openai, providers};
use crate::components::test;
use crate::loopback::{Loopback, Piece, json, open};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::answers::a_finish_reason_is_known_or_the_answer_is_not_taken", finish),
        test("models::answers::usage_counts_what_was_cached_and_what_was_thought", usage),
        test("models::answers::arguments_keep_the_models_own_text", arguments),
        test("models::answers::a_call_that_may_be_cut_is_left_open", cut_calls),
        test("models::answers::a_cut_object_is_left_open_in_every_dialect", cut_objects),
        test("models::answers::a_stream_gives_what_the_whole_answer_would", streams),
        test("models::answers::a_stream_without_its_end_mark_is_a_failure", cut_streams),
        test("models::answers::a_stream_that_fails_says_what_it_used", failed_streams),
        test("models::answers::a_step_is_read_strictly", steps),
        test("models::answers::an_unknown_tool_is_handed_on", unknown_tool),
    ]
}

/// What is made of a whole answer.
pub(super) async fn read(api: Api, body: &str) -> Result<ModelAnswer, ModelFailure> {
    let body = body.to_owned();
    let server = Loopback::serve(move |_, _| json(200, &body)).await;
    ask(model(api, server.url("/v1"))).await
}

async fn finish() {
    use FinishReason::{ContentFilter, Length, Stop, ToolCalls};
    let openai = |reason: &str| format!(r#"{{"choices":[{{"finish_reason":{reason},"message":{{"content":"x"}}}}]}}"#);
    let anthropic = |reason: &str| format!(r#"{{"stop_reason":{reason},"content":[{{"type":"text","text":"x"}}]}}"#);
    let gemini = |reason: &str| {
        format!(r#"{{"candidates":[{{"finishReason":{reason},"content":{{"parts":[{{"text":"x"}}]}}}}]}}"#)
    };
    let ollama = |reason: &str| format!(r#"{{"done":true,"done_reason":{reason},"message":{{"content":"x"}}}}"#);
    let table = [
        (Api::OpenAi, openai(r#""stop""#), Some(Stop)),
        (Api::OpenAi, openai(r#""length""#), Some(Length)),
        (Api::OpenAi, openai(r#""content_filter""#), Some(ContentFilter)),
        (Api::OpenAi, openai(r#""new""#), None),
        (Api::OpenAi, openai("null"), None),
        (Api::Anthropic, anthropic(r#""end_turn""#), Some(Stop)),
        (Api::Anthropic, anthropic(r#""stop_sequence""#), Some(Stop)),
        (Api::Anthropic, anthropic(r#""max_tokens""#), Some(Length)),
        (Api::Anthropic, anthropic(r#""model_context_window_exceeded""#), Some(Length)),
        (Api::Anthropic, anthropic(r#""refusal""#), Some(ContentFilter)),
        (Api::Anthropic, anthropic(r#""pause_turn""#), None),
        (Api::Gemini, gemini(r#""STOP""#), Some(Stop)),
        (Api::Gemini, gemini(r#""MAX_TOKENS""#), Some(Length)),
        (Api::Gemini, gemini(r#""SAFETY""#), Some(ContentFilter)),
        (Api::Gemini, gemini(r#""PROHIBITED_CONTENT""#), Some(ContentFilter)),
        (Api::Gemini, gemini(r#""MALFORMED_FUNCTION_CALL""#), None),
        (Api::Ollama, ollama(r#""stop""#), Some(Stop)),
        (Api::Ollama, ollama(r#""length""#), Some(Length)),
        (Api::Ollama, ollama(r#""load""#), None),
    ];
    for (api, body, expected) in table {
        match (read(api, &body).await, expected) {
            (Ok(answer), Some(finish)) => assert_eq!(answer.finish, finish, "{body}"),
            (failed, None) => assert_eq!(failure(failed).0.code(), Code::ProviderError, "{body}"),
            (failed, Some(_)) => panic!("{body} {failed:?}"),
        }
    }
    let refusal = r#"{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"no"}}]}"#;
    let refused = read(Api::OpenAi, refusal).await.unwrap();
    assert_eq!((refused.finish, refused.content.text), (ContentFilter, None));
    // Calls count, whatever is said beside them.
    let call =
        r#"{"choices":[{"finish_reason":"stop","message":{"tool_calls":[{"function":{"name":"x","arguments":""}}]}}]}"#;
    assert_eq!(read(Api::OpenAi, call).await.unwrap().finish, ToolCalls);
}

async fn usage() {
    let openai = |usage: &str| {
        let body = format!(r#"{{"choices":[{{"finish_reason":"stop","message":{{}}}}],"usage":{usage}}}"#);
        async move { read(Api::OpenAi, &body).await.unwrap().usage }
    };
    let of = |input_tokens, output_tokens| Usage { input_tokens, output_tokens };
    assert_eq!(openai(r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}"#).await, of(Some(5), Some(7)));
    // This one leaves reasoning out of what was completed, and in the total.
    assert_eq!(openai(r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":32}"#).await, of(Some(5), Some(27)));
    assert_eq!(openai(r#"{"prompt_tokens":5}"#).await, of(Some(5), None));
    assert_eq!(openai(r#"{"prompt_tokens":-5,"completion_tokens":1}"#).await, of(None, None));
    assert_eq!(openai("null").await, of(None, None));
    let anthropic = r#"{"stop_reason":"end_turn","content":[],"usage":{"input_tokens":1,"cache_creation_input_tokens":2,
        "cache_read_input_tokens":4,"output_tokens":8}}"#;
    assert_eq!(read(Api::Anthropic, anthropic).await.unwrap().usage, of(Some(7), Some(8)));
    let gemini = r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,
        "cachedContentTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":9,"totalTokenCount":16}}"#;
    assert_eq!(read(Api::Gemini, gemini).await.unwrap().usage, of(Some(5), Some(11)));
    let ollama = r#"{"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":2}"#;
    assert_eq!(read(Api::Ollama, ollama).await.unwrap().usage, of(Some(5), Some(2)));
    // What a failed answer says it used is reported too.
    let failed = r#"{"error":{"code":500},"usage":{"prompt_tokens":5,"completion_tokens":7}}"#;
    assert_eq!(failure(read(Api::OpenAi, failed).await).1, Some(of(Some(5), Some(7))));
    let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5}}"#;
    assert_eq!(failure(read(Api::Gemini, blocked).await).1, Some(of(Some(5), None)));
}

/// A duplicate key, a large integer, and white space.
const ODD: &str = r#"{"path": "/a", "path":"/b",  "n":123456789012345678901234567890}"#;

async fn arguments() {
    let text = serde_json::to_string(ODD).unwrap();
    let bodies = [
        (
            Api::OpenAi,
            format!(
                r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"tool_calls":[{{"id":"p","function":{{"name":"x","arguments":{text}}}}}]}}}}]}}"#
            ),
        ),
        (
            Api::Anthropic,
            format!(
                r#"{{"stop_reason":"tool_use","content":[{{"type":"tool_use","id":"p","name":"x","input":{ODD}}}]}}"#
            ),
        ),
        (
            Api::Gemini,
            format!(
                r#"{{"candidates":[{{"finishReason":"STOP","content":{{"parts":[{{"functionCall":{{"id":"p","name":"x","args":{ODD}}}}}]}}}}]}}"#
            ),
        ),
        (
            Api::Ollama,
            format!(
                r#"{{"done":true,"done_reason":"stop","message":{{"tool_calls":[{{"id":"p","function":{{"name":"x","arguments":{ODD}}}}}]}}}}"#
            ),
        ),
    ];
    for (api, body) in bodies {
        let answer = read(api, &body).await.unwrap();
        let wanted = ToolRequest { name: "x".to_owned(), arguments: ODD.to_owned(), provider_id: Some("p".to_owned()) };
        assert_eq!(answer.content.calls, [wanted], "{api}");
        assert_eq!(answer.finish, FinishReason::ToolCalls, "{api}");
    }
}

async fn cut_calls() {
    let body = |blocks: &str| format!(r#"{{"stop_reason":"max_tokens","content":[{blocks}]}}"#);
    let (call, text) = (r#"{"type":"tool_use","name":"x","input":{"a":{}}}"#, r#"{"type":"text","text":"and"}"#);
    let arguments = |answer: ModelAnswer| -> Vec<String> {
        assert_eq!(answer.finish, FinishReason::Length);
        answer.content.calls.into_iter().map(|call| call.arguments).collect()
    };
    // Only the last block can have been cut.
    let two = read(Api::Anthropic, &body(&format!("{call},{call}"))).await.unwrap();
    assert_eq!(arguments(two), [r#"{"a":{}}"#, r#"{"a":{"#]);
    let behind = read(Api::Anthropic, &body(&format!("{call},{text}"))).await.unwrap();
    assert_eq!(arguments(behind), [r#"{"a":{}}"#]);
    // A call of which nothing came but its name.
    let begun = ANTHROPIC.replace(r#""partial_json":"{\"y\"""#, r#""partial_json":"""#);
    assert_ne!(begun, ANTHROPIC);
    assert_eq!(arguments(stream(Api::Anthropic, &begun, 100).await.unwrap()), [r#"{"x":1}"#, "{"]);
}

/// Where arguments come as an object, nobody can tell who closed it.
async fn cut_objects() {
    let (one, two) = (r#"{"name":"x","args":{"n":1}}"#, r#"{"name":"x","arguments":{"n":1}}"#);
    let text = r#"{"name":"x","arguments":"{\"n\":1}"}"#;
    let gemini =
        |parts: &str| format!(r#"{{"candidates":[{{"finishReason":"MAX_TOKENS","content":{{"parts":[{parts}]}}}}]}}"#);
    let called = format!(r#"{{"functionCall":{one}}}"#);
    let ollama =
        |calls: &str| format!(r#"{{"done":true,"done_reason":"length","message":{{"tool_calls":[{calls}]}}}}"#);
    let openai = |place: &str, calls: &str| {
        format!(r#"{{"choices":[{{"finish_reason":"length","{place}":{{"tool_calls":[{calls}]}}}}]}}"#)
    };
    let (object, written) = (format!(r#"{{"id":"a","function":{two}}}"#), format!(r#"{{"id":"b","function":{text}}}"#));
    let whole = [
        (Api::Gemini, gemini(&format!("{called},{called}")), vec![r#"{"n":1}"#, r#"{"n":1"#]),
        (Api::Gemini, gemini(&format!(r#"{called},{{"text":"and"}}"#)), vec![r#"{"n":1}"#]),
        (
            Api::Ollama,
            ollama(&format!(r#"{{"function":{two}}},{{"function":{two}}}"#)),
            vec![r#"{"n":1}"#, r#"{"n":1"#],
        ),
        (Api::OpenAi, openai("message", &format!("{object},{object}")), vec![r#"{"n":1}"#, r#"{"n":1"#]),
        // The model closed this one itself.
        (Api::OpenAi, openai("message", &format!("{object},{written}")), vec![r#"{"n":1}"#, r#"{"n":1}"#]),
    ];
    for (api, body, wanted) in whole {
        let answer = read(api, &body).await.unwrap();
        let calls: Vec<_> = answer.content.calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!((calls, answer.finish), (wanted, FinishReason::Length), "{body}");
    }
    let events = format!("data: {}\n\ndata: [DONE]\n\n", openai("delta", &object));
    let answer = stream(Api::OpenAi, &events, 100).await.unwrap();
    assert_eq!(answer.content.calls[0].arguments, r#"{"n":1"#);
}

/// A stream, sent in pieces of so many bytes.
pub(super) async fn stream(api: Api, events: &str, size: usize) -> Result<ModelAnswer, ModelFailure> {
    let kind = if api == Api::Ollama { "application/x-ndjson" } else { "text/event-stream; charset=utf-8" };
    let pieces: Vec<Piece> = events.as_bytes().chunks(size).map(|bytes| Piece::Bytes(bytes.to_vec())).collect();
    let server = Loopback::serve(move |_, _| [open(kind)].into_iter().chain(pieces.clone()).collect()).await;
    ask(ModelSpec { streaming: true, ..model(api, server.url("/v1")) }).await
}

const OPENAI: &str = r#": a comment

data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Gr"}}]}

event: ignored
data: {"choices":[{"index":0,"delta":{"content":"üß"}},{"index":1,"delta":{"content":"other"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"act","arguments":"{\"y\""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}

data: [DONE]

"#;

const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1},"content":[]}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"ping"}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüß"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"look","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}

data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","name":"act","input":{}}}

data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"y\""}}

data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

"#;

const GEMINI: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"Gr"}]}}],"usageMetadata":{"promptTokenCount":5}}

data: {"candidates":[{"content":{"parts":[{"text":"üß"},{"functionCall":{"id":"a","name":"look","args":{"x":1}}}]}}]}

data: {"candidates":[{"content":{"parts":[]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7}}

"#;

const OLLAMA: &str = r#"{"message":{"content":"Gr"},"done":false}
{"message":{"content":"üß","tool_calls":[{"id":"a","function":{"name":"look","arguments":{"x":1}}}]},"done":false}
{"message":{"content":""},"done":true,"done_reason":"length","prompt_eval_count":5,"eval_count":7}
"#;

async fn streams() {
    for (api, events) in
        [(Api::OpenAi, OPENAI), (Api::Anthropic, ANTHROPIC), (Api::Gemini, GEMINI), (Api::Ollama, OLLAMA)]
    {
        let returns = events.replace('\n', "\r\n");
        for (events, size) in [(events, 1), (events, 7), (events, 100_000), (returns.as_str(), 3)] {
            let answer = stream(api, events, size).await.unwrap();
            assert_eq!(answer.content.text.as_deref(), Some("Grüß"), "{api}");
            let calls: Vec<_> = answer.content.calls.iter().map(|call| call.arguments.as_str()).collect();
            // Two dialects stream arguments as text. In the others the object may be cut.
            let wanted = match api {
                Api::OpenAi | Api::Anthropic => vec![r#"{"x":1}"#, r#"{"y""#],
                Api::Gemini | Api::Ollama => vec![r#"{"x":1"#],
            };
            assert_eq!(calls, wanted, "{api}");
            assert_eq!(answer.content.calls[0].name, "look");
            assert_eq!(answer.content.calls[0].provider_id.as_deref(), Some("a"));
            assert_eq!(answer.finish, FinishReason::Length, "{api}");
            assert_eq!(answer.usage, Usage { input_tokens: Some(5), output_tokens: Some(7) }, "{api}");
        }
    }
    // The last event needs no empty line behind it.
    for (api, events) in
        [(Api::OpenAi, OPENAI), (Api::Anthropic, ANTHROPIC), (Api::Gemini, GEMINI), (Api::Ollama, OLLAMA)]
    {
        let answer = stream(api, events.trim_end(), 11).await.unwrap();
        assert_eq!(answer.content.text.as_deref(), Some("Grüß"), "{api}");
        // But it has to be there as a whole.
        let (error, _) = failure(stream(api, &events.trim_end()[..events.trim_end().len() - 1], 11).await);
        assert_eq!(error.code(), Code::ProviderError, "{api}");
    }
    let thought = stream(Api::Anthropic, ANTHROPIC, 50).await.unwrap().content.opaque.unwrap();
    let kept = r#"[{"signature":"s1","thinking":"hm","type":"thinking"},"text","call","call"]"#;
    assert_eq!(thought.as_object().unwrap()["kept"].to_text(), kept);
    // Some answer whole, whatever was asked for.
    let server =
        Loopback::serve(|_, _| json(200, r#"{"choices":[{"finish_reason":"stop","message":{"content":"whole"}}]}"#));
    let server = server.await;
    let answer = ask(ModelSpec { streaming: true, ..openai(&server) }).await.unwrap();
    assert_eq!(answer.content.text.as_deref(), Some("whole"));
}

async fn cut_streams() {
    for (api, events) in
        [(Api::OpenAi, OPENAI), (Api::Anthropic, ANTHROPIC), (Api::Gemini, GEMINI), (Api::Ollama, OLLAMA)]
    {
        let separator = if api == Api::Ollama { "\n" } else { "\n\n" };
        let pieces: Vec<&str> = events.trim_end().split(separator).collect();
        for whole in 0..pieces.len() {
            let cut: String = pieces[..whole].iter().map(|piece| format!("{piece}{separator}")).collect();
            let (error, _) = failure(stream(api, &cut, 4_096).await);
            assert_eq!(error.code(), Code::ProviderError, "{api} {whole}");
            assert_eq!(error.message(), "the stream ends before its end mark", "{api} {whole}");
        }
    }
}

async fn failed_streams() {
    let begin = |events: &str, count: usize| -> String { events.split_inclusive("\n\n").take(count).collect() };
    let overloaded = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n";
    let (error, usage) = failure(stream(Api::Anthropic, &(begin(ANTHROPIC, 3) + overloaded), 4_096).await);
    assert_eq!(error.code(), Code::Overloaded);
    assert_eq!(usage, Some(Usage { input_tokens: Some(5), output_tokens: Some(1) }));
    let refused = "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n";
    let (error, _) = failure(stream(Api::OpenAi, &(begin(OPENAI, 3) + refused), 4_096).await);
    assert_eq!(error.code(), Code::ProviderError);
    for nonsense in ["data: nonsense\n\n", "data: {\"choices\":7}\n\n", "data: \u{0}\n\n"] {
        let (error, _) = failure(stream(Api::OpenAi, nonsense, 4_096).await);
        assert_eq!(error.code(), Code::ProviderError, "{nonsense}");
    }
    let unknown = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"new\"}}\n\n";
    assert_eq!(failure(stream(Api::Anthropic, unknown, 4_096).await).0.code(), Code::ProviderError);
    let nowhere = "data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"text\":\"x\"}}\n\n";
    assert_eq!(failure(stream(Api::Anthropic, nowhere, 4_096).await).0.code(), Code::ProviderError);
}

/// What is made of a text where steps are wanted.
async fn step(format: DraftFormat, text: &str) -> ModelAnswer {
    let text = serde_json::to_string(text).unwrap();
    let body = format!(r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":{text}}}}}]}}"#);
    let server = Loopback::serve(move |_, _| json(200, &body)).await;
    let model = ModelSpec { tool_calling: ToolCalling::JsonSteps, ..openai(&server) };
    let draft = DraftSpec { format, ..DraftSpec::default() };
    let spec = Spec { model, draft, tools: vec![ToolSpec::evidence("look")], ..Spec::new("t", "") };
    providers().respond(asked(spec, []).await.remove(0)).await.unwrap()
}

async fn steps() {
    let called = step(DraftFormat::Json, &format!(r#" {{"call": {{"tool":"look","arguments": {ODD}}}}} "#)).await;
    assert_eq!(called.content.calls.len(), 1);
    assert_eq!((called.content.calls[0].name.as_str(), called.content.calls[0].arguments.as_str()), ("look", ODD));
    assert_eq!((called.content.text, called.finish), (None, FinishReason::ToolCalls));
    let answer = step(DraftFormat::Json, r#"{"answer": {"conclusion": null,  "citations":[]}}"#).await;
    assert_eq!(answer.content.text.as_deref(), Some(r#"{"conclusion": null,  "citations":[]}"#));
    assert_eq!((answer.content.calls.len(), answer.finish), (0, FinishReason::Stop));
    let text = step(DraftFormat::Text, r#"{"answer":"so \"it\" is"}"#).await;
    assert_eq!(text.content.text.as_deref(), Some(r#"so "it" is"#));
    // What is no step stays what it is.
    let not_steps = [
        r#"I call: {"call":{"tool":"look","arguments":{}}}"#,
        r#"{"call":{"tool":"look","arguments":{}}} and more"#,
        r#"{"call":{"tool":"look","arguments":{}},"answer":{}}"#,
        r#"{"call":{"tool":"look","arguments":{}},"answer":null}"#,
        r#"{"call":null,"answer":{"conclusion":null,"citations":[]}}"#,
        r#"{"call":null}"#,
        r#"{"call":{"tool":"look"}}"#,
        r#"{"call":{"tool":"look","arguments":{},"more":1}}"#,
        r#"{"call":{"tool":"look","arguments":{}},"call":{"tool":"look","arguments":{}}}"#,
        "{\"call\":{\"tool\":\"look\",\"argu",
        "```json\n{\"call\":{\"tool\":\"look\",\"arguments\":{}}}\n```",
        r#"[{"tool":"look","arguments":{}},null]"#,
        r#"{"conclusion":null,"citations":[]}"#,
        "{}",
        "plain words",
    ];
    for text in not_steps {
        let answer = step(DraftFormat::Json, text).await;
        assert_eq!((answer.content.text.as_deref(), answer.content.calls.len()), (Some(text), 0));
    }
}

async fn unknown_tool() {
    let body = r#"{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"function":{"name":"no.such tool","arguments":"{}"}}]}}]}"#;
    assert_eq!(read(Api::OpenAi, body).await.unwrap().content.calls[0].name, "no.such tool");
}
