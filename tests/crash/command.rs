//! `portcullis` as a process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.json"))
}

/// The binary with arguments.
pub(crate) fn portcullis<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The same, with files that may not grow larger than so many blocks of 512 bytes.
pub(crate) fn limited<'a>(blocks: u64, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_portcullis")).args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// One that runs, and is listened to.
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
    said: (String, String),
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { child, out, err, said: (String::new(), String::new()) }
    }

    /// Waits until it shows this.
    pub(crate) fn shows(&mut self, word: &str) {
        hears(&mut self.out, &mut self.said.0, word);
    }

    /// Waits until it remarks this.
    pub(crate) fn remarks(&mut self, word: &str) {
        hears(&mut self.err, &mut self.said.1, word);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end: how it ended, and all that it has shown and remarked.
    pub(crate) fn end(mut self) -> (std::process::ExitStatus, String, String) {
        self.out.read_to_string(&mut self.said.0).unwrap();
        self.err.read_to_string(&mut self.said.1).unwrap();
        (self.child.wait().unwrap(), self.said.0, self.said.1)
    }
}

fn hears(from: &mut impl BufRead, said: &mut String, word: &str) {
    loop {
        let begin = said.len();
        assert!(from.read_line(said).unwrap() > 0, "{word:?} was never said: {said}");
        if said[begin..].contains(word) {
            return;
        }
    }
}
