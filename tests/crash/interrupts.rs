//! Signals to `portcullis run` in real time, and what `resume` makes of what they leave.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use rusqlite::Connection;
use rustix::process::Signal;

use crate::case::Folder;
use crate::command::{Running, code, portcullis, stderr, stdout};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("interrupts::an_interrupt_cancels", an_interrupt_cancels),
    ("interrupts::a_termination_signal_cancels", a_termination_signal_cancels),
    ("interrupts::the_second_interrupt_leaves_the_run_as_it_is", the_second_interrupt_leaves_the_run_as_it_is),
    ("interrupts::what_a_kill_leaves_is_resumed", what_a_kill_leaves_is_resumed),
    ("interrupts::an_interrupted_resume_cancels_too", an_interrupted_resume_cancels_too),
];

/// A tool that takes ten minutes at its first attempt and no time at its second.
const SLOW: &str = r#"{
  "spec": {
    "task": "Wait.", "model": { "name": "m" }, "deadline_ms": null,
    "tools": [{ "name": "metrics", "evidence": true, "timeout_ms": null }]
  },
  "script": {
    "model": [
      { "after_ms": 1, "calls": [{
          "tool": "metrics",
          "result": { "content": "slow", "facts": ["slow"], "after_ms": 600000 },
          "retries": [{ "content": "fast", "facts": ["fast"], "after_ms": 1 }] }] },
      { "after_ms": 1, "draft": { "conclusion": { "statement": "It was worth it." }, "citations": ["f1"] } }
    ],
    "judge": [{ "verdict": "supported", "after_ms": 1 }]
  }
}"#;

struct Slow {
    folder: Folder,
    store: PathBuf,
}

impl Slow {
    fn new() -> Self {
        let folder = Folder::new("slow");
        std::fs::write(folder.join("slow.json"), SLOW).unwrap();
        let store = folder.join("s.db");
        Self { folder, store }
    }

    /// A run that waits for its tool.
    fn run(&self) -> Running {
        let file = self.folder.join("slow.json");
        let store = self.store.to_str().unwrap();
        let mut run = Running::start(portcullis(["run", file.to_str().unwrap(), "--real-time", "--store", store]));
        run.shows("dispatched: metrics");
        run
    }

    fn resume(&self) -> std::process::Output {
        portcullis(["resume", "slow", "--store", self.store.to_str().unwrap()]).output().unwrap()
    }

    /// The run verifies, and `resume` brings it to its end, or finds it there.
    fn ends_in(&self, row: &str, exit: i32) {
        let store = self.store.to_str().unwrap();
        let output = self.resume();
        assert_eq!(code(&output), Some(exit), "{}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains(row), "{}", stdout(&output));
        let verified = portcullis(["verify", "--store", store]).output().unwrap();
        assert_eq!(code(&verified), Some(0), "{}{}", stdout(&verified), stderr(&verified));
    }
}

fn cancelled_by(signal: Signal, by: &str) {
    let slow = Slow::new();
    let run = slow.run();
    run.signal(signal);
    let (status, shown, remarked) = run.end();
    assert_eq!(status.code(), Some(5), "{shown}{remarked}");
    assert!(shown.contains(by) && shown.contains("\nrow 15, cancelled"), "{shown}");
    assert!(remarked.contains("cancelling slow"), "{remarked}");
    slow.ends_in("row 15, cancelled", 5);
}

fn an_interrupt_cancels() {
    cancelled_by(Signal::INT, "an interrupt cancels");
}

fn a_termination_signal_cancels() {
    cancelled_by(Signal::TERM, "a termination signal cancels");
}

/// The cancellation cannot be stored, for somebody holds the store: then there is time for a second interrupt.
fn the_second_interrupt_leaves_the_run_as_it_is() {
    let slow = Slow::new();
    let mut run = slow.run();
    let holder = Connection::open(&slow.store).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    run.signal(Signal::INT);
    run.remarks("cancelling slow; once more leaves it as it is");
    run.signal(Signal::INT);
    let (status, shown, remarked) = run.end();
    assert_eq!(status.code(), Some(9), "{shown}{remarked}");
    assert!(remarked.contains("run slow is left as it is; it goes on with: portcullis resume slow"), "{remarked}");
    assert!(!shown.contains("row "), "{shown}");
    holder.execute_batch("ROLLBACK").unwrap();
    slow.ends_in("row 1, success", 0);
}

fn what_a_kill_leaves_is_resumed() {
    let slow = Slow::new();
    let run = slow.run();
    run.signal(Signal::KILL);
    let (status, shown, _) = run.end();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    assert!(!shown.contains("row "), "{shown}");
    slow.ends_in("row 1, success", 0);
}

fn an_interrupted_resume_cancels_too() {
    let slow = Slow::new();
    let text = SLOW.replace("\"after_ms\": 1 }] }] }", "\"after_ms\": 600000 }] }] }");
    assert_ne!(text, SLOW);
    std::fs::write(slow.folder.join("slow.json"), text).unwrap();
    let run = slow.run();
    run.signal(Signal::KILL);
    run.end();
    let mut resumed = Running::start(portcullis(["resume", "slow", "--store", slow.store.to_str().unwrap()]));
    resumed.shows("another process takes the run over");
    resumed.signal(Signal::INT);
    let (status, shown, remarked) = resumed.end();
    assert_eq!(status.code(), Some(5), "{shown}{remarked}");
    slow.ends_in("row 15, cancelled", 5);
}
