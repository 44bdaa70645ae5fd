//! After a crash: sessions that die with work under way (SPEC 7, "After a crash").

use std::sync::Arc;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::history::{Policy, replay};
use portcullis::runtime::clock::Clock;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::{Outcome, Question, Runtime, VirtualClock};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::{LiveTool, Reconciliation};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, Recovery, ToolOutput};

use super::{Talker, Workshop, asks, ended, runtime, spec};

/// A runtime on an event loop of its own, so that dropping the loop is the death of the process.
pub(super) fn die_at(
    store: MemoryStore,
    clock: &VirtualClock,
    model: Talker,
    tools: Workshop,
    spec: Spec,
    at_ms: u64,
) -> RunId {
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = process.block_on(async {
        let runtime = runtime(clock, store, model, tools).build().unwrap();
        let hold = clock.busy();
        let run = runtime.start(spec).await.unwrap();
        let (here, named) = (clock.clone(), run.run().clone());
        let last = tokio::spawn(async move { here.at(at_ms).await });
        tokio::task::yield_now().await;
        drop(hold);
        let here = last.await.unwrap();
        // Time stands still for good.
        std::mem::forget(here);
        named
    });
    // Its tasks are gone, and with them its session.
    process.shutdown_background();
    run
}

fn declared(name: &str, recovery: Recovery) -> LiveTool {
    LiveTool { name: name.to_owned(), recovery }
}

#[test]
fn a_looking_tool_is_entered_again_and_an_acting_one_waits_for_a_person() {
    for (tool, recovery, again) in [("look", Recovery::ReplaySafe, true), ("act", Recovery::NeverReplay, false)] {
        let store = MemoryStore::new();
        let next_session = store.session();
        let reader = store.session();
        let clock = VirtualClock::default();
        let model = Talker::new(&clock, [(10, Ok(asks(&[tool])))]);
        let first = Workshop::new(&clock, 100);
        let run = die_at(store, &clock, model, first.clone(), spec(), 50);
        assert_eq!(first.entered.lock().unwrap().len(), 1);

        let clock = VirtualClock::starting_at(1_000);
        let second = Workshop { live: vec![declared(tool, recovery)], ..Workshop::new(&clock, 100) };
        let model = Talker::new(&clock, []);
        crate::stage::block_on(async {
            let runtime = runtime(&clock, next_session, model, second.clone()).build().unwrap();
            let hold = clock.busy();
            let recovery = recovered(&runtime).await;
            assert_eq!(recovery, std::slice::from_ref(&run));
            let handle = runtime.attach(&run).await.unwrap();
            if again {
                drop(hold);
                assert_eq!(ended(&handle).await.ending.row, 1);
                assert_eq!(second.entered.lock().unwrap().len(), 1);
            } else {
                let Outcome::Awaiting(waiting) = handle.outcome().await.unwrap() else { panic!("it went on") };
                let [Question::Reconciliation { call, .. }] = &waiting.questions[..] else { panic!("{waiting:?}") };
                let outcome = Reconciliation::Applied { output: ToolOutput::text("it was done") };
                handle.reconcile(*call, "me", outcome).await.unwrap();
                drop(hold);
                assert_eq!(ended(&handle).await.ending.row, 3);
                assert!(second.entered.lock().unwrap().is_empty(), "it is never entered again");
            }
            let history = crate::stage::history(&reader, run.as_str()).await;
            assert_eq!(replay(&*history, Policy::Stop).unwrap().divergences, Vec::new());
        });
    }
}

async fn recovered(runtime: &Runtime) -> Vec<RunId> {
    let recovery = runtime.recover().await.unwrap();
    assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
    recovery.runs.iter().map(|run| run.run().clone()).collect()
}

/// Reported as `crash_after_two_of_three`: two calls are done and the third is executing when the process dies.
#[test]
fn what_was_done_before_a_crash_is_kept_and_only_what_was_under_way_is_uncertain() {
    let store = MemoryStore::new();
    let next_session = store.session();
    let clock = VirtualClock::default();
    // The two look until 110, and the third, serial, acts from then on.
    let model = Talker::new(&clock, [(10, Ok(asks(&["look", "look", "act"])))]);
    let serial = ToolSpec { concurrency: Concurrency::Serial, ..ToolSpec::new("act") };
    let spec = Spec { tools: vec![ToolSpec::evidence("look"), serial], ..spec() };
    let first = Workshop::new(&clock, 100);
    let run = die_at(store, &clock, model, first.clone(), spec, 150);
    let entered =
        |workshop: &Workshop| workshop.entered.lock().unwrap().iter().map(|(_, call)| call.clone()).collect::<Vec<_>>();
    assert_eq!(entered(&first), ["t1.0", "t1.1", "t1.2"]);
    let clock = VirtualClock::starting_at(1_000);
    let live = vec![declared("look", Recovery::ReplaySafe), declared("act", Recovery::NeverReplay)];
    let second = Workshop { live, ..Workshop::new(&clock, 100) };
    crate::stage::block_on(async {
        let runtime = runtime(&clock, next_session, Talker::new(&clock, []), second.clone()).build().unwrap();
        let hold = clock.busy();
        let handle = runtime.attach(&run).await.unwrap();
        let Outcome::Awaiting(waiting) = handle.outcome().await.unwrap() else { panic!("it went on") };
        let [Question::Reconciliation { call, .. }] = &waiting.questions[..] else { panic!("{waiting:?}") };
        assert_eq!(call.to_string(), "t1.2");
        // What a person has to find out about is there to be seen, by whoever may see it.
        let plan = runtime.plan(&run, *call).await.unwrap().unwrap();
        assert_eq!((&*plan.tool.name, plan.arguments.to_text()), ("act", r#"{"n":2}"#.to_owned()));
        runtime.reconcile(&run, *call, "me", Reconciliation::Unknown).await.unwrap();
        drop(hold);
        let ended = ended(&handle).await;
        assert_eq!((ended.ending.row, ended.ending.facts), (1, 2), "both facts are kept");
        assert_eq!(entered(&second), [""; 0], "nothing is entered again");
    });
}

#[test]
fn a_live_tool_that_says_nothing_is_not_entered_again() {
    let store = MemoryStore::new();
    let next_session = store.session();
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(10, Ok(asks(&["look"])))]);
    let run = die_at(store, &clock, model, Workshop::new(&clock, 100), spec(), 50);
    let clock = VirtualClock::starting_at(1_000);
    let silent = Workshop::new(&clock, 100);
    crate::stage::block_on(async {
        let runtime = runtime(&clock, next_session, Talker::new(&clock, []), silent.clone()).build().unwrap();
        let hold = clock.busy();
        let handle = runtime.attach(&run).await.unwrap();
        assert!(matches!(handle.outcome().await.unwrap(), Outcome::Awaiting(_)));
        assert!(silent.entered.lock().unwrap().is_empty());
        drop(hold);
    });
}

#[test]
fn the_sixth_crash_in_a_row_ends_in_row_19() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let mut session = store.session();
    let mut run = die_at(
        store,
        &clock,
        Talker::new(&clock, [(1_000, Ok(asks(&["look"])))]),
        Workshop::new(&clock, 1),
        spec(),
        50,
    );
    for crash in 1..=6_u64 {
        let next = session.session();
        let clock = VirtualClock::starting_at(crash * 100);
        let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let row = process.block_on(async {
            let slow = Talker::new(&clock, [(1_000, Ok(asks(&["look"])))]);
            let runtime = runtime(&clock, session, slow, Workshop::new(&clock, 1)).build().unwrap();
            let hold = clock.busy();
            let handle = runtime.attach(&run).await.unwrap();
            run = handle.run().clone();
            let mut events = handle.events();
            let mut row = None;
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            if let Ok(Ok(Outcome::Ended(ended))) =
                tokio::time::timeout(std::time::Duration::from_millis(50), handle.outcome()).await
            {
                row = Some(ended.ending.row);
            }
            assert!(events.next().await.is_some());
            std::mem::forget(hold);
            row
        });
        process.shutdown_background();
        session = next;
        assert_eq!(row, (crash == 6).then_some(19), "crash {crash}");
    }
}

#[tokio::test]
async fn a_run_that_a_living_session_drives_is_left_alone() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let elsewhere = store.session();
    let hold = clock.busy();
    let here = runtime(&clock, store, Talker::new(&clock, []), Workshop::new(&clock, 1)).build().unwrap();
    let run = here.start(spec()).await.unwrap();
    let there = runtime(&clock, elsewhere, Talker::new(&clock, []), Workshop::new(&clock, 1)).build().unwrap();
    assert!(there.recover().await.unwrap().runs.is_empty());
    let driven = there.attach(run.run()).await;
    assert!(matches!(driven, Err(Error::Execution(Trouble::Driven { .. }))), "{driven:?}");
    drop(hold);
    assert_eq!(ended(&run).await.ending.row, 3);
}

#[tokio::test]
async fn a_session_that_drives_a_run_takes_what_others_ask_of_it() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let elsewhere = store.session();
    let hold = clock.busy();
    let slow = Talker::new(&clock, [(1_000, Ok(asks(&["look"])))]);
    let here = runtime(&clock, store, slow, Workshop::new(&clock, 1)).build().unwrap();
    let run = here.start(spec()).await.unwrap();
    let name = run.run().clone();
    let scenario = r#"{"spec":{"task":"t","model":{"name":"m"}}}"#;
    let scenario = portcullis::adapters::scenario::Scenario::read(scenario.as_bytes()).unwrap();
    let setting = portcullis::adapters::scenario::Setting {
        store: Arc::new(elsewhere),
        clock: Arc::new(portcullis::runtime::clock::SystemClock::new()),
        audience: None,
        takes_over: false,
        real: portcullis::adapters::scenario::Real::default(),
    };
    let cancel = portcullis::vocabulary::input::Input::CancelRequested {
        by: "another process".to_owned(),
        origin: portcullis::vocabulary::input::CancelOrigin::Caller,
    };
    let resumed = portcullis::adapters::scenario::Stage::resume(&scenario, &name, &setting, Some(cancel.clone())).await;
    assert!(matches!(resumed, Ok(portcullis::adapters::scenario::Resumed::There)), "{resumed:?}");
    assert_eq!(ended(&run).await.ending.row, 15);
    drop(hold);
}
