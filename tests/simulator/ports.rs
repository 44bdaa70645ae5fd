//! The simulated model, tools, judge and gates: they answer, fail in every class, take their time, or say nothing
//! until the faults stop.

use std::sync::Arc;

use portcullis::runtime::ports::{
    Admitted, GateFailure, GateQuestion, Gates, Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer,
    ModelCall, ModelFailure, Tools,
};
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::{GateAnswer, LiveTool, Verdict};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{Error, Usage};
use portcullis::vocabulary::spec::Spec;
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

use crate::bugs::Bug;
use crate::faults::Fault;
use crate::observed::{Entered, PRIVATE};
use crate::process::Process;
use crate::{script, specs};

/// All ports of one process.
#[derive(Clone)]
pub(crate) struct Ports(pub(crate) Arc<Process>);

/// Work that is under way, seen from outside: it is over when this is dropped.
pub(crate) struct UnderWay {
    process: Arc<Process>,
    number: u64,
}

impl UnderWay {
    pub(crate) fn begin(process: &Arc<Process>, run: &RunId, what: String) -> Self {
        let number = process.world.lock().observed.work_begins(process.number, run, what);
        Self { process: Arc::clone(process), number }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.process.world.lock().observed.work_ends(self.number);
    }
}

impl Ports {
    pub(crate) fn goes_wrong(&self, fault: Fault, at: &str) -> bool {
        self.0.world.goes_wrong(fault, at)
    }

    /// Takes a moment, so that what is under way at the same time ends in any order.
    pub(crate) async fn take_time(&self, what: &str, at: &str, most_ms: u64) {
        let takes_ms = self.0.world.number(what, at, 0, most_ms);
        self.0.pass(takes_ms).await;
    }
}

impl Model for Ports {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let at = format!("{} {}/{}", call.run, call.call, call.attempt);
        let _under_way = UnderWay::begin(&self.0, &call.run, format!("model call {}", call.call));
        self.0.act(format!("model {at}")).await;
        let (process, name) = (self.0.number, call.call.to_string());
        self.0.world.observe(|seen| seen.model_asked(process, &call.run, &name, call.attempt));
        self.take_time("model_ms", &at, 700).await;
        if self.goes_wrong(Fault::ModelStalls, &at) {
            self.0.world.until_healed().await;
        }
        if self.goes_wrong(Fault::ModelFails, &at) {
            return Err(self.failure(&at));
        }
        if self.goes_wrong(Fault::ModelUnclassified, &at) {
            return Err(ModelFailure::Unclassified { message: format!("{PRIVATE} words of the provider") });
        }
        if self.goes_wrong(Fault::ModelPanics, &at) {
            std::panic::resume_unwind(Box::new(format!("{PRIVATE} words of a panic")));
        }
        let mut answer = script::answer(&self.0.world, &call);
        if self.goes_wrong(Fault::ModelFloods, &at) {
            answer.content.text = Some(PRIVATE.repeat(1_000));
        }
        self.0.act(format!("model answers {at}")).await;
        Ok(answer)
    }
}

impl Ports {
    /// A failure of one of the model's classes.
    fn failure(&self, at: &str) -> ModelFailure {
        let message = format!("{PRIVATE} words of the provider");
        let retry_after_ms = [None, Some(100), Some(90_000)][self.0.world.choose("retry_after", at, &[2, 1, 1])];
        let error = match self.0.world.choose("model_error", at, &[3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1]) {
            0 => Error::Provider { message },
            1 => Error::RateLimited { message, retry_after_ms },
            2 => Error::Overloaded { message, retry_after_ms },
            3 => Error::Timeout { message },
            4 => Error::Binding { message },
            5 => Error::ContextOverflow { message },
            6 => Error::InvalidRequest { message },
            7 => Error::Unauthorized { message },
            8 => Error::UsageLimit { message, reset_after_ms: retry_after_ms },
            9 => Error::LoginRequired { message },
            10 => Error::ModelNotFound { message },
            _ => Error::ContentFiltered { message },
        };
        let usage = Usage { input_tokens: Some(20), output_tokens: None };
        let usage = [None, Some(usage)][self.0.world.choose("failure_usage", at, &[1, 1])];
        ModelFailure::Classified { error, usage }
    }
}

impl Tools for Ports {
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        self.0.act(format!("resolve {}", spec.task)).await;
        if self.goes_wrong(Fault::NoRoute, &spec.task) {
            return Err(ResolutionError::Routing { message: format!("{PRIVATE} routes") });
        }
        let gate = |id: &str, of, tools: &[&str]| {
            let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
            Gate { id: id.to_owned(), of, tools }
        };
        let gates = match self.0.world.choose("gates", &spec.task, &[1, 1]) {
            0 => Vec::new(),
            _ => vec![gate("door", GateOf::Tool, &["pay", "put", "look"]), gate("exit", GateOf::Release, &[])],
        };
        Ok(Environment { tools: specs::tools(&self.0.world, &spec.task), gates, ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        if self.0.world.bug == Some(Bug::DetachesItsWork) {
            let ports = self.clone();
            let detached = tokio::spawn(async move { ports.enter(&invocation).await });
            let message = "it panicked".to_owned();
            return detached.await.unwrap_or(Err(ToolError::Execution { message }));
        }
        if self.0.world.bug == Some(Bug::OutlastsItsTimeout) {
            let ports = self.clone();
            let detached = tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = ports.is_over(&invocation.run) => None,
                    answer = ports.enter(&invocation) => Some(answer),
                }
            });
            let message = "the run is over".to_owned();
            return detached.await.ok().flatten().unwrap_or(Err(ToolError::Execution { message }));
        }
        let first = self.enter(&invocation).await;
        if self.0.world.bug == Some(Bug::RetriesByItself) && matches!(first, Err(ToolError::Execution { .. })) {
            return self.enter(&invocation).await;
        }
        first
    }

    async fn live(&self) -> Vec<LiveTool> {
        // A tool may have changed its mode since.
        let tools = specs::tools(&self.0.world, "live");
        let changed = self.0.world.choose("live_changed", self.0.number, &[4, 1]);
        let live = |tool: &portcullis::vocabulary::spec::ToolSpec| LiveTool {
            name: tool.name.clone(),
            recovery: tool.recovery_mode(),
        };
        tools.iter().skip(changed).map(live).collect()
    }
}

impl Ports {
    async fn enter(&self, invocation: &Invocation) -> Result<ToolOutput, ToolError> {
        let (run, tool) = (&invocation.run, invocation.tool().name.clone());
        let at = format!("{run} {}/{}", invocation.call, invocation.attempt);
        let what = format!("tool call {}/{}", invocation.call, invocation.attempt);
        let _under_way = UnderWay::begin(&self.0, run, what);
        self.0.act(format!("tool {tool} {at}")).await;
        if self.goes_wrong(Fault::ToolAway, &at) {
            return Err(ToolError::UnavailableBeforeDispatch { message: format!("{PRIVATE} away") });
        }
        self.entered(invocation, &tool);
        self.take_time("tool_ms", &at, 600).await;
        if tool == "delegate" {
            self.delegate(invocation, &at).await;
        }
        if self.goes_wrong(Fault::ToolStalls, &at) {
            self.0.world.until_healed().await;
        }
        let answer = self.answer(invocation, &tool, &at);
        self.0.act(format!("tool returns {at}")).await;
        self.0.world.lock().observed.tool_answered(run, &invocation.call.to_string());
        answer
    }

    /// Comes back when the run has ended.
    async fn is_over(&self, run: &RunId) {
        while !self.0.world.lock().observed.has_ended(run) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// The world sees that the tool is entered.
    fn entered(&self, invocation: &Invocation, tool: &str) {
        let entered = Entered {
            process: self.0.number,
            run: &invocation.run,
            call: invocation.call.to_string(),
            attempt: invocation.attempt,
            operation: invocation.operation_id.to_string(),
            tool,
            recovery: invocation.tool().recovery_mode(),
        };
        self.0.world.observe(|seen| seen.tool_entered(&entered));
    }

    fn answer(&self, invocation: &Invocation, tool: &str, at: &str) -> Result<ToolOutput, ToolError> {
        if self.goes_wrong(Fault::ToolFails, at) {
            let message = format!("{PRIVATE} failure");
            return match self.0.world.choose("tool_error", at, &[3, 1, 1, 2]) {
                0 => Err(ToolError::Execution { message }),
                1 => Err(ToolError::Unknown { message }),
                2 => Err(ToolError::InvalidArguments { message }),
                _ => Ok(ToolOutput::error(message)),
            };
        }
        if self.goes_wrong(Fault::ToolPanics, at) {
            std::panic::resume_unwind(Box::new(format!("{PRIVATE} words of a panic")));
        }
        if self.goes_wrong(Fault::ToolFloods, at) {
            let facts = vec![Json::from("no fact")];
            return Ok(match self.0.world.choose("flood", at, &[1, 1]) {
                0 => ToolOutput::text(PRIVATE.repeat(500)),
                _ => ToolOutput::Success { content: PRIVATE.to_owned(), facts, commands: Vec::new() },
            });
        }
        let content = format!("{PRIVATE} result of {at}");
        if tool == "look" || tool == "probe" {
            let arguments = invocation.arguments().to_text();
            let fact = match self.0.world.choose("finds", at, &[3, 1, 1]) {
                0 => Some(format!("seen by {tool}: {arguments}")),
                1 => Some("the same as ever".to_owned()),
                _ => None,
            };
            return Ok(ToolOutput::facts(content, fact.map(Statement::new)));
        }
        Ok(ToolOutput::text(content))
    }

    /// A tool that makes calls of its own: of a tool, and of a model.
    async fn delegate(&self, invocation: &Invocation, at: &str) {
        let nested = invocation.nested();
        let calls = self.0.world.number("nested_calls", at, 1, 3);
        for index in 0..calls {
            let at = format!("{at} {index}");
            let tool = match self.0.world.choose("nested_tool", &at, &[3, 2, 1]) {
                0 => Some("put"),
                1 => None,
                _ => Some("order"),
            };
            if self.0.world.bug == Some(Bug::CallsUnasked) {
                self.nested_entered(invocation, None, tool);
                continue;
            }
            let arguments = Json::parse(r#"{"of":"thing 0"}"#).unwrap();
            let admitted: Result<Admitted, _> = match tool {
                Some(tool) => nested.tool(tool, arguments).await,
                None => nested.model().await,
            };
            self.0.act(format!("nested {at}")).await;
            let Ok(admitted) = admitted else { continue };
            self.nested_entered(invocation, Some(admitted.id().to_string()), tool);
            self.take_time("nested_ms", &at, 200).await;
            if self.goes_wrong(Fault::NestedLeft, &at) {
                continue;
            }
            // It may come too late: then nobody needs it.
            let _ = admitted.complete(Some(Usage { input_tokens: Some(5), output_tokens: Some(5) })).await;
        }
    }

    fn nested_entered(&self, invocation: &Invocation, nested: Option<String>, tool: Option<&str>) {
        let process = self.0.number;
        self.0.world.observe(|seen| seen.nested_entered(process, &invocation.run, nested, tool));
    }
}

impl Judge for Ports {
    async fn judge(&self, question: JudgeQuestion) -> Result<Judgement, Error> {
        let at = format!("{} {}/{}", question.run, question.call, question.attempt);
        let _under_way = UnderWay::begin(&self.0, &question.run, format!("judgement {}", question.call));
        self.0.act(format!("judge {at}")).await;
        let (process, effect) = (self.0.number, format!("judge_semantics {}/{}", question.call, question.attempt));
        self.0.world.observe(|seen| seen.begins(process, &question.run, &effect));
        self.take_time("judge_ms", &at, 400).await;
        if self.goes_wrong(Fault::JudgeStalls, &at) {
            self.0.world.until_healed().await;
        }
        if self.goes_wrong(Fault::JudgeFails, &at) {
            if self.0.world.choose("judge_panics", &at, &[2, 1]) == 1 {
                std::panic::resume_unwind(Box::new(format!("{PRIVATE} words of a panic")));
            }
            return Err(Error::Timeout { message: format!("{PRIVATE} words of the judge") });
        }
        let verdict = match self.0.world.choose("verdict", &at, &[5, 1, 1, 1]) {
            0 => Verdict::Supported,
            1 => Verdict::Unsupported,
            2 => Verdict::Contradicted,
            _ => Verdict::Unknown,
        };
        self.0.act(format!("judged {at}")).await;
        Ok(Judgement { verdict, usage: Some(Usage { input_tokens: Some(9), output_tokens: Some(1) }) })
    }
}

impl Gates for Ports {
    async fn ask(&self, question: GateQuestion) -> Result<GateAnswer, GateFailure> {
        let at = format!("{} {} {}", question.run, question.gate, question.ask.0);
        let _under_way = UnderWay::begin(&self.0, &question.run, format!("gate {}", question.gate));
        self.0.act(format!("gate {at}")).await;
        let (process, effect) = (self.0.number, format!("ask_gate {}", question.ask.0));
        self.0.world.observe(|seen| seen.begins(process, &question.run, &effect));
        self.take_time("gate_ms", &at, 200).await;
        if self.goes_wrong(Fault::GateStalls, &at) {
            self.0.world.until_healed().await;
        }
        if self.goes_wrong(Fault::GateFails, &at) {
            if self.0.world.choose("gate_panics", &at, &[2, 1]) == 1 {
                std::panic::resume_unwind(Box::new(format!("{PRIVATE} words of a panic")));
            }
            return Err(GateFailure(format!("{PRIVATE} failure")));
        }
        Ok(match self.0.world.choose("gate_answer", &at, &[8, 1, 1, 1]) {
            0 => GateAnswer::Allow,
            1 => GateAnswer::Block { reason: Some(format!("{PRIVATE} reason")) },
            2 => GateAnswer::SetResult { content: format!("{PRIVATE} result") },
            _ => GateAnswer::Confirm { expires_ms: Some(3_000) },
        })
    }
}
