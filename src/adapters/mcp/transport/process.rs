//! The process of a server: how it is started, what it said last, and how it ends with all that it started.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use crate::adapters::mcp::references::Held;
use crate::adapters::mcp::secrets::Handed;
use crate::adapters::mcp::text::remark;

/// How long a server may take to end once its input is closed, and again once it is asked to end.
const GRACE: Duration = Duration::from_secs(2);

/// How long what has ended may take to be seen as ended.
const MOMENT: Duration = Duration::from_millis(500);

/// Variables that every server gets, where they are set here. Names with that prefix too: `LC_`.
const INHERITED: [&str; 6] = ["HOME", "LANG", "PATH", "TMPDIR", "TZ", "USER"];

/// A running server. Dropping it ends it, its children too.
pub(in crate::adapters::mcp) struct Process {
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: watch::Receiver<Option<String>>,
    last_words: LastWords,
}

impl Process {
    /// Starts a program with a cleared environment: the inherited minimum, and these variables. Its standard
    /// streams are ours, in the folder of this process. What it says last is without what it was handed.
    pub(in crate::adapters::mcp) fn start(
        program: &Path,
        args: &[String],
        variables: &BTreeMap<String, Held<OsString>>,
        handed: &Arc<Handed>,
    ) -> std::io::Result<(Starting, ChildStdin, ChildStdout)> {
        let minimum = std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_")));
        let mut program = Command::new(program);
        program.args(args).env_clear().envs(minimum);
        program.envs(variables.iter().map(|(name, value)| (name, &value.held)));
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        program.process_group(0);
        let mut child = program.spawn()?;
        let group = Group::of(&child);
        let streams = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let Some(((stdin, stdout), stderr)) = streams else {
            return Err(std::io::Error::other("a process without standard streams"));
        };
        let last_words = LastWords { lines: Arc::default(), handed: Arc::clone(handed) };
        let listening = tokio::spawn(last_words.clone().listen(stderr));
        Ok((Starting { child, group, last_words, listening }, stdin, stdout))
    }

    /// How it ended; `None` while it runs.
    pub(in crate::adapters::mcp) fn ending(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    /// How a start failed: the end, with its last words. It must be at its end: waits a moment for it.
    pub(in crate::adapters::mcp) async fn failed_start(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        let _ = timeout(MOMENT * 2, ended.wait_for(Option::is_some)).await;
        self.ending().map(|status| self.last_words.after(&status))
    }

    /// Ends it and waits until it has ended.
    pub(in crate::adapters::mcp) async fn end(&self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut ended = self.ended.clone();
        // An error: its keeper has gone, and took it along.
        let _ = ended.wait_for(Option::is_some).await;
    }
}

/// A process that nobody keeps yet.
pub(in crate::adapters::mcp) struct Starting {
    child: Child,
    group: Group,
    last_words: LastWords,
    listening: JoinHandle<()>,
}

impl Starting {
    /// Keeps it until it ends or must; its input is closed by ending `writing`.
    pub(in crate::adapters::mcp) fn keep(self, writing: AbortHandle) -> Process {
        let Self { child, group, last_words, listening } = self;
        let (stop, stopped) = oneshot::channel();
        let (tell, ended) = watch::channel(None);
        tokio::spawn(async move {
            let status = keep(child, group, stopped, &writing).await;
            // What it wrote last may still be in the pipe, which others may hold open.
            let _ = timeout(MOMENT, listening).await;
            tracing::debug!(status, "a tool server has ended");
            tell.send_replace(Some(status));
        });
        Process { stop: Mutex::new(Some(stop)), ended, last_words }
    }
}

/// Waits for a process, or ends it: its input is closed, then it is asked to end, then it is killed. Whatever
/// is left of its group is killed at last. No zombie stays.
async fn keep(mut child: Child, group: Group, stopped: oneshot::Receiver<()>, writing: &AbortHandle) -> String {
    let mut status = tokio::select! {
        status = child.wait() => Some(status),
        _ = stopped => None,
    };
    if status.is_none() {
        // The client lets go of its end, so that what waits to be written is, and then the input is closed.
        status = timeout(MOMENT, child.wait()).await.ok();
    }
    writing.abort();
    if status.is_none() {
        status = timeout(GRACE, child.wait()).await.ok();
    }
    if status.is_none() {
        group.ask_to_end();
        status = timeout(GRACE, child.wait()).await.ok();
    }
    group.kill();
    let status = match status {
        Some(status) => status,
        None => {
            // On systems without groups.
            let _ = child.start_kill();
            child.wait().await
        }
    };
    match status {
        Ok(status) => described(status),
        Err(error) => format!("it could not be waited for: {error}"),
    }
}

fn described(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with {code}"),
        // `signal: 9 (SIGKILL)`
        None => status.to_string(),
    }
}

/// A process and all that it started, unless they left its group. Dropping it kills them.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Self { leader }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Self {
        Self {}
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // An error: nobody is left.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    fn ask_to_end(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lines of a server's error output that are kept.
const LINES_MAX: usize = 6;
/// Bytes that are kept of one of them.
const LINE_BYTES_MAX: usize = 1 << 10;

/// What a server wrote last to its error output. It may hold anything, so it is kept for the error of a failed
/// start and shown in traces at the level `debug`, nowhere else.
#[derive(Clone)]
struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    handed: Arc<Handed>,
}

impl LastWords {
    async fn listen(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0; 4_096];
        let mut line = Vec::new();
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            for byte in chunk.iter().take(read) {
                if *byte == b'\n' {
                    self.note(&line);
                    line.clear();
                } else if line.len() < LINE_BYTES_MAX {
                    line.push(*byte);
                }
            }
        }
        self.note(&line);
    }

    fn note(&self, line: &[u8]) {
        let line = remark(&self.handed.strike(&String::from_utf8_lossy(line)));
        if line.is_empty() {
            return;
        }
        tracing::debug!(line, "a tool server wrote to its error output");
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn after(&self, status: &str) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = lines.iter().map(String::as_str).collect();
        if words.is_empty() { status.to_owned() } else { remark(&format!("{status}: {}", words.join(" | "))) }
    }
}
