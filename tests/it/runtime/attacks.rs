//! What an attack on the runtime got through, each as a test: hangs, lost runs, work that was kept alive.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::clock::Clock;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::ports::{Invocation, Tools};
use portcullis::runtime::store::{Claim, Standing, Store};
use portcullis::runtime::{OnDrop, Outcome, Question, RunHandle, VirtualClock};
use portcullis::vocabulary::ids::Ticket;
use portcullis::vocabulary::input::Decision;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

use super::{Talker, Workshop, asks, ended, runtime, spec};
use crate::breaking::{BreakingStore, Fault};

/// Long enough for anything that does not hang.
const SOON: Duration = Duration::from_secs(10);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.expect("it hangs")
}

fn confirmed() -> Spec {
    Spec { tools: vec![ToolSpec { confirm: true, ..ToolSpec::evidence("look") }], deadline_ms: None, ..spec() }
}

fn looks(clock: &VirtualClock) -> Talker {
    Talker::new(clock, [(0, Ok(asks(&["look"])))])
}

async fn ticket(run: &RunHandle) -> Ticket {
    match soon(run.outcome()).await.unwrap() {
        Outcome::Awaiting(waiting) => match &waiting.questions[..] {
            [Question::Decision { ticket, .. }] => ticket.clone(),
            other => panic!("{other:?}"),
        },
        Outcome::Ended(ended) => panic!("{:?}", ended.ending),
    }
}

#[tokio::test]
async fn a_receipt_that_cannot_be_stored_is_a_commit_error_at_once() {
    let clock = VirtualClock::default();
    let (broken, claims) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (breaks, counts) = (Arc::clone(&broken), Arc::clone(&claims));
    let store = BreakingStore::new(MemoryStore::new(), move |call| match call {
        "append" if breaks.load(Ordering::SeqCst) => Fault::Full,
        "release" => Fault::Slow(Duration::from_millis(10)),
        "claim" => {
            counts.fetch_add(1, Ordering::SeqCst);
            Fault::None
        }
        _ => Fault::None,
    });
    let runtime = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let run = runtime.start(spec()).await.unwrap();
    ended(&run).await;
    broken.store(true, Ordering::SeqCst);
    let delivered = soon(run.delivered("yes")).await;
    assert!(matches!(delivered, Err(Error::Commit(_))), "{delivered:?}");
    assert!(claims.load(Ordering::SeqCst) <= 1, "the run was claimed {claims:?} times");
}

/// Tools whose futures panic when they are dropped, and count those that were.
#[derive(Clone, Default)]
struct Stubborn(Arc<AtomicU32>);

struct Screams(Arc<AtomicU32>);

impl Drop for Screams {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if !std::thread::panicking() {
            panic!("I will not go");
        }
    }
}

impl Tools for Stubborn {
    async fn invoke(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        let _screams = Screams(Arc::clone(&self.0));
        std::future::pending().await
    }
}

#[tokio::test]
async fn futures_that_panic_when_they_are_dropped_keep_neither_the_run_nor_each_other() {
    let clock = VirtualClock::default();
    let stubborn = Stubborn::default();
    let model = Talker::new(&clock, [(0, Ok(asks(&["look", "look", "look"])))]);
    let runtime = runtime(&clock, MemoryStore::new(), model, stubborn.clone()).build().unwrap();
    let run = runtime.start(spec()).await.unwrap();
    let mut events = run.events();
    while !matches!(events.next().await, Some(portcullis::runtime::Event::ToolCalled { .. })) {}
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    soon(run.cancel("me")).await.unwrap();
    assert_eq!(ended(&run).await.ending.row, 15);
    assert_eq!(stubborn.0.load(Ordering::SeqCst), 3, "all of them at once");
}

#[tokio::test]
async fn a_store_that_panics_leaves_a_handle_that_resolves_and_a_run_that_is_recovered() {
    for (panics_in, appends) in [("append", 1), ("release", 1)] {
        let clock = VirtualClock::default();
        let (left, mended) = (Arc::new(AtomicU32::new(appends)), Arc::new(AtomicBool::new(false)));
        let mends = Arc::clone(&mended);
        let store = BreakingStore::new(MemoryStore::new(), move |call| match call {
            _ if mends.load(Ordering::SeqCst) => Fault::None,
            "append" if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() => {
                if panics_in == "append" {
                    Fault::Panic
                } else {
                    Fault::Full
                }
            }
            "release" => Fault::Panic,
            _ => Fault::None,
        });
        let runtime = runtime(&clock, store, Talker::new(&clock, []), Workshop::new(&clock, 0)).build().unwrap();
        let run = runtime.start(confirmed()).await.unwrap();
        assert!(soon(run.outcome()).await.is_err(), "{panics_in}");
        assert!(soon(run.cancel("me")).await.is_err() || panics_in == "release", "{panics_in}");
        mended.store(true, Ordering::SeqCst);
        let recovery = soon(runtime.recover()).await.unwrap();
        assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
        assert!(soon(run.outcome()).await.is_ok(), "{panics_in}");
    }
}

#[tokio::test]
async fn whoever_stops_waiting_for_a_start_or_a_decision_loses_no_run() {
    let clock = VirtualClock::default();
    let store = BreakingStore::new(MemoryStore::new(), |call| match call {
        "create" | "claim" => Fault::Slow(Duration::from_millis(30)),
        _ => Fault::None,
    });
    let runtime = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let named: portcullis::vocabulary::ids::RunId = "r".parse().unwrap();
    let impatient = tokio::time::timeout(Duration::from_millis(1), runtime.start_as(named.clone(), confirmed())).await;
    assert!(impatient.is_err(), "it was given up");
    let run = loop {
        match runtime.attach(&named).await {
            Ok(run) => break run,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let ticket = ticket(&run).await;
    let decision = run.decide(ticket, "me", Decision::Allow);
    assert!(tokio::time::timeout(Duration::from_millis(1), decision).await.is_err(), "it was given up");
    let ended = soon(async {
        loop {
            if let Outcome::Ended(ended) = run.outcome().await.unwrap() {
                break ended;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(ended.await.ending.row, 1, "what was begun was carried out");
}

#[tokio::test]
async fn a_run_that_could_not_be_prepared_is_given_back() {
    let clock = VirtualClock::default();
    let broken = Arc::new(AtomicBool::new(false));
    let breaks = Arc::clone(&broken);
    let store = BreakingStore::new(MemoryStore::new(), move |call| match call {
        "posted" if breaks.load(Ordering::SeqCst) => Fault::Full,
        _ => Fault::None,
    });
    let runtime = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let run = runtime.start(confirmed()).await.unwrap();
    let ticket = ticket(&run).await;
    broken.store(true, Ordering::SeqCst);
    assert!(soon(run.decide(ticket.clone(), "me", Decision::Allow)).await.is_err());
    broken.store(false, Ordering::SeqCst);
    soon(run.decide(ticket, "me", Decision::Allow)).await.unwrap();
    assert_eq!(ended(&run).await.ending.row, 1);
}

#[tokio::test]
async fn neither_a_timer_nor_an_answer_waits_for_a_place() {
    let clock = VirtualClock::default();
    let hold = clock.busy();
    // The second run is busy for an hour; the first one's deadline comes after ten minutes.
    let model = Talker::new(&clock, [(0, Ok(asks(&["look"]))), (3_600_000, Ok(asks(&[])))]);
    let runtime = runtime(&clock, MemoryStore::new(), model, Workshop::new(&clock, 0)).driven_max(1).build().unwrap();
    let waiting = runtime.start(Spec { deadline_ms: Some(600_000), ..confirmed() }).await.unwrap();
    let ticket = ticket(&waiting).await;
    let busy = runtime.start(Spec { deadline_ms: None, ..spec() }).await.unwrap();
    let wrong = soon(waiting.decide(Ticket("wrong".to_owned()), "me", Decision::Allow)).await;
    assert!(matches!(wrong, Err(Error::Execution(Trouble::Refused(_)))), "{wrong:?}");
    drop(hold);
    let late = soon(async {
        loop {
            if let Outcome::Ended(ended) = waiting.outcome().await.unwrap() {
                break ended;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(late.await.ending.row, 16);
    assert!(soon(waiting.decide(ticket, "me", Decision::Allow)).await.is_err());
    soon(busy.outcome()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_alarm_that_fails_is_tried_again() {
    let clock = VirtualClock::default();
    let hold = clock.busy();
    let store = MemoryStore::new();
    let elsewhere = store.session();
    let runtime = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let run = runtime.start(Spec { deadline_ms: Some(600_000), ..confirmed() }).await.unwrap();
    while !matches!(run.outcome().await.unwrap(), Outcome::Awaiting(_)) {}
    // Another session has the run at the moment, and gives it back later.
    let lease = elsewhere.claim(run.run(), Claim::Free).await.unwrap();
    drop(hold);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(elsewhere.find(run.run()).await.unwrap().unwrap().standing, Standing::Awaiting { .. }));
    elsewhere.release(lease).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(matches!(elsewhere.find(run.run()).await.unwrap().unwrap().standing, Standing::Ended { row: 16, .. }));
}

#[tokio::test]
async fn a_handle_sees_what_another_session_made_of_the_run() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let elsewhere = store.session();
    let here = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let run = here.start(confirmed()).await.unwrap();
    let ticket = ticket(&run).await;
    let there = runtime(&clock, elsewhere, Talker::new(&clock, []), Workshop::new(&clock, 0)).build().unwrap();
    let same = there.attach(run.run()).await.unwrap();
    same.decide(ticket, "somebody else", Decision::Allow).await.unwrap();
    assert_eq!(ended(&same).await.ending.row, 1);
    same.delivered("there").await.unwrap();
    assert_eq!(soon(async { ended(&run).await }).await.ending.row, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_is_dropped_outside_the_event_loop_cancels_all_the_same() {
    let clock = VirtualClock::default();
    let hold = clock.busy();
    let store = MemoryStore::new();
    let runtime = runtime(&clock, store, Talker::new(&clock, [(1_000, Ok(asks(&[])))]), Workshop::new(&clock, 0));
    let runtime = runtime.build().unwrap();
    let run = runtime.start(spec()).await.unwrap();
    let watcher = runtime.attach(run.run()).await.unwrap();
    let kept = Arc::new(Mutex::new(Some(run.on_drop(OnDrop::Cancel))));
    std::thread::spawn(move || drop(kept.lock().unwrap().take())).join().unwrap();
    assert_eq!(soon(async { ended(&watcher).await }).await.ending.row, 15);
    drop(hold);
}

#[tokio::test]
async fn a_history_that_is_not_the_one_the_store_speaks_of_is_not_driven_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let clock = VirtualClock::default();
    let store = SqliteStore::create_or_open(&path).unwrap();
    let first = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let run = first.start_as("r".parse().unwrap(), confirmed()).await.unwrap();
    ticket(&run).await;
    drop((run, first));
    let edit = rusqlite::Connection::open(&path).unwrap();
    let rows = edit.execute("UPDATE heads SET head = zeroblob(length(head))", []).unwrap();
    assert_eq!(rows, 1);
    drop(edit);
    let store = SqliteStore::open(&path).unwrap();
    let second = runtime(&clock, store, looks(&clock), Workshop::new(&clock, 0)).build().unwrap();
    let attached = soon(second.attach(&"r".parse().unwrap())).await;
    assert!(matches!(attached, Err(Error::Execution(Trouble::Damaged { .. }))), "{attached:?}");
}
