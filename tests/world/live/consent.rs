//! What a scenario with real parts starts and contacts, and who agreed to it (SPEC 14.19).

use libtest_mimic::Trial;
use serde_json::json;

use super::stand::{Ended, Stand, arg, evidence};
#[cfg(unix)]
use super::terminal::Terminal;
use crate::components::test;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        test("live::without_a_terminal_nothing_is_run_unless_somebody_said_yes", unsaid),
        test("live::what_is_started_and_contacted_is_shown_with_every_variable_that_leaves_the_process", shown),
        test("live::what_is_shown_is_what_is_contacted_however_it_is_dressed_up", dressed_up),
        test("live::a_file_that_is_checked_starts_nothing", checked),
        test("live::a_model_that_cannot_be_reached_as_it_is_written_begins_no_run", unreachable_model),
    ];
    #[cfg(unix)]
    trials.extend([
        test("live::a_person_at_the_terminal_agrees_and_it_runs", agreed),
        test("live::a_person_at_the_terminal_does_not_agree_and_nothing_runs", refused),
    ]);
    trials
}

async fn unsaid() {
    let mut stand = Stand::new().await;
    let scenario = stand.scripted(&["echo"], &evidence());
    let refused = stand.run(&["run", arg(&scenario)]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--yes") && refused.err.contains("serve-mcp plain"), "{refused:?}");
    assert!(refused.out.is_empty());
    let ended = stand.run(&["run", arg(&scenario), "--yes"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("row 1, success"), "{ended:?}");
    let heard = stand.ear.heard();
    assert_eq!(heard.iter().filter(|line| line.starts_with("up ")).count(), 1, "{heard:?}");
}

async fn shown() {
    let stand = Stand::new().await;
    let scenario = json!({
        "real": ["model", "tools", "judge"],
        "spec": {
            "task": "t",
            "model": {"name": "claude-a"},
            "fallbacks": [{"name": "b", "base_url": "http://127.0.0.1:9/v1"}],
            "tool_sources": [
                {"name": "p", "transport": {"type": "stdio", "command": "sh", "args": ["-c", "true\nrm -rf \u{1b}[2J"],
                    "env": {"TOKEN": {"env": "TOKEN_OF_P"}}}},
                {"name": "q", "transport": {"type": "http", "url": "http://127.0.0.1:9/mcp",
                    "headers": {"authorization": {"env": "TOKEN_OF_Q"}}}},
            ],
            "release": {"judge_model": {"name": "j", "base_url": "http://127.0.0.1:9/v1", "key": {"env": "KEY_OF_J"}}},
        },
    });
    let scenario = stand.write("all.json", &scenario);
    let run = async |key: Option<&str>| {
        let mut command = stand.command(&["run", arg(&scenario)]);
        command.env_remove("ANTHROPIC_API_KEY").stdin(std::process::Stdio::null());
        if let Some(key) = key {
            command.env("ANTHROPIC_API_KEY", key).env("KEY_OF_J", key);
        }
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        Ended::from(output)
    };
    let missed = run(None).await;
    assert_eq!(missed.code, 2);
    assert!(missed.err.contains("ANTHROPIC_API_KEY, which is not set"), "{missed:?}");
    let refused = run(Some("k")).await;
    assert_eq!(refused.code, 2);
    for part in [
        "ask the model claude-a at https://api.anthropic.com/v1/messages, sending $ANTHROPIC_API_KEY",
        "ask the model b at http://127.0.0.1:9/v1/chat/completions, without a key",
        "judged by the model j at http://127.0.0.1:9/v1/chat/completions, sending $KEY_OF_J",
        "/sh -c \"true\\nrm -rf \\u{1b}[2J\"",
        ", with TOKEN=$TOKEN_OF_P",
        "contact the tool server http://127.0.0.1:9/mcp, sending authorization=$TOKEN_OF_Q",
    ] {
        assert!(refused.err.contains(part), "{part} is not in {}", refused.err);
    }
    assert!(!refused.err.contains('\u{1b}'), "{:?}", refused.err);
}

async fn checked() {
    let mut stand = Stand::new().await;
    let scenario = stand.scripted(&["echo"], &evidence());
    let checked = stand.run(&["check", arg(&scenario)]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.err.contains("the tools of s join when it is run"), "{checked:?}");
    assert!(stand.ear.heard().is_empty());
}

async fn unreachable_model() {
    let stand = Stand::new().await;
    for (field, value) in [("base_url", json!("ftp://127.0.0.1/v1")), ("base_url", json!("127.0.0.1:8080"))] {
        let mut scenario = json!({"real": ["model"], "spec": {"task": "t", "model": {"name": "m"}}});
        scenario["spec"]["model"][field] = value;
        let path = stand.write("bad.json", &scenario);
        let refused = stand.run(&["run", arg(&path), "--yes"]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("base_url") && refused.out.is_empty(), "{refused:?}");
    }
}

/// Whatever an address looks like, the one is shown that is contacted; and a name does not pass for something else.
async fn dressed_up() {
    let stand = Stand::new().await;
    for (written, shown) in [
        ("https:evil.example/https://trusted.example/", "https://evil.example/"),
        ("https:\\\\evil.example\\trusted.example/mcp", "https://evil.example/"),
        ("https://trusted.ex\u{430}mple/mcp", "https://trusted.xn--"),
    ] {
        let scenario = json!({"real": ["tools"], "spec": {"task": "t", "model": {"name": "m"},
            "tool_sources": [{"name": "s", "transport": {"type": "http", "url": written}}]}});
        let path = stand.write("\u{1b}[8mok.json", &scenario);
        let refused = stand.run(&["run", arg(&path)]).await;
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(shown) && !refused.err.contains('\u{1b}'), "{refused:?}");
    }
    let name = "small at http://127.0.0.1:8080/v1/chat/completions, without a key";
    let model = json!({"name": name, "base_url": "https://evil.example/v1"});
    let path = stand.write("named.json", &json!({"real": ["model"], "spec": {"task": "t", "model": model}}));
    let refused = stand.run(&["run", arg(&path)]).await;
    assert!(refused.err.contains(&format!("'{name}' at https://evil.example/v1/chat/completions")), "{refused:?}");
}

#[cfg(unix)]
async fn agreed() {
    let mut stand = Stand::new().await;
    let scenario = stand.scripted(&["echo"], &evidence());
    let mut terminal = Terminal::start(stand.command(&["run", arg(&scenario)]));
    terminal.see("start the process").await;
    terminal.see("Go on? [y/N] ").await;
    assert!(stand.ear.heard().is_empty(), "nothing is started before somebody agreed");
    terminal.say("y");
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("row 1, success"), "{shown}");
    stand.ear.hear("call echo").await;
}

#[cfg(unix)]
async fn refused() {
    let mut stand = Stand::new().await;
    let scenario = stand.scripted(&["echo"], &evidence());
    for answer in ["", "n", "maybe"] {
        let mut terminal = Terminal::start(stand.command(&["run", arg(&scenario)]));
        terminal.see("Go on? [y/N] ").await;
        terminal.say(answer);
        let (code, shown) = terminal.end().await;
        assert_eq!(code, 2, "{shown}");
        assert!(shown.contains("not run"), "{shown}");
    }
    assert!(stand.ear.heard().is_empty());
    assert!(!stand.path("runs.db").exists(), "a run that was not agreed to leaves no store");
}
