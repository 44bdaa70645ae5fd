//! The store before it was damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::engine::Engine;
use portcullis::history::Recorder;
use portcullis::runtime::store::{Append, Beginning, Standing, Store};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::Input;

use super::wait;

/// When the store is opened again: wall milliseconds since 1970.
pub(super) const NOW_MS: u64 = 1_000_000;

/// The runs, as the reports that they had: one is lost in the middle, one has ended and was not delivered, one is
/// over, and one was lost after its first record.
const RUNS: [(&str, &[&str]); 4] = [
    ("lost", &[RESOLVED]),
    ("undelivered", &[RESOLVED, CANCELLED]),
    ("over", &[CANCELLED, r#"{"type":"release_delivered","receipt":"read"}"#]),
    ("begun", &[]),
];

const RESOLVED: &str = r#"{"type":"environment_resolved","environment":{}}"#;
const CANCELLED: &str = r#"{"type":"cancel_requested","by":"me","origin":"caller"}"#;

/// A store's files.
pub(super) struct Image {
    main: Vec<u8>,
    log: Vec<u8>,
}

impl Image {
    fn read(path: &Path) -> Self {
        Self { main: fs::read(path).expect("a store"), log: fs::read(log(path)).unwrap_or_default() }
    }

    pub(super) fn write(&self, path: &Path) {
        fs::write(path, &self.main).expect("there is room");
        if !self.log.is_empty() {
            fs::write(log(path), &self.log).expect("there is room");
        }
    }
}

/// Where SQLite keeps what is not in the file yet.
pub(super) fn log(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// What was acknowledged, and the files that hold it.
pub(super) struct Pristine {
    images: [Image; 2],
    pub(super) histories: BTreeMap<RunId, Vec<u8>>,
}

impl Pristine {
    pub(super) fn make(folder: &Path) -> Self {
        let path = folder.join("runs.db");
        let store = SqliteStore::create_or_open(&path).expect("a new store");
        let histories = RUNS.iter().map(|(name, reports)| stored(&store, name, reports)).collect();
        let crashed = Image::read(&path);
        drop(store);
        let closed = Image::read(&path);
        assert!(crashed.log.len() > closed.log.len(), "the log was moved into the file");
        Self { images: [closed, crashed], histories }
    }

    pub(super) fn image(&self, number: usize) -> &Image {
        &self.images[number % self.images.len()]
    }
}

/// Runs the reports through the engine and appends each record.
fn stored(store: &SqliteStore, name: &str, reports: &[&str]) -> (RunId, Vec<u8>) {
    let run: RunId = name.parse().expect("an id");
    let started = format!(
        r#"{{"type":"run_started","run_id":"{name}","nonce":"n","wall_time":"","spec":{{"task":"why?","model":{{"name":"m"}}}}}}"#
    );
    let (mut engine, mut recorder, mut history) = (Engine::new(), Recorder::new(), Vec::new());
    let mut lease = None;
    for (seq, report) in std::iter::once(&*started).chain(reports.iter().copied()).enumerate() {
        let input: Input = serde_json::from_str(report).expect("an input");
        let step = engine.step(seq as u64, input).expect("it is accepted");
        let lines = recorder.record(&engine, &step).to_vec();
        history.extend_from_slice(&lines);
        let (head, standing, records) = (recorder.head(), Standing::of(&engine, NOW_MS), 1);
        match &lease {
            None => {
                let (run, origin) = (run.clone(), Some(b"from a test".to_vec()));
                let beginning = Beginning { run, started_ms: NOW_MS, lines, records, head, standing, origin };
                lease = Some(wait(store.create(beginning)).expect("a new run"));
            }
            Some(lease) => {
                let (lease, seq) = (lease.clone(), seq as u64);
                wait(store.append(Append { lease, seq, lines, records, head, standing })).expect("it continues");
            }
        }
    }
    (run, history)
}
