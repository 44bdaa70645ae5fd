//! The runtime from an embedder's side: ports, handles, virtual time.

mod attacks;
mod handles;
mod nested;
mod parking;
mod plugins;
mod ports;
mod races;
mod recovery;
mod spans;
mod strays;
mod surfaces;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::clock::Clock;
use portcullis::runtime::ports::{
    Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall, ModelFailure, Tools,
};
use portcullis::runtime::store::Store;
use portcullis::runtime::{Builder, Ended, Outcome, Question, RunHandle, Runtime, VirtualClock};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::ids::Ticket;
use portcullis::vocabulary::input::{LiveTool, Verdict};
use portcullis::vocabulary::llm::{self, ToolRequest};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

/// What takes no time does not wait for the clock either.
async fn pass(clock: &VirtualClock, after_ms: u64) {
    if after_ms > 0 {
        clock.sleep_until(clock.now_ms() + after_ms).await;
    }
}

/// What a model answers, and how long it takes.
pub(crate) type Answer = (u64, Result<ModelAnswer, ModelFailure>);

/// A model that gives its answers in order, and then the draft that cites the first fact.
#[derive(Clone)]
pub(crate) struct Talker {
    clock: VirtualClock,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    pub(crate) asked: Arc<Mutex<Vec<ModelCall>>>,
}

impl Talker {
    pub(crate) fn new(clock: &VirtualClock, answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { clock: clock.clone(), answers, asked: Arc::default() }
    }
}

pub(crate) const CITES: &str = r#"{"conclusion":{"statement":"s"},"citations":["f1"],"data":{"n":7}}"#;

impl Model for Talker {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        self.asked.lock().unwrap().push(call);
        let next = self.answers.lock().unwrap().pop_front();
        let (after_ms, answer) = next.unwrap_or_else(|| (10, Ok(ModelAnswer::text(CITES))));
        pass(&self.clock, after_ms).await;
        answer
    }
}

/// Tools that take so long and give one fact each, and write down when they were entered and when they were
/// dropped before they returned.
#[derive(Clone)]
pub(crate) struct Workshop {
    clock: VirtualClock,
    takes_ms: u64,
    pub(crate) entered: Arc<Mutex<Vec<(u64, String)>>>,
    pub(crate) dropped: Arc<Mutex<Vec<(u64, String)>>>,
    pub(crate) live: Vec<LiveTool>,
}

impl Workshop {
    pub(crate) fn new(clock: &VirtualClock, takes_ms: u64) -> Self {
        let (entered, dropped) = (Arc::default(), Arc::default());
        Self { clock: clock.clone(), takes_ms, entered, dropped, live: Vec::new() }
    }
}

struct Noted<'a>(&'a Workshop, String, bool);

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if !self.2 {
            self.0.dropped.lock().unwrap().push((self.0.clock.now_ms(), self.1.clone()));
        }
    }
}

impl Tools for Workshop {
    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let call = invocation.call.to_string();
        self.entered.lock().unwrap().push((self.clock.now_ms(), call.clone()));
        let mut noted = Noted(self, call.clone(), false);
        pass(&self.clock, self.takes_ms).await;
        noted.2 = true;
        Ok(ToolOutput::facts("seen", [Statement::new(format!("fact of {call}"))]))
    }

    async fn live(&self) -> Vec<LiveTool> {
        self.live.clone()
    }
}

/// A judge that supports everything.
#[derive(Clone, Copy)]
pub(crate) struct Kind;

impl Judge for Kind {
    async fn judge(&self, _: JudgeQuestion) -> Result<Judgement, llm::Error> {
        Ok(Judgement { verdict: Verdict::Supported, usage: None })
    }
}

pub(crate) fn asks(tools: &[&str]) -> ModelAnswer {
    ModelAnswer::calls(tools.iter().enumerate().map(|(index, name)| ToolRequest {
        name: (*name).to_owned(),
        arguments: format!(r#"{{"n":{index}}}"#),
        provider_id: None,
    }))
}

/// A spec with the tools `look` (evidence) and `act`.
pub(crate) fn spec() -> Spec {
    Spec { tools: vec![ToolSpec::evidence("look"), ToolSpec::new("act")], ..Spec::new("t", "m") }
}

pub(crate) fn runtime(clock: &VirtualClock, store: impl Store, model: impl Model, tools: impl Tools) -> Builder {
    Runtime::builder().clock(clock.clone()).store(store).model(model).tools(tools).judge(Kind)
}

/// A runtime on a new store in memory.
pub(crate) fn in_memory(clock: &VirtualClock, model: impl Model, tools: impl Tools) -> Runtime {
    runtime(clock, MemoryStore::new(), model, tools).build().unwrap()
}

pub(crate) async fn ended(handle: &RunHandle) -> Arc<Ended> {
    match handle.outcome().await.unwrap() {
        Outcome::Ended(ended) => ended,
        Outcome::Awaiting(waiting) => panic!("the run waits for {:?}", waiting.questions),
    }
}

/// The one ticket that a run waits with.
pub(crate) async fn ticket(run: &RunHandle) -> Ticket {
    match run.outcome().await.unwrap() {
        Outcome::Awaiting(waiting) => match &waiting.questions[..] {
            [Question::Decision { ticket, .. }] => ticket.clone(),
            other => panic!("{other:?}"),
        },
        Outcome::Ended(ended) => panic!("{:?}", ended.ending),
    }
}
