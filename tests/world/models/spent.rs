//! What a failed answer used, where the provider said it.

use std::time::Duration;

use libtest_mimic::Trial;
use portcullis::vocabulary::llm::{Code, Usage};
use portcullis::vocabulary::spec::{Api, ModelSpec};

use super::answers::{read, stream};
use super::asking::{ask, failure, model};
use crate::components::test;
use crate::loopback::{Loopback, Piece, open};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::spent::a_whole_answer_that_fails_says_what_it_used", whole),
        test("models::spent::a_stream_that_fails_says_what_it_used_until_then", streams),
        test("models::spent::a_connection_that_breaks_or_waits_loses_no_usage", given_up),
    ]
}

const USED: Option<Usage> = Some(Usage { input_tokens: Some(5), output_tokens: Some(7) });
const OPENAI: &str = r#""usage":{"prompt_tokens":5,"completion_tokens":7}"#;
const ANTHROPIC: &str = r#""usage":{"input_tokens":5,"output_tokens":7}"#;
const GEMINI: &str = r#""usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7}"#;
const OLLAMA: &str = r#""prompt_eval_count":5,"eval_count":7"#;

async fn whole() {
    let table = [
        (Api::OpenAi, OPENAI, r#""choices":[]"#),
        (Api::OpenAi, OPENAI, r#""choices":7"#),
        (Api::OpenAi, OPENAI, r#""error":{"code":500}"#),
        (Api::OpenAi, OPENAI, r#""choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"a"}]}}]"#),
        (
            Api::OpenAi,
            OPENAI,
            r#""choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]"#,
        ),
        (Api::OpenAi, OPENAI, r#""choices":[{"finish_reason":"tool_calls","message":{"content":"x"}}]"#),
        (Api::OpenAi, OPENAI, r#""choices":[{"finish_reason":"new","message":{"content":"x"}}]"#),
        (Api::OpenAi, OPENAI, r#""choices":[{"finish_reason":"stop","message":{"content":7}}]"#),
        (
            Api::OpenAi,
            OPENAI,
            r#""choices":[{"finish_reason":"stop","message":{"content":"x","reasoning_content":{"a":1,"a":2}}}]"#,
        ),
        (Api::Anthropic, ANTHROPIC, r#""stop_reason":"tool_use","content":[{"type":"tool_use","id":"a"}]"#),
        (Api::Anthropic, ANTHROPIC, r#""stop_reason":"new","content":[]"#),
        (Api::Anthropic, ANTHROPIC, r#""content":7"#),
        (Api::Gemini, GEMINI, r#""candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]"#),
        (Api::Gemini, GEMINI, r#""candidates":[{"finishReason":"STOP","content":{"parts":[{"functionCall":{}}]}}]"#),
        (Api::Gemini, GEMINI, r#""promptFeedback":{"blockReason":"SAFETY"}"#),
        (Api::Ollama, OLLAMA, r#""done":true,"done_reason":"load""#),
        (Api::Ollama, OLLAMA, r#""done":false"#),
        (Api::Ollama, OLLAMA, r#""done":true,"done_reason":"stop","message":{"tool_calls":[{"function":{}}]}"#),
    ];
    for (api, used, rest) in table {
        let (error, usage) = failure(read(api, &format!("{{{rest},{used}}}")).await);
        assert_eq!(usage, USED, "{api} {rest} {error}");
    }
    // What was not said is unknown.
    assert_eq!(failure(read(Api::OpenAi, r#"{"choices":[]}"#).await).1, None);
}

/// What each dialect says first, with its usage.
fn begun(api: Api) -> String {
    match api {
        Api::OpenAi => format!("data: {{\"choices\":[],{OPENAI}}}\n\n"),
        Api::Anthropic => {
            format!("data: {{\"type\":\"message_start\",\"message\":{{\"content\":[],{ANTHROPIC}}}}}\n\n")
        }
        Api::Gemini => format!("data: {{\"candidates\":[],{GEMINI}}}\n\n"),
        Api::Ollama => format!("{{\"done\":false,{OLLAMA}}}\n"),
    }
}

const APIS: [Api; 4] = [Api::OpenAi, Api::Anthropic, Api::Gemini, Api::Ollama];

async fn streams() {
    for api in APIS {
        let separator = if api == Api::Ollama { "\n" } else { "\n\n" };
        let framed = |piece: &str| {
            let before = if api == Api::Ollama { "" } else { "data: " };
            format!("{}{before}{piece}{separator}", begun(api))
        };
        let kind = r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
        for piece in ["{", "7", kind] {
            for size in [9, 4_096] {
                let (error, usage) = failure(stream(api, &framed(piece), size).await);
                assert_eq!(usage, USED, "{api} {piece} {error}");
            }
        }
        // It ends too early.
        assert_eq!(failure(stream(api, &begun(api), 4_096).await).1, USED, "{api}");
    }
    let nowhere = r#"{"type":"content_block_delta","index":3,"delta":{"text":"x"}}"#;
    let events = format!("{}data: {nowhere}\n\n", begun(Api::Anthropic));
    assert_eq!(failure(stream(Api::Anthropic, &events, 4_096).await).1, USED);
}

async fn given_up() {
    for api in APIS {
        let kind = if api == Api::Ollama { "application/x-ndjson" } else { "text/event-stream" };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 100000\r\n\r\n");
        let broken = vec![Piece::Bytes(format!("{head}{}", begun(api)).into_bytes())];
        let silent = vec![open(kind), Piece::Bytes(begun(api).into_bytes()), Piece::Pause(Duration::from_secs(60))];
        for (pieces, code, timeout_ms) in [(broken, Code::ProviderError, 20_000), (silent, Code::Timeout, 1_000)] {
            let server = Loopback::serve(move |_, _| pieces.clone()).await;
            let model = ModelSpec { streaming: true, timeout_ms, ..model(api, server.url("/v1")) };
            let (error, usage) = failure(ask(model).await);
            assert_eq!((error.code(), usage), (code, USED), "{api} {error}");
        }
    }
}
