//! The gates' port: code that may hold a call or a release back, never let more through (SPEC 7.8, 11).

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::Snapshot;
use crate::machines::batch::Plan;
use crate::machines::release::Citation;
use crate::vocabulary::ids::{Ask, NestedCallId, RunId, ToolCallId};
use crate::vocabulary::input::GateAnswer;
use crate::vocabulary::json::Json;

/// Answers for the gates of an environment.
pub trait Gates: Send + Sync + 'static {
    /// Answers one question. A gate that fails blocks.
    fn ask(&self, question: GateQuestion) -> impl Future<Output = Result<GateAnswer, GateFailure>> + Send;
}

/// One question to one gate. Privileged: a draft in it is not released yet.
#[derive(Debug, Clone)]
pub struct GateQuestion {
    /// The run.
    pub run: RunId,
    /// The question.
    pub ask: Ask,
    /// The gate's id.
    pub gate: String,
    /// What it stands before.
    pub about: GateAbout,
    pub(crate) state: Snapshot,
}

impl GateQuestion {
    /// The shared state as it is committed.
    #[must_use]
    pub const fn state(&self) -> &Snapshot {
        &self.state
    }
}

/// What a gate is asked about.
#[derive(Debug, Clone)]
pub enum GateAbout {
    /// A tool call.
    Tool {
        /// The call.
        call: ToolCallId,
        /// The tool and the arguments that it would be called with.
        plan: Arc<Plan>,
    },
    /// A call that a running tool wants to make. An answer that asks for a person turns it down.
    Nested {
        /// The nested call; its parent is in its id.
        nested: NestedCallId,
        /// The tool and the arguments that it would be called with.
        plan: Arc<Plan>,
    },
    /// A verified draft.
    Release {
        /// What it concludes.
        statement: String,
        /// What it says beside the conclusion.
        data: Option<Json>,
        /// The facts that it cites.
        citations: Vec<Citation>,
    },
}

/// A gate that could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateFailure(
    /// For people.
    pub String,
);

/// Any gates, whatever their futures are.
pub(crate) trait AnyGates: Send + Sync {
    fn ask(self: Arc<Self>, question: GateQuestion) -> BoxFuture<'static, Result<GateAnswer, GateFailure>>;
}

impl<G: Gates> AnyGates for G {
    fn ask(self: Arc<Self>, question: GateQuestion) -> BoxFuture<'static, Result<GateAnswer, GateFailure>> {
        Box::pin(async move { Gates::ask(&*self, question).await })
    }
}
