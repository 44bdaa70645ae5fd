//! A store that answers first and writes with the next append: what was acknowledged last dies with its session.

use std::io::BufRead;
use std::sync::{Mutex, PoisonError};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::store::{Append, Beginning, Claim, Filter, Lease, Listed, Posted, RequestId, Store, Stored};
use portcullis::vocabulary::ids::RunId;

pub struct Forgetful {
    inner: MemoryStore,
    latest: Mutex<Option<Append>>,
}

impl Forgetful {
    pub fn new(inner: MemoryStore) -> Self {
        Self { inner, latest: Mutex::default() }
    }
}

impl Store for Forgetful {
    fn append(&self, append: Append) -> Stored<'_, ()> {
        let before = self.latest.lock().unwrap_or_else(PoisonError::into_inner).replace(append);
        match before {
            Some(before) => self.inner.append(before),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        self.inner.create(beginning)
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        self.inner.claim(run, claim)
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        self.inner.release(lease)
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        self.inner.read(run)
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        self.inner.find(run)
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        self.inner.list(filter)
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.inner.origin(run)
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.inner.post(run, request)
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        self.inner.posted()
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        self.inner.answer(request, answer)
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        self.inner.answered(request)
    }
}
