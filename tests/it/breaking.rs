//! A store that fails where it is told to.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use portcullis::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, MediumFault, Posted, RequestId, Store, StoreError, Stored,
};
use portcullis::vocabulary::ids::RunId;

/// What a call of the store comes to.
pub(crate) enum Fault {
    None,
    /// Its medium is full.
    Full,
    /// It does what it is asked, and its answer is lost.
    Unanswered,
    /// It panics.
    Panic,
    /// It takes its time.
    Slow(Duration),
}

type Choice = Box<dyn Fn(&'static str) -> Fault + Send + Sync>;

/// A store of which every call may fail, by the call's name.
pub(crate) struct BreakingStore<S> {
    choice: Choice,
    inner: S,
}

impl<S: Store> BreakingStore<S> {
    pub(crate) fn new(inner: S, choice: impl Fn(&'static str) -> Fault + Send + Sync + 'static) -> Self {
        Self { choice: Box::new(choice), inner }
    }

    /// Takes so many appends (a beginning is one) and no more.
    pub(crate) fn after(appends: u64, inner: S) -> Self {
        Self::counted(&Arc::new(AtomicU64::new(appends)), false, inner)
    }

    /// The same, and then it takes nothing back; what comes with it mends it.
    pub(crate) fn stubborn(appends: u64, inner: S) -> (Self, Arc<AtomicU64>) {
        let left = Arc::new(AtomicU64::new(appends));
        (Self::counted(&left, true, inner), left)
    }

    fn counted(left: &Arc<AtomicU64>, stubborn: bool, inner: S) -> Self {
        let left = Arc::clone(left);
        Self::new(inner, move |call| match call {
            "create" | "append" => {
                let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                if taken.is_ok() { Fault::None } else { Fault::Full }
            }
            "release" if stubborn && left.load(Ordering::SeqCst) == 0 => Fault::Full,
            _ => Fault::None,
        })
    }

    fn through<'a, T: Send + 'a>(&self, call: &'static str, work: impl FnOnce() -> Stored<'a, T>) -> Stored<'a, T> {
        match (self.choice)(call) {
            Fault::None => work(),
            Fault::Full => Box::pin(std::future::ready(Err(full()))),
            Fault::Unanswered => {
                let work = work();
                Box::pin(async move { work.await.and(Err(full())) })
            }
            Fault::Panic => Box::pin(async move { panic!("{call} panics") }),
            Fault::Slow(delay) => {
                let work = work();
                Box::pin(async move {
                    tokio::time::sleep(delay).await;
                    work.await
                })
            }
        }
    }
}

fn full() -> StoreError {
    StoreError::Medium { fault: MediumFault::Full, place: "a store".to_owned(), reason: "no room is left".to_owned() }
}

impl<S: Store> Store for BreakingStore<S> {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        self.through("create", || self.inner.create(beginning))
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        self.through("append", || self.inner.append(append))
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        self.through("claim", || self.inner.claim(run, claim))
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        self.through("release", || self.inner.release(lease))
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        self.through("read", || self.inner.read(run))
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        self.through("find", || self.inner.find(run))
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        self.through("list", || self.inner.list(filter))
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.through("origin", || self.inner.origin(run))
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.through("post", || self.inner.post(run, request))
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        self.through("posted", || self.inner.posted())
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        self.through("answer", || self.inner.answer(request, answer))
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        self.through("answered", || self.inner.answered(request))
    }
}
