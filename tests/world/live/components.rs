//! Runs with a real model and real tools, to a real ending. The model is too small to be right: what is shown is
//! that whatever it says ends in a row, and that the history replays.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::stand::{Stand, arg};
use crate::components::{Component, real};
use crate::models::llama;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real(Component::Filesystem, "live::a_scripted_model_reads_a_real_file_and_cites_it", files),
        real(Component::Llama, "live::a_small_model_with_a_clock_comes_to_an_ending_and_its_history_replays", clock),
        real(Component::Llama, "live::a_small_model_that_judges_is_believed_in_one_word_alone", judged),
        real(Component::Memory, "live::a_write_is_confirmed_made_once_and_seen_by_a_later_run", memory),
    ]
}

/// An example, with programs named by their place.
fn example(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/live").join(name);
    let mut example: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for source in example["spec"]["tool_sources"].as_array_mut().unwrap() {
        let command = &mut source["transport"]["command"];
        *command = json!(program(command.as_str().unwrap()));
    }
    example
}

fn program(name: &str) -> std::path::PathBuf {
    let component = match name {
        "mcp-server-filesystem" => Component::Filesystem,
        "mcp-server-memory" => Component::Memory,
        "mcp-server-time" => Component::Time,
        other => panic!("{other}"),
    };
    component.program()
}

async fn files() {
    let stand = Stand::new().await;
    let path = stand.write("files.json", &example("files.json"));
    let ended = stand.run(&["run", arg(&path), "--yes"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("[f2] files__read_text_file: It falls when the rope is cut"), "{ended:?}");
}

/// What `--json` says at the end.
fn ending(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

async fn clock() {
    let stand = Stand::new().await;
    let mut scenario = example("clock.json");
    scenario["spec"]["model"]["base_url"] = json!(llama::model("{}").base_url);
    let path = stand.write("clock.json", &scenario);
    let history = stand.path("clock.jsonl");
    let ended = stand.run(&["run", arg(&path), "--yes", "--json", "--history", arg(&history)]).await;
    let row = ending(&ended.out);
    assert!([0, 3, 4].contains(&ended.code), "{ended:?}");
    assert!((1..=20).contains(&row["row"].as_u64().unwrap()), "{row}");
    assert!(row["model_calls"].as_u64().unwrap() >= 1, "{row}");
    let replayed = stand.run(&["replay", arg(&history), "--json"]).await;
    assert_eq!(replayed.code, 0, "{replayed:?}");
}

async fn judged() {
    let mut stand = Stand::new().await;
    let path = stand.scripted(&["echo"], &super::stand::evidence());
    let mut scenario: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let judge = json!({
        "name": "smollm2", "api": "openai", "base_url": llama::model("{}").base_url,
        "structured_output": true, "parameters": {"temperature": 0, "max_tokens": 64},
    });
    scenario["real"] = json!(["tools", "judge"]);
    scenario["spec"]["release"] = json!({"judge_model": judge});
    let path = stand.write("judged.json", &scenario);
    let ended = stand.run(&["run", arg(&path), "--yes", "--json"]).await;
    let row = ending(&ended.out)["row"].as_u64().unwrap();
    // Its verdict is one of three words, whichever it is: then the row is 1 or 4.
    assert!(row == 1 || row == 4, "{ended:?}");
    stand.ear.hear("call echo").await;
    let exported = stand.run(&["export", "judged"]).await;
    assert!(exported.out.contains("\"semantics_judged\""), "a schema holds it to one word: {}", exported.out);
}

async fn memory() {
    let stand = Stand::new().await;
    // Its file is named by a variable, which goes by reference.
    let source = |only: &str, settings: Value| {
        json!({
            "name": "memory",
            "transport": {"type": "stdio", "command": Component::Memory.program(),
                "env": {"MEMORY_FILE_PATH": {"env": "MEMORY_FILE_PATH"}}},
            "only": [only], "tools": {only: settings},
        })
    };
    let entity = json!({"name": "gate", "entityType": "thing", "observations": ["it fell at noon"]});
    let writes = json!({"tool": "memory__create_entities", "arguments": {"entities": [entity]}, "decision": "allow"});
    let done = json!({"draft": {"conclusion": null, "citations": []}});
    let write = json!({
        "real": ["tools"],
        "spec": {"task": "t", "model": {"name": "m"}, "tool_sources": [source("create_entities", json!({"confirm": true}))]},
        "script": {"model": [{"calls": [writes]}, done]},
    });
    let draft = json!({"conclusion": {"statement": "It fell at noon."}, "citations": ["f1"]});
    let read = json!({
        "real": ["tools"],
        "spec": {
            "task": "t", "model": {"name": "m"}, "release": {"judge": "off"},
            "tool_sources": [source("read_graph", json!({"evidence": true,
                "projection": {"type": "pointers", "pointers": ["/entities/0/observations/0"]}}))],
        },
        "script": {"model": [{"calls": [{"tool": "memory__read_graph"}]}, {"draft": draft}]},
    });
    for (name, scenario, code) in [("write.json", write, 4), ("read.json", read, 0)] {
        let path = stand.write(name, &scenario);
        let mut command = stand.command(&["run", arg(&path), "--yes"]);
        command.env("MEMORY_FILE_PATH", stand.path("memory.json")).stdin(std::process::Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let ended = super::stand::Ended::from(output);
        assert_eq!(ended.code, code, "{ended:?}");
    }
    let kept = std::fs::read_to_string(stand.path("memory.json")).unwrap();
    assert_eq!(kept.matches("it fell at noon").count(), 1, "{kept}");
}
