//! What the runtime costs: many runs at once on scripted ports that answer at once, their records durable in
//! SQLite, beside a bare loop that inserts the same lines; what it adds to an agent's round; what a run costs
//! that waits for a person. In turns within one run, since machines are shared.
//!
//! `cargo bench --bench runtime [-- RUNS...]`

#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, clippy::cast_precision_loss)]

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::engine::Engine;
use portcullis::history::{Lines, Next, Recorder, Replay, Replayed};
use portcullis::runtime::ports::{
    Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall, ModelFailure, Tools,
};
use portcullis::runtime::store::Store;
use portcullis::runtime::{Outcome, RunHandle, Runtime};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::input::{Input, Verdict};
use portcullis::vocabulary::llm::{self, ToolRequest};
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};
use rusqlite::Connection;

/// Rounds with a tool call, before the answer.
const ROUNDS: usize = 8;
const TURNS: usize = 3;

/// Looks `ROUNDS` times, then concludes. It answers at once.
struct Scripted;

impl Model for Scripted {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let seen = call.messages.iter().filter(|message| matches!(***message, Message::Observation(_))).count();
        if seen == ROUNDS {
            return Ok(ModelAnswer::text(r#"{"conclusion":{"statement":"It is so."},"citations":["f1"]}"#));
        }
        let arguments = format!(r#"{{"service":"orders-db","page":{seen}}}"#);
        Ok(ModelAnswer::calls([ToolRequest { name: "look".to_owned(), arguments, provider_id: None }]))
    }
}

struct AtOnce;

impl Tools for AtOnce {
    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let fact = Statement::new(format!("{} is so", invocation.arguments().to_text()));
        Ok(ToolOutput::facts("100 of 100 connections", [fact]))
    }
}

impl Judge for AtOnce {
    async fn judge(&self, _: JudgeQuestion) -> Result<Judgement, llm::Error> {
        Ok(Judgement { verdict: Verdict::Supported, usage: None })
    }
}

fn spec(confirm: bool) -> Spec {
    Spec {
        tools: vec![ToolSpec { confirm, ..ToolSpec::evidence("look") }],
        instructions: "Find the cause. Cite what you saw.".to_owned(),
        ..Spec::new("Why is checkout slow?", "scripted")
    }
}

fn runtime(store: impl Store) -> Runtime {
    Runtime::builder().model(Scripted).tools(AtOnce).judge(AtOnce).store(store).build().expect("a runtime")
}

/// Drives `runs` runs at once to their end; the time, and the history of one of them.
async fn driven(store: impl Store, reader: &dyn Store, runs: usize) -> (Duration, Vec<u8>) {
    let runtime = runtime(store);
    let begun = Instant::now();
    let tasks: Vec<_> = (0..runs)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move {
                let run = runtime.start(spec(false)).await.expect("a run");
                match run.outcome().await.expect("an outcome") {
                    Outcome::Ended(ended) => assert_eq!(ended.ending.row, 1),
                    Outcome::Awaiting(waiting) => assert_eq!(waiting.questions, Vec::new()),
                }
                run.run().clone()
            })
        })
        .collect();
    let mut last = None;
    for task in tasks {
        last = Some(task.await.expect("a run"));
    }
    let took = begun.elapsed();
    let mut history = Vec::new();
    reader.read(&last.expect("a run")).await.expect("its history").read_to_end(&mut history).expect("its bytes");
    (took, history)
}

/// The bare loop: what SQLite itself takes for these lines, `group` of them a transaction, durable alike.
fn bare(path: &Path, history: &[u8], runs: usize, group: usize) -> Duration {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32768; \
             CREATE TABLE plain (position INTEGER PRIMARY KEY, line BLOB NOT NULL)",
        )
        .expect("settings");
    let lines: Vec<&[u8]> = history.split_inclusive(|byte| *byte == b'\n').collect();
    let begun = Instant::now();
    {
        let mut insert = connection.prepare("INSERT INTO plain (line) VALUES (?1)").expect("a statement");
        let all = lines.iter().flat_map(|line| std::iter::repeat_n(line, runs));
        for (index, line) in all.enumerate() {
            if index % group == 0 {
                let boundary = if index == 0 { "BEGIN IMMEDIATE" } else { "COMMIT; BEGIN IMMEDIATE" };
                connection.execute_batch(boundary).expect("a transaction");
            }
            insert.execute([line]).expect("an insert");
        }
        connection.execute_batch("COMMIT").expect("a commit");
    }
    begun.elapsed()
}

/// The same inputs through engine and recorder alone.
fn engine_alone(history: &[u8], runs: usize) -> Duration {
    let mut inputs = Vec::new();
    let mut replay = Replay::<Engine>::default();
    let mut lines = Lines::new(history);
    while let Ok(Next::Line(line)) = lines.next_line() {
        if let Ok(Replayed::Reproduced(step)) = replay.take(line) {
            inputs.push((step.at_ms, step.input));
        }
    }
    let copies: Vec<Vec<(u64, Input)>> = (0..runs).map(|_| inputs.clone()).collect();
    let begun = Instant::now();
    for inputs in copies {
        let (mut engine, mut recorder) = (Engine::new(), Recorder::new());
        for (at_ms, input) in inputs {
            let step = engine.step(at_ms, input).expect("a step");
            std::hint::black_box(recorder.record(&engine, &step));
        }
        assert!(engine.ending().is_some());
    }
    begun.elapsed()
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() * 1_024
}

/// Starts runs that wait for a person, all at once.
async fn waiting(runtime: &Runtime, runs: usize) -> Vec<RunHandle> {
    let start = |_| {
        let runtime = runtime.clone();
        tokio::spawn(async move {
            let run = runtime.start(spec(true)).await.expect("a run");
            assert!(matches!(run.outcome().await.expect("an outcome"), Outcome::Awaiting(_)));
            run
        })
    };
    let tasks: Vec<_> = (0..runs).map(start).collect();
    let mut held = Vec::new();
    for task in tasks {
        held.push(task.await.expect("a run"));
    }
    held
}

/// Bytes of memory that a run costs which waits for a person: held by a handle, and not. SQLite's own cache is
/// filled before.
async fn parked(store: SqliteStore, runs: usize) -> (u64, u64) {
    let runtime = runtime(store);
    let warm = waiting(&runtime, runs).await;
    let before = resident();
    let held = waiting(&runtime, runs).await;
    let with_handles = resident().saturating_sub(before) / runs as u64;
    drop((warm, held));
    // Their memory is there to be used again: what grows beyond it is what the store has to remember.
    let before = resident();
    for _ in 0..4 {
        drop(waiting(&runtime, runs).await);
    }
    (with_handles, resident().saturating_sub(before) / (4 * runs as u64))
}

fn fastest(times: &[Duration]) -> f64 {
    times.iter().min().expect("a turn").as_secs_f64()
}

fn main() {
    let wanted: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if wanted.is_empty() { vec![1_000, 10_000] } else { wanted };
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // First, before the heap has grown: later runs would find their memory there.
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::create_or_open(folder.path().join("store.db")).expect("a store");
    let (held, dropped) = tokio.block_on(parked(store, 8_000));
    println!("a run that waits for a person: {held} bytes with its handle, {dropped} bytes without");
    println!("durable: two worker threads, and one that writes; a round's time: one thread, in memory");
    println!(
        "{:>6} {:>8} {:>13} {:>13} {:>6} {:>12} {:>12} {:>12}",
        "runs", "records", "durable", "bare", "ratio", "a round", "engine alone", "added"
    );
    for runs in sizes {
        let (mut durable, mut plain, mut memory, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut records = 0;
        for _ in 0..TURNS {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("store.db");
            let store = SqliteStore::create_or_open(&path).expect("a store");
            let reader = SqliteStore::open_read_only(&path).expect("a reader");
            let (took, history) = tokio.block_on(driven(store, &reader, runs));
            durable.push(took);
            records = history.iter().filter(|byte| **byte == b'\n').count();
            plain.push(bare(&folder.path().join("bare.db"), &history, runs, runs.min(1_024)));
            let store = MemoryStore::new();
            let reader = store.session();
            memory.push(single.block_on(driven(store, &reader, runs)).0);
            alone.push(engine_alone(&history, runs));
        }
        let all = (records * runs) as f64;
        let (durable, plain, memory, alone) = (fastest(&durable), fastest(&plain), fastest(&memory), fastest(&alone));
        let round = |seconds: f64| seconds * 1e6 / (runs * (ROUNDS + 1)) as f64;
        println!(
            "{runs:>6} {records:>8} {:>11.0}/s {:>11.0}/s {:>6.2} {:>9.1} us {:>9.1} us {:>9.1} us",
            all / durable,
            all / plain,
            plain / durable,
            round(memory),
            round(alone),
            round((memory - alone).max(0.0)),
        );
    }
}
