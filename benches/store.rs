//! What making records durable costs: many runs' appends through the store, beside a bare loop that inserts
//! the same lines into one plain table. Both are durable on the disk (`synchronous=FULL`), with the same page
//! size, cache and log settings, in turns within one run, since disks and machines differ.
//!
//! `cargo bench --no-default-features --features sqlite --bench store [-- RUNS]`

#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Append, Beginning, Lease, Standing, Store};
use portcullis::vocabulary::digest::Digest;
use rusqlite::Connection;

/// A record as runs have it on average.
const LINE_BYTES: usize = 1_500;
const RECORDS: u64 = 131_072;
const TURNS: usize = 5;

fn line(run: u64, seq: u64) -> Vec<u8> {
    let mut line = format!("{{\"run\":\"run-{run:05}\",\"seq\":{seq},\"text\":\"").into_bytes();
    line.resize(LINE_BYTES - 3, b'x');
    line.extend_from_slice(b"\"}\n");
    line
}

/// The bare loop: what SQLite itself takes for these lines, `group` of them a transaction.
fn bare(path: &Path, group: u64) -> Duration {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32768; \
             CREATE TABLE plain (position INTEGER PRIMARY KEY, line BLOB NOT NULL)",
        )
        .expect("settings");
    let lines = (0..group).map(|run| line(run, 1)).collect::<Vec<_>>();
    let begun = Instant::now();
    {
        let mut insert = connection.prepare("INSERT INTO plain (line) VALUES (?1)").expect("a statement");
        for _ in 0..RECORDS / group {
            connection.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
            for line in &lines {
                insert.execute([line]).expect("an insert");
            }
            connection.execute_batch("COMMIT").expect("a commit");
        }
    }
    begun.elapsed()
}

/// Twice as many runs as a group is large: while one half is made durable, the other prepares its records. Each
/// run appends its next record when the last is durable.
async fn through_the_store(path: &Path, runs: u64) -> Duration {
    let store = Arc::new(SqliteStore::create_or_open(path).expect("a store"));
    let mut leases = Vec::new();
    for run in 0..runs {
        let beginning = Beginning {
            run: format!("run-{run:05}").parse().expect("a run id"),
            started_ms: 0,
            lines: line(run, 0),
            records: 1,
            head: Digest::ZERO,
            standing: Standing::Running,
            origin: None,
        };
        let store = Arc::clone(&store);
        leases.push(tokio::spawn(async move { store.create(beginning).await.expect("a run") }));
    }
    let mut begun_runs: Vec<Lease> = Vec::new();
    for lease in leases {
        begun_runs.push(lease.await.expect("a run"));
    }
    let begun = Instant::now();
    let mut driven = Vec::new();
    for (run, lease) in (0..).zip(begun_runs) {
        let store = Arc::clone(&store);
        driven.push(tokio::spawn(async move {
            for seq in 1..=RECORDS / runs {
                let (lease, head) = (lease.clone(), Digest::ZERO);
                let append =
                    Append { lease, seq, lines: line(run, seq), records: 1, head, standing: Standing::Running };
                store.append(append).await.expect("an append");
            }
        }));
    }
    for run in driven {
        run.await.expect("a run");
    }
    begun.elapsed()
}

/// Neighbours only ever slow a turn down.
fn fastest(times: &[Duration]) -> f64 {
    times.iter().min().expect("a turn").as_secs_f64()
}

fn main() {
    let wanted = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let folder = std::env::temp_dir().join(format!("portcullis-bench-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    println!("{:>6} {:>14} {:>14} {:>7}", "group", "store", "bare", "ratio");
    for group in wanted.map_or_else(|| vec![256, 1024, 4096], |group| vec![group]) {
        let (mut store, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            std::fs::create_dir_all(&folder).expect("a scratch folder");
            store.push(runtime.block_on(through_the_store(&folder.join("store.db"), 2 * group)));
            plain.push(bare(&folder.join("bare.db"), group));
            std::fs::remove_dir_all(&folder).expect("a scratch folder");
        }
        let (store, plain) = (fastest(&store), fastest(&plain));
        #[allow(clippy::cast_precision_loss)]
        let records = RECORDS as f64;
        println!("{group:>6} {:>12.0}/s {:>12.0}/s {:>7.2}", records / store, records / plain, plain / store);
    }
}
