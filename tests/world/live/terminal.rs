//! A person at a terminal: a pseudo-terminal that a process takes for its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::sync::mpsc;

/// `O_NOCTTY`: what is opened does not become the test's own terminal.
const NO_CONTROLLING_TERMINAL: i32 = if cfg!(target_os = "linux") { 0o400 } else { 0x2_0000 };

/// A process on a terminal of its own.
pub(crate) struct Terminal {
    keys: File,
    screen: mpsc::UnboundedReceiver<Vec<u8>>,
    child: Child,
    /// Everything that was shown.
    pub(crate) shown: String,
    /// Up to where it was waited for.
    read: usize,
}

impl Terminal {
    /// Starts a command with the terminal as its input and both its outputs.
    pub(crate) fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options()
            .read(true)
            .write(true)
            .custom_flags(NO_CONTROLLING_TERMINAL)
            .open(OsStr::new(name.to_str().unwrap()))
            .unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop((command, slave));
        let keys = File::from(master);
        let mut glass = keys.try_clone().unwrap();
        let (tell, screen) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose process has gone is an error to its reader.
            while let Ok(length @ 1..) = glass.read(&mut bytes) {
                let _ = tell.send(bytes[..length].to_vec());
            }
        });
        Self { keys, screen, child, shown: String::new(), read: 0 }
    }

    /// Waits until this is shown, after what was waited for before.
    pub(crate) async fn see(&mut self, text: &str) {
        let seen = async {
            loop {
                if let Some(at) = self.shown[self.read..].find(text) {
                    self.read += at + text.len();
                    return;
                }
                let Some(bytes) = self.screen.recv().await else { panic!("{text:?} is not in {:?}", self.shown) };
                self.shown.push_str(&String::from_utf8_lossy(&bytes));
            }
        };
        if tokio::time::timeout(Duration::from_secs(30), seen).await.is_err() {
            panic!("{text:?} is not in {:?}", self.shown);
        }
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Types a line.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    /// Waits for the process's end: its exit code and all that was shown.
    pub(crate) async fn end(mut self) -> (i32, String) {
        let mut child = self.child;
        let code = tokio::task::spawn_blocking(move || child.wait().unwrap().code().unwrap()).await.unwrap();
        while let Ok(Some(bytes)) = tokio::time::timeout(Duration::from_secs(5), self.screen.recv()).await {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        (code, self.shown)
    }
}
