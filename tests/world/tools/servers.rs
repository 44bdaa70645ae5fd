//! Real servers over standard streams.

use std::time::Duration;

use libtest_mimic::Trial;
use portcullis::adapters::mcp::McpTools;
use portcullis::runtime::ports::Tools;
use portcullis::vocabulary::tool::{Recovery, ToolError, ToolOutput};

use super::bench::{Bench, children, component, gone, kill, only, spec};
use crate::components::{Component, real};

pub(crate) fn trials() -> Vec<Trial> {
    use Component::{Everything, Filesystem, Git, Memory, Time};
    vec![
        real(Time, "tools::servers::time_lists_and_answers_and_reports_its_own_errors", time),
        real(Git, "tools::servers::git_lists_and_answers", git),
        real(Memory, "tools::servers::memory_keeps_what_it_is_told", memory),
        real(Filesystem, "tools::servers::filesystem_reads_writes_and_refuses", filesystem),
        real(Everything, "tools::servers::everything_renders_each_kind_of_content", everything),
        real(Everything, "tools::servers::a_call_that_nobody_waits_for_does_not_hold_the_next_one_up", cancelled),
        real(Time, "tools::servers::a_server_that_is_killed_is_started_again_once_and_anew_after_an_answer", killed),
        real(
            Everything,
            "tools::servers::a_server_that_is_killed_in_mid_call_fails_that_call_as_unknown",
            killed_in_mid_call,
        ),
        real(Filesystem, "tools::servers::all_end_when_the_tools_are_closed", closed),
        real(Filesystem, "tools::servers::all_end_when_the_tools_are_dropped", dropped),
        real(Time, "tools::servers::hints_are_believed_only_where_the_source_says_so", hints),
    ]
}

async fn time() {
    let bench = Bench::new([component("clock", Component::Time, &["--local-timezone", "Etc/UTC"])]).await.unwrap();
    assert_eq!(bench.names(), ["clock__get_current_time", "clock__convert_time"]);
    let told = bench.text("clock__get_current_time", r#"{"timezone":"Asia/Tokyo"}"#).await;
    assert!(told.contains("+09:00"), "{told}");
    let Ok(ToolOutput::Error { content }) = bench.call("clock__get_current_time", r#"{"timezone":"No/Where"}"#).await
    else {
        panic!("no error")
    };
    assert!(content.contains("No/Where"), "{content}");
}

async fn git() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let made = std::process::Command::new("git").args(["init", "--quiet", place]).status().unwrap();
    assert!(made.success());
    std::fs::write(folder.path().join("new"), "x").unwrap();
    let bench = Bench::new([component("git", Component::Git, &[])]).await.unwrap();
    assert!(bench.names().contains(&"git__git_status"));
    let told = bench.text("git__git_status", &format!(r#"{{"repo_path":{place:?}}}"#)).await;
    assert!(told.contains("new"), "{told}");
}

async fn memory() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("memory.json");
    // The server is told its place by a variable, which it gets only by reference.
    let mut source = component("notes", Component::Memory, &[]);
    if let portcullis::vocabulary::spec::Transport::Stdio { command, args, .. } = &mut source.transport {
        *args = vec![format!("MEMORY_FILE_PATH={}", place.display()), command.clone()];
        "/usr/bin/env".clone_into(command);
    }
    let bench = Bench::new([source]).await.unwrap();
    let entity = r#"{"entities":[{"name":"gate","entityType":"thing","observations":["it falls"]}]}"#;
    bench.text("notes__create_entities", entity).await;
    let told = bench.text("notes__search_nodes", r#"{"query":"gate"}"#).await;
    assert!(told.contains("it falls"), "{told}");
    assert!(place.exists());
}

async fn filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let bench = Bench::new([component("files", Component::Filesystem, &[place])]).await.unwrap();
    let written = format!(r#"{{"path":"{place}/a","content":"one\ntwo"}}"#);
    bench.text("files__write_file", &written).await;
    assert_eq!(bench.text("files__read_text_file", &format!(r#"{{"path":"{place}/a"}}"#)).await, "one\ntwo");
    let refused = bench.call("files__read_text_file", r#"{"path":"/etc/hostname"}"#).await;
    assert!(matches!(refused, Ok(ToolOutput::Error { .. })), "{refused:?}");
}

async fn everything() {
    let bench = Bench::new([component("all", Component::Everything, &[])]).await.unwrap();
    assert_eq!(bench.text("all__echo", r#"{"message":"hello"}"#).await, "Echo: hello");
    let sum = bench.text("all__get-sum", r#"{"a":2,"b":0.5}"#).await;
    assert!(sum.contains("2.5"), "{sum}");
    let image = bench.text("all__get-tiny-image", "{}").await;
    assert!(image.contains("[image image/png, ") && image.len() < 500, "{image}");
    let links = bench.text("all__get-resource-links", r#"{"count":2}"#).await;
    assert_eq!(links.matches("[link ").count(), 2, "{links}");
    let weather = bench.text("all__get-structured-content", r#"{"location":"Chicago"}"#).await;
    assert!(weather.contains("temperature"), "{weather}");
    let resource = bench.text("all__get-resource-reference", r#"{"resourceType":"Text","resourceId":1}"#).await;
    assert!(resource.contains("Resource 1"), "{resource}");
    // The server sees the inherited minimum and nothing else of ours.
    let environment = bench.text("all__get-env", "{}").await;
    assert!(environment.contains("PATH") && !environment.contains("CARGO"), "{environment}");
}

async fn cancelled() {
    let bench = Bench::new([component("all", Component::Everything, &[])]).await.unwrap();
    let call = bench.call("all__trigger-long-running-operation", r#"{"duration":60,"steps":60}"#);
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    assert_eq!(bench.text("all__echo", r#"{"message":"next"}"#).await, "Echo: next");
}

/// The one process of ours that was started so.
fn process(with: &str) -> u32 {
    match children(with)[..] {
        [process] => process,
        ref several => panic!("{several:?}"),
    }
}

async fn killed() {
    let zone = "Antarctica/Troll";
    let bench = Bench::new([component("clock", Component::Time, &["--local-timezone", zone])]).await.unwrap();
    for _ in 0..2 {
        let process = process(zone);
        kill(process);
        gone(process).await;
        let told = bench.text("clock__get_current_time", r#"{"timezone":"Etc/UTC"}"#).await;
        assert!(told.contains("UTC"), "{told}");
    }
}

async fn killed_in_mid_call() {
    let mark = "--kill-in-mid-call";
    let mut source = component("all", Component::Everything, &["stdio", mark]);
    source = only(source, &["echo", "trigger-long-running-operation"]);
    let bench = Bench::new([source]).await.unwrap();
    let long = bench.invocation("all__trigger-long-running-operation", r#"{"duration":60,"steps":60}"#).await;
    // The second time it was started again for the call, and is killed before it has answered anything.
    for _ in 0..2 {
        let (failed, ()) = tokio::join!(bench.tools.invoke(long.clone()), async {
            let process = started(mark).await;
            // Written long before; what the server makes of it does not matter.
            tokio::time::sleep(Duration::from_secs(2)).await;
            kill(process);
            gone(process).await;
        });
        assert!(matches!(failed, Err(ToolError::Execution { .. })), "{failed:?}");
    }
    let refused = bench.call("all__echo", r#"{"message":"x"}"#).await;
    assert!(matches!(refused, Err(ToolError::UnavailableBeforeDispatch { .. })), "{refused:?}");
    assert!(children(mark).is_empty());
}

/// The process of ours that was started so, once it is there.
async fn started(with: &str) -> u32 {
    loop {
        if let [process] = children(with)[..] {
            return process;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn closed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let bench = Bench::new([component("files", Component::Filesystem, &[place])]).await.unwrap();
    let process = process(place);
    bench.tools.close().await;
    assert!(!super::bench::runs(process), "close waits, and leaves no zombie");
}

async fn dropped() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let bench = Bench::new([component("files", Component::Filesystem, &[place])]).await.unwrap();
    let process = process(place);
    drop(bench);
    gone(process).await;
}

async fn hints() {
    for (trust_hints, recovery) in [(false, Recovery::NeverReplay), (true, Recovery::ReplaySafe)] {
        let mut source = component("clock", Component::Time, &["--local-timezone", "Etc/UTC"]);
        source.trust_hints = trust_hints;
        let tools = McpTools::new(vec![source.clone()]);
        let environment = tools.resolve(&spec(&[source])).await.unwrap();
        assert!(environment.tools.iter().all(|tool| tool.recovery_mode() == recovery));
        let live = tools.live().await;
        assert_eq!(live.len(), 2);
        assert!(live.iter().all(|tool| tool.recovery == recovery && tool.name.starts_with("clock__")), "{live:?}");
    }
}
