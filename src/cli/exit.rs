//! Exit codes and the errors that a person reads (SPEC 14).

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use crate::adapters::printable::{is_hidden, printable};

/// Says something on standard error. Nothing depends on whether somebody hears it: an error output that is closed or
/// full changes no run.
macro_rules! note {
    ($($word:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($word)*);
    }};
}
pub(crate) use note;

/// How the process ends. The numbers are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The run succeeded, or the history was reproduced.
    Success = 0,
    /// Something that should not happen.
    Unexpected = 1,
    /// Bad usage or bad input.
    Usage = 2,
    /// The run ended with a fallback.
    Fallback = 3,
    /// The run failed.
    Failed = 4,
    /// The run was cancelled.
    Cancelled = 5,
    /// A history does not reproduce, breaks an invariant, or is not the same as another.
    Divergence = 6,
    /// A history is corrupt or unreadable.
    Corrupt = 7,
    /// The run awaits a person.
    Awaiting = 8,
    /// Reproduced, but the run has not ended.
    Open = 9,
    /// The history could not be stored.
    Persistence = 10,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that ends the command: what, where, why, and the way out.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    message: String,
}

impl Problem {
    /// A problem with an exit code of its own.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// Bad usage or input.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(exit: Exit, path: &Path, error: &io::Error) -> Self {
        Self::new(exit, format!("{}: cannot be read: {error}", path.display()))
    }

    /// Its exit code.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(self) -> Exit {
        note!("portcullis: {}", printable(&self.message));
        self.exit
    }
}

/// Standard output is full or broken; one whose reader went away never comes here.
impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Unexpected, format!("standard output: {error}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
