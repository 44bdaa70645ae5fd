//! Handles while drivers come and go on other threads.

use std::time::Duration;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::{Outcome, Question, RunHandle, Runtime};
use portcullis::vocabulary::input::Decision;

use crate::suite::Test;
use crate::unsynced::{Machine, Ports};
use crate::world::spec;

pub(crate) const TESTS: &[Test] = &[(
    "handles::a_handle_to_a_run_that_parks_at_once_still_sees_its_end",
    a_handle_to_a_run_that_parks_at_once_still_sees_its_end,
)];

const TIMES: u32 = 300;

async fn question(handle: &RunHandle) -> Question {
    match handle.outcome().await.unwrap() {
        Outcome::Awaiting(waiting) => waiting.questions[0].clone(),
        Outcome::Ended(ended) => panic!("{:?}", ended.ending),
    }
}

/// A run that waits for a person gives its driver nothing to do: it may be gone before its handle is there.
async fn one(runtime: &Runtime) {
    let run = runtime.start(spec("people")).await.unwrap();
    let (id, _) = (run.run().clone(), question(&run).await);
    drop(run);
    let handle = runtime.attach(&id).await.unwrap();
    let Question::Decision { ticket, .. } = question(&handle).await else { panic!("no decision is asked") };
    handle.decide(ticket, "a person", Decision::Allow).await.unwrap();
    let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("{id} waits for what was decided") };
    assert_eq!(ended.ending.row, 1);
    handle.delivered("read").await.unwrap();
}

fn a_handle_to_a_run_that_parks_at_once_still_sees_its_end() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let ports = Ports(Machine::dying_at(u32::MAX));
    let builder = Runtime::builder().model(ports.clone()).tools(ports.clone()).judge(ports.clone());
    tokio.block_on(async {
        let runtime = builder.gates(ports).store(MemoryStore::new()).build().unwrap();
        for _ in 0..TIMES {
            // Far more than any of them takes: it stands for "never".
            tokio::time::timeout(Duration::from_secs(30), one(&runtime)).await.expect("the handle hears of the end");
        }
    });
}
