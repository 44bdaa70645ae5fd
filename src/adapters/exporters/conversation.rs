//! What was said and done in a run, gathered from its steps.

use crate::engine::{Ending, Engine, Step};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::{RunId, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::llm::{self, FinishReason, Usage};
use crate::vocabulary::message::{Message, Observation, shown_facts};
use crate::vocabulary::spec::PriorRole;
use crate::vocabulary::tool::ObservationCode;

/// A run as a conversation: what was said before each request to the model, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The run; `None` before its first step.
    pub run: Option<RunId>,
    /// When it began, as record 0 says.
    pub wall_time: String,
    /// The requests to the model, in order.
    pub exchanges: Vec<Exchange>,
    /// What was said since the latest request.
    pub unasked: Vec<Said>,
    /// How it ended, once it has.
    pub ending: Option<Ending>,
    /// When its latest step was, in milliseconds since it began.
    pub last_ms: u64,
}

/// One thing that the model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Instructions, and notices of the engine.
    System(String),
    /// The task, and what a user said before.
    User(String),
    /// What a model said before this run.
    Assistant(String),
}

/// One attempt of one request to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The request and its attempt, such as `m2/1`.
    pub id: String,
    /// The model that was asked.
    pub model: String,
    /// What was said since the request before, the results of its calls apart.
    pub told: Vec<Said>,
    /// When it was asked, in milliseconds since the run began.
    pub from_ms: u64,
    /// When it was answered.
    pub to_ms: u64,
    /// What came of it.
    pub answer: Answer,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing that the run took.
    Open,
    /// It failed.
    Failed(llm::Error),
    /// The model answered.
    Replied {
        /// Its text.
        text: Option<String>,
        /// What it asked for.
        calls: Vec<Called>,
        /// Why it stopped.
        finish: FinishReason,
        /// What it used.
        usage: Usage,
    },
}

/// One call and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Our id, such as `t1.0`.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// The provider's id, which may repeat.
    pub provider_id: Option<String>,
    /// When it was dispatched; when it was asked for, if it never was.
    pub from_ms: u64,
    /// When it ended.
    pub to_ms: u64,
    /// Its one observation; `None` while it is open.
    pub outcome: Option<Outcome>,
}

/// What the model was shown of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The text, with facts and directive.
    pub text: String,
    /// Why it is no ordinary success.
    pub code: Option<ObservationCode>,
}

impl Outcome {
    /// Whether it is an error. What a gate set is none.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.is_some_and(|code| code != ObservationCode::SetByGate)
    }
}

impl Conversation {
    /// Takes the next step of the run; `engine` is as the step left it.
    pub fn take(&mut self, step: &Step, engine: &Engine) {
        self.last_ms = step.at_ms;
        let replied = self.report(&step.input, step.at_ms);
        for message in &step.messages {
            self.message(message, replied, step.at_ms);
        }
        for effect in &step.effects {
            if let Effect::CallModel { call, attempt, model, .. } = effect {
                self.exchanges.push(Exchange {
                    id: format!("{call}/{attempt}"),
                    model: model.clone(),
                    told: std::mem::take(&mut self.unasked),
                    from_ms: step.at_ms,
                    to_ms: step.at_ms,
                    answer: Answer::Open,
                });
            }
        }
        if self.ending.is_none() {
            self.ending = engine.ending().cloned();
        }
    }

    /// What the model says of its answer beside its message.
    fn report(&mut self, input: &Input, at_ms: u64) -> (FinishReason, Usage) {
        match input {
            Input::RunStarted { run_id, wall_time, .. } => {
                self.run = Some(run_id.clone());
                self.wall_time.clone_from(wall_time);
            }
            Input::ModelResponded { finish, usage, .. } => return (*finish, *usage),
            Input::ModelFailed { error, .. } => {
                if let Some(exchange) = self.exchanges.last_mut() {
                    exchange.to_ms = at_ms;
                    exchange.answer = Answer::Failed(error.clone());
                }
            }
            Input::ToolsDispatched { calls } => {
                for call in calls {
                    self.at(*call, |called| called.from_ms = at_ms);
                }
            }
            Input::ToolCompleted { call, .. } | Input::ToolFailed { call, .. } | Input::ToolTimedOut { call, .. } => {
                self.at(*call, |called| called.to_ms = at_ms);
            }
            Input::EnvironmentResolved { .. }
            | Input::ResolutionFailed { .. }
            | Input::BackoffElapsed { .. }
            | Input::NestedCallRequested { .. }
            | Input::NestedCompleted { .. }
            | Input::GateAnswered { .. }
            | Input::GateFailed { .. }
            | Input::HookAnswered { .. }
            | Input::HookFailed { .. }
            | Input::DecisionGiven { .. }
            | Input::TicketExpired { .. }
            | Input::SemanticsJudged { .. }
            | Input::SemanticsFailed { .. }
            | Input::CancelRequested { .. }
            | Input::DeadlineElapsed { .. }
            | Input::ExecutionCrashed { .. }
            | Input::RunRecovered { .. }
            | Input::ToolReconciled { .. }
            | Input::ReleaseDelivered { .. }
            | Input::TailRepaired { .. } => {}
        }
        (FinishReason::Stop, Usage::default())
    }

    fn message(&mut self, message: &Message, (finish, usage): (FinishReason, Usage), at_ms: u64) {
        let said = match message {
            Message::Instructions { text } | Message::Context { text, .. } | Message::Notice { text, .. } => {
                Said::System(text.clone())
            }
            Message::Imported { facts } => Said::System(shown_facts(facts).trim_start().to_owned()),
            Message::Task { text } | Message::Prior { by: PriorRole::User, text } => Said::User(text.clone()),
            Message::Prior { by: PriorRole::Assistant, text } => Said::Assistant(text.clone()),
            // Its call is not known any more, and no format takes a result without one.
            Message::Prior { by: PriorRole::Tool, text } => Said::System(format!("A tool's earlier result: {text}")),
            Message::Assistant { text, calls, .. } => {
                let calls = calls.iter().map(|call| Called {
                    id: call.call.to_string(),
                    name: call.request.name.clone(),
                    arguments: call.request.arguments.clone(),
                    provider_id: call.request.provider_id.clone(),
                    from_ms: at_ms,
                    to_ms: at_ms,
                    outcome: None,
                });
                let calls = calls.collect();
                if let Some(exchange) = self.exchanges.last_mut() {
                    exchange.to_ms = at_ms;
                    exchange.answer = Answer::Replied { text: text.clone(), calls, finish, usage };
                }
                return;
            }
            Message::Observation(observation) => {
                self.observe(observation, at_ms);
                return;
            }
        };
        self.unasked.push(said);
    }

    fn observe(&mut self, observation: &Observation, at_ms: u64) {
        let outcome = Outcome { text: observation.shown(), code: observation.code };
        self.at(observation.call, |called| {
            // What was never entered ended with its observation.
            called.to_ms = called.to_ms.max(called.from_ms);
            if called.to_ms == called.from_ms {
                called.to_ms = at_ms;
            }
            called.outcome = Some(outcome);
        });
    }

    /// A call of the latest answer.
    fn at(&mut self, call: ToolCallId, then: impl FnOnce(&mut Called)) {
        if let Some(Exchange { answer: Answer::Replied { calls, .. }, .. }) = self.exchanges.last_mut() {
            let index = usize::try_from(call.index).ok();
            if let Some(called) = index.and_then(|index| calls.get_mut(index)) {
                then(called);
            }
        }
    }
}
