//! Where the store is: `--store`, else `PORTCULLIS_STORE`, else `portcullis.db` in the working folder.

use std::env;
use std::path::PathBuf;

use super::exit::{Exit, Problem};
use crate::adapters::stores::sqlite::SqliteStore;
use crate::runtime::store::{MediumFault, StoreError};

/// The file that is used where nothing else is said.
const USUAL: &str = "portcullis.db";
/// The variable that says otherwise.
const VARIABLE: &str = "PORTCULLIS_STORE";

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Place {
    /// The store [default: $PORTCULLIS_STORE, else ./portcullis.db]
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

impl Place {
    /// The store's file.
    pub(crate) fn path(&self) -> PathBuf {
        let said =
            self.store.clone().or_else(|| env::var_os(VARIABLE).filter(|said| !said.is_empty()).map(PathBuf::from));
        said.unwrap_or_else(|| PathBuf::from(USUAL))
    }

    /// What has to be typed so that another command finds the same store.
    pub(crate) fn option(&self) -> String {
        self.store.as_ref().map(|path| format!(" --store {}", path.display())).unwrap_or_default()
    }

    /// Opens the store that is there, to write.
    pub(crate) fn open(&self) -> Result<SqliteStore, Problem> {
        SqliteStore::open(self.path()).map_err(|error| unusable(&error))
    }

    /// Opens the store, and makes one where there is none.
    pub(crate) fn open_or_create(&self) -> Result<SqliteStore, Problem> {
        SqliteStore::create_or_open(self.path()).map_err(|error| unusable(&error))
    }
}

/// The problem of a store that cannot be used.
pub(crate) fn unusable(error: &StoreError) -> Problem {
    let exit = match error {
        StoreError::Medium { fault: MediumFault::Missing, .. } | StoreError::UnknownRun { .. } => Exit::Usage,
        StoreError::Medium { .. }
        | StoreError::RunExists { .. }
        | StoreError::Owned { .. }
        | StoreError::Fenced { .. }
        | StoreError::Conflict { .. }
        | StoreError::Gap { .. }
        | StoreError::Malformed { .. } => Exit::Persistence,
    };
    Problem::new(exit, error.to_string())
}
