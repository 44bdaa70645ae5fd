//! Ports that panic, fail, lie about sizes or are not there: each is typed, and the run ends by the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::ports::{
    GateFailure, GateQuestion, Gates, Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall,
    ModelFailure, Tools, Toolset,
};
use portcullis::runtime::{Ended, Runtime, VirtualClock};
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::{Failure, ResolutionError, ResolutionKind};
use portcullis::vocabulary::input::{GateAnswer, LiveTool};
use portcullis::vocabulary::llm;
use portcullis::vocabulary::outcome::FallbackType;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};
use serde::Deserialize;

use super::{CITES, Kind, Talker, Workshop, asks, ended, in_memory, spec};

async fn end(model: impl Model, tools: impl Tools, judge: Option<Doubtful>) -> Arc<Ended> {
    let builder = Runtime::builder().clock(VirtualClock::default()).store(MemoryStore::new()).model(model).tools(tools);
    let runtime = match judge {
        Some(judge) => builder.judge(judge).build().unwrap(),
        None => builder.build().unwrap(),
    };
    ended(&runtime.start(spec()).await.unwrap()).await
}

struct Panicking;

impl Model for Panicking {
    async fn respond(&self, _: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        panic!("secret words");
    }
}

impl Tools for Panicking {
    async fn invoke(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        panic!("secret words");
    }

    async fn live(&self) -> Vec<LiveTool> {
        panic!("secret words");
    }
}

struct Unresolvable(fn() -> Result<Environment, ResolutionError>);

impl Tools for Unresolvable {
    async fn resolve(&self, _: &Spec) -> Result<Environment, ResolutionError> {
        (self.0)()
    }

    async fn invoke(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(""))
    }
}

enum Doubtful {
    Panics,
    Fails,
}

impl Judge for Doubtful {
    async fn judge(&self, _: JudgeQuestion) -> Result<Judgement, llm::Error> {
        match self {
            Self::Panics => panic!("secret words"),
            Self::Fails => Err(llm::Error::Timeout { message: "late".to_owned() }),
        }
    }
}

#[tokio::test]
async fn a_model_that_panics_ends_the_run_as_internal_and_its_words_reach_no_release() {
    let clock = VirtualClock::default();
    let ended = end(Panicking, Workshop::new(&clock, 1), None).await;
    assert_eq!((ended.ending.row, ended.ending.failure.clone()), (17, Some(Failure::Internal)));
    assert!(!format!("{ended:?}").contains("secret"));
}

#[tokio::test]
async fn a_tool_that_panics_is_an_execution_error_of_its_call() {
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
    let asked = Arc::clone(&model.asked);
    let runtime = in_memory(&clock, model, Panicking);
    let ended = ended(&runtime.start(spec()).await.unwrap()).await;
    assert_eq!((ended.ending.row, ended.ending.facts), (3, 0));
    let shown = format!("{:?}", asked.lock().unwrap().get(1).unwrap().messages);
    assert!(shown.contains("ToolExecutionError") && !shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn a_judge_that_panics_fails_or_is_not_there_is_never_a_pass() {
    for judge in [Some(Doubtful::Panics), Some(Doubtful::Fails), None] {
        let clock = VirtualClock::default();
        let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
        // The workshop's clock is its own: nothing here waits for it.
        let ended = end(model, Instant, judge).await;
        let fallback = Some(FallbackType::SemanticUnavailable);
        assert_eq!((ended.ending.row, ended.ending.fallback_type), (4, fallback));
    }
}

/// Tools that give a fact at once.
struct Instant;

impl Tools for Instant {
    async fn invoke(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::facts("seen", [Statement::new("a fact")]))
    }
}

#[tokio::test]
async fn resolution_fails_by_name_and_a_panic_in_it_is_internal() {
    let routing = || Err(ResolutionError::Routing { message: "secret words".to_owned() });
    let clock = VirtualClock::default();
    let failed = end(Talker::new(&clock, []), Unresolvable(routing), None).await;
    let failure = Failure::Resolution { kind: ResolutionKind::Routing };
    assert_eq!((failed.ending.row, failed.ending.failure.clone()), (18, Some(failure)));
    let panicked = end(Talker::new(&clock, []), Unresolvable(|| panic!("secret words")), None).await;
    assert_eq!((panicked.ending.row, panicked.ending.failure.clone()), (17, Some(Failure::Internal)));
}

#[tokio::test]
async fn a_spec_that_names_servers_which_nobody_reaches_is_row_18() {
    let clock = VirtualClock::default();
    let text = r#"{"task":"t","model":{"name":"m"},
        "tool_sources":[{"name":"s","transport":{"type":"http","url":"http://127.0.0.1:1"}}]}"#;
    let runtime = in_memory(&clock, Talker::new(&clock, []), Workshop::new(&clock, 1));
    let ended = ended(&runtime.start(serde_json::from_str(text).unwrap()).await.unwrap()).await;
    assert_eq!(ended.ending.row, 18);
}

#[tokio::test]
async fn an_unclassified_failure_is_internal_and_a_classified_one_inside_it_decides() {
    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Outside(#[source] llm::Error);
    let clock = VirtualClock::default();
    let limited = Outside(llm::Error::ContextOverflow { message: String::new() });
    assert!(matches!(
        ModelFailure::of(&limited),
        ModelFailure::Classified { error: llm::Error::ContextOverflow { .. }, .. }
    ));
    let unknown = ModelFailure::of(&std::io::Error::other("cable"));
    let runtime = in_memory(&clock, Talker::new(&clock, [(1, Err(unknown))]), Workshop::new(&clock, 1));
    let ended = ended(&runtime.start(spec()).await.unwrap()).await;
    assert_eq!(ended.ending.failure, Some(Failure::Internal));
}

#[tokio::test]
async fn a_response_or_result_over_a_limit_fails_its_call_and_never_leaves_it_open() {
    let clock = VirtualClock::default();
    let huge = "x".repeat(3_000_000);
    let answers = (0..3).map(|_| (1, Ok(ModelAnswer::text(huge.clone()))));
    let runtime = in_memory(&clock, Talker::new(&clock, answers), Workshop::new(&clock, 1));
    let ended = ended(&runtime.start(spec()).await.unwrap()).await;
    let failure = Failure::Inference { code: llm::Code::ProviderError };
    assert_eq!((ended.ending.row, ended.ending.failure.clone()), (17, Some(failure)));
}

#[derive(Deserialize)]
struct Arguments {
    n: u32,
}

#[tokio::test]
async fn tools_take_their_arguments_as_types_and_refuse_what_the_type_does_not_take() {
    let sum = Arc::new(AtomicU32::new(0));
    let added = Arc::clone(&sum);
    let tools = Toolset::new()
        .with(ToolSpec::evidence("look"), move |arguments: Arguments, invocation: Invocation| {
            let added = Arc::clone(&added);
            async move {
                added.fetch_add(arguments.n, Ordering::SeqCst);
                assert_eq!(invocation.operation_id.0.len(), 32);
                Ok(ToolOutput::facts("seen", [Statement::new(format!("n is {}", arguments.n))]))
            }
        })
        .with(ToolSpec::new("act"), |_: Vec<u8>, _| async { Ok(ToolOutput::text("never")) });
    let clock = VirtualClock::default();
    let model = Talker::new(&clock, [(1, Ok(asks(&["act", "look", "look"])))]);
    let runtime = in_memory(&clock, model, tools);
    let ended = ended(&runtime.start(Spec { tools: Vec::new(), ..spec() }).await.unwrap()).await;
    assert_eq!((ended.ending.row, ended.ending.facts, sum.load(Ordering::SeqCst)), (1, 2, 3));
}

type Answer = fn() -> Result<GateAnswer, GateFailure>;

struct Doorkeeper(Answer);

impl Gates for Doorkeeper {
    async fn ask(&self, _: GateQuestion) -> Result<GateAnswer, GateFailure> {
        (self.0)()
    }
}

struct Gated;

impl Tools for Gated {
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        let gate = Gate { id: "door".to_owned(), of: GateOf::Release, tools: Vec::new() };
        Ok(Environment { tools: spec.tools.clone(), gates: vec![gate], ..Environment::default() })
    }

    async fn invoke(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::facts("seen", [Statement::new("a fact")]))
    }
}

#[tokio::test]
async fn a_release_gate_that_blocks_fails_panics_or_is_not_there_blocks() {
    let answers: [(Answer, u8); 4] = [
        (|| Ok(GateAnswer::Allow), 1),
        (|| Ok(GateAnswer::Block { reason: None }), 20),
        (|| Err(GateFailure("closed".to_owned())), 20),
        (|| panic!("secret words"), 20),
    ];
    let builder = |clock: &VirtualClock| {
        let model = Talker::new(clock, [(1, Ok(asks(&["look"]))), (1, Ok(ModelAnswer::text(CITES)))]);
        Runtime::builder().clock(clock.clone()).store(MemoryStore::new()).model(model).tools(Gated).judge(Kind)
    };
    for (answer, row) in answers {
        let runtime = builder(&VirtualClock::default()).gates(Doorkeeper(answer)).build().unwrap();
        assert_eq!(ended(&runtime.start(spec()).await.unwrap()).await.ending.row, row);
    }
    let without = builder(&VirtualClock::default()).build().unwrap();
    assert_eq!(ended(&without.start(spec()).await.unwrap()).await.ending.row, 20);
}
