//! What plugins are asked, and what they answer.

use std::sync::Arc;

use crate::composition::StateShape;
use crate::engine::Ending;
use crate::machines::batch::Plan;
use crate::machines::release::Citation;
use crate::runtime::ports::{GateFailure, Snapshot};
use crate::vocabulary::effect::Purpose;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::{Ask, RunId, ToolCallId};
use crate::vocabulary::input::StagedCommand;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{Content, FinishReason};
use crate::vocabulary::tool::{ObservationCode, ToolError};

/// One question to one hook. Privileged: it may hold text that is never released.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// The run.
    pub run: RunId,
    /// The question. A crash does not change it: whoever is asked twice is asked under one number.
    pub ask: Ask,
    /// Where the run stands.
    pub about: HookAbout,
    pub(crate) state: Snapshot,
}

/// Where a run stands when a hook is asked, and what there is to be seen there.
#[derive(Debug, Clone)]
pub enum HookAbout {
    /// A round begins.
    RoundStart,
    /// The model is about to be called.
    BeforeInference {
        /// What for.
        purpose: Purpose,
    },
    /// The model has answered, and nothing was made of it yet.
    AfterInference {
        /// What it answered.
        content: Content,
        /// Why it stopped.
        finish: FinishReason,
    },
    /// Every call of the round is closed, and this is one of them. They come in model order.
    AfterTool {
        /// The call.
        call: ToolCallId,
        /// The tool and the arguments that it was called with; `None` when triage found no such tool, or nothing
        /// that it could read.
        plan: Option<Arc<Plan>>,
        /// Why its observation is not an ordinary success.
        code: Option<ObservationCode>,
        /// What the model will see of it.
        text: String,
    },
    /// The round is over, and what it staged is about to be committed.
    RoundEnd {
        /// The round, from 1.
        round: u32,
    },
    /// A verified draft is about to meet the release gates.
    BeforeRelease {
        /// What it concludes.
        statement: String,
        /// What it says beside the conclusion.
        data: Option<Json>,
        /// The facts that it cites.
        citations: Vec<Citation>,
    },
    /// The run has ended. Nobody waits for the answer, and nothing of it counts.
    RunEnd {
        /// How.
        ending: Ending,
    },
}

impl HookAbout {
    /// The point.
    #[must_use]
    pub const fn point(&self) -> HookPoint {
        match self {
            Self::RoundStart => HookPoint::RoundStart,
            Self::BeforeInference { .. } => HookPoint::BeforeInference,
            Self::AfterInference { .. } => HookPoint::AfterInference,
            Self::AfterTool { .. } => HookPoint::AfterTool,
            Self::RoundEnd { .. } => HookPoint::RoundEnd,
            Self::BeforeRelease { .. } => HookPoint::BeforeRelease,
            Self::RunEnd { .. } => HookPoint::RunEnd,
        }
    }
}

impl HookQuestion {
    /// The shared state as it is committed.
    #[must_use]
    pub const fn state(&self) -> &Snapshot {
        &self.state
    }
}

/// One action to be performed. It was scheduled by a hook, a tool or another action of the same commit batch.
#[derive(Debug, Clone)]
pub struct ActionQuestion {
    /// The run.
    pub run: RunId,
    /// The question. A crash does not change it: whoever acts on the world makes it an idempotency key, together
    /// with the run.
    pub ask: Ask,
    /// The kind.
    pub action: String,
    /// What it is performed with.
    pub payload: Json,
    pub(crate) state: Snapshot,
}

impl ActionQuestion {
    /// The shared state as it is committed.
    #[must_use]
    pub const fn state(&self) -> &Snapshot {
        &self.state
    }
}

/// What a hook answers, and what an action comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookAnswer {
    /// What it stages, held against its plugin's bound.
    pub commands: Vec<StagedCommand>,
    /// Text for the next model request, and for no other.
    pub context: Option<String>,
}

impl HookAnswer {
    /// Nothing: the run goes on as it would have.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The same, staging these commands too.
    #[must_use]
    pub fn staging(mut self, staged: impl IntoIterator<Item = StagedCommand>) -> Self {
        self.commands.extend(staged);
        self
    }

    /// The same, with this text for the next model request.
    #[must_use]
    pub fn saying(self, context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..self }
    }
}

/// A hook or an action that failed. The run ends as `internal`, row 17: nobody knows what it would have held back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookFailure(
    /// For people: it goes to the trace.
    pub String,
);

/// State of a wrong shape is a failure of whoever reads or writes it: `KEY.read(..)?` in a hook.
impl From<StateShape> for HookFailure {
    fn from(shape: StateShape) -> Self {
        Self(shape.to_string())
    }
}

impl From<StateShape> for GateFailure {
    fn from(shape: StateShape) -> Self {
        Self(shape.to_string())
    }
}

/// The model reads why a tool failed, so the value is not in it.
impl From<StateShape> for ToolError {
    fn from(shape: StateShape) -> Self {
        Self::Execution { message: format!("the {} state key {:?} is not what it should be", shape.scope, shape.key) }
    }
}
