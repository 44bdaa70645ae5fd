//! The one thread that writes. It takes what has come, does all of it in one transaction, and answers each
//! caller when it is durable: so many runs share the price of one write to the disk.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::fault::{self, Trouble};
use super::ledger::Ledger;
use super::place::{Found, Identity, Place};
use crate::runtime::store::{MediumFault, StoreError};

/// Jobs that may wait. Whoever brings one more waits too.
const WAITING_MAX: usize = 4096;
/// Jobs of one transaction.
const GROUP_MAX: usize = 4096;
/// Bytes of one transaction, about: then the rest waits for the next.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Callers that one task tells, so that the tasks spread over a runtime's threads.
const TOLD_AT_ONCE: usize = 128;
/// Fewer are told one by one.
const TOLD_TOGETHER_MIN: usize = 8;

/// Something to be done in a transaction.
trait Job: Send {
    /// How many bytes it brings, about.
    fn bytes(&self) -> usize;

    /// Does it. A refusal is kept for the caller and spoils nothing; trouble with the file ends the transaction.
    fn run(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Trouble>;

    /// The runtime that its caller waits in, if it is one of tokio's.
    fn runtime(&self) -> Option<&Handle>;

    /// Tells the caller, when the transaction is durable or has failed.
    fn tell(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Task<T, W> {
    bytes: usize,
    work: W,
    outcome: Option<Result<T, StoreError>>,
    runtime: Option<Handle>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, W: FnMut(&mut Ledger<'_>) -> Result<T, Trouble> + Send> Job for Task<T, W> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }

    fn run(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Trouble> {
        self.outcome = Some(match (self.work)(ledger) {
            Ok(done) => Ok(done),
            Err(Trouble::Refused(refusal)) => Err(refusal),
            Err(trouble @ (Trouble::Sqlite(_) | Trouble::Damaged(_))) => return Err(trouble),
        });
        Ok(())
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) {
        let told = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => self.caller.send(outcome),
            (Err(error), _) => self.caller.send(Err(error)),
            // A transaction that skipped a job does not commit.
            (Ok(()), None) => return,
        };
        // A caller that went away asks again, and finds it done.
        drop(told);
    }
}

/// The way to the thread. Dropping it waits until everything that was brought is durable.
pub(super) struct Writer {
    place: Place,
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(place: Place, connection: Connection, session: Arc<str>) -> Result<Self, StoreError> {
        let (jobs, brought) = mpsc::channel(WAITING_MAX);
        let (Found::File(file) | Found::EmptyFile(file)) = place.look()? else {
            return Err(place.medium(MediumFault::Missing, fault::MOVED.to_owned()));
        };
        let (started, answer) = std::sync::mpsc::channel();
        let thread = {
            let place = place.clone();
            let work = move || {
                match Ledger::open(&connection, &place, session) {
                    Ok(ledger) if started.send(Ok(())).is_ok() => {
                        Groups { ledger, place: &place, file, jobs: brought }.work();
                    }
                    Ok(_) => {}
                    Err(error) => drop(started.send(Err(place.sqlite(error)))),
                }
                finish(connection);
            };
            thread::Builder::new().name("portcullis-store".to_owned()).spawn(work)
        };
        let thread = thread.map_err(|error| place.failed(&error))?;
        answer.recv().map_err(|_| place.failed(&io::Error::other("the writer did not start")))??;
        Ok(Self { place, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has something done in the next transaction, and waits until it is durable.
    pub(super) async fn submit<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnMut(&mut Ledger<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || self.place.medium(MediumFault::Unavailable, "the store was closed; open it again".to_owned());
        let (caller, answer) = oneshot::channel();
        let job = Box::new(Task { bytes, work, outcome: None, runtime: Handle::try_current().ok(), caller });
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there has told its callers by hanging up on them.
            drop(thread.join());
        }
    }
}

/// Tells all callers of a group. Waking a task from outside its runtime is dear, and would hold the next group
/// up; from inside it is cheap. So many callers of one runtime are told by one task in there.
fn tell(group: Vec<Box<dyn Job>>, committed: &Result<(), StoreError>) {
    let mut jobs = group.into_iter();
    loop {
        let some = jobs.by_ref().take(TOLD_AT_ONCE).collect::<Vec<_>>();
        let Some(first) = some.first() else { return };
        let together = |one: &Handle| some.iter().all(|job| job.runtime().is_some_and(|other| other.id() == one.id()));
        let runtime = first.runtime().filter(|runtime| some.len() >= TOLD_TOGETHER_MIN && together(runtime)).cloned();
        let committed = committed.clone();
        let each = move || some.into_iter().for_each(|job| job.tell(committed.clone()));
        match runtime {
            Some(runtime) => drop(runtime.spawn(async move { each() })),
            None => each(),
        }
    }
}

/// Moves the log into the file and closes it. What fails here is not lost: it stays in the log.
fn finish(connection: Connection) {
    let moved = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    drop(moved);
    drop(connection.close());
}

struct Groups<'c> {
    ledger: Ledger<'c>,
    place: &'c Place,
    file: Identity,
    jobs: mpsc::Receiver<Box<dyn Job>>,
}

impl Groups<'_> {
    fn work(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut bytes = first.bytes();
            let mut group = vec![first];
            while group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
                let Ok(job) = self.jobs.try_recv() else { break };
                bytes += job.bytes();
                group.push(job);
            }
            let committed = self.commit(&mut group);
            tell(group, &committed);
        }
    }

    fn commit(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        self.transaction(group).map_err(|trouble| {
            let error = self.place.explain(trouble);
            match self.ledger.undo() {
                Ok(()) => error,
                Err(undo) => self.place.explain(undo),
            }
        })
    }

    fn transaction(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), Trouble> {
        self.ledger.begin()?;
        for job in group {
            job.run(&mut self.ledger)?;
        }
        // Where files can be deleted while they are open, a write to such a one would succeed and be lost.
        match self.place.look()? {
            Found::File(file) if file == self.file => self.ledger.commit(),
            Found::Nothing | Found::EmptyFile(_) | Found::File(_) => {
                Err(self.place.medium(MediumFault::Missing, fault::MOVED.to_owned()).into())
            }
        }
    }
}
