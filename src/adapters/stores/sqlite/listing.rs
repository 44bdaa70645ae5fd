//! What is known of runs without reading their histories.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::cells::{self, signed};
use super::fault::Trouble;
use super::owners::Roll;
use crate::runtime::store::{Filter, Listed, Posted, RequestId};
use crate::vocabulary::ids::RunId;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, started_ms, epoch, owner, standing, due_ms, row, outcome, records, head ",
            "FROM runs JOIN heads ON heads.run = runs.number ",
            $rest
        )
    };
}

/// One run.
pub(super) fn find(connection: &Connection, run: &RunId, roll: &mut Roll) -> Result<Option<Listed>, Trouble> {
    let mut find = connection.prepare_cached(select!("WHERE id = ?1"))?;
    let mut rows = find.query([run.as_str()])?;
    rows.next()?.map(|row| listed(row, roll)).transpose()
}

/// The runs that pass, by the order in which they were created. The tables leave out what surely does not.
pub(super) fn list(connection: &Connection, filter: Filter, roll: &mut Roll) -> Result<Vec<Listed>, Trouble> {
    let query = match filter {
        Filter::All => select!("ORDER BY number"),
        Filter::Lost => {
            select!("WHERE standing <> 'ended' AND standing IN ('running', 'undelivered') ORDER BY number")
        }
        Filter::Due { .. } => {
            select!("WHERE standing <> 'ended' AND standing = 'awaiting' AND due_ms <= ?1 ORDER BY number")
        }
    };
    let mut list = connection.prepare_cached(query)?;
    let mut rows = match filter {
        Filter::All | Filter::Lost => list.query([])?,
        Filter::Due { now_ms } => list.query([signed(now_ms)])?,
    };
    let mut passing = Vec::new();
    while let Some(row) = rows.next()? {
        let listed = listed(row, roll)?;
        if filter.takes(&listed) {
            passing.push(listed);
        }
    }
    Ok(passing)
}

fn listed(row: &Row<'_>, roll: &mut Roll) -> Result<Listed, Trouble> {
    let owner: Option<String> = row.get("owner")?;
    Ok(Listed {
        run: run_id(row)?,
        started_ms: cells::unsigned(row, "started_ms")?,
        records: cells::unsigned(row, "records")?,
        head: cells::digest(row, "head")?,
        standing: cells::standing(row)?,
        epoch: cells::unsigned(row, "epoch")?,
        owner: roll.owner(owner.as_deref()),
    })
}

fn run_id(row: &Row<'_>) -> Result<RunId, Trouble> {
    let id: String = row.get("id")?;
    id.parse().map_err(|malformed| Trouble::Damaged(format!("{malformed}")))
}

/// What a run was started from; the outer `None` says that there is no such run.
pub(super) fn origin(connection: &Connection, run: &RunId) -> Result<Option<Option<Vec<u8>>>, Trouble> {
    let mut find = connection
        .prepare_cached("SELECT origin FROM runs LEFT JOIN origins ON origins.run = runs.number WHERE id = ?1")?;
    Ok(find.query_row([run.as_str()], |row| row.get(0)).optional()?)
}

/// The requests that wait for the runs of a session.
pub(super) fn posted(connection: &Connection, session: &str) -> Result<Vec<Posted>, Trouble> {
    let mut waiting = connection.prepare_cached(
        "SELECT requests.id AS request_id, runs.id, request FROM requests JOIN runs ON requests.run = runs.number \
         WHERE answer IS NULL AND owner = ?1 ORDER BY requests.id",
    )?;
    let mut rows = waiting.query([session])?;
    let mut posted = Vec::new();
    while let Some(row) = rows.next()? {
        posted.push(Posted { id: RequestId(row.get("request_id")?), run: run_id(row)?, request: row.get("request")? });
    }
    Ok(posted)
}

/// Whether there is an answer to be fetched.
pub(super) fn is_answered(connection: &Connection, request: RequestId) -> Result<bool, Trouble> {
    let mut find = connection.prepare_cached("SELECT 1 FROM requests WHERE id = ?1 AND answer IS NOT NULL")?;
    Ok(find.exists(params![request.0])?)
}
