//! A folder, a scenario with real parts, and the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::tools::bench::Ear;

/// A folder of a test's own.
pub(crate) struct Stand {
    folder: tempfile::TempDir,
    /// What the tool server reports.
    pub(crate) ear: Ear,
}

impl Stand {
    pub(crate) async fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), ear: Ear::open().await }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The source `s`, this program as a tool server.
    pub(crate) fn source(&self, settings: &Value) -> Value {
        let program = std::env::current_exe().unwrap();
        json!({
            "name": "s",
            "transport": {"type": "stdio", "command": program, "args": ["serve-mcp", "plain", self.ear.port.to_string()]},
            "only": ["echo", "pid", "wait", "die"],
            "tools": settings,
        })
    }

    /// A scenario whose scripted model calls these tools of the server one after the other, and then concludes.
    pub(crate) fn scripted(&self, calls: &[&str], settings: &Value) -> PathBuf {
        let asks = calls.iter().map(|tool| json!({"calls": [{"tool": format!("s__{tool}")}]}));
        let draft = json!({"draft": {"conclusion": {"statement": "It is so."}, "citations": ["f1"]}});
        let scenario = json!({
            "real": ["tools"],
            "spec": {
                "task": "t", "model": {"name": "m"}, "tool_sources": [self.source(settings)],
                "release": {"judge": "off"},
            },
            "script": {"model": asks.chain([draft]).collect::<Vec<_>>()},
        });
        self.write("scenario.json", &scenario)
    }

    pub(crate) fn write(&self, name: &str, value: &Value) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path
    }

    /// The command line, with a store in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(arguments).env("PORTCULLIS_STORE", self.path("runs.db")).env("USER", "kim");
        command
    }

    /// Runs it without a terminal, and waits for its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        command.stdin(std::process::Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        Ended::from(output)
    }
}

/// What a process came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A path as an argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Settings that make `echo` an evidence tool whose text is a fact.
pub(crate) fn evidence() -> Value {
    json!({"echo": {"evidence": true, "projection": {"type": "text"}}})
}
