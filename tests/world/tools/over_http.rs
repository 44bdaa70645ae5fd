//! Real and hostile servers over HTTP.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::Trial;
use portcullis::runtime::ports::Tools;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::spec::{SecretRef, ToolSource, Transport};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::bench::{Bench, http, peak_mib, spec};
use crate::components::{Component, real, test};
use crate::loopback::{self, Loopback, Piece, Received};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real(Component::Everything, "tools::over_http::a_real_server_lists_and_answers", everything),
        real(
            Component::Everything,
            "tools::over_http::a_real_server_that_dies_is_a_proof_until_it_is_resolved_anew",
            dies,
        ),
        test("tools::over_http::json_and_events_are_the_same", both_kinds),
        test("tools::over_http::an_answer_without_an_end_meets_a_limit_and_not_memory", endless),
        test("tools::over_http::what_is_no_answer_is_an_execution_error", no_answers),
        test("tools::over_http::a_start_that_is_refused_is_no_route", no_routes),
        test("tools::over_http::a_redirect_is_not_followed", redirected),
        test("tools::over_http::headers_are_sent_by_reference_and_shown_nowhere", headers),
        Trial::test("tools::over_http::traces_hold_no_secret_and_ours_no_content", traces),
        test("tools::over_http::an_ended_session_is_opened_again_once_and_no_call_is_sent_twice", sessions),
        test("tools::over_http::a_call_that_is_dropped_is_cancelled_and_its_connection_closed", dropped),
        test("tools::over_http::a_server_that_asks_is_told_that_it_is_not_supported", asked),
        test("tools::over_http::a_server_that_takes_no_replies_does_not_hold_up_its_answer", untaken),
        test("tools::over_http::a_server_that_asks_without_an_end_is_given_up", asks_for_ever),
        test("tools::over_http::an_error_to_nobody_ends_the_request_it_came_with", error_to_nobody),
    ]
}

/// `server-everything` over HTTP. It is made to listen on the loopback address, whatever it asks for.
struct Everything {
    url: String,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Everything {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let patch = folder.path().join("loopback.cjs");
        let code = "const net = require('net');\nconst listen = net.Server.prototype.listen;\n\
            net.Server.prototype.listen = function (port, ...rest) {\n\
            const done = rest.find((one) => typeof one === 'function');\n\
            this.once('listening', () => console.error('PORT ' + this.address().port));\n\
            return listen.call(this, { port: 0, host: '127.0.0.1' }, done); };\n";
        std::fs::write(&patch, code).unwrap();
        let mut command = Command::new(Component::Everything.program());
        command.arg("streamableHttp").env("NODE_OPTIONS", format!("--require {}", patch.display()));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some(port) = line.strip_prefix("PORT ") {
                break port.to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url: format!("http://127.0.0.1:{port}/mcp"), process, _folder: folder }
    }
}

async fn everything() {
    let server = Everything::start().await;
    let bench = Bench::new([http("all", &server.url)]).await.unwrap();
    assert_eq!(bench.text("all__echo", r#"{"message":"hello"}"#).await, "Echo: hello");
    let call = bench.call("all__trigger-long-running-operation", r#"{"duration":60,"steps":60}"#);
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    assert_eq!(bench.text("all__echo", r#"{"message":"next"}"#).await, "Echo: next");
    let refused = bench.call("all__get-resource-reference", r#"{"resourceType":"Text","resourceId":-1}"#).await;
    assert!(matches!(refused, Ok(ToolOutput::Error { .. }) | Err(ToolError::InvalidArguments { .. })), "{refused:?}");
    bench.tools.close().await;
}

async fn dies() {
    let mut server = Everything::start().await;
    let bench = Bench::new([http("all", &server.url)]).await.unwrap();
    let invocation = bench.invocation("all__trigger-long-running-operation", r#"{"duration":60,"steps":60}"#).await;
    let tools = Arc::clone(&bench.tools);
    let call = tokio::spawn(async move { tools.invoke(invocation).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.process.kill().await.unwrap();
    assert!(matches!(call.await.unwrap(), Err(ToolError::Execution { .. })));
    for _ in 0..3 {
        let refused = bench.call("all__echo", r#"{"message":"x"}"#).await;
        assert!(matches!(refused, Err(ToolError::UnavailableBeforeDispatch { .. })), "{refused:?}");
    }
}

/// What a polite server answers to anything but a call; nothing to a notification.
fn polite(request: &Received) -> Option<Value> {
    let message: Value = serde_json::from_str(&request.body).ok()?;
    let id = message["id"].clone();
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion":"2025-06-18","capabilities":{},
            "serverInfo":{"name":"h","version":"1"}}),
        "tools/list" => json!({"tools":[{"name":"t","inputSchema":{"type":"object"}}]}),
        _ => return None,
    };
    Some(json!({"jsonrpc":"2.0","id":id,"result":result}))
}

fn method(request: &Received) -> String {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    message["method"].as_str().unwrap_or_default().to_owned()
}

/// The answer to a call with that text.
fn text(request: &Received, text: &str) -> String {
    let message: Value = serde_json::from_str(&request.body).unwrap();
    json!({"jsonrpc":"2.0","id":message["id"],"result":{"content":[{"type":"text","text":text}]}}).to_string()
}

/// A polite server that answers calls so.
async fn server(call: impl Fn(&Received) -> Vec<Piece> + Send + Sync + 'static) -> Loopback {
    Loopback::serve(move |_, request| match (polite(request), method(request).as_str()) {
        (Some(answer), _) => loopback::whole(
            200,
            &[("content-type", "application/json"), ("mcp-session-id", "s-1")],
            &answer.to_string(),
        ),
        (None, "tools/call") => call(request),
        (None, _) => loopback::whole(202, &[], ""),
    })
    .await
}

async fn bench(server: &Loopback) -> Bench {
    Bench::new([http("h", server.url("/mcp"))]).await.unwrap()
}

async fn both_kinds() {
    let server = server(|request| {
        let answer = text(request, "said");
        if !request.body.contains("events") {
            return loopback::json(200, &answer);
        }
        let told = ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n";
        let (half, rest) = answer.split_at(answer.len() / 2);
        vec![
            loopback::open("text/event-stream; charset=utf-8"),
            Piece::Bytes(format!("{told}data: {half}").into_bytes()),
            Piece::Pause(Duration::from_millis(20)),
            Piece::Bytes(format!("{rest}\n\n").into_bytes()),
        ]
    })
    .await;
    let bench = bench(&server).await;
    assert_eq!(bench.text("h__t", r#"{"as":"json"}"#).await, "said");
    assert_eq!(bench.text("h__t", r#"{"as":"events"}"#).await, "said");
    let received = server.received();
    let call = received.iter().find(|request| method(request) == "tools/call").unwrap();
    assert_eq!(call.headers.get("mcp-session-id").map(String::as_str), Some("s-1"));
    assert_eq!(call.headers.get("mcp-protocol-version").map(String::as_str), Some("2025-06-18"));
    bench.tools.close().await;
    assert!(server.received().iter().any(|request| request.line == "DELETE /mcp"), "the session is told to end");
}

async fn endless() {
    let server = server(|request| {
        let (kind, piece): (_, &[u8]) = match request.body.as_str() {
            body if body.contains("json") => ("application/json", b"[[[[[[[["),
            body if body.contains("one-event") => ("text/event-stream", b"data: xxxxxxxx"),
            _ => ("text/event-stream", b"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"),
        };
        vec![loopback::open(kind), Piece::Endless(piece.repeat(1_000))]
    })
    .await;
    let bench = bench(&server).await;
    let before = peak_mib();
    for arguments in [r#"{"as":"json"}"#, r#"{"as":"one-event"}"#, r#"{"as":"many"}"#] {
        match bench.call("h__t", arguments).await {
            Err(ToolError::Execution { message }) => assert!(message.contains(" bytes"), "{arguments}: {message}"),
            other => panic!("{arguments}: {other:?}"),
        }
    }
    let grown = peak_mib() - before;
    assert!(grown < 256, "{grown} MiB");
}

async fn no_answers() {
    let server = server(|request| {
        let answer = text(request, "said");
        let events = |text: &str| vec![loopback::open("text/event-stream"), Piece::Bytes(text.as_bytes().to_vec())];
        let wanted: Value = serde_json::from_str(&request.body).unwrap();
        match wanted["params"]["arguments"]["as"].as_str().unwrap() {
            "html" => loopback::whole(200, &[("content-type", "text/html")], &answer),
            "nothing" => loopback::whole(200, &[], &answer),
            "401" => loopback::json(401, &answer),
            "500" => loopback::json(500, &answer),
            "accepted" => loopback::whole(202, &[], ""),
            "other" => loopback::json(200, r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#),
            "doubled" => loopback::json(200, &answer.replace("\"type\"", "\"text\":\"x\",\"type\"")),
            "cut" => loopback::json(200, &answer[..answer.len() - 2]),
            "short-stream" => events("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"),
            "bad-event" => events("data: {\"id\":\n\n"),
            "hang-up" => vec![],
            _ => loopback::json(200, &answer),
        }
    })
    .await;
    let bench = bench(&server).await;
    for (kind, said) in [
        ("html", "neither JSON"),
        ("nothing", "neither JSON"),
        ("401", "HTTP 401"),
        ("500", "HTTP 500"),
        ("accepted", "neither JSON"),
        ("other", "something else"),
        ("doubled", "duplicate_key"),
        ("cut", "strict JSON"),
        ("short-stream", "before the answer"),
        ("bad-event", "strict JSON"),
        ("hang-up", "h"),
    ] {
        match bench.call("h__t", &format!(r#"{{"as":"{kind}"}}"#)).await {
            Err(ToolError::Execution { message }) => assert!(message.contains(said), "{kind}: {message}"),
            other => panic!("{kind}: {other:?}"),
        }
    }
    let calls = server.received().iter().filter(|request| method(request) == "tools/call").count();
    assert_eq!(calls, 11, "nothing is sent twice");
    assert_eq!(bench.text("h__t", r#"{"as":"good"}"#).await, "said");
}

async fn no_route(source: ToolSource) -> String {
    match Bench::new([source]).await {
        Err(ResolutionError::Routing { message }) => message,
        Err(other) => panic!("{other:?}"),
        Ok(bench) => panic!("{:?}", bench.names()),
    }
}

async fn no_routes() {
    for status in [401, 404, 500] {
        let server = Loopback::serve(move |_, _| loopback::json(status, "{}")).await;
        let message = no_route(http("h", server.url("/mcp"))).await;
        assert!(message.contains(&format!("HTTP {status}")), "{message}");
    }
    let message = no_route(http("h", "http://127.0.0.1:1/mcp")).await;
    assert!(message.contains("refused"), "{message}");
    for url in ["ftp://127.0.0.1/", "no address", "file:///etc/passwd"] {
        assert!(no_route(http("h", url)).await.contains("address"), "{url}");
    }
}

async fn redirected() {
    let other = Loopback::serve(|_, _| loopback::json(200, "{}")).await;
    for status in [301, 302, 307, 308] {
        let place = other.url("/mcp");
        let server = Loopback::serve(move |_, _| loopback::whole(status, &[("location", &place)], "")).await;
        let message = no_route(http("h", server.url("/mcp"))).await;
        assert!(message.contains(&format!("HTTP {status}")), "{message}");
    }
    assert!(other.received().is_empty(), "the other server sees nothing");
}

async fn headers() {
    // A variable that is set wherever tests run, and is no secret.
    let value = std::env::var("PATH").unwrap();
    let server = server(|_| loopback::json(500, "{}")).await;
    let mut source = http("h", server.url("/mcp"));
    let set = |source: &mut ToolSource, name: &str, variable: &str| {
        if let Transport::Http { headers, .. } = &mut source.transport {
            headers.clear();
            headers.insert(name.to_owned(), SecretRef { env: variable.to_owned() });
        }
    };
    set(&mut source, "x-key", "A_VARIABLE_THAT_NOBODY_SETS");
    assert!(no_route(source.clone()).await.contains("A_VARIABLE_THAT_NOBODY_SETS"));
    for reserved in ["Host", "mcp-session-id", "content-type"] {
        set(&mut source, reserved, "PATH");
        let message = no_route(source.clone()).await;
        assert!(message.contains("belongs to the protocol") && !message.contains(&value), "{message}");
    }
    assert!(server.received().is_empty(), "nothing was sent");
    // An address that belongs to nobody: it is refused before anything is sent.
    let mut afar = http("h", "http://192.0.2.1/mcp");
    set(&mut afar, "x-key", "PATH");
    let message = no_route(afar).await;
    assert!(message.contains("plain http") && !message.contains(&value), "{message}");
    set(&mut source, "x-key", "PATH");
    let bench = Bench::new([source.clone()]).await.unwrap();
    let failed = bench.call("h__t", "{}").await;
    assert!(server.received().iter().all(|request| request.headers.get("x-key") == Some(&value)));
    let shown = format!("{failed:?} {:?} {source:?} {:?}", bench.tools, bench.environment);
    assert!(!shown.contains(&value), "{shown}");
}

fn traces() -> Result<(), libtest_mimic::Failed> {
    let told = crate::traces::keep();
    let secret = std::env::var("PATH").unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = server(|request| loopback::json(200, &text(request, "zebra crossing"))).await;
        let mut source = http("h", server.url("/mcp"));
        if let Transport::Http { headers, .. } = &mut source.transport {
            headers.insert("x-key".to_owned(), SecretRef { env: "PATH".to_owned() });
        }
        let bench = Bench::new([source]).await.unwrap();
        assert_eq!(bench.text("h__t", r#"{"as":"zebra fish"}"#).await, "zebra crossing");
        bench.tools.close().await;
        assert!(server.received().iter().all(|request| request.headers.get("x-key") == Some(&secret)));
    });
    let told = told.lock().unwrap();
    let of = |target: &'static str| told.iter().filter(move |(from, _)| from.starts_with(target));
    assert!(of("portcullis").count() > 0 && of("rmcp").count() > 0, "somebody traces");
    assert!(told.iter().all(|(_, text)| !text.contains(&secret)));
    assert!(of("portcullis").all(|(_, text)| !text.contains("zebra")));
    Ok(())
}

async fn sessions() {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let server = server(move |request| {
        let mut calls = counted.lock().unwrap();
        *calls += 1;
        // Every odd call finds its session over.
        if *calls % 2 == 1 { loopback::json(404, "{}") } else { loopback::json(200, &text(request, "said")) }
    })
    .await;
    let bench = bench(&server).await;
    for _ in 0..2 {
        match bench.call("h__t", "{}").await {
            Err(ToolError::Execution { message }) => assert!(message.contains("session"), "{message}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(bench.text("h__t", "{}").await, "said");
    }
    assert_eq!(*calls.lock().unwrap(), 4);
    let handshakes = server.received().iter().filter(|request| method(request) == "initialize").count();
    assert_eq!(handshakes, 3);
}

async fn dropped() {
    let server = server(|_| {
        vec![loopback::open("text/event-stream"), Piece::Drip(b": still here\n\n".to_vec(), Duration::from_millis(5))]
    })
    .await;
    let bench = bench(&server).await;
    let call = bench.call("h__t", "{}");
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    let told = async {
        loop {
            let told = server.received().iter().any(|request| method(request) == "notifications/cancelled");
            if told && server.hung_up() == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told).await.unwrap();
    let _ = bench.tools.resolve(&spec(&[])).await;
}

async fn asked() {
    let server = server(|request| {
        let answer = text(request, "said");
        let question = r#"data: {"jsonrpc":"2.0","id":"own","method":"sampling/createMessage","params":{}}"#;
        let stream = format!("{question}\n\ndata: {answer}\n\n");
        vec![loopback::open("text/event-stream"), Piece::Bytes(stream.into_bytes())]
    })
    .await;
    let bench = bench(&server).await;
    assert_eq!(bench.text("h__t", "{}").await, "said");
    // It is sent beside the reading.
    let refusal = async {
        loop {
            match server.received().into_iter().find(|request| request.body.contains("\"own\"")) {
                Some(refusal) => return refusal,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let refusal = tokio::time::timeout(Duration::from_secs(20), refusal).await.unwrap();
    assert!(refusal.body.contains("-32601"), "{}", refusal.body);
}

/// A call's answer behind so many questions.
fn questions(request: &Received, count: usize) -> Vec<Piece> {
    let asked = "data: {\"jsonrpc\":\"2.0\",\"id\":\"own\",\"method\":\"ping\"}\n\n".repeat(count);
    let stream = format!("{asked}data: {}\n\n", text(request, "said"));
    vec![loopback::open("text/event-stream"), Piece::Bytes(stream.into_bytes())]
}

async fn untaken() {
    let server = Loopback::serve(move |_, request| match (polite(request), method(request).as_str()) {
        (Some(answer), _) => loopback::json(200, &answer.to_string()),
        (None, "tools/call") => questions(request, 100),
        // Replies are taken and never answered.
        (None, "") => vec![Piece::Pause(Duration::from_secs(60))],
        (None, _) => loopback::whole(202, &[], ""),
    })
    .await;
    let bench = bench(&server).await;
    let call = tokio::time::timeout(Duration::from_secs(4), bench.text("h__t", "{}"));
    assert_eq!(call.await.unwrap(), "said");
    // As many as may be under way arrive, and no more.
    let replies = || server.received().iter().filter(|request| request.body.contains("\"own\"")).count();
    let arrived = async {
        while replies() < 16 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(4), arrived).await.unwrap();
    assert_eq!(replies(), 16);
}

async fn asks_for_ever() {
    let server = server(|request| questions(request, if request.body.contains("many") { 257 } else { 256 })).await;
    let bench = bench(&server).await;
    match bench.call("h__t", r#"{"as":"many"}"#).await {
        Err(ToolError::Execution { message }) => assert!(message.contains("256 questions"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.text("h__t", r#"{"as":"few"}"#).await, "said");
}

async fn error_to_nobody() {
    let server = server(|request| {
        let error = r#""error":{"code":-32600,"message":"not so"}}"#;
        let id = if request.body.contains("null") { r#""id":null,"# } else { "" };
        let error = format!(r#"{{"jsonrpc":"2.0",{id}{error}"#);
        if request.body.contains("events") {
            return vec![loopback::open("text/event-stream"), Piece::Bytes(format!("data: {error}\n\n").into_bytes())];
        }
        loopback::json(200, &error)
    })
    .await;
    let bench = bench(&server).await;
    for arguments in [r#"{"as":"null"}"#, r#"{"as":"absent"}"#, r#"{"as":"null events"}"#] {
        let call = tokio::time::timeout(Duration::from_secs(10), bench.call("h__t", arguments));
        match call.await.unwrap_or_else(|_| panic!("{arguments}: the call still waits")) {
            Err(ToolError::Execution { message }) => assert!(message.contains("not so"), "{message}"),
            other => panic!("{arguments}: {other:?}"),
        }
    }
}
