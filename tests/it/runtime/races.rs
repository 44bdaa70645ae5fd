//! Races in virtual time: whoever is first wins, at every millisecond around the other, and a day takes
//! milliseconds.

use std::time::{Duration, Instant};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::history::{Policy, replay};
use portcullis::runtime::clock::Clock;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::{Event, Outcome, VirtualClock};
use portcullis::vocabulary::ids::Ticket;
use portcullis::vocabulary::input::Decision;
use portcullis::vocabulary::llm;
use portcullis::vocabulary::refusal::RefusalKind;
use portcullis::vocabulary::spec::{Spec, ToolSpec};

use super::{Talker, Workshop, asks, ended, in_memory, runtime, spec};

/// The wall time at which these runs begin.
const START_MS: u64 = 1_000_000;

#[tokio::test]
async fn a_cancellation_at_any_moment_ends_in_row_15_or_comes_too_late() {
    // The model answers at 10, the tool at 110, the model at 120.
    for at_ms in [0, 9, 10, 11, 109, 110, 111, 119, 120, 121] {
        let clock = VirtualClock::starting_at(START_MS);
        let workshop = Workshop::new(&clock, 100);
        let store = MemoryStore::new();
        let reader = store.session();
        let model = Talker::new(&clock, [(10, Ok(asks(&["look"])))]);
        let runtime = runtime(&clock, store, model, workshop.clone()).build().unwrap();
        let hold = clock.busy();
        let run = runtime.start_as("r".parse().unwrap(), spec()).await.unwrap();
        let canceller = {
            let clock = clock.clone();
            let run = runtime.attach(run.run()).await.unwrap();
            tokio::spawn(async move {
                let _here = clock.at(START_MS + at_ms).await;
                run.cancel("a test").await
            })
        };
        tokio::task::yield_now().await;
        drop(hold);
        let cancelled = canceller.await.unwrap();
        let row = ended(&run).await.ending.row;
        match cancelled {
            Ok(()) => assert_eq!(row, 15, "at {at_ms}"),
            Err(Error::Execution(Trouble::Refused(refusal))) => {
                assert_eq!((row, refusal.kind), (1, RefusalKind::Terminal), "at {at_ms}");
            }
            Err(error) => panic!("at {at_ms}: {error}"),
        }
        // Whoever began to wait first is served first.
        assert_eq!(row == 15, at_ms <= 120, "at {at_ms}: row {row}");
        // Work in flight is given up at once, and closed exactly once.
        let dropped = workshop.dropped.lock().unwrap().clone();
        let expected: Vec<_> =
            (10..=110).contains(&at_ms).then(|| (START_MS + at_ms, "t1.0".to_owned())).into_iter().collect();
        assert_eq!(dropped, expected, "at {at_ms}");
        let history = crate::stage::history(&reader, "r").await;
        assert_eq!(replay(&*history, Policy::Stop).unwrap().divergences, Vec::new());
    }
}

#[tokio::test]
async fn a_deadline_ends_the_run_at_its_millisecond_and_an_answer_at_it_is_too_late() {
    for (deadline_ms, row) in [(119, 16), (120, 16), (121, 1)] {
        let clock = VirtualClock::starting_at(START_MS);
        let model = Talker::new(&clock, [(10, Ok(asks(&["look"])))]);
        let runtime = in_memory(&clock, model, Workshop::new(&clock, 100));
        let run = runtime.start(Spec { deadline_ms: Some(deadline_ms), ..spec() }).await.unwrap();
        assert_eq!(ended(&run).await.ending.row, row, "deadline {deadline_ms}");
        assert!(clock.now_ms() <= START_MS + 121);
    }
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_given_up_and_the_run_goes_on() {
    for (takes_ms, lost) in [(99, false), (100, false), (101, true)] {
        let clock = VirtualClock::starting_at(START_MS);
        let workshop = Workshop::new(&clock, takes_ms);
        let tools = vec![ToolSpec { timeout_ms: Some(100), ..ToolSpec::evidence("look") }];
        let model = Talker::new(&clock, [(10, Ok(asks(&["look"])))]);
        let runtime = in_memory(&clock, model, workshop.clone());
        let run = runtime.start(Spec { tools, ..spec() }).await.unwrap();
        let ended = ended(&run).await;
        assert_eq!(ended.ending.facts, u32::from(!lost), "{takes_ms} ms");
        assert_eq!(workshop.dropped.lock().unwrap().len(), usize::from(lost), "{takes_ms} ms");
    }
}

#[tokio::test]
async fn a_decision_and_its_expiry_meet_at_the_millisecond_and_one_of_them_wins() {
    for at_ms in [50, 1_009, 1_010, 1_011] {
        let clock = VirtualClock::starting_at(START_MS);
        let tools = vec![ToolSpec { confirm: true, confirm_expires_ms: Some(1_000), ..ToolSpec::evidence("look") }];
        let model = Talker::new(&clock, [(10, Ok(asks(&["look"])))]);
        let runtime = in_memory(&clock, model, Workshop::new(&clock, 100));
        let hold = clock.busy();
        let run = runtime.start(Spec { tools, ..spec() }).await.unwrap();
        let person = {
            let (clock, run) = (clock.clone(), runtime.attach(run.run()).await.unwrap());
            tokio::spawn(async move {
                let _here = clock.at(START_MS + at_ms).await;
                let mut events = run.events();
                let ticket = loop {
                    if let Some(Event::Awaiting(question)) = events.next().await {
                        break ticket(&question);
                    }
                };
                run.decide(ticket, "somebody", Decision::Allow).await
            })
        };
        tokio::task::yield_now().await;
        drop(hold);
        let decided = person.await.unwrap();
        let ended = loop {
            if let Outcome::Ended(ended) = run.outcome().await.unwrap() {
                break ended;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(decided.is_ok(), at_ms < 1_010, "at {at_ms}: {decided:?}");
        assert_eq!(ended.ending.facts, u32::from(at_ms < 1_010), "at {at_ms}");
    }
}

fn ticket(question: &portcullis::runtime::Question) -> Ticket {
    match question {
        portcullis::runtime::Question::Decision { ticket, .. } => ticket.clone(),
        portcullis::runtime::Question::Reconciliation { .. } => panic!("nobody was interrupted"),
    }
}

#[tokio::test]
async fn a_day_of_waiting_takes_milliseconds() {
    const HOUR_MS: u64 = 3_600_000;
    let clock = VirtualClock::starting_at(START_MS);
    let overloaded = || llm::Error::Overloaded { message: String::new(), retry_after_ms: Some(HOUR_MS) };
    let answers = (0..24).map(|_| (1, Err(overloaded().into()))).chain([(1, Ok(asks(&["look"])))]);
    let retry =
        portcullis::vocabulary::spec::Retry { retries_max: 30, retry_after_ms_max: HOUR_MS, ..Default::default() };
    let runtime = in_memory(&clock, Talker::new(&clock, answers), Workshop::new(&clock, 100));
    let began = Instant::now();
    let run = runtime.start(Spec { deadline_ms: Some(48 * HOUR_MS), retry, ..spec() }).await.unwrap();
    assert_eq!(ended(&run).await.ending.row, 1);
    assert!(clock.now_ms() >= START_MS + 24 * HOUR_MS, "{}", clock.now_ms());
    assert!(began.elapsed() < Duration::from_secs(20), "a day took {:?}", began.elapsed());
}

#[tokio::test]
async fn parallel_tools_run_side_by_side_and_serial_ones_alone() {
    use portcullis::vocabulary::tool::Concurrency;
    let clock = VirtualClock::starting_at(START_MS);
    let workshop = Workshop::new(&clock, 100);
    let serial = ToolSpec { concurrency: Concurrency::Serial, ..ToolSpec::new("act") };
    let model = Talker::new(&clock, [(10, Ok(asks(&["look", "look", "act", "look"])))]);
    let runtime = in_memory(&clock, model, workshop.clone());
    let run = runtime.start(Spec { tools: vec![ToolSpec::evidence("look"), serial], ..spec() }).await.unwrap();
    assert_eq!(ended(&run).await.ending.facts, 3);
    let entered: Vec<_> = workshop.entered.lock().unwrap().iter().map(|(at_ms, _)| at_ms - START_MS).collect();
    assert_eq!(entered, [10, 10, 110, 210]);
}

#[tokio::test]
async fn the_same_race_gives_the_same_bytes_every_time() {
    let mut histories = Vec::new();
    for _ in 0..20 {
        let clock = VirtualClock::starting_at(START_MS);
        let store = MemoryStore::new();
        let reader = store.session();
        let model = Talker::new(&clock, [(10, Ok(asks(&["look", "look", "act"]))), (100, Ok(asks(&["act", "look"])))]);
        let runtime = runtime(&clock, store, model, Workshop::new(&clock, 100)).build().unwrap();
        let run = runtime.start_as("r".parse().unwrap(), Spec { deadline_ms: Some(310), ..spec() }).await.unwrap();
        ended(&run).await;
        let history = crate::stage::history(&reader, "r").await;
        // The nonce is random, and so is what hashes cover: times, inputs and effects must not differ.
        let summary = replay(&*history, Policy::Stop).unwrap();
        let lines: Vec<_> = history.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let times: Vec<_> = lines
            .iter()
            .map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap())
            .map(|record| {
                (record["at_ms"].as_u64(), record["input"]["type"].to_string(), record["effects"].to_string().len())
            })
            .collect();
        histories.push((summary.ending, times));
    }
    assert!(histories.windows(2).all(|pair| pair[0] == pair[1]), "{histories:#?}");
}
