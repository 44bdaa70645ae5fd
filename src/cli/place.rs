//! Where the store is, and how a command comes to it (SPEC 13, 14).

use std::path::PathBuf;

use super::exit::{Exit, Problem};
use crate::adapters::stores::sqlite::SqliteStore;
use crate::runtime::store::{MediumFault, StoreError};

/// The variable that names the store.
const VARIABLE: &str = "PORTCULLIS_STORE";
/// The store when nothing names one.
const USUAL: &str = "portcullis.db";

/// The option of every command that has to do with the store.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Place {
    /// The store; else PORTCULLIS_STORE names it, else it is ./portcullis.db.
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

impl Place {
    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        let named = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        self.store.clone().or_else(named).unwrap_or_else(|| PathBuf::from(USUAL))
    }

    /// The option as it has to be typed again, with a space before it; empty when it was not given.
    pub(crate) fn again(&self) -> String {
        self.store.as_ref().map(|path| format!(" --store {}", quoted(&path.display().to_string()))).unwrap_or_default()
    }

    /// Opens it for reading only. Nothing is made.
    pub(crate) fn read(&self) -> Result<SqliteStore, Problem> {
        SqliteStore::open_read_only(self.path()).map_err(|error| refused(&error))
    }

    /// Opens it for writing. Nothing is made.
    #[allow(dead_code)] // for the commands that write
    pub(crate) fn write(&self) -> Result<SqliteStore, Problem> {
        SqliteStore::open(self.path()).map_err(|error| refused(&error))
    }

    /// Opens it for writing, and makes it when there is none.
    pub(crate) fn make(&self) -> Result<SqliteStore, Problem> {
        SqliteStore::create_or_open(self.path()).map_err(|error| {
            // Then there is nothing to make it in, and the fault says so.
            let nowhere = matches!(error, StoreError::Medium { fault: MediumFault::Missing, .. });
            if nowhere { Problem::usage(error.to_string()) } else { refused(&error) }
        })
    }
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-' | '/' | ':' | '@');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Waits for what a store answers.
pub(crate) fn wait<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime =
        runtime.map_err(|error| Problem::new(Exit::Unexpected, format!("nothing can be waited for: {error}")))?;
    runtime.block_on(answer).map_err(|error| refused(&error))
}

/// The problem behind a store's no. A store that is missing or a run that it does not have is bad input; a
/// medium that fails is not.
pub(crate) fn refused(error: &StoreError) -> Problem {
    match error {
        StoreError::Medium { fault: MediumFault::Missing, place, .. } => Problem::usage(format!(
            "{place}: there is no store; name one with --store or {VARIABLE}, or make one with `portcullis run FILE`"
        )),
        StoreError::UnknownRun { run } => {
            Problem::usage(format!("the store has no run {run}; `portcullis runs` lists those it has"))
        }
        StoreError::RunExists { .. } | StoreError::Owned { .. } => Problem::usage(error.to_string()),
        StoreError::Fenced { .. }
        | StoreError::Conflict { .. }
        | StoreError::Gap { .. }
        | StoreError::Malformed { .. }
        | StoreError::Medium { .. } => Problem::new(Exit::Persistence, error.to_string()),
    }
}
