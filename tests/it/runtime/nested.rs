//! Tools that make calls of their own, in real runs: asked for, durable before they begin, over with their tool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, join_all};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::clock::{Busy, Clock};
use portcullis::runtime::ports::{
    Admitted, Denied, GateAbout, GateFailure, GateQuestion, Gates, Invocation, Nested, TooLate, Tools,
};
use portcullis::runtime::store::Store;
use portcullis::runtime::{Ended, Outcome, RunHandle, Runtime, VirtualClock};
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::GateAnswer;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::Usage;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ObservationCode, ToolError, ToolOutput};

use super::{Talker, asks, ended, runtime, spec};

/// What a tool does with its nested calls, and what it says of them.
type Work = dyn Fn(Nested) -> BoxFuture<'static, String> + Send + Sync;

/// A tool that does this while it runs. A gate stands before `act`.
#[derive(Clone)]
struct Delegate {
    work: Arc<Work>,
    gated: bool,
    /// What the tool said, also when nobody heard it.
    said: Arc<Mutex<Vec<String>>>,
}

impl Delegate {
    fn new(work: impl Fn(Nested) -> BoxFuture<'static, String> + Send + Sync + 'static) -> Self {
        Self { work: Arc::new(work), gated: false, said: Arc::default() }
    }
}

impl Tools for Delegate {
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        let door = Gate { id: "door".to_owned(), of: GateOf::Tool, tools: vec!["act".to_owned()] };
        let gates = if self.gated { vec![door] } else { Vec::new() };
        Ok(Environment { tools: spec.tools.clone(), gates, ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let said = (self.work)(invocation.nested()).await;
        self.said.lock().unwrap().push(said.clone());
        Ok(ToolOutput::facts(said, [Statement::new("seen")]))
    }
}

/// A gate that takes its time, counted in virtual milliseconds.
struct Slow(VirtualClock, fn() -> GateAnswer);

impl Gates for Slow {
    async fn ask(&self, question: GateQuestion) -> Result<GateAnswer, GateFailure> {
        let GateAbout::Nested { nested, plan } = question.about else {
            return Err(GateFailure("it is asked about nested calls only".to_owned()));
        };
        assert_eq!((nested.to_string().as_str(), &*plan.tool.name), ("n1.0.0", "act"));
        self.0.sleep_until(self.0.now_ms() + 500).await;
        Ok((self.1)())
    }
}

fn nothing() -> Json {
    Json::Object(BTreeMap::new())
}

fn word(answer: &Result<Admitted, Denied>) -> String {
    match answer {
        Ok(admitted) => admitted.id().to_string(),
        Err(denied) => denied.to_string(),
    }
}

const USED: Usage = Usage { input_tokens: Some(30), output_tokens: Some(7) };

async fn started(clock: &VirtualClock, store: &MemoryStore, tools: Delegate, spec: Spec) -> (Runtime, RunHandle) {
    let model = Talker::new(clock, [(1, Ok(asks(&["look"])))]);
    let runtime = runtime(clock, store.session(), model, tools).build().unwrap();
    let handle = runtime.start_as("nested".parse().unwrap(), spec).await.unwrap();
    (runtime, handle)
}

/// The run, to its end.
async fn played(tools: Delegate, spec: Spec) -> Arc<Ended> {
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let (_runtime, handle) = started(&clock, &store, tools, spec).await;
    ended(&handle).await
}

/// The inputs of a history, in order.
async fn inputs(store: &MemoryStore) -> Vec<String> {
    let run: RunId = "nested".parse().unwrap();
    let mut history = String::new();
    std::io::Read::read_to_string(&mut store.read(&run).await.unwrap(), &mut history).unwrap();
    let tag = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["input"]["type"].as_str().unwrap().to_owned()
    };
    history.lines().map(tag).collect()
}

#[tokio::test]
async fn a_tool_calls_a_tool_and_a_model_of_its_own_and_both_count() {
    let tools = Delegate::new(|nested| {
        Box::pin(async move {
            let tool = nested.tool("act", nothing()).await.unwrap();
            let (first, model) = (tool.id().to_string(), nested.model().await.unwrap());
            let second = model.id().to_string();
            tool.complete(None).await.unwrap();
            model.complete(Some(USED)).await.unwrap();
            format!("{first} {second}")
        })
    });
    let said = Arc::clone(&tools.said);
    let ended = played(tools, spec()).await;
    assert_eq!(*said.lock().unwrap(), ["n1.0.0 n1.0.1"]);
    assert_eq!((ended.ending.row, ended.spent.tool_calls, ended.spent.model_calls), (1, 2, 3));
    assert_eq!((ended.spent.input_tokens, ended.spent.output_tokens), (30, 7));
}

#[tokio::test]
async fn the_request_is_durable_when_admission_comes_back() {
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (there, found) = (store.session(), Arc::clone(&seen));
    let tools = Delegate::new(move |nested| {
        let (there, found) = (there.session(), Arc::clone(&found));
        Box::pin(async move {
            let admitted = nested.tool("act", nothing()).await.unwrap();
            let before = inputs(&there).await;
            admitted.complete(None).await.unwrap();
            let after = inputs(&there).await;
            found.lock().unwrap().extend([before, after]);
            String::new()
        })
    });
    let (_runtime, handle) = started(&clock, &store, tools, spec()).await;
    ended(&handle).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].last().unwrap(), "nested_call_requested");
    assert_eq!(seen[1].last().unwrap(), "nested_completed");
}

#[tokio::test]
async fn a_denial_says_why() {
    let tools = Delegate::new(|nested| {
        Box::pin(async move {
            let deep = (0..70).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
            let answers = [
                nested.tool("nobody", nothing()).await,
                nested.tool("act", Json::Null).await,
                nested.tool("act", deep).await,
                nested.tool("sign", nothing()).await,
                nested.tool("act", nothing()).await,
                nested.tool("act", nothing()).await,
            ];
            answers.iter().map(word).collect::<Vec<_>>().join(", ")
        })
    });
    let said = Arc::clone(&tools.said);
    let mut spec = spec();
    spec.tools.push(ToolSpec { confirm: true, ..ToolSpec::new("sign") });
    spec.budgets.tool_calls = Some(2);
    let ended = played(tools, spec).await;
    let deep = "INVALID_ARGUMENTS: JSON deeper than 64";
    let expected = format!("UNKNOWN_TOOL, INVALID_ARGUMENTS, {deep}, BUDGET_EXHAUSTED, n1.0.3, BUDGET_EXHAUSTED");
    let said = said.lock().unwrap()[0].clone();
    // The confirmed tool has room in the budget, so it is the person that it lacks.
    assert_eq!(said, expected.replacen(", BUDGET_EXHAUSTED, n", ", DENIED, n", 1));
    assert_eq!((ended.ending.row, ended.spent.tool_calls), (13, 2));
}

#[tokio::test]
async fn a_gate_takes_its_time_over_a_nested_call_and_its_words_reach_the_tool() {
    type Answer = fn() -> GateAnswer;
    let answers: [(Answer, &str); 4] = [
        (|| GateAnswer::Allow, "n1.0.0"),
        (|| GateAnswer::Block { reason: Some("not now".to_owned()) }, "BLOCKED: not now"),
        (|| GateAnswer::SetResult { content: "as usual".to_owned() }, "SET_BY_GATE: as usual"),
        (|| GateAnswer::Confirm { expires_ms: None }, "DENIED"),
    ];
    for (answer, expected) in answers {
        let clock = VirtualClock::default();
        let mut tools = Delegate::new(|nested| {
            Box::pin(async move {
                let answer = nested.tool("act", nothing()).await;
                let said = word(&answer);
                if let Ok(admitted) = answer {
                    admitted.complete(None).await.unwrap();
                }
                said
            })
        });
        tools.gated = true;
        let said = Arc::clone(&tools.said);
        let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
        let builder = runtime(&clock, MemoryStore::new(), model, tools).gates(Slow(clock.clone(), answer));
        let handle = builder.build().unwrap().start(spec()).await.unwrap();
        assert_eq!(ended(&handle).await.ending.row, 1);
        assert_eq!(*said.lock().unwrap(), [expected]);
        assert!(clock.now_ms() >= 500, "time went on while the gate was asked: {}", clock.now_ms());
    }
}

#[tokio::test]
async fn many_requests_at_once_are_answered_each_and_no_more_than_the_limit_are_admitted() {
    let tools = Delegate::new(|nested| {
        Box::pin(async move {
            let wants = |n: i64| {
                let nested = nested.clone();
                async move { nested.tool("act", Json::Object([("n".to_owned(), Json::from(n))].into())).await }
            };
            let answers = join_all((0..40).map(wants)).await;
            let admitted: Vec<Admitted> = answers.into_iter().filter_map(Result::ok).collect();
            let count = admitted.len();
            join_all(admitted.into_iter().map(|admitted| admitted.complete(None))).await;
            count.to_string()
        })
    });
    let said = Arc::clone(&tools.said);
    let mut spec = spec();
    spec.budgets.tool_calls = Some(24);
    let ended = played(tools, spec).await;
    assert_eq!(*said.lock().unwrap(), ["23"]);
    assert_eq!((ended.ending.row, ended.spent.tool_calls), (13, 24));
}

#[tokio::test]
async fn an_admission_that_is_dropped_leaves_its_call_open_and_its_effect_unknown() {
    let tools = Delegate::new(|nested| {
        Box::pin(async move {
            drop(nested.tool("act", nothing()).await.unwrap());
            drop(nested.model().await.unwrap());
            String::new()
        })
    });
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"]))), (1, Ok(repeats()))]);
    let runtime = runtime(&clock, store.session(), model, tools).build().unwrap();
    let handle = runtime.start_as("nested".parse().unwrap(), spec()).await.unwrap();
    let Outcome::Awaiting(waiting) = handle.outcome().await.unwrap() else { panic!("a person is needed") };
    assert_eq!(waiting.questions.len(), 1, "the same call again");
    assert_eq!(waiting.spent.usage_unknown, 3, "the nested model call's, and those of two answers without usage");
    assert!(!inputs(&store).await.contains(&"nested_completed".to_owned()));
}

/// The model asks for exactly what the tool had called.
fn repeats() -> portcullis::runtime::ports::ModelAnswer {
    portcullis::runtime::ports::ModelAnswer::calls([portcullis::vocabulary::llm::ToolRequest {
        name: "act".to_owned(),
        arguments: "{}".to_owned(),
        provider_id: None,
    }])
}

/// Lets time go on to that moment, from a start at which it was held, and keeps it there.
async fn moment(clock: &VirtualClock, start: Busy, at_ms: u64) -> Busy {
    let there = clock.clone();
    let here = tokio::spawn(async move { there.at(at_ms).await });
    // Whoever waits at a moment has to have begun before time goes on.
    tokio::task::yield_now().await;
    drop(start);
    here.await.unwrap()
}

/// What a task says that outlives its tool.
type Later = Arc<Mutex<Option<tokio::task::JoinHandle<String>>>>;

/// A tool that leaves its handle to a task, which uses it when `go` is told.
fn leaving(go: &Arc<tokio::sync::Notify>, later: &Later) -> Delegate {
    let (go, later) = (Arc::clone(go), Arc::clone(later));
    Delegate::new(move |nested| {
        let (go, later) = (Arc::clone(&go), Arc::clone(&later));
        Box::pin(async move {
            let admitted = nested.model().await.unwrap();
            *later.lock().unwrap() = Some(tokio::spawn(async move {
                go.notified().await;
                assert_eq!(admitted.complete(None).await, Err(TooLate));
                word(&nested.model().await)
            }));
            String::new()
        })
    })
}

async fn said_later(later: &Later) -> String {
    let task = later.lock().unwrap().take().unwrap();
    task.await.unwrap()
}

#[tokio::test]
async fn a_request_that_comes_after_its_tool_has_returned_is_not_dispatched() {
    let (go, later) = (Arc::new(tokio::sync::Notify::new()), Later::default());
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"]))), (1_000, Ok(asks(&["look"])))]);
    let runtime = runtime(&clock, MemoryStore::new(), model, leaving(&go, &later)).build().unwrap();
    let start = clock.busy();
    let handle = runtime.start(spec()).await.unwrap();
    let busy = moment(&clock, start, 100).await;
    go.notify_one();
    assert_eq!(said_later(&later).await, "NOT_DISPATCHED: the tool call that asks is over");
    drop(busy);
    handle.cancel("a test").await.unwrap();
    ended(&handle).await;
}

#[tokio::test]
async fn a_request_of_a_finished_run_is_answered_run_inactive() {
    let (go, later) = (Arc::new(tokio::sync::Notify::new()), Later::default());
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let (runtime, handle) = started(&clock, &store, leaving(&go, &later), spec()).await;
    ended(&handle).await;
    go.notify_one();
    assert_eq!(said_later(&later).await, "RUN_INACTIVE: the run is over", "while its release waits for a reader");
    drop((runtime, handle));
}

#[tokio::test]
async fn a_request_after_the_runtime_is_gone_is_answered_run_inactive() {
    let (go, later) = (Arc::new(tokio::sync::Notify::new()), Later::default());
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let (runtime, handle) = started(&clock, &store, leaving(&go, &later), spec()).await;
    ended(&handle).await;
    handle.delivered("r").await.unwrap();
    drop((runtime, handle));
    go.notify_one();
    assert_eq!(said_later(&later).await, "RUN_INACTIVE: the run is over");
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_a_gate_is_asked_gives_its_tool_up() {
    let tools = Delegate {
        gated: true,
        ..Delegate::new(|nested| Box::pin(async move { word(&nested.tool("act", nothing()).await) }))
    };
    let said = Arc::clone(&tools.said);
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
    let builder = runtime(&clock, MemoryStore::new(), model, tools).gates(Slow(clock.clone(), || GateAnswer::Allow));
    let start = clock.busy();
    let handle = builder.build().unwrap().start(spec()).await.unwrap();
    let busy = moment(&clock, start, 100).await;
    handle.cancel("a test").await.unwrap();
    drop(busy);
    let ended = ended(&handle).await;
    assert_eq!((ended.ending.row, ended.spent.tool_calls), (15, 1), "the reservation is given back");
    assert!(said.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_that_returns_while_a_request_is_under_way_closes_it() {
    let clock = VirtualClock::default();
    let waiting = clock.clone();
    let mut tools = Delegate::new(move |nested| {
        let clock = waiting.clone();
        Box::pin(async move {
            let late = tokio::spawn(async move { word(&nested.tool("act", nothing()).await) });
            // The gate is asked by now, and answers much later.
            clock.sleep_until(clock.now_ms() + 100).await;
            LATE.with(|slot| *slot.borrow_mut() = Some(late));
            "returned".to_owned()
        })
    });
    tools.gated = true;
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
    let builder = runtime(&clock, MemoryStore::new(), model, tools).gates(Slow(clock.clone(), || GateAnswer::Allow));
    let handle = builder.build().unwrap().start(spec()).await.unwrap();
    let ended = ended(&handle).await;
    assert_eq!((ended.ending.row, ended.spent.tool_calls), (1, 1));
    let late = LATE.with(|slot| slot.borrow_mut().take()).unwrap();
    assert_eq!(late.await.unwrap(), "NOT_DISPATCHED: the tool call that asks is over");
}

thread_local! {
    /// The task that a tool left behind; a test runs on one thread.
    static LATE: std::cell::RefCell<Option<tokio::task::JoinHandle<String>>> = const { std::cell::RefCell::new(None) };
}

#[tokio::test]
async fn nothing_is_let_through_when_the_store_refuses_the_request() {
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let (there, id): (_, RunId) = (store.session(), "nested".parse().unwrap());
    let tools = Delegate::new(move |nested| {
        let (there, id) = (there.session(), id.clone());
        Box::pin(async move {
            // Somebody takes the run over, so that its driver is fenced.
            there.claim(&id, portcullis::runtime::store::Claim::TakeOver).await.unwrap();
            let answer = nested.tool("act", nothing()).await;
            panic!("an answer came without a record: {}", word(&answer));
        })
    });
    let said = Arc::clone(&tools.said);
    let (_runtime, handle) = started(&clock, &store, tools, spec()).await;
    assert!(handle.outcome().await.is_err());
    assert!(said.lock().unwrap().is_empty());
    assert!(!inputs(&store).await.contains(&"nested_call_requested".to_owned()));
}

#[test]
fn a_denial_carries_its_code() {
    let denied = Denied { code: ObservationCode::Blocked, reason: None };
    assert_eq!(denied.to_string(), "BLOCKED");
}
