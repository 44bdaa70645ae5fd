//! The embedder's store, watched: it refuses where the scene wants it, and remembers its runs and receipts.

use std::io::{BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::scene::Scene;
use super::stage::{Moment, Screen};
use crate::runtime::conformance::Wrong;
use crate::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, MediumFault, Posted, RequestId, Standing, Store, StoreError,
    Stored,
};
use crate::vocabulary::ids::RunId;

/// A store that is watched.
#[derive(Clone)]
pub(super) struct Watched {
    inner: Arc<dyn Store>,
    watch: Option<Arc<Watch>>,
}

struct Watch {
    scene: Scene,
    screen: Screen,
    runs: Mutex<Vec<RunId>>,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn Store>, scene: Scene, screen: Screen) -> Self {
        Self { inner, watch: Some(Arc::new(Watch { scene, screen, runs: Mutex::default() })) }
    }

    /// One that is only handed on.
    pub(super) fn plain(inner: Arc<dyn Store>) -> Self {
        Self { inner, watch: None }
    }

    /// The history of the one run that was begun here.
    pub(super) async fn history(&self, session: &Arc<dyn Store>) -> Result<Vec<u8>, Wrong> {
        let runs = self.watch.iter().flat_map(|watch| watch.runs().clone()).collect::<Vec<_>>();
        let [run] = runs.as_slice() else {
            return Err(Wrong(format!("{} runs were begun where one was wanted", runs.len())));
        };
        let unread = |error: String| Wrong(format!("the run's history cannot be read: {error}"));
        let mut history = session.read(run).await.map_err(|error| unread(error.to_string()))?;
        let mut bytes = Vec::new();
        history.read_to_end(&mut bytes).map_err(|error| unread(error.to_string()))?;
        Ok(bytes)
    }

    /// Whether the scene wants these records refused.
    fn refuses(&self, standing: Standing) -> bool {
        let ends = matches!(standing, Standing::Ended { .. });
        ends && self.watch.as_ref().is_some_and(|watch| watch.scene == Scene::CommitRefused)
    }

    /// Notes a receipt, before it is stored.
    fn note(&self, lines: &[u8]) {
        let receipt = String::from_utf8_lossy(lines).contains(r#""input":{"type":"release_delivered""#);
        if let (true, Some(watch)) = (receipt, &self.watch) {
            watch.screen.note(Moment::Acknowledged);
        }
    }
}

impl Watch {
    fn runs(&self) -> std::sync::MutexGuard<'_, Vec<RunId>> {
        // Whole between any two calls, so a panic elsewhere does not spoil it.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full<T>() -> Stored<'static, T>
where
    T: Send + 'static,
{
    let (place, reason) = ("the suite".to_owned(), "no room is left".to_owned());
    Box::pin(std::future::ready(Err(StoreError::Medium { fault: MediumFault::Full, place, reason })))
}

impl Store for Watched {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        if let Some(watch) = &self.watch {
            watch.runs().push(beginning.run.clone());
        }
        if self.refuses(beginning.standing) { full() } else { self.inner.create(beginning) }
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        if self.refuses(append.standing) {
            return full();
        }
        self.note(&append.lines);
        self.inner.append(append)
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
