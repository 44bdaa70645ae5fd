//! The command line: exit codes, clear errors, nothing overwritten (SPEC 14).

use std::io::Write;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use crate::support::small_success;

fn portcullis(arguments: &[&str]) -> Output {
    crate::support::portcullis().args(arguments).output().expect("the binary runs")
}

fn fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = crate::support::portcullis()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A file that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("portcullis-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a scratch file can be written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn replay_says_reproduced_with_0() {
    let history = Scratch::new("whole.jsonl", &small_success());
    let output = portcullis(&["replay", history.path()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("reproduced, 8 records: row 1, success"), "{}", stdout(&output));
}

#[test]
fn replay_says_open_with_9() {
    let bytes = small_success();
    let first = bytes.split_inclusive(|byte| *byte == b'\n').next().expect("a line");
    let history = Scratch::new("open.jsonl", first);
    let output = portcullis(&["replay", history.path()]);
    assert_eq!(output.status.code(), Some(9));
    assert!(stdout(&output).contains("open"));
}

#[test]
fn replay_says_corrupt_with_7_and_the_place() {
    let damaged = String::from_utf8(small_success()).expect("text").replacen("2 s", "3 s", 1);
    let history = Scratch::new("corrupt.jsonl", damaged.as_bytes());
    let output = portcullis(&["replay", history.path()]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stdout(&output).contains("wrong_hash at byte"), "{}", stdout(&output));
    let json = portcullis(&["replay", "--json", history.path()]);
    assert!(stdout(&json).starts_with(r#"{"corrupt":{"history":"#), "{}", stdout(&json));
}

#[test]
fn replay_pins_the_end_with_the_head() {
    let history = Scratch::new("head.jsonl", &small_success());
    let zeros = "0".repeat(64);
    let output = portcullis(&["replay", "--expect-head", &zeros, history.path()]);
    assert_eq!(output.status.code(), Some(7));
    let said = stdout(&portcullis(&["replay", "--json", history.path()]));
    let head = said.split("\"head\":\"").nth(1).and_then(|rest| rest.get(..64)).expect("a head");
    assert_eq!(portcullis(&["replay", "--expect-head", head, history.path()]).status.code(), Some(0));
}

#[test]
fn a_missing_history_is_named_with_7_and_bad_usage_with_2() {
    let output = portcullis(&["replay", "no-such-file.jsonl"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stdout(&output).contains("no-such-file.jsonl"));
    assert_eq!(portcullis(&["replay"]).status.code(), Some(2));
    assert_eq!(portcullis(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(portcullis(&["diagram", "no-such-machine"]).status.code(), Some(2));
    assert_eq!(portcullis(&["simulate", "no-such-file.jsonl"]).status.code(), Some(2));
}

#[test]
fn simulate_answers_each_line_with_a_record_or_a_refusal() {
    let script = b"{\"at_ms\":0,\"input\":{\"type\":\"deadline_elapsed\"}}\nnonsense\n\n{\"at_ms\":0,\"input\":{\"type\":\"run_started\",\"run_id\":\"r\",\"spec\":{\"task\":\"t\",\"model\":{\"name\":\"m\"}},\"nonce\":\"n\",\"wall_time\":\"\"}}\n";
    let output = fed(&["simulate", "-"], script);
    assert_eq!(output.status.code(), Some(0));
    let answers: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), 3);
    assert!(answers[0].contains(r#""kind":"not_started""#), "{}", answers[0]);
    assert!(answers[1].contains(r#""kind":"malformed""#) && answers[1].contains("script line 2"), "{}", answers[1]);
    assert!(answers[2].starts_with(r#"{"v":1,"run":"r","seq":0,"#));
}

#[test]
fn simulate_never_panics_on_bytes() {
    for bytes in
        [&[0xFF, 0xFE, b'\n'][..], b"\0\0\n", b"{\"at_ms\":-1}\n", b"[[[[[[[", b"{\"at_ms\":1e999,\"input\":{}}"]
    {
        let output = fed(&["simulate", "-"], bytes);
        assert_eq!(output.status.code(), Some(0), "{bytes:?}");
        assert!(stdout(&output).contains("malformed"), "{bytes:?}");
    }
}

#[test]
fn diagram_draws_every_machine_in_both_languages() {
    let machines = portcullis::machines::CHARTS.len();
    assert_eq!(stdout(&portcullis(&["diagram"])).matches("stateDiagram-v2").count(), machines);
    assert_eq!(stdout(&portcullis(&["diagram", "--format", "dot"])).matches("digraph").count(), machines);
    assert_eq!(stdout(&portcullis(&["diagram", "run", "--json"])).lines().count(), 1);
}

#[test]
fn the_readme_shows_what_the_binary_prints() {
    let readme = std::fs::read_to_string(crate::support::project("README.md")).expect("there is a README");
    for example in ["diagnosis", "row-03-claims-without-looking", "people-3-awaiting"] {
        let path = crate::support::project(&format!("examples/{example}.json"));
        let printed = stdout(&portcullis(&["run", path.to_str().expect("text")]));
        assert!(readme.contains(&printed), "the README does not show what `run` prints for {example}:\n{printed}");
    }
    let recorded = ["clock", "files"].map(|name| format!("examples/recorded/{name}.jsonl"));
    for words in [vec!["replay", &*recorded[0], &*recorded[1]], vec!["show", &*recorded[0]]] {
        let mut command = crate::support::portcullis();
        let printed = stdout(&command.current_dir(crate::support::project(".")).args(&words).output().unwrap());
        assert!(readme.contains(&printed), "the README does not show what {words:?} print:\n{printed}");
    }
}

/// 14.7, 14.10: a page that cannot be written is refused at once, and not after minutes of exploring.
#[test]
fn table_check_looks_at_the_page_before_it_explores() {
    let unmarked = Scratch::new("unmarked.md", b"# Nothing to write here\n");
    let output = portcullis(&["table", "--check", "--wide", "--proof", unmarked.path()]);
    assert_eq!(output.status.code(), Some(2));
    let reason = String::from_utf8(output.stderr).expect("text");
    assert!(reason.contains("unmarked.md: no line is `<!-- exploration begins -->`"), "{reason}");
    assert_eq!(std::fs::read(unmarked.path()).expect("it is there"), b"# Nothing to write here\n");
}
