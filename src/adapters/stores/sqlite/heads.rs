//! Where each run ends, as the writer knows it: read once, then kept, for as long as nobody else writes.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::cells::{self, StandingCells, signed};
use super::chain::End;
use super::fault::Trouble;
use crate::runtime::store::Standing;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

/// Runs that are remembered. Then all are forgotten, which costs a look-up each.
const KNOWN_MAX: usize = 1 << 16;

/// What changes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) end: End,
    pub(super) hash: Digest,
    pub(super) hold: Hold,
}

/// What changes seldom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) epoch: u64,
    pub(super) owner: Option<Arc<str>>,
    pub(super) standing: Standing,
}

#[derive(Debug)]
struct Known {
    stored: Head,
    now: Head,
}

/// A run among those that are known. Good until they are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(usize);

/// The heads that are known.
#[derive(Debug, Default)]
pub(super) struct Heads {
    places: HashMap<RunId, Place>,
    known: Vec<Known>,
    touched: Vec<Place>,
}

const FIND: &str = "SELECT number, epoch, owner, standing, due_ms, row, outcome, records, last, head \
                    FROM runs JOIN heads ON heads.run = runs.number WHERE id = ?1";

impl Heads {
    /// Forgets everything: somebody else wrote, or a transaction failed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Makes room before a transaction begins.
    pub(super) fn trim(&mut self) {
        if self.known.len() > KNOWN_MAX {
            self.forget();
        }
    }

    /// The run, if there is one.
    pub(super) fn find(&mut self, connection: &Connection, run: &RunId) -> Result<Option<Place>, Trouble> {
        if let Some(place) = self.places.get(run) {
            return Ok(Some(*place));
        }
        let mut find = connection.prepare_cached(FIND)?;
        let mut rows = find.query([run.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let end = End { run: row.get("number")?, records: cells::unsigned(row, "records")?, last: row.get("last")? };
        let owner: Option<String> = row.get("owner")?;
        let hold = Hold {
            epoch: cells::unsigned(row, "epoch")?,
            owner: owner.map(Arc::from),
            standing: cells::standing(row)?,
        };
        let head = Head { end, hash: cells::digest(row, "head")?, hold };
        Ok(Some(self.learn(run.clone(), head)))
    }

    /// A run that was just stored or read.
    pub(super) fn learn(&mut self, run: RunId, head: Head) -> Place {
        let place = Place(self.known.len());
        self.known.push(Known { stored: head.clone(), now: head });
        self.places.insert(run, place);
        place
    }

    /// What is known of a run.
    pub(super) fn get(&self, place: Place) -> Result<&Head, Trouble> {
        self.known.get(place.0).map(|known| &known.now).ok_or_else(forgotten)
    }

    /// The same, to be changed.
    pub(super) fn change(&mut self, place: Place) -> Result<&mut Head, Trouble> {
        self.touched.push(place);
        self.known.get_mut(place.0).map(|known| &mut known.now).ok_or_else(forgotten)
    }

    /// Writes down what changed: once a run, however often it did.
    pub(super) fn write(&mut self, updates: &mut Updates<'_>) -> Result<(), Trouble> {
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut moved = Vec::with_capacity(self.touched.len());
        for place in self.touched.drain(..) {
            let Known { stored, now } = self.known.get_mut(place.0).ok_or_else(forgotten)?;
            if (stored.end, stored.hash) != (now.end, now.hash) {
                moved.push((now.end, now.hash));
                (stored.end, stored.hash) = (now.end, now.hash);
            }
            if stored.hold != now.hold {
                updates.hold(now)?;
                stored.hold = now.hold.clone();
            }
        }
        updates.ends(&moved)
    }
}

fn forgotten() -> Trouble {
    Trouble::Damaged("a run was forgotten while it was written".to_owned())
}

/// Ends that one statement writes down. Beginning and ending a statement costs as much as a row does.
const ENDS_AT_ONCE: usize = 16;

/// The statements that write heads down.
pub(super) struct Updates<'c> {
    end: Statement<'c>,
    ends: Statement<'c>,
    hold: Statement<'c>,
}

impl<'c> Updates<'c> {
    /// Prepares them.
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let ends = |rows: usize| {
            let rows = vec!["(?, ?, ?, ?)"; rows].join(", ");
            connection.prepare(&format!("INSERT OR REPLACE INTO heads (run, records, last, head) VALUES {rows}"))
        };
        let hold = connection.prepare(
            "UPDATE runs SET epoch = ?2, owner = ?3, standing = ?4, due_ms = ?5, row = ?6, outcome = ?7 \
             WHERE number = ?1",
        )?;
        Ok(Self { end: ends(1)?, ends: ends(ENDS_AT_ONCE)?, hold })
    }

    fn ends(&mut self, moved: &[(End, Digest)]) -> Result<(), Trouble> {
        let (many, rest) = moved.as_chunks::<ENDS_AT_ONCE>();
        for rows in many {
            put(&mut self.ends, rows)?;
        }
        rest.iter().try_for_each(|row| put(&mut self.end, std::slice::from_ref(row)))
    }

    fn hold(&mut self, head: &Head) -> Result<(), Trouble> {
        let Hold { epoch, owner, standing } = &head.hold;
        let StandingCells { word, due_ms, row, outcome } = StandingCells::from(*standing);
        let run = head.end.run;
        let changed = self.hold.execute(params![run, signed(*epoch), owner.as_deref(), word, due_ms, row, outcome])?;
        one(changed, run)
    }
}

fn put(statement: &mut Statement<'_>, rows: &[(End, Digest)]) -> Result<(), Trouble> {
    for (row, (End { run, records, last }, hash)) in rows.iter().enumerate() {
        let first = row * 4;
        statement.raw_bind_parameter(first + 1, run)?;
        statement.raw_bind_parameter(first + 2, signed(*records))?;
        statement.raw_bind_parameter(first + 3, last)?;
        statement.raw_bind_parameter(first + 4, hash.as_bytes())?;
    }
    statement.raw_execute()?;
    Ok(())
}

fn one(changed: usize, run: i64) -> Result<(), Trouble> {
    if changed == 1 { Ok(()) } else { Err(Trouble::Damaged(format!("run number {run} is missing"))) }
}

/// The end of a run's records, from a connection that only reads.
pub(super) fn end(connection: &Connection, run: &RunId) -> Result<Option<End>, Trouble> {
    let mut find = connection
        .prepare_cached("SELECT number, records, last FROM runs JOIN heads ON heads.run = runs.number WHERE id = ?1")?;
    let found: Option<(i64, i64, i64)> =
        find.query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    let Some((run, records, last)) = found else { return Ok(None) };
    let records = u64::try_from(records).map_err(|_| Trouble::Damaged(format!("records is {records}")))?;
    Ok(Some(End { run, records, last }))
}
