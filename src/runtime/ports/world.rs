//! The ports as a world: each effect becomes a call of a port, and what the port says becomes an input.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::{
    Advisers, AnyJudge, AnyModel, AnyTools, Invocation, JudgeQuestion, Line, ModelAnswer, ModelCall, ModelFailure,
    Snapshot, asking, caught,
};
use crate::engine::{Engine, Request};
use crate::machines::release::{Candidate, Citation};
use crate::runtime::trace::Traces;
use crate::runtime::world::{Performed, World};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::{JudgeCallId, ModelCallId, OperationId, ToolCallId};
use crate::vocabulary::input::{Input, LiveTool};
use crate::vocabulary::llm;
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// The ports of one runtime.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) model: Arc<dyn AnyModel>,
    pub(crate) tools: Arc<dyn AnyTools>,
    pub(crate) judge: Option<Arc<dyn AnyJudge>>,
    pub(crate) advisers: Advisers,
    pub(crate) traces: Traces,
}

impl World for Ports {
    fn perform(&self, engine: &Engine, effect: &Request, line: &Line) -> Performed {
        let performed = match effect {
            Effect::ResolveEnvironment => self.resolve(engine).map(Performed::Reports),
            Effect::CallModel { call, attempt, .. } => {
                call_model(&self.model, self.traces, engine, *call, *attempt).map(Performed::Reports)
            }
            Effect::InvokeTool { call, attempt, operation_id } => {
                self.invoke(engine, *call, *attempt, operation_id, line).map(Performed::Reports)
            }
            Effect::JudgeSemantics { call, attempt, draft } => match &self.judge {
                Some(judge) => judge_semantics(judge, engine, *call, *attempt, *draft).map(Performed::Reports),
                None => Some(Performed::Reports(reports(no_judge(*call, *attempt, *draft)))),
            },
            Effect::AskGate { .. } | Effect::CallHook { .. } | Effect::PerformAction { .. } => {
                self.advisers.ask(engine, effect)
            }
            Effect::StartTimer { .. }
            | Effect::DispatchTools { .. }
            | Effect::AdmitNested { .. }
            | Effect::DenyNested { .. }
            | Effect::AwaitDecision { .. }
            | Effect::ReconcileTool { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => return Performed::HandedOn,
        };
        let unknown = || reports(crash("the engine does not know its own effect".to_owned()));
        performed.unwrap_or_else(|| Performed::Reports(unknown()))
    }

    fn live(&self, engine: &Engine) -> BoxFuture<'static, Vec<LiveTool>> {
        let tools = Arc::clone(&self.tools);
        let owned = asking::tools_of_plugins(engine);
        let of_plugins = self.advisers.plugins.cast(engine).map(|cast| cast.live(&owned)).unwrap_or_default();
        // Tools that cannot say what they are declare nothing, so nothing is entered again.
        Box::pin(async move {
            let mut live = caught(tools.live()).await.unwrap_or_default();
            live.retain(|tool| !owned.iter().any(|(_, name)| *name == tool.name));
            live.extend(of_plugins);
            live
        })
    }

    fn for_a_run(&self) -> Option<Arc<dyn World>> {
        Some(Arc::new(Self { advisers: self.advisers.anew(), ..self.clone() }))
    }
}

impl Ports {
    fn resolve(&self, engine: &Engine) -> Option<BoxFuture<'static, Input>> {
        let spec = engine.spec()?.clone();
        let (tools, plugins) = (Arc::clone(&self.tools), self.advisers.plugins.clone());
        Some(Box::pin(async move {
            let resolved = caught(tools.resolve(spec.clone())).await;
            match resolved.map(|host| host.and_then(|host| plugins.merge(&spec, host))) {
                Ok(Ok(environment)) => Input::EnvironmentResolved { environment: Box::new(environment) },
                Ok(Err(error)) => Input::ResolutionFailed { error },
                Err(panic) => crash(panicked("resolution", &panic)),
            }
        }))
    }

    fn invoke(
        &self,
        engine: &Engine,
        call: ToolCallId,
        attempt: u32,
        operation_id: &OperationId,
        line: &Line,
    ) -> Option<BoxFuture<'static, Input>> {
        let invocation = invocation(engine, call, attempt, operation_id, line)?;
        let name = invocation.tool().name.clone();
        let owner = asking::owner(engine, |capability| capability.tools.contains(&name));
        let of_plugin =
            owner.map(|plugin| self.advisers.plugins.cast(engine).and_then(|cast| cast.tool(plugin, &name)));
        let tools = Arc::clone(&self.tools);
        let entered = self.traces.execute_tool(&invocation);
        let returned = async move {
            match of_plugin {
                None => caught(tools.invoke(invocation)).await,
                Some(Ok(function)) => caught(async move { function(invocation).await }).await,
                Some(Err(reason)) => {
                    tracing::error!(tool = name, reason, "a tool of a plugin is not there");
                    Ok(Err(ToolError::Unknown { message: reason }))
                }
            }
        };
        Some(Box::pin(returned_by(returned, self.traces, call, attempt).instrument(entered)))
    }
}

/// Asks a model, once.
pub(crate) fn call_model(
    model: &Arc<dyn AnyModel>,
    traces: Traces,
    engine: &Engine,
    call: ModelCallId,
    attempt: u32,
) -> Option<BoxFuture<'static, Input>> {
    let request = engine.model_request()?;
    let asked = ModelCall {
        run: engine.run_id()?.clone(),
        call,
        attempt,
        purpose: request.purpose,
        model: request.model.clone(),
        messages: request.messages.iter().chain(request.context).map(Arc::clone).collect(),
        tools: request.tools.into_iter().map(Arc::clone).collect(),
        offer: request.offer,
        answer: request.answer.clone(),
    };
    let span = traces.chat(&asked);
    let model = Arc::clone(model);
    let report = async move {
        let answer = caught(model.respond(asked)).await;
        traces.answered(&answer);
        match answer {
            Ok(Ok(ModelAnswer { content, finish, usage })) => {
                Input::ModelResponded { call, attempt, content, finish, usage }
            }
            Ok(Err(ModelFailure::Classified { error, usage })) => Input::ModelFailed { call, attempt, error, usage },
            Ok(Err(ModelFailure::Unclassified { message })) => crash(format!("the model failed: {message}")),
            Err(panic) => crash(panicked("the model", &panic)),
        }
    };
    Some(Box::pin(report.instrument(span)))
}

/// Enters a tool of the host, once.
pub(crate) fn invoke_tool(
    tools: &Arc<dyn AnyTools>,
    traces: Traces,
    engine: &Engine,
    (call, attempt, operation_id): (ToolCallId, u32, &OperationId),
    line: &Line,
) -> Option<BoxFuture<'static, Input>> {
    let invocation = invocation(engine, call, attempt, operation_id, line)?;
    let (entered, tools) = (traces.execute_tool(&invocation), Arc::clone(tools));
    let returned = async move { caught(tools.invoke(invocation)).await };
    Some(Box::pin(returned_by(returned, traces, call, attempt).instrument(entered)))
}

/// Asks a judge, once.
pub(crate) fn judge_semantics(
    judge: &Arc<dyn AnyJudge>,
    engine: &Engine,
    call: JudgeCallId,
    attempt: u32,
    draft: Digest,
) -> Option<BoxFuture<'static, Input>> {
    let judge = Arc::clone(judge);
    let candidate = engine.evidence()?;
    let question = JudgeQuestion {
        run: engine.run_id()?.clone(),
        call,
        attempt,
        draft,
        task: engine.spec()?.task.clone(),
        statement: candidate.conclusion().statement.clone(),
        data: candidate.draft().data.clone(),
        citations: cited(engine, candidate),
    };
    Some(Box::pin(async move {
        match caught(judge.judge(question)).await {
            Ok(Ok(judgement)) => {
                let (verdict, usage) = (judgement.verdict, judgement.usage);
                Input::SemanticsJudged { call, attempt, draft, verdict, usage }
            }
            Ok(Err(error)) => Input::SemanticsFailed { call, attempt, draft, error },
            Err(panic) => unjudged(call, attempt, draft, panicked("the judge", &panic)),
        }
    }))
}

fn no_judge(call: JudgeCallId, attempt: u32, draft: Digest) -> Input {
    unjudged(call, attempt, draft, "this runtime has no judge".to_owned())
}

const fn unjudged(call: JudgeCallId, attempt: u32, draft: Digest, message: String) -> Input {
    Input::SemanticsFailed { call, attempt, draft, error: llm::Error::Provider { message } }
}

pub(crate) fn invocation(
    engine: &Engine,
    call: ToolCallId,
    attempt: u32,
    operation_id: &OperationId,
    line: &Line,
) -> Option<Invocation> {
    let (run, operation_id) = (engine.run_id()?.clone(), operation_id.clone());
    let state = Snapshot::new(engine.shared_state());
    let (plan, line) = (engine.plan(call)?, line.clone());
    Some(Invocation { run, call, attempt, operation_id, plan, state, line })
}

/// Reports what a tool came to.
async fn returned_by(
    returned: impl Future<Output = Result<Result<ToolOutput, ToolError>, String>>,
    traces: Traces,
    call: ToolCallId,
    attempt: u32,
) -> Input {
    let returned = returned.await;
    traces.returned(&returned);
    match returned {
        Ok(Ok(output)) => Input::ToolCompleted { call, attempt, output },
        Ok(Err(error)) => Input::ToolFailed { call, attempt, error },
        Err(panic) => {
            let error = ToolError::Execution { message: panicked("the tool", &panic) };
            Input::ToolFailed { call, attempt, error }
        }
    }
}

/// The facts that a draft cites, with the words it quotes from them.
pub(super) fn cited(engine: &Engine, candidate: &Candidate) -> Vec<Citation> {
    let facts = engine.facts();
    let draft = candidate.draft();
    let fact = |id: &String| facts.iter().find(|fact| fact.id.to_string() == *id);
    let citation =
        |id: &String| fact(id).map(|fact| Citation { fact: Arc::clone(fact), quote: draft.quotes.get(id).cloned() });
    draft.citations.iter().filter_map(citation).collect()
}

/// Who panicked. What the panic says was meant for nobody who reads a history, and least of all for a model: it
/// goes into the trace.
fn panicked(who: &str, panic: &str) -> String {
    tracing::error!(panic, "{who} panicked");
    format!("{who} panicked")
}

fn reports(input: Input) -> BoxFuture<'static, Input> {
    Box::pin(std::future::ready(input))
}

const fn crash(origin: String) -> Input {
    Input::ExecutionCrashed { origin }
}
