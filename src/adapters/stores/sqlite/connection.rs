//! Connections to the file, and the settings without which none is used.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::Trouble;
use super::layout::{self, Kind};
use super::place::{Found, Place};
use crate::runtime::store::{MediumFault, StoreError};

/// How long a locked file is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pages in the log after which they are moved into the file: 32 MB of them, so that a group of appends seldom
/// pays for it.
const CHECKPOINT_PAGES: i64 = 4096;
/// What the log is cut to once it has been moved.
const LOG_BYTES: i64 = 64 << 20;
/// Memory for pages of the writing connection, in KiB: a whole group fits.
const WRITER_CACHE_KIB: i64 = 32 << 10;
/// Connections kept for the next reader.
const IDLE_MAX: usize = 4;

/// Whether a missing store is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// It is made.
    Create,
    /// It is an error.
    Refuse,
}

/// The connection that writes. There is one a session.
pub(super) fn writing(place: &Place, absent: Absent) -> Result<Connection, StoreError> {
    let found = match (place.look()?, absent) {
        (Found::Nothing, Absent::Refuse) => return Err(missing(place)),
        (Found::Nothing, Absent::Create) => {
            place.create()?;
            place.look()?
        }
        (found, _) => found,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = open(place, flags).map_err(|error| unopened(place, error))?;
    let kind = layout::kind(&connection).map_err(|error| unopened(place, error))?;
    match (kind, found, absent) {
        // What has bytes and yet no tables is not ours to fill.
        (Kind::Empty, Found::File(_), Absent::Create) => {
            // Unless somebody else is filling it just now.
            let settled = once_unlocked(&connection).map_err(|error| place.sqlite(error))?;
            accept(place, settled)?;
        }
        (Kind::Empty, _, Absent::Create) => {}
        (Kind::Empty, Found::EmptyFile(_), Absent::Refuse) => return Err(missing(place)),
        (kind, ..) => accept(place, kind)?,
    }
    if connection.is_readonly("main").map_err(|error| place.sqlite(error))? {
        let reason = "the file may not be written; allow it, or open the store for reading only";
        return Err(place.medium(MediumFault::ReadOnly, reason.to_owned()));
    }
    if kind == Kind::Empty {
        let settled = establish(&connection).map_err(|error| unopened(place, error))?;
        accept(place, settled)?;
    }
    settle(&connection).map_err(|error| match error {
        Trouble::Sqlite(error) => unopened(place, error),
        other @ (Trouble::Refused(_) | Trouble::Damaged(_)) => place.explain(other),
    })?;
    Ok(connection)
}

fn missing(place: &Place) -> StoreError {
    place.medium(MediumFault::Missing, "there is no store here; check the path, or run something first".to_owned())
}

/// Says no to whatever is no store of this layout.
fn accept(place: &Place, kind: Kind) -> Result<(), StoreError> {
    let (fault, reason) = match kind {
        Kind::Store => return Ok(()),
        Kind::Empty | Kind::Foreign => {
            (MediumFault::Foreign, "this is no Portcullis store; give the path of one, or of a new file".to_owned())
        }
        Kind::Later(version) => (
            MediumFault::UnknownVersion,
            format!("the store has version {version}, this program knows {}; use a later program", layout::VERSION),
        ),
        Kind::Damaged => {
            (MediumFault::Corrupt, "the store's tables are not all there; restore it from a backup".to_owned())
        }
    };
    Err(place.medium(fault, reason))
}

/// What the file is when nobody writes to it.
fn once_unlocked(connection: &Connection) -> rusqlite::Result<Kind> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let kind = layout::kind(connection);
    connection.execute_batch("ROLLBACK")?;
    kind
}

/// Fills an empty file, unless somebody else was faster. This happens before the log is switched on: SQLite
/// takes a log beside an empty file for a leftover and deletes it.
fn establish(connection: &Connection) -> rusqlite::Result<Kind> {
    connection.pragma_update(None, "page_size", layout::PAGE_BYTES)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = layout::kind(connection).and_then(|kind| {
        if kind == Kind::Empty {
            layout::establish(connection)?;
        }
        layout::kind(connection)
    });
    match made {
        Ok(kind) => connection.execute_batch("COMMIT").map(|()| kind),
        Err(error) => {
            connection.execute_batch("ROLLBACK")?;
            Err(error)
        }
    }
}

/// Sets what durability hangs on, and reads it back: SQLite ignores what it does not like.
fn settle(connection: &Connection) -> Result<(), Trouble> {
    let mode = log_mode(connection)?;
    if mode != "wal" {
        return Err(Trouble::Damaged(format!("the journal stays in mode {mode}, wal is needed")));
    }
    for (pragma, value) in [
        ("synchronous", 2),
        ("fullfsync", 1),
        ("checkpoint_fullfsync", 1),
        ("wal_autocheckpoint", CHECKPOINT_PAGES),
        ("journal_size_limit", LOG_BYTES),
        ("cache_size", -WRITER_CACHE_KIB),
        ("foreign_keys", 0),
        ("trusted_schema", 0),
        ("cell_size_check", 1),
    ] {
        connection.pragma_update(None, pragma, value)?;
        let got: i64 = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
        if got != value {
            return Err(Trouble::Damaged(format!("PRAGMA {pragma} is {got} where {value} was set")));
        }
    }
    Ok(())
}

/// Switches the log on. Sessions that open a new store at the same moment collide here without SQLite's own
/// waiting, so it is done again for as long as a locked file is waited for.
fn log_mode(connection: &Connection) -> rusqlite::Result<String> {
    let begun = std::time::Instant::now();
    loop {
        let set = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match set {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == ErrorCode::DatabaseBusy && begun.elapsed() < PATIENCE =>
            {
                std::thread::yield_now();
            }
            other => return other,
        }
    }
}

fn open(place: &Place, access: OpenFlags) -> rusqlite::Result<Connection> {
    let flags =
        access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(place.path(), flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// SQLite says that it cannot open what it could read when it may not make its files beside it.
fn unopened(place: &Place, error: rusqlite::Error) -> StoreError {
    if error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        && let Err(failure) = place.folder_takes_files()
    {
        return place.failed(&failure);
    }
    place.sqlite(error)
}

/// Connections that only read, a few of them kept.
#[derive(Debug)]
pub(super) struct Readers {
    place: Place,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// For a store that a writer of this session has opened.
    pub(super) const fn new(place: Place) -> Self {
        Self { place, idle: Mutex::new(Vec::new()) }
    }

    /// For a store that nobody of this session writes to.
    pub(super) fn alone(place: Place) -> Result<Self, StoreError> {
        if place.look()? == Found::Nothing {
            return Err(missing(&place));
        }
        let readers = Self::new(place);
        let connection = readers.connect()?;
        let kind = layout::kind(&connection).map_err(|error| readers.place.sqlite(error))?;
        if kind == Kind::Empty && !matches!(readers.place.look()?, Found::File(_)) {
            return Err(missing(&readers.place));
        }
        accept(&readers.place, kind)?;
        readers.keep(connection);
        Ok(readers)
    }

    /// Where they read.
    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// Does a piece of reading.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Trouble>) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| self.connect(), Ok)?;
        let done = work(&connection).map_err(|trouble| self.place.explain(trouble));
        self.keep(connection);
        done
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Closes those that nobody uses.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A connection that only reads.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        let checked = |connection: Connection| {
            connection.pragma_update(None, "cell_size_check", 1)?;
            connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?;
            Ok(connection)
        };
        match open(&self.place, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(checked) {
            // SQLite would make a log to read by; where it may not, it says one or the other.
            Err(error)
                if matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
                    && self.is_at_rest() =>
            {
                self.frozen().and_then(checked)
            }
            other => other,
        }
        .map_err(|error| self.place.sqlite(error))
    }

    /// Whether there is no log, and none can be made: then nobody writes, and the file is all there is.
    fn is_at_rest(&self) -> bool {
        let log = std::fs::symlink_metadata(self.place.beside("-wal"));
        log.map_or(true, |log| log.len() == 0) && self.place.folder_takes_files().is_err()
    }

    fn frozen(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let mut uri = String::from("file:");
        for byte in self.place.path().as_os_str().as_encoded_bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_') {
                uri.push(char::from(*byte));
            } else {
                uri.push_str(&format!("%{byte:02X}"));
            }
        }
        uri.push_str("?immutable=1");
        Connection::open_with_flags(uri, flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writing_connection_has_what_durability_hangs_on() {
        let path = std::env::temp_dir().join(format!("portcullis-pragmas-{}.db", std::process::id()));
        let place = Place::of(&path).expect("a place");
        let connection = writing(&place, Absent::Create).expect("a store");
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        for (name, value) in
            [("synchronous", 2), ("fullfsync", 1), ("foreign_keys", 0), ("page_size", 8192), ("busy_timeout", 5000)]
        {
            assert_eq!(pragma(name), Ok(value), "{name}");
        }
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
        assert_eq!(mode.as_deref(), Ok("wal"));
        connection.close().expect("nothing is left undone");
        std::fs::remove_file(&path).expect("the store was there");
    }

    #[test]
    fn a_store_that_cannot_have_a_log_is_refused() {
        let connection = Connection::open_in_memory().expect("a database in memory");
        assert!(matches!(settle(&connection), Err(Trouble::Damaged(reason)) if reason.contains("memory")));
    }
}
