//! The store port: where records become durable (SPEC 11, 13).
//!
//! A store keeps histories, one a run, and only ever appends to them. Three things make it safe to share:
//!
//! - **an expected position**: an append says where it goes. The same bytes at the same place again are the old
//!   receipt; other bytes are a conflict. So a driver that did not hear an answer may ask again.
//! - **a fencing epoch**: whoever drives a run holds a [`Lease`]. A later claim has a larger epoch, and every
//!   append under an earlier one is refused, however long its owner slept.
//! - **living owners**: a run that a living session drives is not claimed by accident, only by
//!   [`Claim::TakeOver`].
//!
//! `runtime::conformance` holds the suite that every store must pass.

use std::io::BufRead;

use futures_util::future::BoxFuture;

use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::outcome::ReleaseOutcome;
use crate::vocabulary::wire::words;

/// What a store answers.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Where records become durable. One value is one session: what it claims is its own until it gives it back
/// or dies.
pub trait Store: Send + Sync + 'static {
    /// Begins a history, durably, and claims its run. The same first records again, as long as this session
    /// holds that first claim, are the old lease.
    ///
    /// # Errors
    /// `RunExists` when the store has the run already, `Malformed` when its records are not whole lines, else
    /// the medium's fault.
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease>;

    /// Makes records durable, all of them or none. Records that are there already are compared; those behind
    /// them are stored.
    ///
    /// # Errors
    /// `Fenced` when somebody claimed the run since, `Conflict` and `Gap` when they do not continue the history,
    /// `Malformed` when they are not whole lines, else the medium's fault. Then nothing of them is stored,
    /// unless an earlier try had stored all.
    fn append(&self, append: Append) -> Stored<'_, ()>;

    /// Claims a run: from now on only appends under the new epoch are accepted.
    ///
    /// # Errors
    /// `UnknownRun`; `Owned` when a living session drives it and `claim` is [`Claim::Free`].
    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease>;

    /// Gives a run back: it has ended or waits for a person. Giving back what somebody else claimed since does
    /// nothing.
    fn release(&self, lease: Lease) -> Stored<'_, ()>;

    /// The history of a run, to be read line by line. What is appended later may be missing.
    ///
    /// # Errors
    /// `UnknownRun`, else the medium's fault.
    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>>;

    /// What the store knows of a run without reading its history.
    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>>;

    /// The runs that pass, by the order in which they were created.
    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>>;

    /// What the run was created from, if that was kept ([`Beginning::origin`]).
    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>>;

    /// Leaves a request for whoever drives the run.
    ///
    /// # Errors
    /// `UnknownRun`, else the medium's fault.
    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId>;

    /// The requests for runs that this session drives, oldest first, until they are answered.
    fn posted(&self) -> Stored<'_, Vec<Posted>>;

    /// Answers a request. The first answer stays; one to a request that is forgotten does nothing.
    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()>;

    /// The answer to a request, once there is one. It is then forgotten.
    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>>;
}

/// The beginning of a history.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// The run.
    pub run: RunId,
    /// When it began: wall time in milliseconds since 1970.
    pub started_ms: u64,
    /// Its records, one or more: whole lines, each with its line end.
    pub lines: Vec<u8>,
    /// How many.
    pub records: u64,
    /// The hash of the last of them.
    pub head: Digest,
    /// Where the run stands after them.
    pub standing: Standing,
    /// Bytes to be kept beside the run, that say what it was started from. The store does not look at them.
    pub origin: Option<Vec<u8>>,
}

/// Records that continue a history.
#[derive(Debug, Clone)]
pub struct Append {
    /// Whose, and under which epoch.
    pub lease: Lease,
    /// The place of the first of them: how many records the history has before.
    pub seq: u64,
    /// The records: whole lines, each with its line end.
    pub lines: Vec<u8>,
    /// How many.
    pub records: u64,
    /// The hash of the last of them.
    pub head: Digest,
    /// Where the run stands after them.
    pub standing: Standing,
}

/// The right to drive a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// Larger than every earlier one of the run; 1 for the session that created it.
    pub epoch: u64,
}

/// How a run is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Only when no living session drives it.
    Free,
    /// From whoever drives it.
    TakeOver,
}

/// Where a run stands, as far as a store needs to know to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Work is under way.
    Running,
    /// Only a person's answer or a timer can move it.
    Awaiting {
        /// When its next timer is due, in wall milliseconds since 1970; `None` when nothing expires.
        due_ms: Option<u64>,
    },
    /// It has ended.
    Ended {
        /// The row of the closed table.
        row: u8,
        /// What the reader gets.
        outcome: ReleaseOutcome,
        /// Whether there is a receipt.
        delivered: bool,
    },
}

/// What a store knows of a run without reading its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The run.
    pub run: RunId,
    /// When it began: wall time in milliseconds since 1970.
    pub started_ms: u64,
    /// How many records.
    pub records: u64,
    /// The hash of the last.
    pub head: Digest,
    /// Where it stands.
    pub standing: Standing,
    /// The last claim's epoch.
    pub epoch: u64,
    /// Who drives it.
    pub owner: Owner,
}

/// Who drives a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Nobody: it was given back.
    Nobody,
    /// A living session.
    Living {
        /// Its name, for people.
        name: String,
    },
    /// A session that died without giving it back.
    Dead {
        /// Its name, for people.
        name: String,
    },
}

/// Which runs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// Every run.
    #[default]
    All,
    /// Runs that need a driver: work was under way, or a release was not delivered, and no living session
    /// drives them.
    Lost,
    /// Runs that await, driven by no living session, whose timer is due at that wall time or before.
    Due {
        /// Milliseconds since 1970.
        now_ms: u64,
    },
}

impl Filter {
    /// Whether a run passes.
    #[must_use]
    pub const fn takes(self, listed: &Listed) -> bool {
        let driven = matches!(listed.owner, Owner::Living { .. });
        match (self, listed.standing) {
            (Self::All, _) => true,
            (Self::Lost, Standing::Running | Standing::Ended { delivered: false, .. }) => !driven,
            (Self::Due { now_ms }, Standing::Awaiting { due_ms: Some(due_ms) }) => !driven && due_ms <= now_ms,
            (Self::Lost, Standing::Awaiting { .. } | Standing::Ended { delivered: true, .. })
            | (Self::Due { .. }, Standing::Running | Standing::Awaiting { due_ms: None } | Standing::Ended { .. }) => {
                false
            }
        }
    }
}

/// Whether these bytes are that many whole lines, one at least. Every store asks before it stores.
///
/// # Errors
/// `Malformed` when they are not.
pub fn whole_lines(run: &RunId, lines: &[u8], records: u64) -> Result<(), StoreError> {
    let found = memchr::memchr_iter(b'\n', lines).count() as u64;
    if found > 0 && found == records && lines.ends_with(b"\n") {
        Ok(())
    } else {
        Err(StoreError::Malformed { run: run.clone(), records })
    }
}

/// The lines in these bytes, each with its line end. What stands behind the last line end is given too.
pub fn each_line(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Looked for in wide steps: byte by byte, finding the ends took a third of an append.
    let ends = memchr::memchr_iter(b'\n', lines).map(|end| end + 1);
    let rest = Some(lines.len()).filter(|_| !lines.is_empty() && !lines.ends_with(b"\n"));
    let mut begin = 0;
    ends.chain(rest).filter_map(move |end| lines.get(std::mem::replace(&mut begin, end)..end))
}

/// A request's name in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub i64);

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Its name.
    pub id: RequestId,
    /// The run.
    pub run: RunId,
    /// What is asked.
    pub request: Vec<u8>,
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No such run.
    #[error("the store has no run {run}")]
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// There is one already.
    #[error("the store has a run {run} already")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// A living session drives it.
    #[error("run {run} is being driven by {by}")]
    Owned {
        /// The run.
        run: RunId,
        /// The session, for people.
        by: String,
    },
    /// Somebody claimed the run since.
    #[error("run {run} was taken over: epoch {held} is not the latest any more")]
    Fenced {
        /// The run.
        run: RunId,
        /// The epoch that was held.
        held: u64,
    },
    /// Another record stands in that place.
    #[error("record {seq} of run {run} is another one")]
    Conflict {
        /// The run.
        run: RunId,
        /// The place.
        seq: u64,
    },
    /// Records are missing before that place.
    #[error("run {run} has {records} records, so record {seq} cannot follow")]
    Gap {
        /// The run.
        run: RunId,
        /// How many it has.
        records: u64,
        /// The place that was asked for.
        seq: u64,
    },
    /// What was to be stored is not as many whole lines as was said, or is nothing.
    #[error("what was to be stored for run {run} is not {records} whole lines")]
    Malformed {
        /// The run.
        run: RunId,
        /// How many there should be.
        records: u64,
    },
    /// The medium failed.
    #[error("{place}: {fault}: {reason}")]
    Medium {
        /// How.
        fault: MediumFault,
        /// The file.
        place: String,
        /// For people: what happened, and the way out.
        reason: String,
    },
}

words! {
    /// How a store's medium fails.
    pub enum MediumFault {
        /// There is no store in that place.
        Missing = "missing",
        /// No room is left.
        Full = "full",
        /// Another process holds it for too long.
        Locked = "locked",
        /// It may not be written.
        ReadOnly = "read_only",
        /// What is in it is damaged.
        Corrupt = "corrupt",
        /// It is something else than a store.
        Foreign = "foreign",
        /// It was written by a later version.
        UnknownVersion = "unknown_version",
        /// It cannot be reached, or failed in another way.
        Unavailable = "unavailable",
    }
}
