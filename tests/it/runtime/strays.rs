//! Runs that stray between sessions: begun without an answer, kept without a driver, taken over while they are
//! loaded. The simulator found each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::clock::Clock;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::ports::{GateFailure, GateQuestion, Gates, Invocation, ModelAnswer, Tools};
use portcullis::runtime::store::Store;
use portcullis::runtime::{RunHandle, Runtime, VirtualClock};
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::{Decision, GateAnswer};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

use super::{Talker, Workshop, asks, ended, runtime, spec, ticket};
use crate::breaking::{BreakingStore, Fault};

fn on(clock: &VirtualClock, store: impl Store) -> Runtime {
    let model = Talker::new(clock, [(0, Ok(asks(&["look"])))]);
    runtime(clock, store, model, Workshop::new(clock, 5)).build().unwrap()
}

/// A run that waits for a person, as long as it takes.
fn parked() -> Spec {
    Spec { tools: vec![ToolSpec { confirm: true, ..ToolSpec::evidence("look") }], deadline_ms: None, ..spec() }
}

fn failing(call: &'static str, fault: fn() -> Fault, store: MemoryStore) -> BreakingStore<MemoryStore> {
    BreakingStore::new(store, move |called| if called == call { fault() } else { Fault::None })
}

#[tokio::test]
async fn a_run_that_was_begun_without_an_answer_is_recovered_by_its_session() {
    let clock = VirtualClock::default();
    let runtime = on(&clock, failing("create", || Fault::Unanswered, MemoryStore::new()));
    let run: RunId = "unanswered".parse().unwrap();
    let begun = runtime.start_as(run.clone(), spec()).await;
    assert!(matches!(begun, Err(Error::Commit(_))), "{begun:?}");
    let recovery = runtime.recover().await.unwrap();
    assert!(recovery.failed.is_empty(), "{recovery:?}");
    assert_eq!(recovery.runs.iter().map(RunHandle::run).collect::<Vec<_>>(), [&run]);
    assert_eq!(ended(&recovery.runs[0]).await.ending.row, 1);
}

#[tokio::test]
async fn a_run_that_was_never_begun_is_not_recovered() {
    let clock = VirtualClock::default();
    let runtime = on(&clock, failing("create", || Fault::Full, MemoryStore::new()));
    assert!(runtime.start(spec()).await.is_err());
    let recovery = runtime.recover().await.unwrap();
    assert!(recovery.runs.is_empty() && recovery.failed.is_empty(), "{recovery:?}");
}

#[tokio::test]
async fn a_run_that_could_not_be_given_back_is_not_taken_from_whoever_took_it_since() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let there = store.session();
    let here = on(&clock, failing("release", || Fault::Full, store));
    let run = here.start(parked()).await.unwrap();
    ticket(&run).await;
    let there = on(&clock, failing("release", || Fault::Full, there));
    ticket(&there.take_over(run.run()).await.unwrap()).await;
    let recovery = here.recover().await.unwrap();
    assert!(recovery.runs.is_empty() && recovery.failed.is_empty(), "{recovery:?}");
    assert_eq!(there.recover().await.unwrap().runs.len(), 1, "whoever has it takes it from itself");
}

#[tokio::test]
async fn a_run_that_is_taken_over_while_it_is_loaded_is_driven_there_and_not_damaged() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let (mine, theirs) = (store.session(), store.session());
    let first = on(&clock, store);
    let run = first.start(parked()).await.unwrap();
    let ticket = ticket(&run).await;
    let id = run.run().clone();

    let looked = Arc::new(AtomicBool::new(false));
    let slow = {
        let looked = Arc::clone(&looked);
        BreakingStore::new(mine, move |call| {
            let first_look = call == "find" && !looked.swap(true, Ordering::SeqCst);
            if first_look { Fault::Slow(Duration::from_millis(100)) } else { Fault::None }
        })
    };
    let slow = on(&VirtualClock::default(), slow);
    let other = on(&VirtualClock::default(), theirs);
    let (attached, taken) = tokio::join!(slow.attach(&id), async {
        while !looked.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        let taken = other.take_over(&id).await.unwrap();
        taken.decide(ticket, "me", Decision::Allow).await.unwrap();
        taken
    });
    assert!(matches!(&attached, Err(Error::Execution(Trouble::Driven { .. }))), "{attached:?}");
    assert_eq!(ended(&taken).await.ending.row, 1);
}

/// A tool that calls another one, and a gate before that which takes an hour.
#[derive(Clone)]
struct Slow {
    clock: VirtualClock,
    given_up: Arc<AtomicBool>,
}

impl Tools for Slow {
    async fn resolve(&self, _spec: &Spec) -> Result<Environment, ResolutionError> {
        let delegate = ToolSpec { timeout_ms: Some(1_000), ..ToolSpec::new("delegate") };
        let gate = Gate { id: "door".to_owned(), of: GateOf::Tool, tools: vec!["put".to_owned()] };
        Ok(Environment { tools: vec![delegate, ToolSpec::new("put")], gates: vec![gate], ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let admitted = invocation.nested().tool("put", Json::parse("{}").unwrap()).await;
        Ok(ToolOutput::text(format!("{admitted:?}")))
    }
}

struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Gates for Slow {
    async fn ask(&self, _question: GateQuestion) -> Result<GateAnswer, GateFailure> {
        let _given_up = GivenUp(Arc::clone(&self.given_up));
        self.clock.sleep_until(3_600_000).await;
        Ok(GateAnswer::Allow)
    }
}

#[tokio::test]
async fn a_gate_that_is_asked_about_a_nested_call_is_given_up_when_the_run_ends() {
    let clock = VirtualClock::default();
    let slow = Slow { clock: clock.clone(), given_up: Arc::default() };
    let model = Talker::new(&clock, [(0, Ok(asks(&["delegate"]))), (0, Ok(ModelAnswer::text("no draft")))]);
    let runtime = runtime(&clock, MemoryStore::new(), model, slow.clone()).gates(slow.clone()).build().unwrap();
    let run = runtime.start(Spec::new("t", "m")).await.unwrap();
    let ended = ended(&run).await;
    assert_eq!((ended.ending.row, clock.now_ms()), (8, 1_000));
    assert!(slow.given_up.load(Ordering::SeqCst), "nobody waits for the gate any more");
}
