//! One store, one ledger, and the processes that work on them.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::book::{Book, REGISTER};
use crate::wire::{Act, At, Errand, Fuse, Plan, TASK, Task};

/// A folder of the test's own. It stays when its test fails.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let in_memory = Some(PathBuf::from("/dev/shm")).filter(|folder| folder.is_dir());
        let named = std::env::var_os("PORTCULLIS_CRASH_DIR").map(PathBuf::from);
        let parent = named.or(in_memory).unwrap_or_else(std::env::temp_dir);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("portcullis-crash-{}-{nth}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what is left of the case: {}", self.0.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A case.
pub(crate) struct Case {
    pub(crate) folder: Folder,
    pub(crate) book: Arc<Book>,
    pub(crate) runs: Vec<Plan>,
    /// How many threads the children's runtimes have.
    pub(crate) threads: usize,
    number: u64,
    processes: AtomicU32,
}

impl Case {
    /// A case whose runs follow these scripts.
    pub(crate) fn new(scripts: &[&str]) -> Self {
        let folder = Folder::new(scripts[0]);
        let file = std::fs::File::create(folder.join("ledger.jsonl")).unwrap();
        let (number, book) = REGISTER.begin(file);
        let plan =
            |(nth, script): (usize, &&str)| Plan { run: format!("{script}-{nth}"), script: (*script).to_owned() };
        let runs = scripts.iter().enumerate().map(plan).collect();
        Self { folder, book, runs, threads: 1, number, processes: AtomicU32::new(0) }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    /// Starts a child.
    pub(crate) fn spawn(&self, errand: Errand, fuse: Option<Fuse>) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.spawn_by(&mut command, errand, fuse)
    }

    /// Starts a child whose files may not grow larger than so many blocks of 512 bytes.
    pub(crate) fn spawn_limited(&self, errand: Errand, blocks: u64) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -f {blocks}; exec \"$0\"")]).arg(std::env::current_exe().unwrap());
        self.spawn_by(&mut command, errand, None)
    }

    fn spawn_by(&self, command: &mut Command, errand: Errand, fuse: Option<Fuse>) -> Process {
        let number = self.processes.fetch_add(1, Ordering::Relaxed) + 1;
        let task = Task {
            case: self.number,
            process: number,
            parent: REGISTER.address,
            store: self.store(),
            runs: self.runs.clone(),
            errand,
            fuse,
            threads: self.threads,
        };
        let child = command
            .env(TASK, serde_json::to_string(&task).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process { child, number, book: Arc::clone(&self.book) }
    }

    /// Drives everything to its end with nothing in the way.
    pub(crate) fn finish(&self) {
        let process = self.spawn(Errand::Drive, None);
        let number = process.number;
        let status = process.end();
        assert!(status.success(), "process {number} of {:?}: {status}", self.runs);
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        REGISTER.close(self.number);
    }
}

/// A child. One that is not waited for is killed when its test fails.
pub(crate) struct Process {
    child: Child,
    pub(crate) number: u32,
    book: Arc<Book>,
}

impl Process {
    /// Waits for its end, and until everything that it said is in the book.
    pub(crate) fn end(mut self) -> ExitStatus {
        let number = self.number;
        self.book.until(&format!("the last word of process {number}"), |pages| pages.is_over(number));
        self.child.wait().unwrap()
    }

    /// Waits until it has stopped itself, or was stopped.
    pub(crate) fn stops(&self) {
        let (_, status) = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "process {} did not stop: {status:?}", self.number);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a process died by SIGKILL.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::KILL.as_raw())
}

pub(crate) fn kill_at(name: &str, nth: u32) -> Option<Fuse> {
    Some(Fuse { at: At::Point { name: name.to_owned(), nth }, act: Act::Kill })
}

pub(crate) fn stop_at(name: &str, nth: u32) -> Option<Fuse> {
    Some(Fuse { at: At::Point { name: name.to_owned(), nth }, act: Act::Stop })
}
