//! Whole runs: the engine decides, the adapter reports. What the servers saw is counted.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use portcullis::adapters::providers::ModelJudge;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::engine::Ending;
use portcullis::runtime::{Ended, Outcome, Runtime};
use portcullis::vocabulary::failure::Failure;
use portcullis::vocabulary::llm::Code;
use portcullis::vocabulary::outcome::FallbackType;
use portcullis::vocabulary::spec::{ModelSpec, Retry, Spec, ToolSpec};

use super::asking::{Eyes, model, openai, providers};
use crate::components::test;
use crate::loopback::{Loopback, Piece, json, whole};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::runs::a_run_is_answered_and_judged_over_http", answered),
        test("models::runs::a_judge_that_fails_is_no_pass", judge_fails),
        test("models::runs::the_engine_waits_as_long_as_it_is_asked_to", waits),
        test("models::runs::a_fallback_is_taken_when_the_key_is_refused", unauthorized),
        test("models::runs::a_wait_that_is_too_long_is_not_waited_for", too_long),
        test("models::runs::retries_are_the_engines_and_are_counted", retries),
        test("models::runs::cut_arguments_are_reported_to_the_model_as_cut", cut),
        test("models::runs::a_run_that_is_cancelled_hangs_up", cancelled),
    ]
}

const LOOK: &str = r#"{"choices":[{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[{"id":"x","function":{"name":"look","arguments":"{}"}}]}}]}"#;
const DRAFT: &str = r#"{"choices":[{"finish_reason":"stop","message":{"content":"{\"conclusion\":{\"statement\":\"s\"},\"citations\":[\"f1\"]}"}}]}"#;
const SUPPORTED: &str = r#"{"choices":[{"finish_reason":"stop","message":{"content":"{\"verdict\":\"supported\"}"}}]}"#;

/// Answers in order, and the last one for ever.
async fn serving(answers: Vec<Vec<Piece>>) -> Loopback {
    Loopback::serve(move |nth, _| answers[nth.min(answers.len() - 1)].clone()).await
}

async fn ends(spec: Spec, judge: ModelSpec) -> Arc<Ended> {
    let judge = ModelJudge::new(judge, providers());
    let builder = Runtime::builder().store(MemoryStore::new()).model(providers()).judge(judge).tools(Eyes);
    let handle = builder.build().unwrap().start(spec).await.unwrap();
    match handle.outcome().await.unwrap() {
        Outcome::Ended(ended) => ended,
        Outcome::Awaiting(waiting) => panic!("{waiting:?}"),
    }
}

fn spec(model: ModelSpec, fallbacks: Vec<ModelSpec>) -> Spec {
    let retry = Retry { base_ms: 1, overloaded_base_ms: 1, delay_ms_max: 1, ..Retry::default() };
    Spec { model, fallbacks, retry, tools: vec![ToolSpec::evidence("look")], ..Spec::new("t", "") }
}

async fn answered() {
    let server = serving(vec![json(200, LOOK), json(200, DRAFT), json(200, SUPPORTED)]).await;
    let ended = ends(spec(openai(&server), vec![]), openai(&server)).await;
    assert_eq!(ended.ending.row, 1, "{:?}", ended.ending);
    assert_eq!(server.received().len(), 3);
    // The second request shows the fact under the id by which it is cited.
    assert!(server.received()[1].body.contains("[f1] what t1.0 saw"));
}

async fn judge_fails() {
    let server = serving(vec![json(200, LOOK), json(200, DRAFT)]).await;
    let judge = serving(vec![json(200, r#"{"choices":[{"finish_reason":"stop","message":{"content":"yes"}}]}"#)]).await;
    let ended = ends(spec(openai(&server), vec![]), openai(&judge)).await;
    assert_eq!((ended.ending.row, ended.ending.fallback_type), (4, Some(FallbackType::SemanticUnavailable)));
    assert_eq!(judge.received().len(), 1);
}

async fn waits() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&times);
    let server = Loopback::serve(move |nth, _| {
        seen.lock().unwrap().push(Instant::now());
        match nth {
            0 => whole(429, &[("retry-after", "0.7")], "{}"),
            1 => json(200, LOOK),
            2 => json(200, DRAFT),
            _ => json(200, SUPPORTED),
        }
    });
    let server = server.await;
    let ended = ends(spec(openai(&server), vec![]), openai(&server)).await;
    assert_eq!(ended.ending.row, 1, "{:?}", ended.ending);
    assert_eq!(server.received().len(), 4);
    let times = times.lock().unwrap();
    assert!(times[1] - times[0] >= Duration::from_millis(700), "{:?}", times[1] - times[0]);
}

async fn fell_back(first: Vec<Piece>, requests: usize) -> Ending {
    let (refusing, willing) = (serving(vec![first]).await, serving(vec![json(200, LOOK), json(200, DRAFT)]).await);
    let judge = serving(vec![json(200, SUPPORTED)]).await;
    let ended = ends(spec(openai(&refusing), vec![openai(&willing)]), openai(&judge)).await;
    assert_eq!(refusing.received().len(), requests);
    assert_eq!(willing.received().len(), 2);
    ended.ending.clone()
}

async fn unauthorized() {
    for status in [401, 404, 402] {
        assert_eq!(fell_back(json(status, "{}"), 1).await.row, 1);
    }
    let full = r#"{"error":{"code":"context_length_exceeded"}}"#;
    assert_eq!(fell_back(json(400, full), 1).await.row, 1);
}

async fn too_long() {
    assert_eq!(fell_back(whole(429, &[("retry-after", "3600")], "{}"), 1).await.row, 1);
}

async fn retries() {
    assert_eq!(fell_back(json(503, "{}"), 3).await.row, 1);
    // Nobody else is there: the run fails with the code of what failed it.
    let refusing = serving(vec![json(400, "{}")]).await;
    let ended = ends(spec(openai(&refusing), vec![]), openai(&refusing)).await;
    assert_eq!(ended.ending.failure, Some(Failure::Inference { code: Code::InvalidRequest }));
    assert_eq!(refusing.received().len(), 1);
}

async fn cut() {
    let cut = LOOK.replace("\"tool_calls\",\"message\"", "\"length\",\"message\"").replace(r#""{}""#, r#""{\"pa""#);
    let server = serving(vec![json(200, &cut), json(200, LOOK), json(200, DRAFT), json(200, SUPPORTED)]).await;
    let ended = ends(spec(openai(&server), vec![]), openai(&server)).await;
    assert_eq!(ended.ending.row, 1, "{:?}", ended.ending);
    let second = &server.received()[1].body;
    assert!(second.contains("unreadable_arguments"), "{second}");
    assert!(second.contains("ARGUMENTS_TRUNCATED"), "{second}");
}

async fn cancelled() {
    let server =
        serving(vec![vec![crate::loopback::open("application/json"), Piece::Pause(Duration::from_secs(60))]]).await;
    let slow = model(portcullis::vocabulary::spec::Api::OpenAi, server.url("/v1"));
    let runtime = Runtime::builder().store(MemoryStore::new()).model(providers()).tools(Eyes).build().unwrap();
    let handle = runtime.start(spec(slow, vec![])).await.unwrap();
    while server.received().is_empty() {
        tokio::task::yield_now().await;
    }
    handle.cancel("a test").await.unwrap();
    while server.hung_up() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.received().len(), 1);
}
