//! Runs with real parts whose process died (SPEC 7, 13.R8, 14.19).

use std::process::Stdio;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::stand::{Stand, arg};
use crate::components::test;
use crate::tools::bench::{gone, kill};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("live::a_run_whose_process_was_killed_in_a_call_goes_on_with_its_scenario_alone", killed),
        test("live::a_run_with_real_parts_is_carried_on_by_no_script_and_by_no_other_scenario", scripted_instead),
        test("live::what_reads_a_history_starts_nothing", readers),
        test("live::a_run_with_real_parts_is_cancelled_without_them", cancelled),
    ]
}

/// Starts a run whose tool does not come back, and kills it there.
async fn killed_in_a_call(stand: &mut Stand, settings: &Value) -> std::path::PathBuf {
    let scenario = stand.scripted(&["wait", "echo"], settings);
    let mut command = stand.command(&["run", arg(&scenario), "--yes"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let up = stand.ear.hear("up ").await;
    let server: u32 = up.trim_start_matches("up ").parse().unwrap();
    stand.ear.hear("call wait").await;
    kill(running.id());
    tokio::task::spawn_blocking(move || running.wait().unwrap()).await.unwrap();
    // A server whose client is gone ends by itself: its input is closed.
    gone(server).await;
    stand.ear.heard();
    scenario
}

fn settings(recovery: &str) -> Value {
    json!({
        "wait": {"recovery": recovery, "on_indeterminate": "observe"},
        "echo": {"evidence": true, "projection": {"type": "text"}},
    })
}

async fn killed() {
    let mut stand = Stand::new().await;
    let scenario = killed_in_a_call(&mut stand, &settings("never_replay")).await;
    let unnamed = stand.run(&["resume", "scenario"]).await;
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    assert!(unnamed.err.contains("--with FILE"), "{unnamed:?}");
    let all = stand.run(&["resume"]).await;
    assert_eq!(all.code, 2, "{all:?}");
    assert!(stand.ear.heard().is_empty(), "nothing was started for them");

    let ended = stand.run(&["resume", "scenario", "--yes", "--with", arg(&scenario)]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("another process takes the run over"), "{ended:?}");
    let heard = stand.ear.heard();
    assert!(heard.iter().all(|line| !line.starts_with("call wait")), "it is not entered again: {heard:?}");
    assert!(heard.iter().any(|line| line.starts_with("call echo")), "{heard:?}");
    let replayed = stand.run(&["verify"]).await;
    assert_eq!(replayed.code, 0, "{replayed:?}");
}

async fn readers() {
    let mut stand = Stand::new().await;
    let scenario = killed_in_a_call(&mut stand, &settings("replay_safe")).await;
    let history = stand.path("run.jsonl");
    let exported = stand.run(&["export", "scenario", "--out", arg(&history)]).await;
    assert_eq!(exported.code, 0, "{exported:?}");
    let elsewhere = stand.path("other.db");
    for (words, code) in [
        (vec!["show", "scenario"], 9),
        (vec!["show", arg(&history)], 9),
        (vec!["replay", arg(&history)], 9),
        (vec!["verify"], 0),
        (vec!["verify", arg(&history)], 0),
        (vec!["runs"], 0),
        (vec!["anchor"], 0),
        (vec!["check", arg(&scenario)], 0),
        (vec!["import", arg(&history), "--store", arg(&elsewhere)], 0),
        (vec!["wake"], 0),
        (vec!["resume", "scenario", "--store", arg(&elsewhere)], 2),
    ] {
        let ended = stand.run(&words).await;
        assert_eq!(ended.code, code, "{words:?}: {ended:?}");
    }
    assert!(stand.ear.heard().is_empty());
}

async fn cancelled() {
    let mut stand = Stand::new().await;
    killed_in_a_call(&mut stand, &settings("never_replay")).await;
    let ended = stand.run(&["cancel", "scenario"]).await;
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(stand.ear.heard().is_empty());
}

async fn scripted_instead() {
    let mut stand = Stand::new().await;
    let scenario = killed_in_a_call(&mut stand, &settings("replay_safe")).await;
    let written: Value = serde_json::from_slice(&std::fs::read(&scenario).unwrap()).unwrap();
    let mut unreal = written.clone();
    unreal["real"] = json!([]);
    unreal["script"]["model"][0]["calls"][0]["result"] = json!({"content": "made up"});
    let mut otherwise = written.clone();
    otherwise["script"]["model"][2]["draft"]["conclusion"]["statement"] = json!("Something else.");
    let mut gated = written;
    gated["environment"] = json!({"gates": [{"id": "g", "of": "tool"}]});
    for (other, part) in [(unreal, "`real`"), (otherwise, "`script`"), (gated, "`environment`")] {
        let path = stand.write("other.json", &other);
        let refused = stand.run(&["resume", "scenario", "--yes", "--with", arg(&path)]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(part) && refused.out.is_empty(), "{refused:?}");
    }
    assert!(stand.ear.heard().is_empty());
}
