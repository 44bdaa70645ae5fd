//! Exit codes and the errors that a person reads (SPEC 14).

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

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
    /// A history does not reproduce.
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
        eprintln!("portcullis: {}", printable(&self.message));
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

/// Whether a character is a control or hides or reorders others; line ends are no exception.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Text from models, tools and files without control and bidirectional characters; line ends stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter != '\n' && is_hidden(letter) { '\u{FFFD}' } else { letter }).collect()
}
