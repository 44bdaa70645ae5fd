//! Spans after OpenTelemetry's semantic conventions for generative AI: `invoke_agent`, `chat` and
//! `execute_tool`, with usage, finish reasons and `error.type`; and, in the same style, `call_hook`,
//! `perform_action` and `ask_gate`, for which there is no convention. What was written is not in them unless it
//! was asked for.

use tracing::{Span, field};

use crate::engine::Ending;
use crate::runtime::ports::{Invocation, ModelAnswer, ModelCall, ModelFailure};
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::{Ask, RunId};
use crate::vocabulary::input::GateAnswer;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// What spans show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Traces {
    /// Names, ids, numbers and codes.
    #[default]
    Outline,
    /// Messages, arguments and results too. They may hold text that is never released.
    Content,
}

/// Says who broke what: the ids that a person needs to mend a plugin. They stand in no ending and no event.
pub(super) fn blame(run: &RunId, signals: &[Signal]) {
    for signal in signals {
        if let Signal::EnvironmentRefused { error } = signal {
            tracing::error!(%run, kind = error.tag(), reason = %error, "the environment does not resolve");
        } else if let Signal::BoundBroken { plugin, contribution } = signal {
            tracing::error!(%run, plugin, contribution, "a plugin went beyond its bound");
        } else if let Signal::StateConflicted { scope, key, earlier, later } = signal {
            tracing::error!(%run, scope = scope.word(), key, earlier, later, "two writes do not go together");
        }
    }
}

impl Traces {
    /// The span of a run while it is driven.
    pub(crate) fn invoke_agent(self, run: &RunId, model: &str) -> Span {
        tracing::info_span!(
            "invoke_agent",
            otel.kind = "internal",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.conversation.id = %run,
            gen_ai.request.model = model,
            portcullis.row = field::Empty,
            error.type = field::Empty,
        )
    }

    /// The span of one model attempt.
    pub(crate) fn chat(self, call: &ModelCall) -> Span {
        let span = tracing::info_span!(
            "chat",
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.request.model = call.model.name,
            gen_ai.usage.input_tokens = field::Empty,
            gen_ai.usage.output_tokens = field::Empty,
            gen_ai.response.finish_reasons = field::Empty,
            gen_ai.input.messages = field::Empty,
            gen_ai.output.messages = field::Empty,
            portcullis.call = %call.call,
            portcullis.attempt = call.attempt,
            error.type = field::Empty,
        );
        if self == Self::Content {
            span.record("gen_ai.input.messages", json(&call.messages.iter().map(AsRef::as_ref).collect::<Vec<_>>()));
        }
        span
    }

    /// The span of one tool attempt.
    pub(crate) fn execute_tool(self, invocation: &Invocation) -> Span {
        let span = tracing::info_span!(
            "execute_tool",
            otel.kind = "internal",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = invocation.tool().name,
            gen_ai.tool.call.id = %invocation.call,
            gen_ai.tool.call.arguments = field::Empty,
            gen_ai.tool.call.result = field::Empty,
            portcullis.attempt = invocation.attempt,
            error.type = field::Empty,
        );
        if self == Self::Content {
            span.record("gen_ai.tool.call.arguments", invocation.arguments().to_text());
        }
        span
    }

    /// The span of one question to a hook.
    pub(crate) fn call_hook(self, plugin: &str, point: HookPoint, ask: Ask) -> Span {
        tracing::info_span!(
            "call_hook",
            otel.kind = "internal",
            portcullis.plugin = plugin,
            portcullis.point = point.word(),
            portcullis.ask = ask.0,
            error.type = field::Empty,
        )
    }

    /// The span of one scheduled action.
    pub(crate) fn perform_action(self, plugin: &str, action: &str, ask: Ask) -> Span {
        tracing::info_span!(
            "perform_action",
            otel.kind = "internal",
            portcullis.plugin = plugin,
            portcullis.action = action,
            portcullis.ask = ask.0,
            error.type = field::Empty,
        )
    }

    /// The span of one question to a gate. A gate of the host has no plugin.
    pub(crate) fn ask_gate(self, plugin: Option<&str>, gate: &str, ask: Ask) -> Span {
        tracing::info_span!(
            "ask_gate",
            otel.kind = "internal",
            portcullis.plugin = plugin,
            portcullis.gate = gate,
            portcullis.ask = ask.0,
            portcullis.answer = field::Empty,
            error.type = field::Empty,
        )
    }

    /// How the code of the current span failed, by a word.
    pub(crate) fn failed(self, word: &'static str) {
        Span::current().record("error.type", word);
    }

    /// What a gate answered, by a word.
    pub(crate) fn gated(self, answer: &GateAnswer) {
        Span::current().record("portcullis.answer", answer.tag());
    }

    /// What a model attempt came to.
    pub(crate) fn answered(self, answer: &Result<Result<ModelAnswer, ModelFailure>, String>) {
        let span = Span::current();
        match answer {
            Ok(Ok(answer)) => {
                span.record("gen_ai.usage.input_tokens", answer.usage.input_tokens);
                span.record("gen_ai.usage.output_tokens", answer.usage.output_tokens);
                span.record("gen_ai.response.finish_reasons", answer.finish.word());
                if self == Self::Content {
                    span.record("gen_ai.output.messages", json(&answer.content));
                }
            }
            Ok(Err(ModelFailure::Classified { error, .. })) => {
                span.record("error.type", error.code().word());
            }
            Ok(Err(ModelFailure::Unclassified { .. })) => {
                span.record("error.type", "_OTHER");
            }
            Err(_) => {
                span.record("error.type", "panic");
            }
        }
    }

    /// What a tool attempt came to.
    pub(crate) fn returned(self, returned: &Result<Result<ToolOutput, ToolError>, String>) {
        let span = Span::current();
        match returned {
            Ok(Ok(output)) => {
                if matches!(output, ToolOutput::Error { .. }) {
                    span.record("error.type", "tool_result_error");
                }
                if self == Self::Content {
                    span.record("gen_ai.tool.call.result", output.content());
                }
            }
            Ok(Err(error)) => {
                span.record("error.type", error.tag());
            }
            Err(_) => {
                span.record("error.type", "panic");
            }
        }
    }

    /// How the run of the current span ended.
    pub(crate) fn ended(self, ending: &Ending) {
        let span = Span::current();
        span.record("portcullis.row", ending.row);
        if let Some(failure) = &ending.failure {
            span.record("error.type", failure.tag());
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
