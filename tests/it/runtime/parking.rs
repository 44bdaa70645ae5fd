//! Runs that wait for a person: no task, no lease, a timer that rings, and an answer from anywhere.

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::clock::Clock;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::store::{Owner, Standing, Store};
use portcullis::runtime::{Event, Outcome, VirtualClock};
use portcullis::vocabulary::ids::Ticket;
use portcullis::vocabulary::input::Decision;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::refusal::RefusalKind;
use portcullis::vocabulary::spec::{Spec, ToolSpec};

use super::{Talker, Workshop, asks, ended, runtime, spec, ticket};

fn confirmed() -> Spec {
    Spec { tools: vec![ToolSpec { confirm: true, ..ToolSpec::evidence("look") }], ..spec() }
}

#[tokio::test]
async fn a_run_that_waits_is_driven_by_nobody_and_goes_on_with_the_answer() {
    let clock = VirtualClock::default();
    let hold = clock.busy();
    let store = MemoryStore::new();
    let reader = store.session();
    let workshop = Workshop::new(&clock, 5);
    let model = Talker::new(&clock, [(0, Ok(asks(&["look"])))]);
    let runtime = runtime(&clock, store, model, workshop.clone()).build().unwrap();
    let run = runtime.start(confirmed()).await.unwrap();
    let ticket = ticket(&run).await;
    let listed = reader.find(run.run()).await.unwrap().unwrap();
    assert_eq!((listed.owner, listed.standing), (Owner::Nobody, Standing::Awaiting { due_ms: Some(600_000) }));
    let wrong = run.decide(Ticket("another".to_owned()), "me", Decision::Allow).await;
    assert!(
        matches!(&wrong, Err(Error::Execution(Trouble::Refused(refusal))) if refusal.kind == RefusalKind::Stale),
        "{wrong:?}"
    );
    run.decide(ticket.clone(), "me", Decision::Allow).await.unwrap();
    let twice = run.decide(ticket, "me", Decision::Allow).await;
    assert!(
        matches!(&twice, Err(Error::Execution(Trouble::Refused(refusal))) if refusal.kind == RefusalKind::Duplicate),
        "{twice:?}"
    );
    drop(hold);
    assert_eq!(ended(&run).await.ending.row, 1);
    assert_eq!(workshop.entered.lock().unwrap().len(), 1);
    let mut events = run.events();
    let mut awaited = 0;
    while let Some(event) = events.next().await {
        awaited += u32::from(matches!(event, Event::Awaiting(_)));
    }
    assert_eq!(awaited, 1, "events are told once, however often the run was loaded");
}

#[tokio::test]
async fn another_session_decides_with_other_arguments() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let elsewhere = store.session();
    let workshop = Workshop::new(&clock, 5);
    let model = Talker::new(&clock, [(0, Ok(asks(&["look"])))]);
    let here = runtime(&clock, store, model.clone(), workshop.clone()).build().unwrap();
    let unlimited = Spec { deadline_ms: None, ..confirmed() };
    let run = here.start(unlimited).await.unwrap();
    let ticket = ticket(&run).await;
    let there = runtime(&clock, elsewhere, model, workshop.clone()).build().unwrap();
    let same = there.attach(run.run()).await.unwrap();
    let arguments = Json::parse_bytes(br#"{"n":9}"#).unwrap();
    same.decide(ticket, "somebody else", Decision::AllowWith { arguments }).await.unwrap();
    assert_eq!(ended(&same).await.ending.row, 1);
    assert_eq!(workshop.entered.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_deadline_of_a_run_that_waits_rings_without_a_task_of_its_own() {
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(0, Ok(asks(&["look"])))]);
    let runtime = runtime(&clock, MemoryStore::new(), model, Workshop::new(&clock, 5)).build().unwrap();
    let run = runtime.start(confirmed()).await.unwrap();
    let ended = loop {
        if let Outcome::Ended(ended) = run.outcome().await.unwrap() {
            break ended;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((ended.ending.row, clock.now_ms()), (16, 600_000));
}

#[tokio::test]
async fn wake_carries_on_what_is_due_and_nothing_else() {
    for (now_ms, woken) in [(599_999, 0), (600_000, 1), (600_001, 1)] {
        let clock = VirtualClock::default();
        let store = MemoryStore::new();
        let elsewhere = store.session();
        let model = Talker::new(&clock, [(0, Ok(asks(&["look"])))]);
        let hold = clock.busy();
        let here = runtime(&clock, store, model.clone(), Workshop::new(&clock, 5)).build().unwrap();
        let run = here.start(confirmed()).await.unwrap();
        let name = run.run().clone();
        ticket(&run).await;
        // A process that goes away rings no more.
        drop((run, here));
        std::mem::forget(hold);
        let later = VirtualClock::starting_at(now_ms);
        let there = runtime(&later, elsewhere, Talker::new(&later, []), Workshop::new(&later, 5)).build().unwrap();
        let hold = later.busy();
        let recovery = there.wake().await.unwrap();
        assert_eq!((recovery.runs.len(), recovery.failed.len()), (woken, 0), "at {now_ms}");
        drop(hold);
        for run in &recovery.runs {
            assert_eq!((ended(run).await.ending.row, run.run()), (16, &name));
        }
    }
}

#[tokio::test]
async fn a_thousand_runs_wait_and_are_answered() {
    let clock = VirtualClock::default();
    let workshop = Workshop::new(&clock, 0);
    let hold = clock.busy();
    let answers = (0..1_000).map(|_| (0, Ok(asks(&["look"]))));
    let runtime = runtime(&clock, MemoryStore::new(), Talker::new(&clock, answers), workshop).build().unwrap();
    let mut runs = Vec::new();
    for _ in 0..1_000 {
        runs.push(runtime.start(Spec { deadline_ms: None, ..confirmed() }).await.unwrap());
    }
    for run in &runs {
        ticket(run).await;
    }
    // What is left are the runtime's own: alarms, and requests of other sessions.
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(tasks <= 3, "{tasks} tasks for 1,000 runs that wait");
    for run in &runs {
        let ticket = ticket(run).await;
        run.decide(ticket, "me", Decision::Deny { note: None }).await.unwrap();
    }
    drop(hold);
    for run in &runs {
        assert_eq!(ended(run).await.ending.row, 3);
    }
}
