//! A store whose medium fails after some appends.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, MediumFault, Posted, RequestId, Store, StoreError, Stored,
};
use portcullis::vocabulary::ids::RunId;

/// Takes so many appends (a beginning is one) and no more.
pub(crate) struct BreakingStore<S> {
    left: Arc<AtomicU64>,
    /// Whether nothing can be given back either, once no append is left.
    stubborn: bool,
    inner: S,
}

impl<S: Store> BreakingStore<S> {
    pub(crate) fn after(appends: u64, inner: S) -> Self {
        Self { left: Arc::new(AtomicU64::new(appends)), stubborn: false, inner }
    }

    /// The same, and then it takes nothing back; what comes with it mends it.
    pub(crate) fn stubborn(appends: u64, inner: S) -> (Self, Arc<AtomicU64>) {
        let store = Self { stubborn: true, ..Self::after(appends, inner) };
        let mend = Arc::clone(&store.left);
        (store, mend)
    }

    fn take(&self) -> Result<(), StoreError> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| full())
    }
}

impl<S: Store> Store for BreakingStore<S> {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        match self.take() {
            Ok(()) => self.inner.create(beginning),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        match self.take() {
            Ok(()) => self.inner.append(append),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        self.inner.claim(run, claim)
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        if self.stubborn && self.left.load(Ordering::SeqCst) == 0 {
            return Box::pin(std::future::ready(Err(full())));
        }
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

fn full() -> StoreError {
    StoreError::Medium { fault: MediumFault::Full, place: "a store".to_owned(), reason: "no room is left".to_owned() }
}
