//! Servers that mean ill meet limits, and not the memory.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use portcullis::runtime::ports::Model;
use portcullis::vocabulary::llm::{self, Code};
use portcullis::vocabulary::spec::{Api, ModelSpec};

use super::asking::{ask, failure, first, model, openai, providers};
use crate::components::test;
use crate::loopback::{Loopback, Piece, json, open, whole};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::hostile::what_never_ends_meets_a_limit_and_not_the_memory", endless),
        test("models::hostile::a_drip_runs_out_of_time", drip),
        test("models::hostile::a_redirect_is_not_followed", redirect),
        test("models::hostile::what_is_no_json_is_no_answer", no_json),
        test("models::hostile::a_compressed_answer_is_refused", compressed),
        test("models::hostile::a_connection_that_breaks_is_a_failure", broken),
        test("models::hostile::an_answer_that_nobody_wants_is_hung_up", dropped),
    ]
}

async fn against(model: impl FnOnce(&Loopback) -> ModelSpec, pieces: Vec<Piece>) -> llm::Error {
    let server = Loopback::serve(move |_, _| pieces.clone()).await;
    let (error, _) = failure(ask(model(&server)).await);
    assert_eq!(server.received().len(), 1, "{error}");
    error
}

fn streaming(server: &Loopback) -> ModelSpec {
    ModelSpec { streaming: true, ..openai(server) }
}

fn ollama(server: &Loopback) -> ModelSpec {
    ModelSpec { streaming: true, ..model(Api::Ollama, server.url("")) }
}

/// The most memory that this process ever had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn endless() {
    let begin = |text: &str| Piece::Bytes(text.as_bytes().to_vec());
    let again = |text: &str| Piece::Endless(text.repeat(1 + 16_384 / text.len()).into_bytes());
    let before = peak_kib();
    let said = |error: llm::Error| {
        assert_eq!(error.code(), Code::ProviderError, "{error}");
        error.message().to_owned()
    };

    let body = vec![open("application/json"), begin("{\"x\":\""), again("x")];
    assert!(said(against(openai, body).await).contains("larger than 4194304 bytes"));
    let line = vec![open("text/event-stream"), begin("data: "), again("x")];
    assert!(said(against(streaming, line).await).contains("a piece of the stream is larger than 1048576"));
    let data = vec![open("text/event-stream"), again("data: xxxxxxxxxxxxxxxx\n")];
    assert!(said(against(streaming, data).await).contains("a piece of the stream is larger than 1048576"));
    let comments = vec![open("text/event-stream"), again(": nothing\n\n")];
    assert!(said(against(streaming, comments).await).contains("the stream is larger than 67108864"));
    let words = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(8_000));
    let words = vec![open("text/event-stream"), again(&words)];
    assert!(said(against(streaming, words).await).contains("the answer is larger than 4194304"));
    let line = vec![open("application/x-ndjson"), again("x")];
    assert!(said(against(ollama, line).await).contains("a piece of the stream is larger than 1048576"));
    let head = vec![begin("HTTP/1.1 200 OK\r\nx: "), again("x")];
    said(against(openai, head).await);
    let headers = vec![begin("HTTP/1.1 200 OK\r\n"), again("x: y\r\n")];
    said(against(openai, headers).await);

    // What an error says is looked at within its own limit, and its status counts.
    let failing = vec![begin("HTTP/1.1 429 No\r\ncontent-type: application/json\r\n\r\n{"), again("x")];
    assert_eq!(against(openai, failing).await.code(), Code::RateLimited);

    let call = r#"{"function":{"name":"","arguments":""}},"#;
    let calls = format!(
        r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"tool_calls":[{}]}}}}]}}"#,
        call.repeat(100_000).trim_end_matches(',')
    );
    said(against(openai, json(200, &calls)).await);
    let piece = |index: usize| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"x\"}}]}}}}]}}\n\n")
    };
    let pieces: String = (0..20_000).map(piece).collect();
    let stream = whole(200, &[("content-type", "text/event-stream")], &pieces);
    assert!(said(against(streaming, stream).await).contains("more than 1024 parts"));
    let deep = format!(r#"{{"choices":{}"#, "[".repeat(1_000_000));
    said(against(openai, json(200, &deep)).await);
    let ignored = format!(r#"{{"other":{}{},"choices":[]}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
    said(against(openai, json(200, &ignored)).await);

    let grown = peak_kib() - before;
    println!("hostile answers: the peak of memory grew by {grown} KiB");
    assert!(grown < 64 << 10, "the peak of memory grew by {grown} KiB");
}

async fn drip() {
    let pieces = vec![open("application/json"), Piece::Drip(b" ".to_vec(), Duration::from_millis(20))];
    let begun = Instant::now();
    let error = against(|server| ModelSpec { timeout_ms: 400, ..openai(server) }, pieces).await;
    assert_eq!(error.code(), Code::Timeout, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let silent = vec![Piece::Pause(Duration::from_secs(60))];
    let error = against(|server| ModelSpec { timeout_ms: 400, ..openai(server) }, silent).await;
    assert_eq!(error.message(), "no whole answer within 400 ms");
}

async fn redirect() {
    for status in [301, 302, 303, 307, 308] {
        let other = Loopback::serve(|_, _| json(200, "{}")).await;
        let place: &'static str = Box::leak(other.url("/v1/chat/completions").into_boxed_str());
        let error = against(openai, whole(status, &[("location", place)], "")).await;
        assert_eq!(error.code(), Code::BindingRejected, "{error}");
        assert!(!error.message().contains(place), "{error}");
        assert_eq!(other.received().len(), 0);
    }
}

async fn no_json() {
    let error = against(openai, whole(200, &[("content-type", "text/html")], "<html>say hello</html>")).await;
    assert_eq!((error.code(), error.message()), (Code::ProviderError, "the answer is text/html and not JSON"));
    let untold = against(openai, whole(200, &[], "{}")).await;
    assert_eq!(untold.code(), Code::ProviderError, "{untold}");
    let stream = whole(200, &[("content-type", "text/event-stream")], "data: [DONE]\n\n");
    assert_eq!(against(openai, stream).await.message(), "a stream was sent, and none was asked for");
    for body in ["", "{", "[]", "null", "7", r#"{"choices":7}"#, r#"{"choices":[]}"#, r#"{"choices":[{"message":{}}]}"#]
    {
        for api in [Api::OpenAi, Api::Anthropic, Api::Gemini, Api::Ollama] {
            let error = against(|server| model(api, server.url("/v1")), json(200, body)).await;
            assert_eq!(error.code(), Code::ProviderError, "{api} {body} {error}");
        }
    }
    let mut latin = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n".to_vec();
    latin.extend(b"{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{\"content\":\"\xff\"}}]}");
    assert_eq!(against(openai, vec![Piece::Bytes(latin)]).await.code(), Code::ProviderError);
}

async fn compressed() {
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let error = against(openai, whole(200, &headers, "\u{1f}\u{8b}")).await;
    assert_eq!(error.message(), "the answer is compressed, and that was not asked for");
}

async fn broken() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"choices\":";
    let error = against(openai, vec![Piece::Bytes(half.to_vec())]).await;
    assert!(error.message().starts_with("the answer broke off: "), "{error}");
    assert_eq!(error.code(), Code::ProviderError);
    assert_eq!(against(openai, vec![]).await.code(), Code::ProviderError);
    assert_eq!(against(openai, vec![Piece::Bytes(b"HTTP/1.1 2".to_vec())]).await.code(), Code::ProviderError);
    assert_eq!(against(openai, vec![Piece::Bytes(b"nonsense\r\n\r\n".to_vec())]).await.code(), Code::ProviderError);
}

async fn dropped() {
    let server = Loopback::serve(|_, _| vec![open("application/json"), Piece::Pause(Duration::from_secs(60))]).await;
    let call = first(openai(&server)).await;
    let answer = tokio::spawn(async move { providers().respond(call).await });
    until(|| server.received().len() == 1).await;
    assert_eq!(server.hung_up(), 0);
    answer.abort();
    until(|| server.hung_up() == 1).await;
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}
