//! Commands that look at recorded histories: nothing is started and nothing is asked (SPEC 13.12, 14).

mod diff;
mod explain;
mod fork;
mod page;
mod recordings;
mod show;
mod upgrade;
mod verify;

use std::fs;
use std::path::PathBuf;

use portcullis::engine::Engine;
use portcullis::history::{Lines, Next, Recorder, Replay, Replayed};
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::input::Input;

use crate::support::{Scratch, project};

/// What a command said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

/// Runs the binary at the top of the project.
fn portcullis(arguments: &[&str]) -> Said {
    let mut command = crate::support::portcullis();
    let output = command.current_dir(project(".")).args(arguments).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code().expect("it ends"), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs it, and says everything when the exit code is another.
fn expect(code: i32, arguments: &[&str]) -> Said {
    let said = portcullis(arguments);
    assert_eq!(said.code, code, "{arguments:?}\n{}\n{}", said.out, said.err);
    said
}

fn json(code: i32, arguments: &[&str]) -> serde_json::Value {
    let said = expect(code, &[arguments, &["--json"]].concat());
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    serde_json::from_str(&said.out).expect("JSON")
}

/// The path of a golden history, from the top of the project.
fn golden(name: &str) -> String {
    format!("tests/golden/v1/{name}.jsonl")
}

fn bytes(path: &str) -> Vec<u8> {
    fs::read(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every golden history and every recorded one, by path.
fn every_history() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["tests/golden/v1", "examples/recorded"] {
        for entry in fs::read_dir(project(folder)).expect("a folder of histories") {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            paths.push(format!("{folder}/{name}"));
        }
    }
    paths.sort();
    assert!(paths.len() >= 35, "{paths:?}");
    paths
}

/// The reports of a history.
fn reports(history: &[u8]) -> Vec<(u64, Input)> {
    let (mut lines, mut replay, mut reports) = (Lines::new(history), Replay::<Engine>::default(), Vec::new());
    while let Next::Line(line) = lines.next_line().expect("a whole history") {
        let Replayed::Reproduced(step) = replay.take(line).expect("a whole history") else { panic!("it diverges") };
        reports.push((step.at_ms, step.input));
    }
    reports
}

/// The history that reports make.
fn recorded(reports: impl IntoIterator<Item = (u64, Input)>) -> Vec<u8> {
    let (mut engine, mut recorder, mut history) = (Engine::new(), Recorder::new(), Vec::new());
    for (at_ms, input) in reports {
        let step = engine.step(at_ms, input).unwrap_or_else(|refusal| panic!("{refusal}"));
        history.extend_from_slice(recorder.record(&engine, &step));
    }
    history
}

/// Lines chained anew, by somebody who can hash.
fn resealed(lines: &[String]) -> Vec<u8> {
    let (mut prev, mut history) = (Digest::ZERO, String::new());
    for line in lines {
        let covered = line.split(",\"prev\":\"").next().expect("a record");
        let covered = format!("{covered},\"prev\":\"{prev}\"");
        prev = Digest::of("portcullis.record.1", &[covered.as_bytes()]);
        history.push_str(&format!("{covered},\"hash\":\"{prev}\"}}\n"));
    }
    history.into_bytes()
}

/// A file with these bytes, in a folder that goes away with the test.
fn file(folder: &Scratch, name: &str, bytes: &[u8]) -> String {
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, bytes).expect("a file can be written");
    path.to_str().expect("text").to_owned()
}

/// What the model answered in a history without asking for tools: texts that are released only by a success.
fn drafts(history: &[u8]) -> Vec<String> {
    let reports = reports(history).into_iter();
    let texts = reports.filter_map(|(_, input)| match input {
        Input::ModelResponded { content, .. } if content.calls.is_empty() => content.text,
        _ => None,
    });
    texts.collect()
}

/// The statements of those drafts that can be read.
fn conclusions(history: &[u8]) -> Vec<String> {
    let statement = |draft: String| {
        let draft: serde_json::Value = serde_json::from_str(&draft).ok()?;
        Some(draft.get("conclusion")?.get("statement")?.as_str()?.to_owned())
    };
    drafts(history).into_iter().filter_map(statement).collect()
}
