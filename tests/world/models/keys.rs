//! Where keys go, and where they must not stand.

use std::io::Read;

use libtest_mimic::Trial;
use portcullis::adapters::providers::{Endpoint, Providers};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::ports::{Model, ModelCall};
use portcullis::runtime::store::Store;
use portcullis::runtime::{Runtime, Traces};
use portcullis::vocabulary::llm::Code;
use portcullis::vocabulary::spec::{Api, ModelSpec, Retry, SecretRef, Spec};

use super::asking::{Eyes, KEY, ask, failure, first, model, openai, providers};
use crate::components::test;
use crate::loopback::{Loopback, Piece, json, open, whole};
use crate::traces;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::keys::an_endpoint_is_known_before_anything_is_sent", endpoints),
        test("models::keys::a_key_that_is_not_there_is_missed_before_anything_is_sent", missing),
        test("models::keys::a_usual_key_goes_to_its_usual_address_alone", usual_keys),
        test("models::keys::a_key_that_no_header_may_hold_is_not_sent", unsendable),
        test("models::keys::a_key_is_never_to_be_seen", never_seen),
        test("models::keys::half_a_long_key_stands_in_no_error", half_a_key),
        test("models::keys::a_key_stands_in_no_record", no_record),
        test(PROXIED, proxied),
    ]
}

async fn endpoints() {
    let named = |name: &str| ModelSpec::new(name);
    let based = |base: &str| ModelSpec { base_url: Some(base.to_owned()), ..ModelSpec::new("m") };
    let keyed = |base: &str| ModelSpec { key: Some(SecretRef { env: "K".to_owned() }), ..based(base) };
    let table = [
        (named("gpt-x"), "https://api.openai.com/v1/chat/completions", Some("OPENAI_API_KEY")),
        (named("claude-x"), "https://api.anthropic.com/v1/messages", Some("ANTHROPIC_API_KEY")),
        (
            named("gemini-x"),
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:generateContent",
            Some("GEMINI_API_KEY"),
        ),
        (ModelSpec { api: Some(Api::Ollama), ..named("m") }, "http://127.0.0.1:11434/api/chat", None),
        (
            ModelSpec { api: Some(Api::OpenAi), ..named("claude-x") },
            "https://api.openai.com/v1/chat/completions",
            Some("OPENAI_API_KEY"),
        ),
        (based("https://example.org/v1/"), "https://example.org/v1/chat/completions", None),
        (based("https://example.org/v1?version=2#part"), "https://example.org/v1/chat/completions?version=2", None),
        (keyed("https://example.org"), "https://example.org/chat/completions", Some("K")),
        (keyed("http://localhost:1/v1"), "http://localhost:1/v1/chat/completions", Some("K")),
        (keyed("http://127.8.9.1/v1"), "http://127.8.9.1/v1/chat/completions", Some("K")),
        (keyed("http://[::1]/v1"), "http://[::1]/v1/chat/completions", Some("K")),
        (based("http://example.org"), "http://example.org/chat/completions", None),
    ];
    for (model, url, key) in table {
        let endpoint = Endpoint::of(&model).unwrap();
        assert_eq!((endpoint.url.as_str(), endpoint.key.as_deref()), (url, key));
    }
    assert_eq!(Endpoint::of(&based("https://example.org/v1")).unwrap().host(), "example.org");
    let rejected = [
        keyed("http://example.org/v1"),
        keyed("http://10.0.0.1/v1"),
        keyed("http://127.0.0.1.example.org/v1"),
        based("example.org/v1"),
        based("ftp://example.org"),
        based("file:///etc/passwd"),
        based("https://"),
        based("https://user:word@example.org"),
        based(""),
        ModelSpec { api: Some(Api::Gemini), ..named("../x") },
        ModelSpec { api: Some(Api::Gemini), ..named("models/../../x") },
    ];
    for model in rejected {
        let error = Endpoint::of(&model).unwrap_err();
        assert_eq!(error.code(), Code::BindingRejected, "{model:?}");
    }
}

async fn missing() {
    for value in [None, Some(String::new())] {
        let server = Loopback::serve(|_, _| json(200, "{}")).await;
        let providers = Providers::with_keys(move |_| value.clone()).unwrap();
        let (error, _) = failure(providers.respond(first(openai(&server)).await).await);
        assert_eq!(error.code(), Code::Unauthorized);
        assert_eq!(error.message(), "the environment variable THE_KEY is not set: it should hold the key");
        assert_eq!(server.received().len(), 0);
    }
    // Without a key at the usual address, nothing is sent there either.
    let providers = Providers::with_keys(|_| None).unwrap();
    for name in ["gpt-x", "claude-x", "gemini-x"] {
        let (error, _) = failure(providers.respond(first(ModelSpec::new(name)).await).await);
        assert_eq!(error.code(), Code::Unauthorized, "{error}");
    }
}

async fn usual_keys() {
    let providers = Providers::with_keys(|_| Some(KEY.to_owned())).unwrap();
    for api in [Api::OpenAi, Api::Anthropic, Api::Gemini, Api::Ollama] {
        let server = Loopback::serve(|_, _| json(200, "{}")).await;
        let model = ModelSpec { key: None, ..model(api, server.url("/v1")) };
        failure(providers.respond(first(model).await).await);
        let received = server.received().remove(0);
        assert!(!format!("{received:?}").contains(KEY), "{received:?}");
    }
}

async fn unsendable() {
    let server = Loopback::serve(|_, _| json(200, "{}")).await;
    let providers = Providers::with_keys(|_| Some(format!("{KEY}\n"))).unwrap();
    let (error, _) = failure(providers.respond(first(openai(&server)).await).await);
    assert_eq!(error.code(), Code::Unauthorized, "{error}");
    assert!(!error.message().contains(KEY));
    assert_eq!(server.received().len(), 0);
}

/// Answers of servers that return the key, in every place that they have.
fn betrayals() -> Vec<Vec<Piece>> {
    let spread: String = KEY.chars().map(|letter| format!("{letter}\\u0000")).collect();
    let error = |message: &str| json(401, &format!(r#"{{"error":{{"message":"{message}","code":"{KEY}"}}}}"#));
    let answer = |message: &str, finish: &str| {
        json(200, &format!(r#"{{"choices":[{{"finish_reason":"{finish}","message":{message}}}]}}"#))
    };
    let text = format!(r#"{{"content":"it is {KEY}"}}"#);
    let call =
        format!(r#"{{"tool_calls":[{{"id":"x","function":{{"name":"x","arguments":"{{\"k\":\"{KEY}\"}}"}}}}]}}"#);
    let name = format!(r#"{{"tool_calls":[{{"id":"x","function":{{"name":"{KEY}","arguments":""}}}}]}}"#);
    let id = format!(r#"{{"tool_calls":[{{"id":"{KEY}","function":{{"name":"x","arguments":""}}}}]}}"#);
    let kept = format!(
        r#"{{"reasoning_content":"{KEY}","tool_calls":[{{"id":"x","function":{{"name":"x","arguments":""}}}}]}}"#
    );
    let halves = KEY.split_at(9);
    let stream = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}},\
         \"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n",
        halves.0, halves.1
    );
    let kind: &'static str = Box::leak(format!("text/{KEY}").into_boxed_str());
    let place: &'static str = Box::leak(format!("http://127.0.0.1:1/{KEY}").into_boxed_str());
    // Wherever a message is shortened, the key may stand across that place.
    let across = (380..500).step_by(20).map(|before| error(&format!("{}{KEY}", "x".repeat(before))));
    let all = vec![
        error(KEY),
        // A word that is too long to be one, with a key in the middle of where it would be cut.
        json(401, &format!(r#"{{"error":{{"code":"{}{KEY}"}}}}"#, "x".repeat(40))),
        answer(&text, &format!("{}{KEY}", "x".repeat(50))),
        error(&spread),
        answer(&text, "stop"),
        answer(&text, KEY),
        answer(&call, "tool_calls"),
        answer(&name, "tool_calls"),
        answer(&id, "tool_calls"),
        answer(&kept, "tool_calls"),
        whole(200, &[("content-type", "text/event-stream")], &stream),
        whole(200, &[("content-type", kind)], KEY),
        whole(302, &[("location", place)], KEY),
        json(200, KEY),
        json(500, KEY),
        vec![Piece::Bytes(format!("HTTP/1.1 {KEY}\r\n\r\n").into_bytes())],
        vec![open("application/json"), Piece::Bytes(KEY.as_bytes().to_vec())],
    ];
    all.into_iter().chain(across).collect()
}

async fn never_seen() {
    traces::listen();
    for (index, pieces) in betrayals().into_iter().enumerate() {
        for streaming in [false, true] {
            let pieces = pieces.clone();
            let server = Loopback::serve(move |_, _| pieces.clone()).await;
            let answer = ask(ModelSpec { streaming, ..openai(&server) }).await;
            assert_eq!(server.received()[0].headers["authorization"], format!("Bearer {KEY}"));
            let (error, _) = failure(answer.clone());
            let seen = format!("{answer:?} {error} {error:?}");
            assert!(!seen.contains(KEY), "{index} {seen}");
            // Nor half of it, nor in another spelling.
            assert!(!seen.contains(&KEY[..12]), "{index} {seen}");
            assert!(!seen.contains("skport") && !seen.contains("7f3a9d5e"), "{index} {seen}");
        }
    }
    let providers = providers();
    assert!(!format!("{providers:?}").contains(KEY));
    assert!(traces::heard() > 100, "nothing was heard");
    assert_eq!(traces::betrayed(), 0);
}

/// As long as those of projects are: longer than a word that is repeated.
async fn half_a_key() {
    let key = format!("sk-proj-{}", "Ab3dE-gH1jKl_nOpQrSt".repeat(8));
    let plain =
        |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase() };
    let echoed = [
        json(401, &format!(r#"{{"error":{{"code":"{key}","message":"bad key"}}}}"#)),
        json(401, &format!(r#"{{"error":{{"type":"{key}","message":"bad key"}}}}"#)),
        json(200, &format!(r#"{{"choices":[{{"finish_reason":"{key}","message":{{"content":"x"}}}}]}}"#)),
        whole(200, &[("content-type", key.as_str())], "{}"),
        json(401, &format!(r#"{{"error":{{"message":"Incorrect API key provided: {key}."}}}}"#)),
    ];
    for answer in echoed {
        let server = Loopback::serve(move |_, _| answer.clone()).await;
        let held = key.clone();
        let providers = Providers::with_keys(move |_| Some(held.clone())).unwrap();
        let (error, _) = failure(providers.respond(first(openai(&server)).await).await);
        assert!(!plain(error.message()).contains(&plain(&key)[..24]), "{error}");
    }
}

async fn no_record() {
    traces::listen();
    for pieces in betrayals() {
        let server = Loopback::serve(move |_, _| pieces.clone()).await;
        let store = MemoryStore::new();
        let builder = Runtime::builder().store(store.session()).model(providers()).tools(Eyes).traces(Traces::Content);
        let runtime = builder.build().unwrap();
        let retry = Retry { retries_max: 1, base_ms: 1, overloaded_base_ms: 1, ..Retry::default() };
        let handle = runtime.start(Spec { model: openai(&server), retry, ..Spec::new("t", "") }).await.unwrap();
        let seen = format!("{:?}", handle.outcome().await.unwrap());
        let mut history = String::new();
        store.read(handle.run()).await.unwrap().read_to_string(&mut history).unwrap();
        assert!(history.contains("run_ended"), "{history}");
        assert!(!history.contains(KEY) && !seen.contains(KEY), "{history}");
    }
    assert_eq!(traces::betrayed(), 0);
    // The same call with a key that the answer does not hold is a plain answer.
    let server = Loopback::serve(|_, _| {
        json(200, r#"{"choices":[{"finish_reason":"stop","message":{"content":"it is no key"}}]}"#)
    });
    let server = server.await;
    let call: ModelCall = first(openai(&server)).await;
    assert!(providers().respond(call).await.is_ok());
}

const PROXIED: &str = "models::keys::a_proxy_of_the_environment_sees_hosts_and_never_this_machine";
/// Set where this program was started again, with a proxy in its environment.
const CHILD: &str = "PORTCULLIS_TEST_PROXIED";

async fn proxied() {
    if std::env::var_os(CHILD).is_some() {
        return behind_a_proxy().await;
    }
    let proxy = Loopback::serve(|_, _| json(403, "{}")).await;
    let place = proxy.url("");
    let child = tokio::task::spawn_blocking(move || {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            child.env(name, &place);
        }
        child.env_remove("NO_PROXY").env_remove("no_proxy");
        child.env(CHILD, "1").args(["--exact", PROXIED]).output().unwrap()
    });
    let child = child.await.unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let seen = proxy.received();
    assert_eq!(seen.iter().map(|seen| seen.line.as_str()).collect::<Vec<_>>(), ["CONNECT models.invalid:443"]);
    assert!(!format!("{seen:?}").contains(KEY), "{seen:?}");
}

async fn behind_a_proxy() {
    let server = Loopback::serve(|_, _| json(418, "{}")).await;
    assert_eq!(failure(ask(openai(&server)).await).0.code(), Code::InvalidRequest);
    assert_eq!(server.received().len(), 1);
    let (error, _) = failure(ask(model(Api::OpenAi, "https://models.invalid/v1".to_owned())).await);
    assert_eq!(error.code(), Code::ProviderError, "{error}");
}
