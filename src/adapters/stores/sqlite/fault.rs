//! What a failing medium means, in the store's words, with the way out.

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::runtime::store::{MediumFault, StoreError};

/// Why a piece of work on the file did not come about.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The store says no; the file is well.
    Refused(StoreError),
    /// SQLite failed.
    Sqlite(rusqlite::Error),
    /// The file holds what this program never writes.
    Damaged(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// The fault behind an error of SQLite, and what to do about it.
pub(super) fn meaning(error: &rusqlite::Error) -> (MediumFault, &'static str) {
    #[allow(clippy::wildcard_enum_match_arm)] // a foreign enum that grows
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => of_sqlite(*failure),
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::QueryReturnedNoRows => (MediumFault::Corrupt, DAMAGED),
        _ => (MediumFault::Unavailable, "try again; if it stays, look at the disk and its log"),
    }
}

const DAMAGED: &str = "restore it from a backup; what `portcullis` can still read of it can be exported first";
const NO_ROOM: &str = "make room on the disk, or raise the quota or file size limit, then resume: all that was \
                       acknowledged is still there";

const fn of_sqlite(failure: ffi::Error) -> (MediumFault, &'static str) {
    match failure.extended_code {
        // What a quota or a file size limit stops is reported as a failed write, not as a full disk.
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE => return (MediumFault::Full, NO_ROOM),
        ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_DATA | ffi::SQLITE_IOERR_CORRUPTFS => {
            return (MediumFault::Corrupt, DAMAGED);
        }
        ffi::SQLITE_READONLY_DBMOVED => return (MediumFault::Missing, MOVED),
        _ => {}
    }
    #[allow(clippy::wildcard_enum_match_arm)] // a foreign enum that grows
    match failure.code {
        ErrorCode::DiskFull => (MediumFault::Full, NO_ROOM),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            (MediumFault::Locked, "another process writes to it for too long: wait for it, or end it if it hangs")
        }
        ErrorCode::ReadOnly => (MediumFault::ReadOnly, "allow writing to the file and its folder, or use a copy"),
        ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            (MediumFault::Unavailable, "check that the file and its folder may be read and written")
        }
        ErrorCode::NotADatabase => (MediumFault::Foreign, "give the path of a Portcullis store, or of a new file"),
        ErrorCode::DatabaseCorrupt | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
            (MediumFault::Corrupt, DAMAGED)
        }
        _ => (MediumFault::Unavailable, "try again; if it stays, look at the disk and its log"),
    }
}

/// What is said when the file is not in its place any more.
pub(super) const MOVED: &str =
    "the file was moved, replaced or deleted while it was open; put it back and open it anew";
