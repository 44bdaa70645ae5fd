//! The store in a file: what it does to the file, what it does when the medium fails, and what other processes
//! see of it.

mod child;
mod concurrency;
mod damaged;
mod limits;
mod owners;
mod places;
mod torn;

use std::io::Read;
use std::path::{Path, PathBuf};

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Append, Beginning, Lease, MediumFault, Standing, Store, StoreError};
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::ids::RunId;

pub(crate) use crate::support::Scratch;

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn run(name: &str) -> RunId {
    name.parse().unwrap()
}

pub(crate) fn beginning(name: &str) -> Beginning {
    Beginning {
        run: run(name),
        started_ms: 1,
        lines: b"record 0\n".to_vec(),
        records: 1,
        head: Digest::ZERO,
        standing: Standing::Running,
        origin: None,
    }
}

pub(crate) fn append(lease: &Lease, seq: u64, line: &str) -> Append {
    Append {
        lease: lease.clone(),
        seq,
        lines: format!("{line}\n").into_bytes(),
        records: 1,
        head: Digest::ZERO,
        standing: Standing::Running,
    }
}

/// A store with one run of a few records, closed.
pub(crate) fn small(folder: &Scratch) -> PathBuf {
    let path = folder.path().join("runs.db");
    let store = SqliteStore::create_or_open(&path).unwrap();
    let lease = wait(store.create(beginning("a"))).unwrap();
    for seq in 1..5 {
        wait(store.append(append(&lease, seq, &format!("record {seq}")))).unwrap();
    }
    path
}

pub(crate) fn history(store: &SqliteStore, name: &str) -> Result<String, StoreError> {
    let mut text = String::new();
    wait(store.read(&run(name)))?.read_to_string(&mut text).unwrap();
    Ok(text)
}

pub(crate) fn fault<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> MediumFault {
    match outcome {
        Err(StoreError::Medium { fault, place, reason }) => {
            assert!(!place.is_empty() && reason.len() > 10, "{place}: {reason}");
            fault
        }
        other => panic!("{other:?} where the medium fails"),
    }
}

/// The names in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    names.sort();
    names
}
