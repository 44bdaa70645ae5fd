//! Gates, hooks and actions: whose code is asked, with what, and what becomes of its answer. Code that fails,
//! panics or is not there is named in the trace, and the run fails closed (SPEC 7.8, 11.7, 12).

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::{AnyGates, GateAbout, GateFailure, GateQuestion, Snapshot, caught, cited};
use crate::engine::{Engine, Request};
use crate::machines::consultation::{Question, State, Then};
use crate::machines::release::Candidate;
use crate::runtime::plugins::{ActionQuestion, Company, Handler, HookAbout, HookAnswer, HookQuestion};
use crate::runtime::trace::Traces;
use crate::runtime::world::Performed;
use crate::vocabulary::effect::{Effect, GateSubject};
use crate::vocabulary::environment::{Capability, HookPoint};
use crate::vocabulary::ids::Ask;
use crate::vocabulary::input::{GateAnswer, Input};

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// The code is not there.
    Missing(String),
    /// It says that it failed.
    Failed(String),
    /// It panicked.
    Panicked(String),
}

impl Silence {
    /// For `error.type`.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Missing(_) => "missing",
            Self::Failed(_) => "failure",
            Self::Panicked(_) => "panic",
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(reason) | Self::Failed(reason) => out.write_str(reason),
            Self::Panicked(said) => write!(out, "it panicked: {said}"),
        }
    }
}

/// Asks code of a plugin.
async fn ask<Q, A, E: fmt::Display>(handler: Result<Handler<Q, A, E>, String>, question: Q) -> Result<A, Silence> {
    let handler = handler.map_err(Silence::Missing)?;
    match caught(async move { handler(question).await }).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(failure)) => Err(Silence::Failed(failure.to_string())),
        Err(panic) => Err(Silence::Panicked(panic)),
    }
}

/// The plugin of the run's spec to which something of its environment belongs. What a plugin has that the host
/// itself brought, without the spec, is the host's.
pub(super) fn owner(engine: &Engine, owns: impl Fn(&Capability) -> bool) -> Option<&str> {
    let capabilities = &engine.environment()?.capabilities;
    let plugin =
        capabilities.iter().find(|capability| owns(capability)).map(|capability| capability.plugin.as_str())?;
    engine.spec()?.plugins.iter().any(|named| named.id == plugin).then_some(plugin)
}

/// The tools of the run's environment that belong to plugins: plugin and name.
pub(super) fn tools_of_plugins(engine: &Engine) -> Vec<(String, String)> {
    let capabilities = engine.environment().map(|environment| environment.capabilities.as_slice()).unwrap_or_default();
    let tools = |capability: &Capability| {
        let named = |tool: &String| (capability.plugin.clone(), tool.clone());
        capability.tools.iter().map(named).collect::<Vec<_>>()
    };
    capabilities.iter().flat_map(tools).collect()
}

/// Who is asked: the host's gates, and the plugins of a run.
#[derive(Clone)]
pub(crate) struct Advisers {
    pub(crate) gates: Option<Arc<dyn AnyGates>>,
    pub(crate) plugins: Company,
    pub(crate) traces: Traces,
}

impl Advisers {
    /// The same for another run.
    pub(super) fn anew(&self) -> Self {
        Self { plugins: self.plugins.anew(), ..self.clone() }
    }

    /// Asks whoever an effect is a question to; `None` when it is none, or when the engine does not know it.
    pub(crate) fn ask(&self, engine: &Engine, effect: &Request) -> Option<Performed> {
        if let Effect::AskGate { ask, gate, about } = effect {
            self.ask_gate(engine, *ask, gate, about).map(Performed::Reports)
        } else if let Effect::CallHook { ask, point: HookPoint::RunEnd, plugin } = effect {
            Some(self.tell_hook(engine, *ask, plugin).map_or(Performed::HandedOn, Performed::Tells))
        } else if let Effect::CallHook { ask, point, plugin } = effect {
            self.call_hook(engine, *ask, *point, plugin).map(Performed::Reports)
        } else if let Effect::PerformAction { ask, plugin, .. } = effect {
            self.perform_action(engine, *ask, plugin).map(Performed::Reports)
        } else {
            None
        }
    }

    /// The same for a plugin that is registered here, and for nobody else.
    pub(crate) fn ask_registered(&self, engine: &Engine, effect: &Request) -> Option<Performed> {
        let plugin = if let Effect::AskGate { gate, .. } = effect {
            owner(engine, |own| own.gates.contains(gate))?
        } else if let Effect::CallHook { plugin, .. } | Effect::PerformAction { plugin, .. } = effect {
            plugin
        } else {
            return None;
        };
        if self.plugins.takes_part(engine, plugin) { self.ask(engine, effect) } else { None }
    }

    fn ask_gate(
        &self,
        engine: &Engine,
        ask: Ask,
        gate: &str,
        about: &GateSubject,
    ) -> Option<BoxFuture<'static, Input>> {
        let about = match about {
            GateSubject::Tool { call } => GateAbout::Tool { call: *call, plan: engine.plan(*call)? },
            GateSubject::Nested { nested } => {
                let plan = engine.nested(*nested)?.plan.clone()?;
                GateAbout::Nested { nested: *nested, plan }
            }
            GateSubject::Release { .. } => released(engine, engine.evidence()?),
        };
        let (run, state) = (engine.run_id()?.clone(), Snapshot::new(engine.shared_state()));
        let question = GateQuestion { run, ask, gate: gate.to_owned(), about, state };
        let owner = owner(engine, |own| own.gates.iter().any(|id| id == gate));
        let handler = match owner {
            Some(plugin) => self.plugins.cast(engine).and_then(|cast| cast.gate(plugin, gate)),
            None => self.host_gate(),
        };
        let (span, traces) = (self.traces.ask_gate(owner, gate, ask), self.traces);
        let (gate, plugin) = (gate.to_owned(), owner.map(str::to_owned));
        let report = async move {
            match self::ask(handler, question).await {
                Ok(answer) => {
                    traces.gated(&answer);
                    Input::GateAnswered { ask, answer }
                }
                Err(silence) => {
                    traces.failed(silence.word());
                    tracing::error!(gate, plugin, reason = %silence, "a gate failed, and blocks");
                    Input::GateFailed { ask }
                }
            }
        };
        Some(Box::pin(report.instrument(span)))
    }

    /// The host's own gates.
    fn host_gate(&self) -> Result<Handler<GateQuestion, GateAnswer, GateFailure>, String> {
        let gates = self.gates.clone().ok_or_else(|| "this runtime was built without gates".to_owned())?;
        Ok(Arc::new(move |question| AnyGates::ask(Arc::clone(&gates), question)))
    }

    fn call_hook(
        &self,
        engine: &Engine,
        ask: Ask,
        point: HookPoint,
        plugin: &str,
    ) -> Option<BoxFuture<'static, Input>> {
        let answer = self.asked_hook(engine, ask, point, plugin)?;
        Some(Box::pin(async move { report(ask, answer.await) }))
    }

    /// The run has ended: the hook is told, and nobody waits for what it answers.
    fn tell_hook(&self, engine: &Engine, ask: Ask, plugin: &str) -> Option<BoxFuture<'static, ()>> {
        let answer = self.asked_hook(engine, ask, HookPoint::RunEnd, plugin)?;
        Some(Box::pin(async move {
            // What it answers has no place to go to, and its failure is in the trace.
            let _ = answer.await;
        }))
    }

    /// The question to one hook, under its span. What fails is in the trace.
    fn asked_hook(
        &self,
        engine: &Engine,
        ask: Ask,
        point: HookPoint,
        plugin: &str,
    ) -> Option<BoxFuture<'static, Result<HookAnswer, Silence>>> {
        let (run, state) = (engine.run_id()?.clone(), Snapshot::new(engine.shared_state()));
        let question = HookQuestion { run, ask, about: about(engine, ask, point)?, state };
        let handler = self.plugins.cast(engine).and_then(|cast| cast.hook(plugin, point));
        let (span, traces) = (self.traces.call_hook(plugin, point, ask), self.traces);
        let plugin = plugin.to_owned();
        let answer = async move {
            let answer = self::ask(handler, question).await;
            if let Err(silence) = &answer {
                traces.failed(silence.word());
                tracing::error!(plugin, point = point.word(), reason = %silence, "a hook failed");
            }
            answer
        };
        Some(Box::pin(answer.instrument(span)))
    }

    fn perform_action(&self, engine: &Engine, ask: Ask, plugin: &str) -> Option<BoxFuture<'static, Input>> {
        let State::Asking { open } = engine.consultation() else { return None };
        let Question::Action { action, payload, .. } = &open.question else { return None };
        let (run, state) = (engine.run_id()?.clone(), Snapshot::new(engine.shared_state()));
        let question = ActionQuestion { run, ask, action: action.clone(), payload: payload.clone(), state };
        let handler = self.plugins.cast(engine).and_then(|cast| cast.action(plugin, action));
        let (span, traces) = (self.traces.perform_action(plugin, action, ask), self.traces);
        let (plugin, action) = (plugin.to_owned(), action.clone());
        let answer = async move {
            let answer = self::ask(handler, question).await;
            if let Err(silence) = &answer {
                traces.failed(silence.word());
                tracing::error!(plugin, action, reason = %silence, "an action failed");
            }
            report(ask, answer)
        };
        Some(Box::pin(answer.instrument(span)))
    }
}

fn report(ask: Ask, answer: Result<HookAnswer, Silence>) -> Input {
    match answer {
        Ok(HookAnswer { commands, context }) => Input::HookAnswered { ask, commands, context },
        Err(_) => Input::HookFailed { ask },
    }
}

/// What a gate before a release sees of a draft.
fn released(engine: &Engine, candidate: &Candidate) -> GateAbout {
    GateAbout::Release {
        statement: candidate.conclusion().statement.clone(),
        data: candidate.draft().data.clone(),
        citations: cited(engine, candidate),
    }
}

/// What a hook sees at its point; `None` when the engine does not ask that.
fn about(engine: &Engine, ask: Ask, point: HookPoint) -> Option<HookAbout> {
    if point == HookPoint::RunEnd {
        return Some(HookAbout::RunEnd { ending: engine.ending()?.clone() });
    }
    let State::Asking { open } = engine.consultation() else { return None };
    let Question::Hook { call, .. } = &open.question else { return None };
    if open.ask != ask {
        return None;
    }
    match point {
        HookPoint::RoundStart => Some(HookAbout::RoundStart),
        HookPoint::BeforeInference => {
            let Then::CallModel(purpose) = &open.then else { return None };
            Some(HookAbout::BeforeInference { purpose: *purpose })
        }
        HookPoint::AfterInference => {
            let Then::ReadResponse(held) = &open.then else { return None };
            Some(HookAbout::AfterInference { content: held.content.clone(), finish: held.finish })
        }
        HookPoint::AfterTool => {
            let closed = engine.batch()?.call((*call)?)?;
            let (code, text) = (closed.code(), closed.closing.as_ref()?.closing.text.clone());
            Some(HookAbout::AfterTool { call: closed.id, plan: closed.plan.clone(), code, text })
        }
        HookPoint::RoundEnd => Some(HookAbout::RoundEnd { round: engine.batch()?.round }),
        HookPoint::BeforeRelease => {
            let candidate = engine.evidence()?;
            Some(HookAbout::BeforeRelease {
                statement: candidate.conclusion().statement.clone(),
                data: candidate.draft().data.clone(),
                citations: cited(engine, candidate),
            })
        }
        HookPoint::RunEnd => None,
    }
}
