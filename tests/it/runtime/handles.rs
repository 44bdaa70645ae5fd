//! Handles: what an embedder sees, and what becomes of a run whose handle is dropped.

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::clock::Clock;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::store::{Standing, Store, StoreError};
use portcullis::runtime::{Event, OnDrop, Outcome, Runtime, VirtualClock};
use portcullis::vocabulary::failure::Failure;
use portcullis::vocabulary::input::LiveTool;
use portcullis::vocabulary::llm;
use portcullis::vocabulary::outcome::FailureCode;
use portcullis::vocabulary::spec::{Budgets, Spec};
use serde::Deserialize;

use super::{Talker, Workshop, asks, ended, in_memory, runtime, spec};
use crate::breaking::BreakingStore;

#[derive(Debug, PartialEq, Deserialize)]
struct Data {
    n: u32,
}

fn looks_once(clock: &VirtualClock) -> Talker {
    Talker::new(clock, [(10, Ok(asks(&["look"])))])
}

#[tokio::test]
async fn a_run_gives_its_release_once_durable_and_its_data_as_a_type() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let reader = store.session();
    let runtime = runtime(&clock, store, looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
    let run = runtime.start(spec()).await.unwrap();
    let ended = ended(&run).await;
    assert_eq!((ended.ending.row, ended.ending.facts), (1, 1));
    assert_eq!(ended.release.data::<Data>().unwrap(), Some(Data { n: 7 }));
    assert!(ended.release.data::<Vec<u8>>().is_err(), "another shape is an error");
    let stored = reader.find(run.run()).await.unwrap().unwrap();
    assert_eq!((stored.records, stored.head), (ended.records, ended.head), "it is durable");
    assert!(matches!(stored.standing, Standing::Ended { row: 1, delivered: false, .. }));
    run.delivered("a receipt").await.unwrap();
    let stored = reader.find(run.run()).await.unwrap().unwrap();
    assert!(matches!(stored.standing, Standing::Ended { delivered: true, .. }));
    let again = run.delivered("a receipt").await;
    assert!(matches!(again, Err(Error::Execution(Trouble::Refused(_)))), "{again:?}");
}

#[tokio::test]
async fn events_are_committed_facts_in_order_and_hold_no_text() {
    let clock = VirtualClock::default();
    let runtime = in_memory(&clock, looks_once(&clock), Workshop::new(&clock, 5));
    let run = runtime.start(spec()).await.unwrap();
    ended(&run).await;
    let mut events = run.events();
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.push(event);
    }
    let text = format!("{told:?}");
    for unreleased in ["fact of", "seen", "conclusion", "\"n\""] {
        assert!(!text.contains(unreleased), "{unreleased}: {text}");
    }
    let kinds: Vec<_> = told
        .iter()
        .map(|event| match event {
            Event::Started { .. } => "started",
            Event::Progress(_) => "progress",
            Event::ToolCalled { .. } => "called",
            Event::ToolResult { .. } => "result",
            Event::Awaiting(_) => "awaiting",
            Event::Failed(_) => "failed",
            Event::Finished(_) => "finished",
            Event::Missed { .. } => "missed",
        })
        .collect();
    assert_eq!(kinds, ["started", "progress", "called", "result", "progress", "finished"]);
}

#[tokio::test]
async fn a_failed_run_tells_its_code_and_is_no_error_of_the_call() {
    let clock = VirtualClock::default();
    let error = llm::Error::Unauthorized { message: "the key ends here".to_owned() };
    let runtime = in_memory(&clock, Talker::new(&clock, [(1, Err(error.into()))]), Workshop::new(&clock, 5));
    let run = runtime.start(spec()).await.unwrap();
    let ended = ended(&run).await;
    let failure = Failure::Inference { code: llm::Code::Unauthorized };
    assert_eq!((ended.ending.row, ended.ending.failure.as_ref()), (17, Some(&failure)));
    let mut events = run.events();
    let mut failed = None;
    while let Some(event) = events.next().await {
        if let Event::Failed(failure) = event {
            failed = Some(failure);
        }
    }
    assert_eq!(failed, Some(failure));
    assert!(!format!("{ended:?}").contains("the key"), "the provider's words reach nobody");
}

#[tokio::test]
async fn a_spec_that_is_none_is_a_resolution_error_and_leaves_nothing() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let reader = store.session();
    let runtime = runtime(&clock, store, looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
    let endless = Spec { deadline_ms: None, budgets: Budgets { model_calls: None, ..Budgets::default() }, ..spec() };
    let refused = runtime.start(endless).await;
    assert!(matches!(refused, Err(Error::Resolution { .. })), "{refused:?}");
    assert!(reader.list(Default::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_second_run_of_one_id_is_refused() {
    let clock = VirtualClock::default();
    let runtime = in_memory(&clock, looks_once(&clock), Workshop::new(&clock, 5));
    let run = runtime.start_as("one".parse().unwrap(), spec()).await.unwrap();
    let twice = runtime.start_as("one".parse().unwrap(), spec()).await;
    assert!(matches!(twice, Err(Error::Commit(StoreError::RunExists { .. }))), "{twice:?}");
    assert_eq!(ended(&run).await.ending.row, 1, "the first one goes on");
}

#[tokio::test]
async fn a_store_that_refuses_a_commit_publishes_nothing_and_the_run_is_where_it_was() {
    let clock = VirtualClock::default();
    // Looking takes create, resolution, the answer with its dispatch, the result, the draft, the verdict.
    for appends in 0..6 {
        let store = MemoryStore::new();
        let reader = store.session();
        let broken = BreakingStore::after(appends, store);
        let runtime = runtime(&clock, broken, looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
        let run = match runtime.start_as("r".parse().unwrap(), spec()).await {
            Ok(run) => run,
            Err(error) => {
                assert_eq!((appends, error.failure_code()), (0, FailureCode::RunPersistenceFailed));
                continue;
            }
        };
        let outcome = run.outcome().await;
        let Err(error @ Error::Commit(_)) = outcome else { panic!("after {appends} appends: {outcome:?}") };
        assert_eq!(error.failure_code(), FailureCode::RunPersistenceFailed);
        let mut events = run.events();
        while let Some(event) = events.next().await {
            assert!(!matches!(event, Event::Finished(_)), "after {appends} appends");
        }
        // Another process goes on from the last durable record.
        let live =
            vec![LiveTool { name: "look".to_owned(), recovery: portcullis::vocabulary::tool::Recovery::ReplaySafe }];
        let tools = Workshop { live, ..Workshop::new(&clock, 5) };
        let next = super::runtime(&clock, reader.session(), looks_once(&clock), tools);
        let recovery = next.build().unwrap().recover().await.unwrap();
        assert_eq!((recovery.runs.len(), recovery.failed.len()), (1, 0), "after {appends} appends");
        assert!(matches!(ended(&recovery.runs[0]).await.ending.row, 1 | 3), "after {appends} appends");
    }
}

#[tokio::test]
async fn a_run_that_could_not_be_given_back_is_recovered_by_the_same_process_once_the_store_is_mended() {
    let clock = VirtualClock::default();
    let (store, mend) = BreakingStore::stubborn(2, MemoryStore::new());
    let runtime = runtime(&clock, store, looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
    let run = runtime.start_as("r".parse().unwrap(), spec()).await.unwrap();
    assert!(matches!(run.outcome().await, Err(Error::Commit(_))));
    mend.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
    let recovery = runtime.recover().await.unwrap();
    assert_eq!((recovery.runs.len(), recovery.failed.len()), (1, 0));
    // The model is asked again, answers with its next words, and nothing was observed.
    assert_eq!(ended(&run).await.ending.row, 3);
    assert!(runtime.recover().await.unwrap().runs.is_empty(), "it is held and driven, and not lost any more");
}

#[tokio::test]
async fn a_run_that_has_ended_takes_no_place_from_others_however_long_it_is_held() {
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, []);
    let runtime =
        super::runtime(&clock, MemoryStore::new(), model, Workshop::new(&clock, 5)).driven_max(1).build().unwrap();
    let mut held = Vec::new();
    for _ in 0..5 {
        let run = runtime.start(spec()).await.unwrap();
        assert_eq!(ended(&run).await.ending.row, 3);
        held.push(run);
    }
    for run in held {
        run.delivered("late").await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_handle_detaches_or_cancels_as_it_was_told() {
    for (choice, row) in [(OnDrop::Detach, 1), (OnDrop::Cancel, 15)] {
        let clock = VirtualClock::default();
        let store = MemoryStore::new();
        let reader = store.session();
        let runtime = runtime(&clock, store, looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
        let hold = clock.busy();
        let run = runtime.start_as("r".parse().unwrap(), spec()).await.unwrap().on_drop(choice);
        let watcher = runtime.attach(run.run()).await.unwrap();
        drop(run);
        // The cancellation is on its way before time goes on.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        drop(hold);
        assert_eq!(ended(&watcher).await.ending.row, row, "{choice:?}");
        assert!(reader.find(&"r".parse().unwrap()).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_detached_run_that_nobody_holds_is_offered_again_with_the_same_bytes() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let reader = store.session();
    let first = runtime(&clock, store, looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
    let run = first.start_as("r".parse().unwrap(), spec()).await.unwrap();
    let offered = ended(&run).await;
    drop((run, first));
    let next = runtime(&clock, reader.session(), looks_once(&clock), Workshop::new(&clock, 5)).build().unwrap();
    loop {
        // The first session is given up as soon as its driver has noticed that nobody listens.
        let recovery = next.recover().await.unwrap();
        if let [run] = &*recovery.runs {
            let again = ended(run).await;
            assert_eq!((&again.release, again.key, &again.ending), (&offered.release, offered.key, &offered.ending));
            run.delivered("at last").await.unwrap();
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(next.recover().await.unwrap().runs.is_empty(), "a receipt ends it");
}

#[tokio::test]
async fn a_runtime_names_the_port_that_it_lacks() {
    let lacking = Runtime::builder().build();
    assert!(matches!(lacking, Err(Error::Execution(Trouble::Unequipped(_)))));
}

#[tokio::test]
async fn more_runs_than_may_be_driven_at_once_wait_their_turn_and_all_end() {
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, []);
    let tools = Workshop::new(&clock, 5);
    let runtime = runtime(&clock, MemoryStore::new(), model, tools).driven_max(2).build().unwrap();
    let starts = (0..40).map(|_| {
        let runtime = runtime.clone();
        tokio::spawn(async move {
            let run = runtime.start(spec()).await.unwrap();
            let row = match run.outcome().await.unwrap() {
                Outcome::Ended(ended) => ended.ending.row,
                Outcome::Awaiting(_) => 0,
            };
            run.delivered("yes").await.unwrap();
            row
        })
    });
    for start in starts.collect::<Vec<_>>() {
        assert_eq!(start.await.unwrap(), 3);
    }
}
