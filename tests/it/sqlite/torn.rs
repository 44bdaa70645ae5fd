//! Crashes: whatever the disk kept of the log, what is read back is a prefix of what was written.

use std::fs;

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Claim, Filter, Store, StoreError};

use super::{Scratch, append, beginning, history, run, wait};

const RUNS: usize = 3;
const RECORDS: u64 = 20;

#[test]
fn a_log_that_is_cut_anywhere_leaves_a_prefix_of_every_history() {
    let folder = Scratch::new("torn");
    let path = folder.path().join("runs.db");
    let store = SqliteStore::create_or_open(&path).unwrap();
    let leases = (0..RUNS).map(|number| wait(store.create(beginning(&format!("run-{number}")))).unwrap());
    let leases = leases.collect::<Vec<_>>();
    for seq in 1..RECORDS {
        for lease in &leases {
            wait(store.append(append(lease, seq, &format!("record {seq}")))).unwrap();
        }
    }
    // What a crash leaves: the files as they are, with everything still in the log.
    let (main, log) = (fs::read(&path).unwrap(), fs::read(folder.path().join("runs.db-wal")).unwrap());
    drop(store);
    assert!(log.len() > 100_000, "{}", log.len());
    let crashed = Scratch::new("crashed");
    let copy = crashed.path().join("runs.db");
    let lengths = (0..40).map(|step| log.len() * step / 40).chain([log.len() - 1, log.len()]);
    let mut longest = 0;
    for (step, length) in lengths.enumerate() {
        for damage in [Damage::Cut, Damage::Flip, Damage::Zeros] {
            let mut log = log.clone();
            match damage {
                Damage::Cut => log.truncate(length),
                Damage::Flip => {
                    let place = length.min(log.len() - 1);
                    log[place] ^= 0x40;
                }
                Damage::Zeros => log[length..].fill(0),
            }
            fs::write(&copy, &main).unwrap();
            fs::write(crashed.path().join("runs.db-wal"), &log).unwrap();
            let store = SqliteStore::open(&copy).unwrap();
            let records = prefixes(&store);
            assert!(damage != Damage::Cut || records >= longest, "step {step}: {records} after {longest}");
            if damage == Damage::Cut {
                longest = records;
            }
            goes_on(&store);
            drop(store);
            for name in ["runs.db", "runs.db-wal", "runs.db-shm"] {
                fs::remove_file(crashed.path().join(name)).ok();
            }
        }
    }
    assert_eq!(longest, RUNS as u64 * RECORDS, "with the whole log nothing is missing");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Cut,
    Flip,
    Zeros,
}

/// Checks that every history is a prefix, and counts the records.
fn prefixes(store: &SqliteStore) -> u64 {
    let mut records = 0;
    for number in 0..RUNS {
        let name = format!("run-{number}");
        match history(store, &name) {
            Ok(history) => {
                for (seq, line) in history.split_inclusive('\n').enumerate() {
                    assert_eq!(line, format!("record {seq}\n"));
                }
                let listed = wait(store.find(&run(&name))).unwrap().unwrap();
                assert_eq!(listed.records, history.lines().count() as u64);
                records += listed.records;
            }
            Err(error) => assert_eq!(error, StoreError::UnknownRun { run: run(&name) }),
        }
    }
    records
}

/// Checks that what is left can be driven on.
fn goes_on(store: &SqliteStore) {
    for listed in wait(store.list(Filter::All)).unwrap() {
        let lease = wait(store.claim(&listed.run, Claim::Free)).unwrap();
        wait(store.append(append(&lease, listed.records, "goes on"))).unwrap();
        assert!(history(store, listed.run.as_str()).unwrap().ends_with("\ngoes on\n"));
    }
}
