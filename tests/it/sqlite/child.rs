//! Processes that use the store and die, hang, or run into a limit: this test binary once more, told by its
//! environment what to do.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Store, StoreError};

use super::{append, beginning, wait};

const TASK: &str = "PORTCULLIS_CHILD_TASK";
const PATH: &str = "PORTCULLIS_CHILD_PATH";

/// This binary, set to a task on a store.
pub(super) fn told(program: &Path, task: &str, path: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "sqlite::child::child", "--ignored", "--nocapture"]);
    command.env(TASK, task).env(PATH, path).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Waits until a child has said this, and gives the rest of the line.
pub(super) fn hears(child: &mut Child, word: &str) -> String {
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let rest = loop {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the child did not say {word}");
        if let Some((_, rest)) = line.trim_end().split_once(word) {
            break rest.trim().to_owned();
        }
    };
    child.stdout = Some(said.into_inner());
    rest
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

#[test]
#[ignore = "what a child process of another test does"]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let path = std::env::var(PATH).unwrap();
    match task.as_str() {
        "drive" => drive(&path),
        "fill" => fill(&path),
        "look" => look(&path),
        other => panic!("no such task: {other}"),
    }
}

/// Begins a run and drives it until standard input ends.
fn drive(path: &str) {
    let store = SqliteStore::create_or_open(path).unwrap();
    wait(store.create(beginning("driven"))).unwrap();
    say("driving");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Appends until the medium fails, and says how much was acknowledged.
fn fill(path: &str) {
    let store = SqliteStore::create_or_open(path).unwrap();
    let lease = wait(store.create(beginning("a"))).unwrap();
    let record = |seq| append(&lease, seq, &format!("record {seq} {}", "x".repeat(3_000)));
    let mut seq = 1;
    let failed: StoreError = loop {
        match wait(store.append(record(seq))) {
            Ok(()) => seq += 1,
            Err(error) => break error,
        }
    };
    // Asking again breaks nothing. A smaller record may still find room.
    assert!(wait(store.append(record(seq))).is_err());
    seq += u64::from(wait(store.append(append(&lease, seq, &format!("record {seq}")))).is_ok());
    say(&format!("acknowledged {seq} {}", super::fault(Err::<(), _>(failed))));
}

/// Says what becomes of opening.
fn look(path: &str) {
    let told = |opened: Result<SqliteStore, StoreError>| match opened {
        Ok(store) => super::history(&store, "a")
            .map_or_else(|error| format!("unread: {error}"), |history| format!("{} records", history.lines().count())),
        Err(StoreError::Medium { fault, .. }) => fault.to_string(),
        Err(other) => other.to_string(),
    };
    let (open, create) = (told(SqliteStore::open(path)), told(SqliteStore::create_or_open(path)));
    say(&format!("found {open} / {create} / {}", told(SqliteStore::open_read_only(path))));
}
