//! A store that dies with the process: for tests and for runs in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Cursor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, Owner, Posted, RequestId, Standing, Store, StoreError, Stored,
    each_line, whole_lines,
};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

/// A store in memory. One value is one session; dropping it leaves its runs to a dead owner.
#[derive(Debug)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    session: u64,
}

#[derive(Debug, Default)]
struct Data {
    runs: BTreeMap<RunId, Run>,
    created: Vec<RunId>,
    requests: BTreeMap<RequestId, Request>,
    requests_made: i64,
    sessions_made: u64,
    living: BTreeSet<u64>,
}

#[derive(Debug)]
struct Run {
    started_ms: u64,
    lines: Vec<Vec<u8>>,
    head: Digest,
    standing: Standing,
    epoch: u64,
    owner: Option<u64>,
    origin: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Request {
    Waits { run: RunId, request: Vec<u8> },
    Answered(Vec<u8>),
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::join(Arc::default())
    }

    /// Another session on the same data.
    #[must_use]
    pub fn session(&self) -> Self {
        Self::join(Arc::clone(&self.data))
    }

    fn join(data: Arc<Mutex<Data>>) -> Self {
        let session = {
            let mut data = locked(&data);
            data.sessions_made += 1;
            let session = data.sessions_made;
            data.living.insert(session);
            session
        };
        Self { data, session }
    }

    /// Answers at once: nothing here waits.
    fn at_once<T: Send + 'static>(&self, work: impl FnOnce(&mut Data) -> Result<T, StoreError>) -> Stored<'_, T> {
        let answer = work(&mut locked(&self.data));
        Box::pin(std::future::ready(answer))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        locked(&self.data).living.remove(&self.session);
    }
}

/// Every change is made by one call that cannot stop half way, so a poisoned lock guards whole data.
fn locked(data: &Mutex<Data>) -> MutexGuard<'_, Data> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        self.at_once(|data| data.create(self.session, beginning))
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        self.at_once(|data| data.append(&append))
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        self.at_once(|data| data.claim(self.session, run, claim))
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        self.at_once(|data| {
            let run = data.run(&lease.run)?;
            if run.epoch == lease.epoch {
                run.owner = None;
            }
            Ok(())
        })
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        self.at_once(|data| {
            let history = data.run(run)?.lines.concat();
            Ok(Box::new(Cursor::new(history)) as Box<dyn BufRead + Send>)
        })
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        self.at_once(|data| Ok(data.listed(run)))
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        self.at_once(|data| {
            let all = data.created.iter().filter_map(|run| data.listed(run));
            Ok(all.filter(|listed| filter.takes(listed)).collect())
        })
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.at_once(|data| Ok(data.run(run)?.origin.clone()))
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.at_once(|data| {
            data.run(run)?;
            data.requests_made += 1;
            let id = RequestId(data.requests_made);
            data.requests.insert(id, Request::Waits { run: run.clone(), request });
            Ok(id)
        })
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        self.at_once(|data| Ok(data.posted(self.session)))
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        self.at_once(|data| {
            if let Some(waits @ Request::Waits { .. }) = data.requests.get_mut(&request) {
                *waits = Request::Answered(answer);
            }
            Ok(())
        })
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        self.at_once(|data| {
            if !matches!(data.requests.get(&request), Some(Request::Answered(_))) {
                return Ok(None);
            }
            Ok(match data.requests.remove(&request) {
                Some(Request::Answered(answer)) => Some(answer),
                Some(Request::Waits { .. }) | None => None,
            })
        })
    }
}

impl Data {
    fn run(&mut self, run: &RunId) -> Result<&mut Run, StoreError> {
        self.runs.get_mut(run).ok_or_else(|| StoreError::UnknownRun { run: run.clone() })
    }

    fn create(&mut self, session: u64, beginning: Beginning) -> Result<Lease, StoreError> {
        let Beginning { run, started_ms, lines, records, head, standing, origin } = beginning;
        whole_lines(&run, &lines, records)?;
        let lines = split(&lines);
        let lease = Lease { run: run.clone(), epoch: 1 };
        if let Some(found) = self.runs.get(&run) {
            let held = found.owner == Some(session) && found.epoch == lease.epoch;
            return if held && found.lines.starts_with(&lines) {
                Ok(lease)
            } else {
                Err(StoreError::RunExists { run })
            };
        }
        let created = Run { started_ms, lines, head, standing, epoch: lease.epoch, owner: Some(session), origin };
        self.created.push(run.clone());
        self.runs.insert(run, created);
        Ok(lease)
    }

    fn append(&mut self, append: &Append) -> Result<(), StoreError> {
        whole_lines(&append.lease.run, &append.lines, append.records)?;
        let run = self.run(&append.lease.run)?;
        if run.epoch != append.lease.epoch {
            return Err(StoreError::Fenced { run: append.lease.run.clone(), held: append.lease.epoch });
        }
        let records = run.lines.len() as u64;
        let Some(there) = usize::try_from(append.seq).ok().and_then(|seq| run.lines.get(seq..)) else {
            return Err(StoreError::Gap { run: append.lease.run.clone(), records, seq: append.seq });
        };
        let lines = split(&append.lines);
        if let Some(place) = there.iter().zip(&lines).position(|(stored, line)| stored != line) {
            return Err(StoreError::Conflict { run: append.lease.run.clone(), seq: append.seq + place as u64 });
        }
        let fresh = lines.into_iter().skip(there.len()).collect::<Vec<_>>();
        if !fresh.is_empty() {
            run.lines.extend(fresh);
            run.head = append.head;
            run.standing = append.standing;
        }
        Ok(())
    }

    fn claim(&mut self, session: u64, run: &RunId, claim: Claim) -> Result<Lease, StoreError> {
        let living = self.run(run)?.owner.filter(|owner| self.living.contains(owner));
        if let (Some(owner), Claim::Free) = (living, claim) {
            return Err(StoreError::Owned { run: run.clone(), by: name(owner) });
        }
        let claimed = self.run(run)?;
        claimed.epoch += 1;
        claimed.owner = Some(session);
        Ok(Lease { run: run.clone(), epoch: claimed.epoch })
    }

    fn listed(&self, run: &RunId) -> Option<Listed> {
        let found = self.runs.get(run)?;
        let owner = match found.owner {
            None => Owner::Nobody,
            Some(session) if self.living.contains(&session) => Owner::Living { name: name(session) },
            Some(session) => Owner::Dead { name: name(session) },
        };
        Some(Listed {
            run: run.clone(),
            started_ms: found.started_ms,
            records: found.lines.len() as u64,
            head: found.head,
            standing: found.standing,
            epoch: found.epoch,
            owner,
        })
    }

    fn posted(&self, session: u64) -> Vec<Posted> {
        let driven = |run: &RunId| self.runs.get(run).is_some_and(|run| run.owner == Some(session));
        let waiting = self.requests.iter().filter_map(|(id, request)| match request {
            Request::Waits { run, request } if driven(run) => {
                Some(Posted { id: *id, run: run.clone(), request: request.clone() })
            }
            Request::Waits { .. } | Request::Answered(_) => None,
        });
        waiting.collect()
    }
}

fn split(lines: &[u8]) -> Vec<Vec<u8>> {
    each_line(lines).map(<[u8]>::to_vec).collect()
}

fn name(session: u64) -> String {
    format!("session {session}")
}
