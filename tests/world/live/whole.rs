//! Whole runs with everything real, over loopback (SPEC 3, 6, 7, 11, 14.19).

use std::process::Stdio;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::stand::{Ended, Stand, arg, evidence};
#[cfg(unix)]
use super::terminal::Terminal;
use crate::components::test;
use crate::loopback::{Loopback, Piece, json as answered, open, whole};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        test("live::a_model_real_tools_and_a_judge_come_to_row_1", row_1),
        test("live::a_judge_that_says_anything_else_is_no_pass", no_pass),
        test("live::a_key_stands_nowhere_but_in_the_request", keys),
        test("live::a_model_that_is_overloaded_is_asked_again_as_the_spec_says_and_by_nobody_else", again),
    ];
    #[cfg(unix)]
    trials.extend([
        test("live::an_interrupt_cancels_the_run_and_hangs_up", interrupted),
        test("live::a_terminal_shows_what_is_waited_for_and_what_was_spent", waited_for),
        test("live::a_scripted_run_takes_no_time_and_turns_no_spinner", no_spinner),
    ]);
    trials
}

/// An answer of a chat completion.
fn completion(message: &Value, finish: &str) -> String {
    json!({
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    })
    .to_string()
}

fn calls(tool: &str) -> String {
    let call = json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}});
    completion(&json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
}

fn says(text: &str) -> String {
    completion(&json!({"role": "assistant", "content": text}), "stop")
}

const DRAFT: &str = r#"{"conclusion":{"statement":"It is so."},"citations":["f1"]}"#;
const SUPPORTED: &str = r#"{"verdict":"supported"}"#;

fn scenario(stand: &Stand, model: &Loopback) -> Value {
    json!({
        "real": ["model", "tools", "judge"],
        "spec": {
            "task": "t",
            "model": {"name": "m", "base_url": model.url("/v1"), "key": {"env": "KEY_OF_M"}},
            "tool_sources": [stand.source(&evidence())],
            "retry": {"base_ms": 10, "overloaded_base_ms": 10},
            "release": {"judge_model": {"name": "j", "base_url": model.url("/v1"), "key": {"env": "KEY_OF_M"}}},
        },
    })
}

const KEY: &str = "sk-do-not-print-4711";

async fn run(stand: &Stand, model: &Loopback) -> Ended {
    let path = stand.write("whole.json", &scenario(stand, model));
    let mut command = stand.command(&["run", arg(&path), "--yes"]);
    command.env("KEY_OF_M", KEY).env("RUST_BACKTRACE", "full").stdin(Stdio::null());
    tokio::task::spawn_blocking(move || Ended::from(command.output().unwrap())).await.unwrap()
}

async fn row_1() {
    let mut stand = Stand::new().await;
    let model = Loopback::serve(|nth, _| answered(200, &[calls("s__echo"), says(DRAFT), says(SUPPORTED)][nth])).await;
    let ended = run(&stand, &model).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("row 1, success") && ended.out.contains("judge j1: supported"), "{ended:?}");
    assert!(ended.out.contains("tokens 45"), "three answers of 15 tokens: {ended:?}");
    stand.ear.hear("call echo").await;
    let received = model.received();
    assert_eq!(received.len(), 3);
    assert!(received[1].body.contains("echo"), "the observation goes back: {}", received[1].body);
}

async fn no_pass() {
    for verdict in ["supported", r#"{"verdict":"supported","verdict":"supported"}"#, r#"{"verdict":"yes"}"#, ""] {
        let stand = Stand::new().await;
        let answers = [calls("s__echo"), says(DRAFT), says(verdict)];
        let model = Loopback::serve(move |nth, _| answered(200, &answers[nth])).await;
        let ended = run(&stand, &model).await;
        assert_eq!(ended.code, 3, "{verdict:?}: {ended:?}");
        assert!(ended.out.contains("row 4, fallback semantic_unavailable"), "{ended:?}");
        assert_eq!(model.received().len(), 3, "a judge is asked once");
    }
}

async fn keys() {
    let stand = Stand::new().await;
    // An endpoint that gives back what it was sent.
    let model = Loopback::serve(|_, request| {
        let echoed = json!({"error": {"message": format!("{:?} {}", request.headers, request.body), "type": "x"}});
        answered(401, &echoed.to_string())
    })
    .await;
    let ended = run(&stand, &model).await;
    assert_eq!(ended.code, 4, "{ended:?}");
    let received = model.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].headers["authorization"], format!("Bearer {KEY}"));
    let store = ["runs.db", "runs.db-wal"].map(|name| std::fs::read(stand.path(name)).unwrap_or_default()).concat();
    let exported = stand.run(&["export", "whole"]).await;
    for (place, text) in [
        ("the output", ended.out.as_bytes()),
        ("the error output", ended.err.as_bytes()),
        ("the store", &store),
        ("the history", exported.out.as_bytes()),
    ] {
        let found = text.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key stands in {place}");
    }
    assert!(exported.out.contains("KEY_OF_M"), "its name does stand there");
}

async fn again() {
    let stand = Stand::new().await;
    let model = Loopback::serve(|nth, _| match nth {
        0 => whole(529, &[("retry-after-ms", "20")], "{}"),
        1 => answered(503, "{}"),
        2 => answered(200, &calls("s__echo")),
        3 => answered(200, &says(DRAFT)),
        _ => answered(200, &says(SUPPORTED)),
    })
    .await;
    let ended = run(&stand, &model).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(model.received().len(), 5);
    assert_eq!(ended.out.matches("overloaded").count(), 2, "{ended:?}");
}

#[cfg(unix)]
async fn interrupted() {
    let stand = Stand::new().await;
    let model = Loopback::serve(|_, _| vec![open("application/json"), Piece::Pause(Duration::from_secs(60))]).await;
    let path = stand.write("whole.json", &scenario(&stand, &model));
    let mut command = stand.command(&["run", arg(&path), "--yes"]);
    command.env("KEY_OF_M", KEY).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    while model.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    #[cfg(target_os = "linux")]
    {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.id())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "a key would stand in it: {core}");
    }
    interrupt(running.id());
    let ended = tokio::task::spawn_blocking(move || Ended::from(running.wait_with_output().unwrap())).await.unwrap();
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.out.contains("row 15"), "{ended:?}");
    while model.hung_up() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(model.received().len(), 1);
}

/// Ctrl-C.
#[cfg(unix)]
pub(crate) fn interrupt(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
}

#[cfg(unix)]
async fn waited_for() {
    let stand = Stand::new().await;
    let model = Loopback::serve(|_, _| vec![open("application/json"), Piece::Pause(Duration::from_secs(60))]).await;
    let path = stand.write("whole.json", &scenario(&stand, &model));
    let mut command = stand.command(&["run", arg(&path), "--yes"]);
    command.env("KEY_OF_M", KEY);
    let mut terminal = Terminal::start(command);
    terminal.see("asking m (m1)  [model 1/16, tools 0/64]").await;
    interrupt(terminal.id());
    terminal.see("cancelling whole").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 5, "{shown}");
}

#[cfg(unix)]
async fn no_spinner() {
    let stand = Stand::new().await;
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/diagnosis.json");
    let terminal = Terminal::start(stand.command(&["run", arg(&example)]));
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("asking") && !shown.contains('\u{1b}'), "{shown:?}");
}
