//! What is in the file.
//!
//! A record is written once, at the end of the one table that grows, and is never moved: each row names the
//! row of the record before it in its run, so no index over records has to be kept. What every append changes
//! is in `heads`, whose rows are small and lie close together; what seldom changes is in `runs`.

use rusqlite::Connection;

/// `PRAGMA application_id`: "PCLS".
pub(super) const APPLICATION: i32 = 0x5043_4C53;
/// `PRAGMA user_version`: the version of this layout.
pub(super) const VERSION: i32 = 1;
/// Bytes of a page. Records are of a kilobyte or two: a smaller page wastes more of itself, a larger one is
/// written whole for a single record.
pub(super) const PAGE_BYTES: i32 = 8192;

const TABLES: &str = "
CREATE TABLE records (
    position INTEGER PRIMARY KEY, -- in the order of storing
    run      INTEGER NOT NULL,    -- runs.number
    seq      INTEGER NOT NULL,    -- the place in the run's history, from 0
    before   INTEGER NOT NULL,    -- the position of the record before it in the run; 0 for the first
    line     BLOB NOT NULL        -- the bytes of the record, with the line end
);
CREATE TABLE heads (
    run      INTEGER PRIMARY KEY, -- runs.number
    records  INTEGER NOT NULL,    -- how many
    last     INTEGER NOT NULL,    -- the position of the last
    head     BLOB NOT NULL        -- the hash of the last
) STRICT;
CREATE TABLE runs (
    number     INTEGER PRIMARY KEY, -- in the order of creation
    id         TEXT NOT NULL UNIQUE,
    started_ms INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,    -- of the last claim
    owner      TEXT,                -- the session that holds it; none when it was given back
    standing   TEXT NOT NULL,       -- running, awaiting, undelivered, ended
    due_ms     INTEGER,             -- of an awaiting run: when its next timer is due
    row        INTEGER,             -- of a run that ended: the row of the closed table
    outcome    TEXT                 -- of a run that ended: what the reader gets
) STRICT;
CREATE INDEX unfinished ON runs (standing, due_ms) WHERE standing <> 'ended';
CREATE TABLE origins (
    run    INTEGER PRIMARY KEY,   -- runs.number
    origin BLOB NOT NULL          -- what the run was started from
) STRICT;
CREATE TABLE requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    run     INTEGER NOT NULL,     -- runs.number
    request BLOB NOT NULL,
    answer  BLOB                  -- none until it is answered
) STRICT;
CREATE INDEX waiting ON requests (run) WHERE answer IS NULL;
";

/// The tables that make a store.
const NAMES: &[&str] = &["heads", "origins", "records", "requests", "runs"];

/// What a file turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A store of this layout.
    Store,
    /// Nothing yet.
    Empty,
    /// A store of a later layout.
    Later(i32),
    /// A store that lost its tables.
    Damaged,
    /// Another program's database.
    Foreign,
}

/// What the file is, by its marks, all seen at one moment: somebody may be making it.
pub(super) fn kind(connection: &Connection) -> rusqlite::Result<Kind> {
    if !connection.is_autocommit() {
        return marks(connection);
    }
    connection.execute_batch("BEGIN")?;
    let kind = marks(connection);
    connection.execute_batch("ROLLBACK")?;
    kind
}

fn marks(connection: &Connection) -> rusqlite::Result<Kind> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION {
        return Ok(match version {
            VERSION if has_tables(connection)? => Kind::Store,
            later if later > VERSION => Kind::Later(later),
            _ => Kind::Damaged,
        });
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let blank = (application, version, tables) == (0, 0, 0);
    Ok(if blank { Kind::Empty } else { Kind::Foreign })
}

fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let found = names.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(NAMES.iter().all(|name| found.iter().any(|found| found == name)))
}

/// Makes the tables, inside a transaction that the caller began and commits.
pub(super) fn establish(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)
}
