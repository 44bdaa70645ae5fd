//! The records of one run, found from the last to the first.

use rusqlite::Connection;

use super::fault::Trouble;

/// Where a run's records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The run's number.
    pub(super) run: i64,
    /// How many records it has.
    pub(super) records: u64,
    /// The position of the last.
    pub(super) last: i64,
}

/// The positions of a run's records from the place `from` on, in their order. Eight bytes a record is all that
/// a history costs to read.
pub(super) fn positions(connection: &Connection, end: End, from: u64) -> Result<Vec<i64>, Trouble> {
    let mut row = connection.prepare_cached("SELECT run, seq, before FROM records WHERE position = ?1")?;
    let mut positions = Vec::new();
    let mut position = end.last;
    for seq in (from..end.records).rev() {
        let (run, stored, before): (i64, i64, i64) = row
            .query_row([position], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(|error| misplaced(error, end.run, seq))?;
        if run != end.run || u64::try_from(stored) != Ok(seq) || before >= position {
            return Err(Trouble::Damaged(format!("record {seq} of run number {} is not where it should be", end.run)));
        }
        positions.push(position);
        position = before;
    }
    positions.reverse();
    Ok(positions)
}

fn misplaced(error: rusqlite::Error, run: i64, seq: u64) -> Trouble {
    if error == rusqlite::Error::QueryReturnedNoRows {
        Trouble::Damaged(format!("record {seq} of run number {run} is missing"))
    } else {
        Trouble::Sqlite(error)
    }
}

/// Hands the bytes at a position to `take`.
pub(super) fn line<T>(connection: &Connection, position: i64, take: impl FnOnce(&[u8]) -> T) -> Result<T, Trouble> {
    let mut row = connection.prepare_cached("SELECT line FROM records WHERE position = ?1")?;
    let mut rows = row.query([position])?;
    match rows.next()? {
        Some(row) => match row.get_ref(0)?.as_blob() {
            Ok(bytes) => Ok(take(bytes)),
            Err(_) => Err(Trouble::Damaged(format!("the row at {position} holds no record"))),
        },
        None => Err(Trouble::Damaged(format!("the row at {position} is missing"))),
    }
}
