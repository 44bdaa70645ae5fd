//! A store that loses what it had not synced. Its process dies at every event in turn, a whole machine's death:
//! appends that were written and not synced are gone. What was performed must still be asked for by a record.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::engine::table::is_legal;
use portcullis::history::{Policy, replay};
use portcullis::runtime::ports::{
    GateFailure, GateQuestion, Gates, Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall,
    ModelFailure, Tools,
};
use portcullis::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, Posted, RequestId, Standing, Store, Stored,
};
use portcullis::runtime::{Outcome, Question, RunHandle, Runtime};
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::{Decision, GateAnswer, LiveTool, Reconciliation, Verdict};
use portcullis::vocabulary::llm;
use portcullis::vocabulary::spec::Spec;
use portcullis::vocabulary::tool::{ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::suite::Test;
use crate::world::{answer, output, spec, tools};

pub(crate) const TESTS: &[Test] =
    &[("unsynced::nothing_was_performed_for_a_record_that_was_lost", nothing_was_performed_for_a_record_that_was_lost)];

const SCRIPTS: &[&str] = &["looks", "effects", "people", "troubles"];

/// What outlives the machine: the store's synced part, and what was done to the world.
#[derive(Default)]
struct Rest {
    /// What was performed: the run, and the effect that asks for it, as far as it is written down.
    performed: Mutex<Vec<(String, Value)>>,
    lost: AtomicU32,
}

/// A machine. It dies at its nth event.
pub(crate) struct Machine {
    left: AtomicU32,
    dies: Notify,
    rest: Arc<Rest>,
}

impl Machine {
    /// One that dies at its nth event.
    pub(crate) fn dying_at(nth: u32) -> Arc<Self> {
        Self::with(nth, Arc::default())
    }

    fn with(nth: u32, rest: Arc<Rest>) -> Arc<Self> {
        Arc::new(Self { left: AtomicU32::new(nth), dies: Notify::new(), rest })
    }

    /// Something happens. On a dead machine nothing does any more.
    async fn event(&self) {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1)));
        if left.unwrap() <= 1 {
            self.dies.notify_one();
            std::future::pending::<()>().await;
        }
        tokio::task::yield_now().await;
    }

    async fn performs(&self, run: &RunId, effect: Value) {
        self.rest.performed.lock().unwrap().push((run.to_string(), effect));
        self.event().await;
    }
}

/// A store whose appends are written first and synced later; only then they are there.
struct Unsynced {
    synced: MemoryStore,
    machine: Arc<Machine>,
}

/// Counts itself among the lost unless it was synced.
struct Written<'a>(&'a Rest, bool);

impl Drop for Written<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.lost.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Unsynced {
    fn sync<'a, T: Send + 'a>(
        &'a self,
        sync: impl FnOnce(&'a MemoryStore) -> Stored<'a, T> + Send + 'a,
    ) -> Stored<'a, T> {
        Box::pin(async move {
            let mut written = Written(&self.machine.rest, false);
            self.machine.event().await;
            self.machine.event().await;
            let done = sync(&self.synced).await;
            written.1 = true;
            // Durable, and nobody has heard of it.
            self.machine.event().await;
            done
        })
    }
}

impl Store for Unsynced {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        self.sync(move |store| store.create(beginning))
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        self.sync(move |store| store.append(append))
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        let run = run.clone();
        self.sync(move |store| store.claim(&run, claim))
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        self.sync(move |store| store.release(lease))
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        self.synced.read(run)
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        self.synced.find(run)
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        self.synced.list(filter)
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.synced.origin(run)
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.synced.post(run, request)
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        self.synced.posted()
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        self.synced.answer(request, answer)
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        self.synced.answered(request)
    }
}

#[derive(Clone)]
pub(crate) struct Ports(pub(crate) Arc<Machine>);

impl Model for Ports {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let effect = json!({"type": "call_model", "call": call.call.to_string(), "attempt": call.attempt});
        self.0.performs(&call.run, effect).await;
        answer(&call)
    }
}

impl Tools for Ports {
    async fn resolve(&self, _spec: &Spec) -> Result<Environment, ResolutionError> {
        self.0.event().await;
        Ok(Environment { tools: tools(), ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let (call, attempt) = (invocation.call.to_string(), invocation.attempt);
        let operation = invocation.operation_id.to_string();
        let effect = json!({"type": "invoke_tool", "call": call, "attempt": attempt, "operation_id": operation});
        self.0.performs(&invocation.run, effect).await;
        Ok(output(&invocation.tool().name, &invocation.arguments().to_text()))
    }

    async fn live(&self) -> Vec<LiveTool> {
        tools().iter().map(|tool| LiveTool { name: tool.name.clone(), recovery: tool.recovery_mode() }).collect()
    }
}

impl Judge for Ports {
    async fn judge(&self, question: JudgeQuestion) -> Result<Judgement, llm::Error> {
        let (call, attempt) = (question.call.to_string(), question.attempt);
        self.0.performs(&question.run, json!({"type": "judge_semantics", "call": call, "attempt": attempt})).await;
        Ok(Judgement { verdict: Verdict::Supported, usage: None })
    }
}

impl Gates for Ports {
    async fn ask(&self, _question: GateQuestion) -> Result<GateAnswer, GateFailure> {
        Ok(GateAnswer::Allow)
    }
}

/// One machine's life: it recovers what is lost, begins what is missing, and sees it through. True when all of it
/// is done.
async fn live(machine: &Machine, runtime: &Runtime, store: &MemoryStore) -> bool {
    tokio::select! {
        biased;
        () = machine.dies.notified() => false,
        () = work(machine, runtime, store) => true,
    }
}

async fn work(machine: &Machine, runtime: &Runtime, store: &MemoryStore) {
    let recovery = runtime.recover().await.unwrap();
    assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
    let mut handles = recovery.runs;
    for script in SCRIPTS {
        let run: RunId = script.parse().unwrap();
        if handles.iter().any(|handle| *handle.run() == run) {
            continue;
        }
        match store.find(&run).await.unwrap().map(|listed| listed.standing) {
            None => handles.push(runtime.start_as(run, spec(script)).await.unwrap()),
            Some(Standing::Awaiting { .. }) => handles.push(runtime.attach(&run).await.unwrap()),
            Some(Standing::Running | Standing::Ended { .. }) => {}
        }
    }
    join_all(handles.iter().map(|handle| see_through(machine, handle))).await;
}

async fn see_through(machine: &Machine, handle: &RunHandle) {
    loop {
        match handle.outcome().await.unwrap() {
            Outcome::Ended(ended) => {
                let effect = json!({"type": "publish", "key": ended.key.to_string()});
                machine.performs(handle.run(), effect).await;
                return handle.delivered("read").await.unwrap();
            }
            Outcome::Awaiting(waiting) => {
                for question in &waiting.questions {
                    // Whoever answers first is heard; that it was refused to a second one is no matter here.
                    let _ = match question {
                        Question::Decision { ticket, .. } => {
                            handle.decide(ticket.clone(), "a person", Decision::Allow).await
                        }
                        Question::Reconciliation { call, .. } => {
                            handle.reconcile(*call, "a person", Reconciliation::NotApplied).await
                        }
                    };
                }
            }
        }
    }
}

fn history(store: &MemoryStore, run: &str) -> Option<String> {
    let mut text = String::new();
    let mut lines = crate::claims::wait(store.read(&run.parse().unwrap())).ok()?;
    std::io::Read::read_to_string(&mut lines, &mut text).unwrap();
    Some(text)
}

/// The effects that the records of a history ask for.
fn effects(history: &str) -> Vec<Value> {
    let records = history.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.flat_map(|record| record["effects"].as_array().cloned().unwrap_or_default()).collect()
}

/// Everything that was performed is asked for by a record that is there.
fn is_asked_for(disk: &MemoryStore, performed: &[(String, Value)], nth: u32) {
    let of = |run: &&str| (run.to_string(), history(disk, run).map(|history| effects(&history)));
    let asked: BTreeMap<String, Option<Vec<Value>>> = SCRIPTS.iter().map(of).collect();
    for (run, effect) in performed {
        let asked = asked[run].as_ref().unwrap_or_else(|| panic!("{run} was performed for and never began"));
        let fields = effect.as_object().unwrap();
        let fits = |asked: &Value| fields.iter().all(|(field, value)| asked[field] == *value);
        assert!(asked.iter().any(fits), "dying at {nth}: {run}: no record asks for {effect}");
    }
}

/// Machines die, each at its nth event, until one has done all there is to do.
fn lives(nth: u32) -> (u32, u32) {
    let (disk, rest) = (MemoryStore::new(), Arc::new(Rest::default()));
    let mut deaths = 0;
    loop {
        // The first few die as asked, the next later and later, so that they come to an end.
        let left = nth + deaths * deaths;
        let machine = Machine::with(left, Arc::clone(&rest));
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ports = Ports(Arc::clone(&machine));
        let done = tokio.block_on(async {
            let store = Unsynced { synced: disk.session(), machine: Arc::clone(&machine) };
            let builder = Runtime::builder().model(ports.clone()).tools(ports.clone()).judge(ports.clone());
            let runtime = builder.gates(ports).store(store).build().unwrap();
            live(&machine, &runtime, &disk).await
        });
        drop(tokio);
        is_asked_for(&disk, &rest.performed.lock().unwrap(), nth);
        if done {
            break;
        }
        deaths += 1;
    }
    let performed: BTreeSet<String> = rest.performed.lock().unwrap().iter().map(|done| format!("{done:?}")).collect();
    assert!(performed.len() > SCRIPTS.len());
    for run in SCRIPTS {
        let summary = replay(history(&disk, run).unwrap().as_bytes(), Policy::ReportAll).unwrap();
        assert!(summary.divergences.is_empty() && summary.tail.is_none() && summary.delivered, "{run}: {summary:?}");
        assert!(is_legal(&summary.ending.unwrap()), "{run}");
    }
    (deaths, rest.lost.load(Ordering::SeqCst))
}

fn nothing_was_performed_for_a_record_that_was_lost() {
    let counts: Vec<(u32, u32)> = (2..=140).map(lives).collect();
    let deaths: u32 = counts.iter().map(|(deaths, _)| deaths).sum();
    let lost: u32 = counts.iter().map(|(_, lost)| lost).sum();
    println!("    {deaths} deaths, {lost} writes lost");
    assert!(deaths > 139 && lost > 139);
}
