//! What a plugin contributes: each declaration with the code that stands behind it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::{ActionQuestion, HookAnswer, HookFailure, HookQuestion};
use crate::composition::{Contribution, StateKey};
use crate::runtime::ports::{GateFailure, GateQuestion, Invocation, typed};
use crate::vocabulary::environment::{Gate, GateOf, HookPoint};
use crate::vocabulary::input::GateAnswer;
use crate::vocabulary::spec::ToolSpec;
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// Code of a plugin, whatever its futures are.
pub(crate) type Handler<Q, A, E> = Arc<dyn Fn(Q) -> BoxFuture<'static, Result<A, E>> + Send + Sync>;

/// What a plugin contributes to a run. There is no declaration without a handler and no handler without a
/// declaration; a declaration that comes twice is refused when the run is resolved, with its second handler.
#[derive(Default)]
pub struct Contributions {
    declared: Contribution,
    handlers: Handlers,
}

/// The code behind the declarations, by what it is asked for.
#[derive(Default)]
pub(super) struct Handlers {
    pub(super) tools: BTreeMap<String, Handler<Invocation, ToolOutput, ToolError>>,
    pub(super) gates: BTreeMap<String, Handler<GateQuestion, GateAnswer, GateFailure>>,
    pub(super) hooks: BTreeMap<HookPoint, Handler<HookQuestion, HookAnswer, HookFailure>>,
    pub(super) actions: BTreeMap<String, Handler<ActionQuestion, HookAnswer, HookFailure>>,
}

impl Contributions {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A tool whose arguments come as a type of yours. What its output stages is held against the plugin's bound.
    #[must_use]
    pub fn tool<A, F>(mut self, spec: ToolSpec, handler: impl Fn(A, Invocation) -> F + Send + Sync + 'static) -> Self
    where
        A: DeserializeOwned,
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        self.handlers.tools.insert(spec.name.clone(), typed(handler));
        self.declared.tools.push(spec);
        self
    }

    /// A gate before calls of these tools, or of every tool when none is named. It may allow, block, set a result
    /// in the tool's place or ask for a person; it may not widen.
    #[must_use]
    pub fn tool_gate<T, F>(
        self,
        id: impl Into<String>,
        tools: impl IntoIterator<Item = T>,
        handler: impl Fn(GateQuestion) -> F + Send + Sync + 'static,
    ) -> Self
    where
        T: Into<String>,
        F: Future<Output = Result<GateAnswer, GateFailure>> + Send + 'static,
    {
        let tools = tools.into_iter().map(Into::into).collect();
        self.gate(Gate { id: id.into(), of: GateOf::Tool, tools }, boxed(handler))
    }

    /// A gate before a release. It may allow or block, and nothing else (SPEC 11.7).
    #[must_use]
    pub fn release_gate<F>(
        self,
        id: impl Into<String>,
        handler: impl Fn(GateQuestion) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<GateAnswer, GateFailure>> + Send + 'static,
    {
        self.gate(Gate { id: id.into(), of: GateOf::Release, tools: Vec::new() }, boxed(handler))
    }

    /// A hook.
    #[must_use]
    pub fn hook<F>(mut self, point: HookPoint, handler: impl Fn(HookQuestion) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<HookAnswer, HookFailure>> + Send + 'static,
    {
        self.handlers.hooks.insert(point, boxed(handler));
        self.declared.hooks.push(point);
        self
    }

    /// A state key that may be set and removed. It needs no handler.
    #[must_use]
    pub fn state_key<T>(mut self, key: &StateKey<T>) -> Self {
        self.declared.state_keys.push(key.spec());
        self
    }

    /// An action kind: whoever's bound allows it may schedule one, and this plugin performs it.
    #[must_use]
    pub fn action<F>(
        mut self,
        kind: impl Into<String>,
        handler: impl Fn(ActionQuestion) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<HookAnswer, HookFailure>> + Send + 'static,
    {
        let kind = kind.into();
        self.handlers.actions.insert(kind.clone(), boxed(handler));
        self.declared.action_kinds.push(kind);
        self
    }

    fn gate(mut self, gate: Gate, handler: Handler<GateQuestion, GateAnswer, GateFailure>) -> Self {
        self.handlers.gates.insert(gate.id.clone(), handler);
        self.declared.gates.push(gate);
        self
    }

    /// Declarations and handlers.
    pub(super) fn into_parts(self) -> (Contribution, Handlers) {
        (self.declared, self.handlers)
    }
}

/// Shows what is declared.
impl fmt::Debug for Contributions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.declared, out)
    }
}

fn boxed<Q, A, E, F>(handler: impl Fn(Q) -> F + Send + Sync + 'static) -> Handler<Q, A, E>
where
    F: Future<Output = Result<A, E>> + Send + 'static,
{
    Arc::new(move |question| Box::pin(handler(question)))
}
