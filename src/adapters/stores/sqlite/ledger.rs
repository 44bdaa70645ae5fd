//! What is done to the tables, inside one transaction of the writer.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::cells::{StandingCells, signed};
use super::chain::{self, End};
use super::fault::Trouble;
use super::heads::{Head, Heads, Hold, Place, Updates};
use super::owners::{self, Roll};
use super::place;
use crate::runtime::store::{Append, Beginning, Claim, Lease, RequestId, StoreError, each_line, whole_lines};
use crate::vocabulary::ids::RunId;

/// The longest record, in bytes: SQLite takes rows of up to 10^9.
const LINE_BYTES_MAX: usize = 999_000_000;

/// The tables under the hand of the one that writes them.
pub(super) struct Ledger<'c> {
    connection: &'c Connection,
    place: &'c place::Place,
    session: Arc<str>,
    insert: Statement<'c>,
    updates: Updates<'c>,
    heads: Heads,
    /// What the file looked like when `heads` and `next` were true.
    seen: Option<i64>,
    /// The position of the next record.
    next: i64,
}

impl<'c> Ledger<'c> {
    /// Prepares the statements that every append needs.
    pub(super) fn open(
        connection: &'c Connection,
        place: &'c place::Place,
        session: Arc<str>,
    ) -> rusqlite::Result<Self> {
        let insert =
            connection.prepare("INSERT INTO records (position, run, seq, before, line) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let updates = Updates::prepare(connection)?;
        Ok(Self { connection, place, session, insert, updates, heads: Heads::default(), seen: None, next: 0 })
    }

    /// Begins a transaction, and forgets what it knew if another connection wrote since.
    pub(super) fn begin(&mut self) -> Result<(), Trouble> {
        self.heads.trim();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let version: i64 = self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.seen != Some(version) {
            self.heads.forget();
            let mut last = self.connection.prepare_cached("SELECT max(position) FROM records")?;
            let last: Option<i64> = last.query_row([], |row| row.get(0))?;
            self.next = following(last.unwrap_or(0))?;
            self.seen = Some(version);
        }
        Ok(())
    }

    /// Makes everything since [`begin`](Self::begin) durable.
    pub(super) fn commit(&mut self) -> Result<(), Trouble> {
        self.heads.write(&mut self.updates)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Undoes everything since [`begin`](Self::begin). Some errors have done so already.
    pub(super) fn undo(&mut self) -> Result<(), Trouble> {
        self.heads.forget();
        self.seen = None;
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }

    pub(super) fn create(&mut self, beginning: &Beginning) -> Result<Lease, Trouble> {
        let Beginning { run, started_ms, lines, records, head, standing, origin } = beginning;
        self.whole(run, lines, *records)?;
        let lease = Lease { run: run.clone(), epoch: 1 };
        if let Some(place) = self.heads.find(self.connection, run)? {
            let found = self.heads.get(place)?;
            let held = found.hold.owner.as_ref() == Some(&self.session) && found.hold.epoch == lease.epoch;
            let same = held && found.end.records >= *records && self.difference(found.end, 0, lines)?.is_none();
            return if same { Ok(lease) } else { Err(StoreError::RunExists { run: run.clone() }.into()) };
        }
        let StandingCells { word, due_ms, row, outcome } = StandingCells::from(*standing);
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO runs (id, started_ms, epoch, owner, standing, due_ms, row, outcome) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let number = insert.insert(params![
            run.as_str(),
            signed(*started_ms),
            signed(lease.epoch),
            &*self.session,
            word,
            due_ms,
            row,
            outcome
        ])?;
        let last = self.store(End { run: number, records: 0, last: 0 }, lines)?;
        let end = End { run: number, records: *records, last };
        let mut insert =
            self.connection.prepare_cached("INSERT INTO heads (run, records, last, head) VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute(params![number, signed(*records), last, head.as_bytes()])?;
        if let Some(origin) = origin {
            let mut insert = self.connection.prepare_cached("INSERT INTO origins (run, origin) VALUES (?1, ?2)")?;
            insert.execute(params![number, origin])?;
        }
        let hold = Hold { epoch: lease.epoch, owner: Some(Arc::clone(&self.session)), standing: *standing };
        self.heads.learn(run.clone(), Head { end, hash: *head, hold });
        Ok(lease)
    }

    pub(super) fn append(&mut self, append: &Append) -> Result<(), Trouble> {
        let Append { lease: Lease { run, epoch }, seq, lines, records, head, standing } = append;
        self.whole(run, lines, *records)?;
        let place = self.known(run)?;
        let found = self.heads.get(place)?;
        let end = found.end;
        if found.hold.epoch != *epoch {
            return Err(StoreError::Fenced { run: run.clone(), held: *epoch }.into());
        }
        if *seq > end.records {
            return Err(StoreError::Gap { run: run.clone(), records: end.records, seq: *seq }.into());
        }
        let mut fresh = lines.as_slice();
        if *seq < end.records {
            if let Some(seq) = self.difference(end, *seq, lines)? {
                return Err(StoreError::Conflict { run: run.clone(), seq }.into());
            }
            let there = usize::try_from(end.records - seq).unwrap_or(usize::MAX);
            let bytes = each_line(fresh).take(there).map(<[u8]>::len).sum();
            fresh = fresh.get(bytes..).unwrap_or_default();
            if fresh.is_empty() {
                return Ok(());
            }
        }
        let last = self.store(end, fresh)?;
        let now = self.heads.change(place)?;
        now.end = End { run: end.run, records: seq + records, last };
        now.hash = *head;
        now.hold.standing = *standing;
        Ok(())
    }

    pub(super) fn claim(&mut self, run: &RunId, claim: Claim) -> Result<Lease, Trouble> {
        let place = self.known(run)?;
        let owner = self.heads.get(place)?.hold.owner.clone();
        if let (Some(owner), Claim::Free) = (owner, claim)
            && Roll::call(self.place, Some(&self.session)).lives(&owner)
        {
            return Err(StoreError::Owned { run: run.clone(), by: owners::shown(&owner) }.into());
        }
        let session = Arc::clone(&self.session);
        let hold = &mut self.heads.change(place)?.hold;
        let held = i64::try_from(hold.epoch).map_err(|_| Trouble::Damaged(format!("epoch is {}", hold.epoch)))?;
        hold.epoch = following(held)?.unsigned_abs();
        hold.owner = Some(session);
        Ok(Lease { run: run.clone(), epoch: hold.epoch })
    }

    pub(super) fn release(&mut self, lease: &Lease) -> Result<(), Trouble> {
        let place = self.known(&lease.run)?;
        if self.heads.get(place)?.hold.epoch == lease.epoch {
            self.heads.change(place)?.hold.owner = None;
        }
        Ok(())
    }

    pub(super) fn post(&mut self, run: &RunId, request: &[u8]) -> Result<RequestId, Trouble> {
        let place = self.known(run)?;
        let number = self.heads.get(place)?.end.run;
        let mut insert = self.connection.prepare_cached("INSERT INTO requests (run, request) VALUES (?1, ?2)")?;
        Ok(RequestId(insert.insert(params![number, request])?))
    }

    pub(super) fn answer(&mut self, request: RequestId, answer: &[u8]) -> Result<(), Trouble> {
        let mut update =
            self.connection.prepare_cached("UPDATE requests SET answer = ?2 WHERE id = ?1 AND answer IS NULL")?;
        update.execute(params![request.0, answer])?;
        Ok(())
    }

    pub(super) fn take_answer(&mut self, request: RequestId) -> Result<Option<Vec<u8>>, Trouble> {
        let mut take = self
            .connection
            .prepare_cached("DELETE FROM requests WHERE id = ?1 AND answer IS NOT NULL RETURNING answer")?;
        Ok(take.query_row([request.0], |row| row.get(0)).optional()?)
    }

    fn known(&mut self, run: &RunId) -> Result<Place, Trouble> {
        let found = self.heads.find(self.connection, run)?;
        found.ok_or_else(|| StoreError::UnknownRun { run: run.clone() }.into())
    }

    /// Nothing is written before its form is known to be good: a refusal leaves no trace.
    fn whole(&self, run: &RunId, lines: &[u8], records: u64) -> Result<(), Trouble> {
        whole_lines(run, lines, records)?;
        if lines.len() > LINE_BYTES_MAX && each_line(lines).any(|line| line.len() > LINE_BYTES_MAX) {
            let reason = format!("a record of run {run} is longer than {LINE_BYTES_MAX} bytes, which no row holds");
            return Err(self.place.medium(crate::runtime::store::MediumFault::Unavailable, reason).into());
        }
        Ok(())
    }

    /// Writes lines behind the end of a run, and gives the position of the last.
    fn store(&mut self, end: End, lines: &[u8]) -> Result<i64, Trouble> {
        let mut before = end.last;
        for (records, line) in (end.records..).zip(each_line(lines)) {
            let (position, seq) = (self.next, signed(records));
            self.next = following(position)?;
            following(seq)?;
            self.insert.execute(params![position, end.run, seq, before, line])?;
            before = position;
        }
        Ok(before)
    }

    /// The first place at which what is stored from `seq` on and these lines differ, as far as both go.
    fn difference(&self, end: End, seq: u64, lines: &[u8]) -> Result<Option<u64>, Trouble> {
        let stored = chain::positions(self.connection, end, seq)?;
        for ((place, position), line) in (seq..).zip(stored).zip(each_line(lines)) {
            if !chain::line(self.connection, position, |bytes| bytes == line)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

/// The number after `last`. Positions, places and epochs never come to the end of their range: one that did was not
/// written by us, and starting over would put records before those that they follow.
fn following(last: i64) -> Result<i64, Trouble> {
    last.checked_add(1).ok_or_else(|| Trouble::Damaged(format!("nothing can follow number {last}")))
}
