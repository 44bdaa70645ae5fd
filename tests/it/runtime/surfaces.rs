//! The four owners of failure, from an embedder's side: what the caller gets, what is committed, and what the
//! model sees (SPEC 12.9).

#[path = "../../../examples/host.rs"]
mod host;

use std::sync::Arc;

use host::HostError;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::ports::{
    GateFailure, GateQuestion, Gates, Invocation, Judge, JudgeQuestion, Judgement, ModelAnswer, Tools,
};
use portcullis::runtime::store::{Standing, Store, StoreError};
use portcullis::runtime::{Ended, Outcome, Runtime, VirtualClock};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::draft::DraftFault;
use portcullis::vocabulary::environment::{
    Capability, Environment, Gate, GateOf, Hook, HookPoint, MergePolicy, StateKeySpec, StateScope,
};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::{Failure, ResolutionError, ResolutionKind};
use portcullis::vocabulary::input::{GateAnswer, StagedCommand, Verdict};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm;
use portcullis::vocabulary::message::{Message, Observation};
use portcullis::vocabulary::outcome::FailureCode;
use portcullis::vocabulary::spec::{Budgets, Spec, ToolSpec};
use portcullis::vocabulary::tool::{ObservationCode, OnIndeterminate, ToolError, ToolOutput};

use super::{Kind, Talker, asks, spec};
use crate::breaking::BreakingStore;

type Answers = Vec<Result<ModelAnswer, llm::Error>>;

/// Tools whose every call comes to this, in this environment.
#[derive(Clone)]
struct Bench {
    environment: Result<Environment, ResolutionError>,
    comes_to: fn() -> Result<ToolOutput, ToolError>,
}

impl Bench {
    fn of(comes_to: fn() -> Result<ToolOutput, ToolError>) -> Self {
        Self { environment: Ok(Environment { tools: spec().tools, ..Environment::default() }), comes_to }
    }

    fn in_environment(change: impl FnOnce(&mut Environment)) -> Self {
        let mut environment = Environment { tools: spec().tools, ..Environment::default() };
        change(&mut environment);
        Self { environment: Ok(environment), comes_to: seen }
    }
}

fn seen() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::facts("seen", [Statement::new("a fact")]))
}

impl Tools for Bench {
    async fn resolve(&self, _: &Spec) -> Result<Environment, ResolutionError> {
        self.environment.clone()
    }

    async fn invoke(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        (self.comes_to)()
    }
}

/// A gate that blocks.
struct Shut;

impl Gates for Shut {
    async fn ask(&self, _: GateQuestion) -> Result<GateAnswer, GateFailure> {
        Ok(GateAnswer::Block { reason: None })
    }
}

/// What is known of a run at its end: the ending, what is stored, and what the model was shown last.
struct Seen {
    ended: Arc<Ended>,
    stored_row: u8,
    observations: Vec<Observation>,
}

async fn seen_of(answers: Answers, tools: Bench, spec: Spec) -> Seen {
    let clock = VirtualClock::default();
    let answers = answers.into_iter().map(|answer| (1, answer.map_err(Into::into)));
    let model = Talker::new(&clock, answers);
    let asked = Arc::clone(&model.asked);
    let store = MemoryStore::new();
    let reader = store.session();
    let builder = Runtime::builder().clock(clock).store(store).model(model).tools(tools).judge(Kind).gates(Shut);
    let run = builder.build().unwrap().start(spec).await.unwrap();
    let ended = super::ended(&run).await;
    let stored = reader.find(run.run()).await.unwrap().unwrap();
    assert_eq!((stored.records, stored.head), (ended.records, ended.head), "what was told is durable");
    let Standing::Ended { row, .. } = stored.standing else { panic!("{:?}", stored.standing) };
    let shown = asked.lock().unwrap().last().map(|call| call.messages.clone()).unwrap_or_default();
    let observations = shown
        .iter()
        .filter_map(|message| match &**message {
            Message::Observation(observation) => Some(observation.clone()),
            _ => None,
        })
        .collect();
    Seen { ended, stored_row: row, observations }
}

/// The run fails as `failure` in `row`, which is stored, and a host takes it for `mapped`. Nothing of a provider
/// or a tool stands in the release.
async fn fails(answers: Answers, tools: Bench, spec: Spec, row: u8, failure: Failure, mapped: HostError) -> Seen {
    let seen = seen_of(answers, tools, spec).await;
    let ending = &seen.ended.ending;
    assert_eq!((ending.row, ending.failure.as_ref(), seen.stored_row), (row, Some(&failure), row));
    assert_eq!(host::of_ending(ending), Some(mapped), "{failure:?}");
    assert!(!format!("{:?}", seen.ended).contains("hush"), "{:?}", seen.ended);
    seen
}

fn looks() -> Answers {
    vec![Ok(asks(&["look"]))]
}

fn says(text: &str) -> Result<ModelAnswer, llm::Error> {
    Ok(ModelAnswer::text(text))
}

fn hush() -> String {
    "hush".to_owned()
}

#[tokio::test]
async fn resolution_is_a_call_that_failed_before_record_0() {
    let store = MemoryStore::new();
    let reader = store.session();
    let clock = VirtualClock::default();
    let builder = Runtime::builder().clock(clock.clone()).store(store).model(Talker::new(&clock, []));
    let endless = Spec { deadline_ms: None, budgets: Budgets { model_calls: None, ..Budgets::default() }, ..spec() };
    let error = builder.build().unwrap().start(endless).await.unwrap_err();
    assert!(matches!(error, Error::Resolution { .. }), "{error:?}");
    assert_eq!((host::of_call(&error), error.failure_code()), (HostError::BadRequest, FailureCode::InternalFailure));
    assert!(reader.list(Default::default()).await.unwrap().is_empty(), "nothing is committed");
}

#[tokio::test]
async fn execution_is_a_call_that_failed_and_changed_nothing() {
    let clock = VirtualClock::default();
    let tools = Bench::of(seen);
    let runtime = super::in_memory(&clock, Talker::new(&clock, [(1, Ok(asks(&["look"])))]), tools);
    let unknown = runtime.attach(&"nobody".parse().unwrap()).await.unwrap_err();
    assert!(matches!(unknown, Error::Execution(Trouble::UnknownRun(_))), "{unknown:?}");
    assert_eq!(host::of_call(&unknown), HostError::NotFound);
    let run = runtime.start(spec()).await.unwrap();
    let before = super::ended(&run).await;
    let late = run.cancel("a person").await.unwrap_err();
    assert!(matches!(late, Error::Execution(Trouble::Refused(_))), "{late:?}");
    assert_eq!(host::of_call(&late), HostError::Conflict);
    assert_eq!(super::ended(&run).await.head, before.head);
    let unequipped = Runtime::builder().build().err().unwrap();
    assert!(matches!(unequipped, Error::Execution(Trouble::Unequipped(_))), "{unequipped:?}");
}

#[tokio::test]
async fn commit_is_a_call_that_failed_with_the_history_at_its_last_durable_record() {
    let clock = VirtualClock::default();
    let store = MemoryStore::new();
    let reader = store.session();
    let broken = BreakingStore::after(2, store);
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
    let runtime = super::runtime(&clock, broken, model, Bench::of(seen)).build().unwrap();
    let run = runtime.start_as("r".parse().unwrap(), spec()).await.unwrap();
    let Err(error @ Error::Commit(StoreError::Medium { .. })) = run.outcome().await else { panic!("it was committed") };
    assert_eq!(
        (host::of_call(&error), error.failure_code()),
        (HostError::Unrecorded, FailureCode::RunPersistenceFailed)
    );
    let stored = reader.find(run.run()).await.unwrap().unwrap();
    assert_eq!((stored.records, stored.standing), (2, Standing::Running), "nothing was released");
}

/// A conflict is an ending of the run, whatever call waits for it: `execution::Error` has no word for it.
#[tokio::test]
async fn a_state_conflict_never_escapes_as_an_error_of_a_call() {
    let mut bench =
        sharing(Bound { tools: Allowance::ids(["act"]), state_keys: Allowance::ids(["k"]), ..Bound::default() });
    bench.comes_to = || Ok(ToolOutput::text("done").staging([set(), set()]));
    let answers = vec![Ok(asks(&["act"]))];
    fails(answers, bench, spec(), 17, Failure::StateConflict, HostError::Deployment).await;
}

#[tokio::test]
async fn capability_bound_is_a_failed_run_at_resolution_and_later() {
    let nothing = || Bound { tools: Allowance::ids(["act"]), ..Bound::default() };
    let mut bench = sharing(nothing());
    bench.comes_to = || Ok(ToolOutput::text("done").staging([set()]));
    let answers = vec![Ok(asks(&["act"]))];
    fails(answers, bench, spec(), 17, Failure::CapabilityBound, HostError::Deployment).await;
    let early = sharing(Bound::default());
    fails(Vec::new(), early, spec(), 18, Failure::CapabilityBound, HostError::Deployment).await;
}

/// `act` is a plugin's, and so is one exclusive key.
fn sharing(bound: Bound) -> Bench {
    Bench::in_environment(|environment| {
        let key = StateKeySpec { scope: StateScope::Run, key: "k".to_owned(), policy: MergePolicy::Exclusive };
        environment.state_keys = vec![key];
        environment.plugins = vec!["p".to_owned()];
        environment.capabilities = vec![Capability {
            plugin: "p".to_owned(),
            bound,
            tools: vec!["act".to_owned()],
            gates: Vec::new(),
            action_kinds: Vec::new(),
        }];
    })
}

fn set() -> StagedCommand {
    StagedCommand::Set { scope: StateScope::Run, key: "k".to_owned(), value: Json::Null }
}

#[tokio::test]
async fn every_class_of_model_error_that_stays_is_a_failed_run_under_its_code() {
    let errors = [
        (llm::Error::Provider { message: hush() }, HostError::Unavailable),
        (llm::Error::RateLimited { message: hush(), retry_after_ms: None }, HostError::Unavailable),
        (llm::Error::Overloaded { message: hush(), retry_after_ms: None }, HostError::Unavailable),
        (llm::Error::Timeout { message: hush() }, HostError::Unavailable),
        (llm::Error::Binding { message: hush() }, HostError::Unavailable),
        (llm::Error::ContextOverflow { message: hush() }, HostError::BadRequest),
        (llm::Error::InvalidRequest { message: hush() }, HostError::BadRequest),
        (llm::Error::Unauthorized { message: hush() }, HostError::Account),
        (llm::Error::UsageLimit { message: hush(), reset_after_ms: None }, HostError::Account),
        (llm::Error::LoginRequired { message: hush() }, HostError::Account),
        (llm::Error::ModelNotFound { message: hush() }, HostError::Unavailable),
        (llm::Error::ContentFiltered { message: hush() }, HostError::BadRequest),
    ];
    assert_eq!(errors.len(), llm::Error::TAGS.len());
    for (error, mapped) in errors {
        let failure = Failure::Inference { code: error.code() };
        let answers = std::iter::repeat_n(Err(error), 3).collect();
        fails(answers, Bench::of(seen), spec(), 17, failure, mapped).await;
    }
}

#[tokio::test]
async fn every_resolution_error_is_a_failed_run_in_row_18() {
    let id = || "a".to_owned();
    let errors = [
        (ResolutionError::Routing { message: hush() }, ResolutionKind::Routing, HostError::Unavailable),
        (
            ResolutionError::DuplicateTool { id: id(), first: id(), second: id() },
            ResolutionKind::DuplicateTool,
            HostError::Deployment,
        ),
        (
            ResolutionError::DuplicateActionKind { id: id(), first: id(), second: id() },
            ResolutionKind::DuplicateActionKind,
            HostError::Deployment,
        ),
        (
            ResolutionError::MissingDependency { plugin: id(), missing: id() },
            ResolutionKind::MissingDependency,
            HostError::Deployment,
        ),
        (ResolutionError::DuplicatePlugin { id: id() }, ResolutionKind::DuplicatePlugin, HostError::Deployment),
        (ResolutionError::Config { plugin: id(), message: hush() }, ResolutionKind::Config, HostError::Deployment),
        (
            ResolutionError::InvalidTool { id: id(), message: hush() },
            ResolutionKind::InvalidTool,
            HostError::Deployment,
        ),
    ];
    for (error, kind, mapped) in errors {
        let bench = Bench { environment: Err(error), comes_to: seen };
        let seen = fails(Vec::new(), bench, spec(), 18, Failure::Resolution { kind }, mapped).await;
        let routing = kind == ResolutionKind::Routing;
        let code = if routing { FailureCode::RoutingUnavailable } else { FailureCode::InternalFailure };
        assert_eq!(seen.ended.ending.failure_code, Some(code));
    }
}

#[tokio::test]
async fn a_run_that_observed_nothing_fails_by_what_its_draft_was() {
    let drafts = [
        (says("hush, no JSON"), 8, Failure::DraftContract { kind: DraftFault::InvalidJson }, HostError::Unavailable),
        (says(r#"{"conclusion":null,"citations":[]}"#), 6, Failure::NoObservedFacts, HostError::NothingFound),
        (says(super::CITES), 3, Failure::NoObservedFacts, HostError::NothingFound),
    ];
    for (draft, row, failure, mapped) in drafts {
        fails(vec![draft], Bench::of(seen), spec(), row, failure, mapped).await;
    }
}

#[tokio::test]
async fn a_release_gate_that_blocks_is_a_failed_run_that_names_it() {
    let bench = Bench::in_environment(|environment| {
        environment.gates = vec![Gate { id: "last".to_owned(), of: GateOf::Release, tools: Vec::new() }];
    });
    let failure = Failure::Blocked { gate: "last".to_owned() };
    fails(looks(), bench, spec(), 20, failure, HostError::Forbidden).await;
}

/// A hook of a plugin that this program does not have fails closed.
#[tokio::test]
async fn what_nobody_classified_is_internal() {
    let bench = Bench::in_environment(|environment| {
        let bound = Bound { hooks: vec![HookPoint::RoundStart], ..Bound::default() };
        environment.hooks = vec![Hook { plugin: "p".to_owned(), point: HookPoint::RoundStart }];
        environment.plugins = vec!["p".to_owned()];
        environment.capabilities = vec![Capability {
            plugin: "p".to_owned(),
            bound,
            tools: Vec::new(),
            gates: Vec::new(),
            action_kinds: Vec::new(),
        }];
    });
    fails(Vec::new(), bench, spec(), 17, Failure::Internal, HostError::Internal).await;
}

/// A process that dies in the middle of a call that must not be replayed: with `on_indeterminate: end` the next
/// one ends the run.
#[test]
fn an_outcome_that_stays_unknown_is_a_failed_run_once_the_process_has_died() {
    let store = MemoryStore::new();
    let next_session = store.session();
    let clock = VirtualClock::default();
    let act = ToolSpec { on_indeterminate: OnIndeterminate::End, ..ToolSpec::new("act") };
    let spec = Spec { tools: vec![act], ..spec() };
    let model = Talker::new(&clock, [(10, Ok(asks(&["act"])))]);
    let run = super::recovery::die_at(store, &clock, model, super::Workshop::new(&clock, 100), spec, 50);
    crate::stage::block_on(async {
        let clock = VirtualClock::starting_at(1_000);
        let runtime = super::runtime(&clock, next_session, Talker::new(&clock, []), Bench::of(seen)).build().unwrap();
        runtime.recover().await.unwrap();
        let ended = super::ended(&runtime.attach(&run).await.unwrap()).await;
        assert_eq!((ended.ending.row, ended.ending.failure.as_ref()), (19, Some(&Failure::Indeterminate)));
        assert_eq!(host::of_ending(&ended.ending), Some(HostError::CheckFirst));
    });
}

/// The example is a program too.
#[test]
fn the_example_host_runs() {
    host::main().unwrap();
}

/// An invocation that failed goes on in the run: the model sees our code, and the engine repeats only what is
/// proven not to have happened.
#[tokio::test]
async fn every_tool_error_is_an_observation_and_no_end() {
    type Failing = fn() -> Result<ToolOutput, ToolError>;
    let errors: [(Failing, ObservationCode, bool); 4] = [
        (|| Err(ToolError::Unknown { message: hush() }), ObservationCode::ToolExecutionError, true),
        (|| Err(ToolError::InvalidArguments { message: hush() }), ObservationCode::ToolExecutionError, true),
        (|| Err(ToolError::UnavailableBeforeDispatch { message: hush() }), ObservationCode::ToolUnavailable, false),
        (|| Err(ToolError::Execution { message: hush() }), ObservationCode::ToolExecutionError, true),
    ];
    assert_eq!(errors.len(), ToolError::TAGS.len());
    for (comes_to, code, unknown) in errors {
        let answers = vec![Ok(asks(&["act"])), says(r#"{"conclusion":null,"citations":[]}"#)];
        let seen = seen_of(answers, Bench::of(comes_to), spec()).await;
        let [observation] = seen.observations.as_slice() else { panic!("{:?}", seen.observations) };
        assert_eq!(observation.code, Some(code));
        assert_eq!(observation.text.contains(r#""effect":"unknown""#), unknown, "{}", observation.text);
        assert_eq!(seen.ended.ending.row, 6, "the run goes on to its own end");
    }
}

#[tokio::test]
async fn a_result_that_the_model_should_see_is_an_observation_without_facts() {
    let answers = vec![Ok(asks(&["look"])), says(r#"{"conclusion":null,"citations":[]}"#)];
    let seen = seen_of(answers, Bench::of(|| Ok(ToolOutput::error("no such host"))), spec()).await;
    let [observation] = seen.observations.as_slice() else { panic!("{:?}", seen.observations) };
    assert_eq!((observation.code, observation.text.as_str()), (Some(ObservationCode::ToolResultError), "no such host"));
    assert_eq!((seen.ended.ending.row, seen.ended.ending.facts), (6, 0));
}

/// Otherwise the caller goes on from where the run stands, which may be awaiting.
#[tokio::test]
async fn a_run_that_waits_for_a_person_is_no_error() {
    let clock = VirtualClock::default();
    let asked = ToolSpec { confirm: true, ..ToolSpec::evidence("look") };
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
    let runtime = super::in_memory(
        &clock,
        model,
        Bench { environment: Ok(Environment { tools: vec![asked], ..Environment::default() }), comes_to: seen },
    );
    let run = runtime.start(spec()).await.unwrap();
    assert!(matches!(run.outcome().await.unwrap(), Outcome::Awaiting(_)));
}

/// A verdict against the draft, and a judge that fails, are answers to show: fallbacks and no failures.
#[tokio::test]
async fn a_fallback_is_no_failure() {
    struct Against;
    impl Judge for Against {
        async fn judge(&self, _: JudgeQuestion) -> Result<Judgement, llm::Error> {
            Ok(Judgement { verdict: Verdict::Contradicted, usage: None })
        }
    }
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
    let runtime = super::runtime(&clock, MemoryStore::new(), model, Bench::of(seen)).judge(Against).build().unwrap();
    let ended = super::ended(&runtime.start(spec()).await.unwrap()).await;
    assert_eq!((ended.ending.row, host::of_ending(&ended.ending)), (4, None));
}

/// Every variant has its row in the documentation, under its own name or code.
#[test]
fn every_name_has_its_row_in_the_documentation() {
    let page = std::fs::read_to_string(crate::support::project("docs/errors.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let names = ["Resolution", "Execution", "Commit", "StateConflict"]
        .into_iter()
        .chain(Failure::TAGS.iter().copied())
        .chain(ObservationCode::ALL.iter().map(|code| code.word()))
        .chain(llm::Code::ALL.iter().map(|code| code.word()))
        .chain(["Unknown", "InvalidArguments", "UnavailableBeforeDispatch", "ToolOutput::error"])
        .chain(["Bound", "DuplicateTool", "DuplicateActionKind", "MissingDependency", "DependencyCycle"])
        .chain(["DuplicatePlugin", "Config", "BoundViolation", "PluginConfigError"]);
    for name in names {
        let own = |row: &&&str| row.contains(&format!("`{name}")) || row.contains(&format!("({name})"));
        assert!(rows.iter().any(|row| own(&row)), "no row for {name}");
    }
}
