//! Whole runs with tools of servers.

use std::sync::Arc;

use libtest_mimic::Trial;
use portcullis::adapters::mcp::McpTools;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::store::Store;
use portcullis::runtime::{Event, Outcome, Question, Runtime};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::{Decision, Reconciliation};
use portcullis::vocabulary::spec::{JudgePolicy, Spec, ToolSource};
use portcullis::vocabulary::tool::ToolOutput;

use super::bench::{Bench, Ear, Script, children, component, gone, only, spec, stdio, with};
use crate::components::{Component, real, test};

pub(crate) fn trials() -> Vec<Trial> {
    use Component::{Filesystem, Time};
    vec![
        real(Filesystem, "tools::runs::lines_of_a_file_become_facts_and_a_success", lines),
        real(Time, "tools::runs::pointers_into_a_result_become_facts_under_their_key", pointers),
        real(Filesystem, "tools::runs::a_writing_tool_waits_for_a_person", confirmed),
        Trial::test("tools::runs::a_call_that_a_crash_interrupted_waits_for_a_person", || crashed(false)),
        Trial::test("tools::runs::a_looking_call_of_a_trusted_server_runs_again_after_a_crash", || crashed(true)),
        test("tools::runs::a_list_that_changes_in_mid_run_changes_nothing", changes),
        test("tools::runs::a_call_that_takes_too_long_is_cancelled_at_the_server", times_out),
        test("tools::runs::a_cancelled_run_cancels_its_calls_at_the_server", cancelled),
        test("tools::runs::a_result_over_its_tools_limit_is_the_engines", too_large),
        test("tools::runs::a_server_that_never_shakes_hands_ends_with_the_run_that_waits_for_it", never_shakes_hands),
    ]
}

fn unjudged(sources: &[ToolSource]) -> Spec {
    let mut spec = spec(sources);
    spec.release.judge = JudgePolicy::Off;
    spec
}

fn runtime(source: &ToolSource, store: impl Store, script: Script) -> Runtime {
    let tools = McpTools::new(vec![source.clone()]);
    Runtime::builder().store(store).model(script).tools(tools).build().unwrap()
}

/// Plays a run to its end: row, facts, and what the model was shown last.
async fn play(source: ToolSource, script: Script) -> (u32, u64, String) {
    let shown = Arc::clone(&script.shown);
    let runtime = runtime(&source, MemoryStore::new(), script);
    let handle = runtime.start(unjudged(&[source])).await.unwrap();
    let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("it waits") };
    let last = shown.lock().unwrap().last().cloned().unwrap_or_default();
    (ended.ending.row.into(), ended.ending.facts.into(), last)
}

async fn lines() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("a"), "one\n\ntwo\n").unwrap();
    let source = component("files", Component::Filesystem, &[place]);
    let source = with(source, "read_text_file", r#"{"evidence":true,"projection":{"type":"lines"},"scope":["/path"]}"#);
    let path = format!(r#"{{"path":"{place}/a"}}"#);
    let (row, facts, _) = play(source, Script::calls([("files__read_text_file", path.as_str())])).await;
    assert_eq!((row, facts), (1, 2));
    // The runtime was dropped, and its tools with it.
    for process in children(place) {
        gone(process).await;
    }
}

async fn pointers() {
    let source = component("clock", Component::Time, &["--local-timezone", "Etc/UTC"]);
    let settings = r#"{"evidence":true,
        "projection":{"type":"pointers","pointers":["/timezone","/is_dst"],"fact_key":"/timezone"}}"#;
    let source = only(with(source, "get_current_time", settings), &["get_current_time"]);
    let (row, facts, _) = play(source, Script::calls([("clock__get_current_time", r#"{"timezone":"Etc/UTC"}"#)])).await;
    assert_eq!((row, facts), (1, 2));
}

async fn confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let file = folder.path().join("a");
    let source = with(component("files", Component::Filesystem, &[place]), "write_file", r#"{"confirm":true}"#);
    let written = format!(r#"{{"path":"{place}/a","content":"done"}}"#);
    let script = Script::calls([("files__write_file", written.as_str())]);
    let runtime = runtime(&source, MemoryStore::new(), script);
    let handle = runtime.start(unjudged(&[source])).await.unwrap();
    let Outcome::Awaiting(waiting) = handle.outcome().await.unwrap() else { panic!("it does not wait") };
    let [Question::Decision { ticket, .. }] = &waiting.questions[..] else { panic!("{waiting:?}") };
    assert!(!file.exists());
    handle.decide(ticket.clone(), "me", Decision::Allow).await.unwrap();
    let Outcome::Ended(_) = handle.outcome().await.unwrap() else { panic!("it waits again") };
    assert_eq!(std::fs::read_to_string(file).unwrap(), "done");
}

fn hostile(mode: &str, port: u16) -> ToolSource {
    stdio("h", std::env::current_exe().unwrap(), &["serve-mcp", mode, &port.to_string()])
}

/// A process that dies, as an event loop that is dropped with everything in it.
fn crashed(trusted: bool) -> Result<(), libtest_mimic::Failed> {
    let events = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (outside, store) = (events(), MemoryStore::new());
    let (first_session, second_session) = (store.session(), store.session());
    let mut ear = outside.block_on(Ear::open());
    let mut source = hostile("waits-and-looks", ear.port);
    source.trust_hints = trusted;
    // On one thread, so that nothing of it sees the rest die.
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run: RunId = process.block_on(async {
        let runtime = runtime(&source, first_session, Script::calls([("h__wait", "{}")]));
        let handle = runtime.start(unjudged(std::slice::from_ref(&source))).await.unwrap();
        ear.hear("call wait").await;
        handle.run().clone()
    });
    drop(process);
    outside.block_on(async {
        let runtime = runtime(&source, second_session, Script::calls([]));
        let recovery = runtime.recover().await.unwrap();
        assert_eq!(recovery.runs.iter().map(|run| run.run()).collect::<Vec<_>>(), [&run]);
        let handle = runtime.attach(&run).await.unwrap();
        if trusted {
            ear.hear("call wait").await;
            handle.cancel("me").await.unwrap();
            ear.hear("cancelled").await;
        } else {
            let Outcome::Awaiting(waiting) = handle.outcome().await.unwrap() else { panic!("it went on") };
            let [Question::Reconciliation { call, .. }] = &waiting.questions[..] else { panic!("{waiting:?}") };
            assert!(ear.heard().iter().all(|line| !line.starts_with("call")), "it is never entered again");
            let outcome = Reconciliation::Applied { output: ToolOutput::text("it was done") };
            handle.reconcile(*call, "me", outcome).await.unwrap();
        }
        let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("it waits") };
        assert_eq!(ended.ending.row, if trusted { 15 } else { 3 });
    });
    Ok(())
}

async fn changes() {
    let ear = Ear::open().await;
    let source = with(hostile("plain", ear.port), "echo", r#"{"evidence":true,"projection":{"type":"text"}}"#);
    let script = Script::calls([("h__change", "{}"), ("h__echo", r#"{"n":1}"#)]);
    let (row, facts, _) = play(source.clone(), script).await;
    assert_eq!((row, facts), (1, 1), "the tool is called as it was resolved");
    // A later run sees the list as it is then.
    let bench = Bench::new([only(source.clone(), &["echo"])]).await;
    assert!(bench.is_ok());
}

async fn times_out() {
    let mut ear = Ear::open().await;
    let source = with(hostile("plain", ear.port), "wait", r#"{"timeout_ms":200}"#);
    let script = Script::calls([("h__wait", "{}")]);
    let shown = Arc::clone(&script.shown);
    let runtime = runtime(&source, MemoryStore::new(), script);
    let handle = runtime.start(unjudged(&[source])).await.unwrap();
    let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("it waits") };
    ear.hear("cancelled").await;
    let shown = shown.lock().unwrap().last().cloned().unwrap_or_default();
    assert!(shown.contains("ToolTimeout"), "{shown}");
    assert_eq!(ended.ending.row, 3);
}

async fn cancelled() {
    let mut ear = Ear::open().await;
    let source = hostile("plain", ear.port);
    let runtime = runtime(&source, MemoryStore::new(), Script::calls([("h__wait", "{}")]));
    let handle = runtime.start(unjudged(&[source])).await.unwrap();
    let mut events = handle.events();
    ear.hear("call wait").await;
    handle.cancel("me").await.unwrap();
    ear.hear("cancelled").await;
    let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("it waits") };
    assert_eq!(ended.ending.row, 15);
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.push(event);
    }
    assert!(told.iter().any(|event| matches!(event, Event::ToolCalled { .. })), "{told:?}");
}

async fn too_large() {
    let ear = Ear::open().await;
    let (row, _, shown) = play(hostile("plain", ear.port), Script::calls([("h__large", "{}")])).await;
    assert!(shown.contains("ResultTooLarge"), "{shown}");
    assert_eq!(row, 3);
}

async fn never_shakes_hands() {
    let mut ear = Ear::open().await;
    let source = hostile("never-initializes", ear.port);
    let runtime = runtime(&source, MemoryStore::new(), Script::calls([]));
    let handle = runtime.start(unjudged(&[source])).await.unwrap();
    let up = ear.hear("up ").await;
    handle.cancel("me").await.unwrap();
    let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("it waits") };
    assert_eq!(ended.ending.row, 15);
    gone(up.trim_start_matches("up ").parse().unwrap()).await;
}
