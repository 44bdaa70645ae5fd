//! Scenarios on stage, played to the curtain in memory and in virtual time.

use std::io::Read;
use std::sync::{Arc, Mutex};

use portcullis::adapters::scenario::{Audience, Opening, Real, Scenario, Scene, Setting, Stage};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::engine::Ending;
use portcullis::runtime::execution::Error;
use portcullis::runtime::store::Store;
use portcullis::runtime::{Outcome, VirtualClock};

/// What a play came to.
pub(crate) struct Played {
    pub(crate) history: Vec<u8>,
    pub(crate) ending: Option<Ending>,
    pub(crate) records: u64,
    pub(crate) people: Vec<String>,
    pub(crate) questions: Vec<String>,
    pub(crate) unused: Vec<String>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) crashes: usize,
}

/// Keeps what it sees.
#[derive(Default)]
struct Notebook(Mutex<(Vec<Refused>, usize)>);

/// When, which report, and why.
type Refused = (u64, &'static str, String);

impl Audience for Notebook {
    fn see(&self, scene: Scene<'_>) {
        let mut seen = self.0.lock().unwrap();
        match scene {
            Scene::Stepped { .. } => {}
            Scene::Refused { at_ms, report, refusal } => seen.0.push((at_ms, report, refusal.kind.to_string())),
            Scene::Lost { .. } => seen.1 += 1,
        }
    }
}

/// Runs something on an event loop of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The stored history of a run.
pub(crate) async fn history(store: &dyn Store, run: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(mut source) = store.read(&run.parse().unwrap()).await {
        source.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// Plays a scenario to the curtain; the error is that of its driver.
pub(crate) async fn perform(scenario: Scenario, store: Arc<dyn Store>) -> Result<Played, Error> {
    perform_with(scenario, store, Real::default()).await
}

/// The same, with ports for its real parts.
pub(crate) async fn perform_with(scenario: Scenario, store: Arc<dyn Store>, real: Real) -> Result<Played, Error> {
    let notebook = Arc::new(Notebook::default());
    let clock = Arc::new(VirtualClock::starting_at(1_000));
    let setting = Setting {
        store: Arc::clone(&store),
        clock,
        audience: Some(Arc::clone(&notebook) as Arc<dyn Audience>),
        takes_over: false,
        real,
    };
    let mut stage = Stage::begin(scenario, Opening::timeless("a-run".parse().unwrap()), &setting).await?;
    let outcome = stage.curtain().await?;
    let history = history(&*store, "a-run").await;
    let (refused, crashes) = notebook.0.lock().unwrap().clone();
    Ok(Played {
        ending: match outcome {
            Outcome::Ended(ended) => Some(ended.ending.clone()),
            Outcome::Awaiting(_) => None,
        },
        records: history.iter().filter(|byte| **byte == b'\n').count() as u64,
        people: stage.people(),
        questions: stage.questions(),
        unused: stage.unused(),
        history,
        refused,
        crashes,
    })
}

/// Plays a scenario in memory.
pub(crate) fn play(scenario: Scenario) -> Played {
    block_on(perform(scenario, Arc::new(MemoryStore::new()))).unwrap()
}
