//! Statuses and error objects, each with the class that it has.

use libtest_mimic::Trial;
use portcullis::vocabulary::llm::{self, Code};
use portcullis::vocabulary::spec::Api;

use super::asking::{ask, failure, model};
use crate::components::test;
use crate::loopback::{Loopback, whole};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::errors::a_status_has_its_class", statuses),
        test("models::errors::a_code_goes_before_its_status", codes),
        test("models::errors::an_error_object_in_a_success_is_that_error", in_a_success),
        test("models::errors::messages_decide_nothing", messages_decide_nothing),
        test("models::errors::a_provider_is_quoted_shortly_and_plainly", quoted),
        test("models::errors::a_wait_that_is_asked_for_is_reported", waits),
        test("models::errors::nobody_there_is_a_providers_failure", nobody_there),
    ]
}

/// Asks a server that answers with a status and a body.
async fn failed(api: Api, status: u16, headers: &[(&'static str, &'static str)], body: &str) -> llm::Error {
    let (headers, body) = (headers.to_vec(), body.to_owned());
    let server = Loopback::serve(move |_, _| {
        let headers: Vec<_> = [("content-type", "application/json")].into_iter().chain(headers.clone()).collect();
        whole(status, &headers, &body)
    });
    let server = server.await;
    let (error, _) = failure(ask(model(api, server.url("/v1"))).await);
    // The engine retries, not the adapter.
    assert_eq!(server.received().len(), 1, "{status} {error}");
    error
}

async fn statuses() {
    let table = [
        (400, Code::InvalidRequest),
        (401, Code::Unauthorized),
        (402, Code::UsageLimit),
        (403, Code::Unauthorized),
        (404, Code::ModelNotFound),
        (405, Code::BindingRejected),
        (407, Code::LoginRequired),
        (408, Code::Timeout),
        (409, Code::ProviderError),
        (410, Code::ModelNotFound),
        (413, Code::ContextOverflow),
        (418, Code::InvalidRequest),
        (422, Code::InvalidRequest),
        (425, Code::ProviderError),
        (429, Code::RateLimited),
        (498, Code::Overloaded),
        (500, Code::ProviderError),
        (502, Code::ProviderError),
        (503, Code::Overloaded),
        (504, Code::Timeout),
        (522, Code::Timeout),
        (529, Code::Overloaded),
        (599, Code::ProviderError),
        (301, Code::BindingRejected),
        (308, Code::BindingRejected),
        (600, Code::ProviderError),
    ];
    for (status, code) in table {
        for body in ["{}", "", "<html>", r#"{"error":{"message":"so it is","code":null,"type":null}}"#] {
            let error = failed(Api::OpenAi, status, &[], body).await;
            assert_eq!(error.code(), code, "{status} {body}");
        }
    }
}

async fn codes() {
    use Api::{Anthropic, Gemini, Ollama, OpenAi};
    let table = [
        (
            OpenAi,
            400,
            r#"{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            Code::ContextOverflow,
        ),
        (
            OpenAi,
            400,
            r#"{"error":{"code":400,"message":"m","type":"exceed_context_size_error"}}"#,
            Code::ContextOverflow,
        ),
        (
            OpenAi,
            400,
            r#"{"error":{"code":"content_filter","message":"m","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            Code::ContentFiltered,
        ),
        (OpenAi, 400, r#"{"error":{"code":"content_policy_violation"}}"#, Code::ContentFiltered),
        (
            OpenAi,
            403,
            r#"{"error":{"code":403,"metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
            Code::ContentFiltered,
        ),
        (OpenAi, 400, r#"{"error":{"code":"model_not_found"}}"#, Code::ModelNotFound),
        (OpenAi, 429, r#"{"error":{"code":"insufficient_quota","type":"insufficient_quota"}}"#, Code::UsageLimit),
        (OpenAi, 429, r#"{"error":{"code":"billing_hard_limit_reached"}}"#, Code::UsageLimit),
        (OpenAi, 400, r#"{"error":{"code":"invalid_api_key"}}"#, Code::Unauthorized),
        (OpenAi, 400, r#"{"error":{"code":"json_validate_failed"}}"#, Code::ProviderError),
        (
            OpenAi,
            400,
            r#"{"object":"error","message":"m","type":"model_not_found","code":"1500"}"#,
            Code::ModelNotFound,
        ),
        (OpenAi, 413, r#"{"error":{"type":"tokens","code":"rate_limit_exceeded"}}"#, Code::ContextOverflow),
        (OpenAi, 429, r#"{"error":{"type":"engine","code":"overloaded_error"}}"#, Code::Overloaded),
        (
            Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            Code::InvalidRequest,
        ),
        (Anthropic, 400, r#"{"type":"error","error":{"type":"billing_error","message":"m"}}"#, Code::UsageLimit),
        (Anthropic, 404, r#"{"type":"error","error":{"type":"not_found_error","message":"m"}}"#, Code::ModelNotFound),
        (Anthropic, 529, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, Code::Overloaded),
        (Anthropic, 500, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, Code::Overloaded),
        (
            Anthropic,
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"m"}}"#,
            Code::ContextOverflow,
        ),
        (
            Gemini,
            400,
            r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"@type":"t","reason":"API_KEY_INVALID"}]}}"#,
            Code::Unauthorized,
        ),
        (
            Gemini,
            400,
            r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            Code::Unauthorized,
        ),
        (Gemini, 429, r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#, Code::RateLimited),
        (Gemini, 404, r#"{"error":{"code":404,"status":"NOT_FOUND"}}"#, Code::ModelNotFound),
        (Ollama, 404, r#"{"error":"model 'x' not found"}"#, Code::ModelNotFound),
    ];
    for (api, status, body, code) in table {
        let error = failed(api, status, &[], body).await;
        assert_eq!(error.code(), code, "{status} {body}");
    }
}

async fn in_a_success() {
    let table = [
        (Api::OpenAi, r#"{"error":{"code":429,"message":"m"}}"#, Code::RateLimited),
        (
            Api::OpenAi,
            r#"{"choices":[{"error":{"code":502,"message":"m"},"finish_reason":"error","message":{}}]}"#,
            Code::ProviderError,
        ),
        (Api::OpenAi, r#"{"error":{"code":"insufficient_quota"}}"#, Code::UsageLimit),
        (Api::OpenAi, r#"{"error":{"type":"rate_limit_exceeded"}}"#, Code::RateLimited),
        (Api::OpenAi, r#"{"error":"so it is"}"#, Code::ProviderError),
        (Api::Anthropic, r#"{"type":"error","error":{"type":"overloaded_error"}}"#, Code::Overloaded),
        (Api::Anthropic, r#"{"type":"error","error":{"type":"rate_limit_error"}}"#, Code::RateLimited),
        (Api::Gemini, r#"{"error":{"status":"UNAVAILABLE"}}"#, Code::Overloaded),
        (Api::Gemini, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, Code::ContentFiltered),
        (Api::Ollama, r#"{"error":"so it is"}"#, Code::ProviderError),
    ];
    for (api, body, code) in table {
        let error = failed(api, 200, &[], body).await;
        assert_eq!(error.code(), code, "{body}");
    }
}

async fn messages_decide_nothing() {
    let words = "insufficient_quota context_length_exceeded 429 rate limit overloaded_error content_filter";
    let body = format!(r#"{{"error":{{"message":"{words}","code":null}}}}"#);
    assert_eq!(failed(Api::OpenAi, 400, &[], &body).await.code(), Code::InvalidRequest);
    assert_eq!(failed(Api::OpenAi, 200, &[], &body).await.code(), Code::ProviderError);
}

async fn quoted() {
    let long = "x".repeat(3_000);
    let body = format!(r#"{{"error":{{"message":"\u001b[2Jred\u202eder\u0000 {long}","code":"c"}}}}"#);
    let error = failed(Api::OpenAi, 500, &[], &body).await;
    let (begin, message) = ("HTTP 500 (c): [2Jredder x", error.message());
    assert!(message.starts_with(begin) && message.chars().count() == 500, "{message}");
    // Another text than the provider's own sentence is not quoted, and the request is in none.
    let html = failed(Api::OpenAi, 500, &[], "<html>say hello</html>").await;
    assert_eq!(html.message(), "HTTP 500");
}

async fn waits() {
    const DATE: (&str, &str) = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
    type Headers = &'static [(&'static str, &'static str)];
    let table: [(Headers, Option<u64>); 8] = [
        (&[("retry-after", "7")], Some(7_000)),
        (&[("retry-after", "0.25")], Some(250)),
        (&[("retry-after", "7"), ("retry-after-ms", "1234")], Some(1_234)),
        (&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), DATE], Some(30_000)),
        (&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), DATE], Some(0)),
        (&[("retry-after", "-7")], None),
        (&[("retry-after", "soon")], None),
        (&[], None),
    ];
    for (headers, wait) in table {
        for status in [429, 503] {
            let error = failed(Api::OpenAi, status, headers, "{}").await;
            assert_eq!(error.retry_after_ms(), wait, "{status} {headers:?}");
        }
        let error = failed(Api::OpenAi, 402, headers, "{}").await;
        let llm::Error::UsageLimit { reset_after_ms, .. } = error else { panic!("{error}") };
        assert_eq!(reset_after_ms, wait, "402 {headers:?}");
    }
    let body = r#"{"error":{"code":429,"details":[{"retryDelay":"39s"}]}}"#;
    assert_eq!(failed(Api::Gemini, 429, &[], body).await.retry_after_ms(), Some(39_000));
}

async fn nobody_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = model(Api::OpenAi, format!("http://{}/v1", listener.local_addr().unwrap()));
    drop(listener);
    let (error, usage) = failure(ask(closed).await);
    assert_eq!((error.code(), usage), (Code::ProviderError, None), "{error}");
    assert!(error.message().starts_with("127.0.0.1: "), "{error}");
}
