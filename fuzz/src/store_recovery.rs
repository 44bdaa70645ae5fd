//! A store whose file was damaged: opened, listed, read, recovered (SPEC 13.6, docs/store.md).

mod damage;
mod pristine;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::history::{Lines, Next, Replay, Replayed};
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::runtime::store::{Filter, Listed, Store, StoreError};
use portcullis::runtime::{Runtime, VirtualClock};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::llm;
use tempfile::TempDir;

use pristine::Pristine;

/// What must hold. The bytes say which image of the store is damaged (closed, or left by a crash with everything
/// still in its log) and how, by the byte, by the page or by SQL.
///
/// - Opening, listing, reading and recovering come back, with an answer or an error that gives a reason.
/// - What is read of a run, as far as it replays, is what was acknowledged, byte for byte, or a beginning of it.
/// - Recovery appends to a history only if that is whole, and changes none.
pub fn check(bytes: &[u8]) {
    let Some((image, damage)) = bytes.split_first() else { return };
    let folder = folder();
    let path = folder.path().join("runs.db");
    PRISTINE.image(usize::from(*image)).write(&path);
    damage::inflict(&path, damage);

    let before = seen(&path);
    recover(&path);
    let after = seen(&path);
    for run in PRISTINE.histories.keys() {
        check_run(run, before.get(run), after.get(run));
    }
}

static PRISTINE: LazyLock<Pristine> = LazyLock::new(|| Pristine::make(folder().path()));

/// In memory where there is such a place: the disk is not what is tested.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}

/// What a reader finds of one run.
struct Seen {
    listed: Option<Listed>,
    /// What the store gives, up to its first error.
    bytes: Vec<u8>,
    failed: bool,
    /// How many bytes of it replay as this run.
    replayed: usize,
}

impl Seen {
    /// Nothing is damaged: all that was stored is there, and it is what the store says.
    fn is_whole(&self, run: &RunId) -> bool {
        let records = self.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let agrees = self.listed.as_ref().is_some_and(|listed| listed.run == *run && listed.records == records);
        agrees && !self.failed && self.replayed == self.bytes.len()
    }
}

/// Reads all that can be read. A store that cannot be opened shows nothing.
fn seen(path: &Path) -> BTreeMap<RunId, Seen> {
    let mut seen = BTreeMap::new();
    let Some(store) = answered(SqliteStore::open_read_only(path)) else { return seen };
    drop(answered(wait(store.list(Filter::All))));
    for run in PRISTINE.histories.keys() {
        drop(answered(wait(store.origin(run))));
        let listed = answered(wait(store.find(run))).flatten();
        let mut bytes = Vec::new();
        let failed = match answered(wait(store.read(run))) {
            Some(mut source) => match source.read_to_end(&mut bytes) {
                Ok(_) => false,
                Err(error) => !error.to_string().is_empty(),
            },
            None => true,
        };
        let replayed = replayed(run, &bytes);
        seen.insert(run.clone(), Seen { listed, bytes, failed, replayed });
    }
    seen
}

/// How many of the bytes come out of the engine as they are, in whole lines.
fn replayed(run: &RunId, bytes: &[u8]) -> usize {
    let (mut lines, mut replay, mut end) = (Lines::new(bytes), Replay::<portcullis::engine::Engine>::default(), 0);
    while let Ok(Next::Line(line)) = lines.next_line() {
        let Ok(Replayed::Reproduced(_)) = replay.take(line) else { break };
        end = line.offset as usize + line.bytes.len() + 1;
    }
    if replay.stepper().run_id() == Some(run) { end } else { 0 }
}

fn check_run(run: &RunId, before: Option<&Seen>, after: Option<&Seen>) {
    let acknowledged = &PRISTINE.histories[run];
    let Some(before) = before else { return };
    let kept = &before.bytes[..before.replayed];
    assert!(acknowledged.starts_with(kept), "run {run} has records that nobody stored");
    let after = after.expect("what could be opened before recovery can be opened after it");
    if before.is_whole(run) {
        assert!(after.bytes.starts_with(kept) && after.replayed == after.bytes.len(), "run {run} lost records");
    } else {
        assert!(after.bytes == before.bytes, "run {run} is damaged, and was written to");
    }
}

/// What a process does that begins on an old store.
fn recover(path: &Path) {
    let Some(store) = answered(SqliteStore::open(path)) else { return };
    let clock = VirtualClock::starting_at(pristine::NOW_MS);
    let runtime = Runtime::builder().model(Nobody).store(store).clock(clock).build().expect("it is equipped");
    // On an event loop of its own: when it is gone, so are its tasks and their hold on the store.
    let events = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("an event loop");
    events.block_on(async {
        let Ok(recovery) = runtime.recover().await else { return };
        for (run, error) in recovery.failed {
            assert!(!error.to_string().is_empty(), "run {run} failed without a reason");
        }
        for handle in recovery.runs {
            let outcome = handle.outcome().await;
            assert!(!matches!(outcome, Err(Error::Execution(Trouble::Stopped(_)))), "the driver broke: {outcome:?}");
        }
        drop(runtime);
    });
}

/// Lost runs are driven to an end: no model answers.
struct Nobody;

impl Model for Nobody {
    async fn respond(&self, _: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        Err(llm::Error::ModelNotFound { message: "nobody is there".to_owned() }.into())
    }
}

/// An error says where and why.
fn answered<T>(outcome: Result<T, StoreError>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(StoreError::Medium { place, reason, .. }) => {
            assert!(place.ends_with("runs.db") && reason.len() > 10, "{place}: {reason}");
            None
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// Waits for the store alone, without an event loop: outside of one, the store reads at once.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Sleeper(thread::current()))));
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return answer;
        }
        thread::park();
    }
}

/// The thread that waits for the store's writer.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
