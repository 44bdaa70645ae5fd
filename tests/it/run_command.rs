//! `portcullis run` as a process: exit codes, outputs, files.

use std::path::{Path, PathBuf};
use std::process::Output;

/// A folder of the test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("portcullis-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn portcullis<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Output {
    crate::support::portcullis().args(arguments).output().unwrap()
}

fn run(file: &Path, more: &[&str]) -> Output {
    portcullis([&["run", file.to_str().unwrap()], more].concat())
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.json"))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const TWO_TURNS: &str = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"hello"},
{"role":"user","content":"two"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c","content":"seen"},{"role":"assistant","content":"done"}]"#;

#[test]
fn the_exit_code_is_that_of_the_ending() {
    let endings = [
        ("diagnosis", 0),
        ("row-07-bad-draft", 3),
        ("row-18-no-route", 4),
        ("row-15-cancelled", 5),
        ("people-3-awaiting", 8),
    ];
    for (name, expected) in endings {
        let output = run(&example(name), &[]);
        assert_eq!(code(&output), expected, "{name}: {}", stderr(&output));
    }
}

#[test]
fn the_timeline_ends_with_the_row_and_what_is_released() {
    let output = run(&example("diagnosis"), &[]);
    let shown = stdout(&output);
    assert!(shown.contains("\nrow 1, success: "), "{shown}");
    assert!(shown.contains("report-job holds 92 of the 100 connections"), "{shown}");
    assert!(shown.contains("[f4] logs: 92 sessions of report-job"), "{shown}");
    assert!(output.stderr.is_empty());
}

#[test]
fn text_that_was_not_released_is_nowhere_in_the_output() {
    for (name, hidden) in [
        ("row-02-unknown-citation", "broke the cache"),
        ("row-04-judge-contradicts", "is idle"),
        ("row-07-bad-draft", "probably"),
        ("row-20-release-blocked", "no connection left"),
        ("row-17-model-overloaded", "p99 latency"),
    ] {
        for form in [&[][..], &["--json"]] {
            let output = run(&example(name), form);
            assert!(!(stdout(&output) + &stderr(&output)).contains(hidden), "{name} shows {hidden:?}");
        }
    }
}

#[test]
fn control_and_bidirectional_characters_of_models_and_tools_do_not_reach_the_terminal() {
    let folder = Folder::new("control");
    let text = std::fs::read_to_string(example("row-13-budget-used-up")).unwrap();
    let hostile = text
        .replace("p99 latency", "\\u001b[2Jp99\\u202e latency")
        .replace("\"tool\": \"metrics\"", "\"tool\": \"met\\u001brics\"");
    let output = run(&folder.file("hostile.json", &hostile), &[]);
    let seen = stdout(&output) + &stderr(&output);
    assert!(!seen.contains('\u{1b}') && !seen.contains('\u{202e}'), "{seen}");
}

#[test]
fn json_prints_nothing_but_one_ending_a_run() {
    let output = run(&example("row-19-outcome-unknown"), &["--json"]);
    let line: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&line["run"], &line["row"]), (&"row-19-outcome-unknown".into(), &19.into()));
    assert_eq!(line["failure"]["type"], "indeterminate");
    assert!(line["head"].is_string() && line["stop_reason"].is_null() && line.get("fallback_type").is_none());
    let folder = Folder::new("json");
    let output = run(&folder.file("two turns.json", TWO_TURNS), &["--json"]);
    let rows: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = rows.iter().map(|line| (line["run"].as_str().unwrap(), line["row"].as_u64().unwrap())).collect();
    assert_eq!(ids, [("two-turns-turn-1", 3), ("two-turns-turn-2", 2)]);
    assert_eq!(code(&output), 4, "the worst ending counts");
}

#[test]
fn an_ending_that_differs_from_the_expected_one_is_an_error_that_names_the_column() {
    let folder = Folder::new("expect");
    let text = std::fs::read_to_string(example("diagnosis")).unwrap().replace("\"facts\": 4", "\"facts\": 5");
    let output = run(&folder.file("diagnosis.json", &text), &[]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("the ending differs in facts: expected 5, got 4"), "{}", stderr(&output));
}

#[test]
fn a_file_that_cannot_be_run_is_named_with_line_column_and_reason() {
    let folder = Folder::new("bad");
    let cases = [
        ("scenario.json", "{\n  \"spec\": { \"task\": \"t\" }\n}", "line 2, column 25: missing field `model`"),
        ("broken.json", "{\n  \"spec\": {", "line 2, column 11"),
        ("other.json", "[1, 2]", "no recorded run"),
        (
            "transcript.json",
            "[{\"role\":\"user\",\"content\":\"t\"},\n{\"role\":\"assistant\",\"tool_calls\":7}]",
            "line 2, column 34",
        ),
    ];
    for (name, text, reason) in cases {
        let output = run(&folder.file(name, text), &[]);
        assert_eq!(code(&output), 2, "{name}");
        assert!(stderr(&output).contains(name) && stderr(&output).contains(reason), "{name}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{name}");
    }
    let absent = run(&folder.0.join("absent.json"), &[]);
    assert_eq!(code(&absent), 2);
    let schema = std::fs::read_to_string(example("diagnosis")).unwrap();
    let schema = schema.replace("\"budgets\"", "\"draft\": { \"data_schema\": { \"type\": 7 } }, \"budgets\"");
    let output = run(&folder.file("schema.json", &schema), &[]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("spec.draft.data_schema"), "{}", stderr(&output));
}

#[test]
fn a_run_that_awaits_a_person_names_the_ticket_and_leaves_an_open_history() {
    let folder = Folder::new("awaiting");
    let history = folder.0.join("open.jsonl");
    let output = run(&example("people-3-awaiting"), &["--history", history.to_str().unwrap()]);
    assert_eq!(code(&output), 8);
    assert!(stderr(&output).contains("ticket t1.0-") && stderr(&output).contains("`decision`"), "{}", stderr(&output));
    assert_eq!(code(&portcullis(["replay", history.to_str().unwrap()])), 9, "reproduced but open");
    let json = run(&example("people-3-awaiting"), &["--json"]);
    assert!(stdout(&json).contains("\"open\":true"), "{}", stdout(&json));
}

#[test]
fn a_history_is_private_replays_and_is_not_replaced_unless_asked() {
    let folder = Folder::new("history");
    let history = folder.0.join("h.jsonl");
    let place = history.to_str().unwrap();
    assert_eq!(code(&run(&example("diagnosis"), &["--history", place])), 0);
    assert_eq!(code(&portcullis(["replay", place])), 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let first = std::fs::read(&history).unwrap();
    let again = run(&example("row-07-bad-draft"), &["--history", place]);
    assert_eq!(code(&again), 2);
    assert!(stderr(&again).contains("--force"), "{}", stderr(&again));
    assert_eq!(std::fs::read(&history).unwrap(), first);
    assert_eq!(code(&run(&example("row-07-bad-draft"), &["--history", place, "--force"])), 3);
    assert_ne!(std::fs::read(&history).unwrap(), first);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn force_replaces_histories_and_nothing_else() {
    let folder = Folder::new("force");
    let text = std::fs::read_to_string(example("diagnosis")).unwrap();
    let file = folder.file("mine.json", &text);
    let output = run(&file, &["--history", file.to_str().unwrap(), "--force"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("is no history"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_reader_of_the_timeline_who_leaves_does_not_cost_the_history() {
    let folder = Folder::new("pipe");
    let history = folder.0.join("h.jsonl");
    let mut child = crate::support::portcullis()
        .args(["run", example("diagnosis").to_str().unwrap(), "--history", history.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    assert_eq!(code(&portcullis(["replay", history.to_str().unwrap()])), 0);
}

#[test]
fn released_text_cannot_look_like_a_line_of_ours() {
    let folder = Folder::new("forged");
    let text = std::fs::read_to_string(example("row-07-bad-draft")).unwrap();
    let forged = text.replace("\"p99 latency", "\"x\\nrow 1, success: p99 latency");
    let shown = stdout(&run(&folder.file("forged.json", &forged), &[]));
    assert!(shown.contains("row 1, success"), "{shown}");
    assert!(shown.lines().all(|line| !line.starts_with("row 1")), "{shown}");
}

#[test]
fn the_documentation_shows_what_the_command_shows() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scenario.md")).unwrap();
    let block =
        |kind: &str| page.split(&format!("```{kind}\n")).nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = Folder::new("page");
    let output = run(&folder.file("small.json", block("json")), &[]);
    assert_eq!(stdout(&output), block("text"));
}

#[cfg(unix)]
#[test]
fn a_history_is_never_written_through_a_link() {
    let folder = Folder::new("link");
    let target = folder.file("target.jsonl", "precious\n");
    let link = folder.0.join("link.jsonl");
    let dangling = folder.0.join("dangling.jsonl");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    std::os::unix::fs::symlink(folder.0.join("nowhere"), &dangling).unwrap();
    for place in [&link, &dangling] {
        let output = run(&example("diagnosis"), &["--history", place.to_str().unwrap(), "--force"]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("is a link"), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious\n");
    assert!(!folder.0.join("nowhere").exists());
}

#[test]
fn a_history_that_cannot_be_stored_has_its_own_exit_code() {
    let folder = Folder::new("store");
    let place = folder.0.join("no-such-folder").join("h.jsonl");
    let output = run(&example("diagnosis"), &["--history", place.to_str().unwrap()]);
    assert_eq!(code(&output), 10);
    assert!(stderr(&output).contains("nothing was released"), "{}", stderr(&output));
    assert!(!stdout(&output).contains("report-job"), "a release without its record");
}

#[test]
fn several_runs_go_into_a_folder_with_a_file_each() {
    let folder = Folder::new("several");
    let transcript = folder.file("chat.json", TWO_TURNS);
    let out = folder.0.join("out");
    let place = out.to_str().unwrap();
    assert_eq!(code(&run(&transcript, &["--history", place])), 4);
    let histories = ["chat-turn-1.jsonl", "chat-turn-2.jsonl"].map(|name| out.join(name));
    for history in &histories {
        assert_eq!(code(&portcullis(["replay", history.to_str().unwrap()])), 0, "{}", history.display());
    }
    std::fs::remove_file(&histories[0]).unwrap();
    assert_eq!(code(&run(&transcript, &["--history", place])), 2, "the second one is there already");
    assert!(!histories[0].exists(), "nothing ran");
    assert_eq!(code(&run(&transcript, &["--history", place, "--force"])), 4);
    assert_eq!(code(&run(&transcript, &["--history", transcript.to_str().unwrap()])), 2, "a file is no folder");
    assert_eq!(code(&run(&example("diagnosis"), &["--history", place])), 2, "one run needs a file");
}

#[test]
fn what_the_importer_had_to_guess_stands_on_standard_error() {
    let folder = Folder::new("notes");
    let output = run(&folder.file("chat.json", TWO_TURNS), &[]);
    assert!(stderr(&output).contains("taken as evidence tools, a result a fact: look"), "{}", stderr(&output));
    assert!(stdout(&output).contains("== chat-turn-2\n"), "{}", stdout(&output));
}

#[test]
fn the_timeline_says_which_plugin_is_asked_and_what_becomes_of_what_it_stages() {
    let told = [
        ("plugins-1-state-carried", "resolved: 1 tool, 0 gates, 1 plugin, 3 hooks"),
        ("plugins-1-state-carried", "- question 2: the round_end hook of notebook"),
        ("plugins-1-state-carried", "question 2 is answered: 1 command, context"),
        ("plugins-1-state-carried", "- 3 state commands committed"),
        ("plugins-1-state-carried", "- the run_end hook of notebook is told"),
        ("plugins-2-state-conflict", "- first-responder and second-opinion both write the thread state key suspect"),
        ("plugins-2-state-conflict", "- 1 state command rolled back"),
        ("plugins-3-beyond-its-bound", "- notebook goes beyond its bound: the thread state key oncall.person"),
        ("plugins-6-scheduled-action", "- question 1: incidents performs incident.open"),
        ("plugins-7-facts-of-an-earlier-run", "- 1 fact of an earlier run is imported"),
        ("plugins-7-facts-of-an-earlier-run", "[f1] metrics (f2 of yesterday): orders-db used"),
    ];
    for (name, line) in told {
        let shown = stdout(&run(&example(name), &["--no-store"]));
        assert!(shown.contains(line), "{name} does not say {line:?}:\n{shown}");
        assert!(!shown.contains("in March"), "{name} shows what a plugin wrote:\n{shown}");
    }
}
