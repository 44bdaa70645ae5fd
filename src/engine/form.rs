//! Limits of form and size: what breaks one is malformed, whatever state the run is in (SPEC 5).

use super::admission::{Admission, Objection};
use super::stepping::check_start;
use crate::machines::nested::NESTED_MAX;
use crate::vocabulary::ids::{NestedCallId, ToolCallId};
use crate::vocabulary::input::{Decision, GateAnswer, Input, NestedKind, Reconciliation, StagedCommand};
use crate::vocabulary::json::{DEPTH_MAX, Json};
use crate::vocabulary::llm::{Content, ToolRequest};
use crate::vocabulary::refusal::RefusalKind;
use crate::vocabulary::spec::Limits;
use crate::vocabulary::tool::ToolOutput;

/// Checks one input against the run's limits.
pub(crate) fn check(limits: &Limits, input: &Input) -> Admission {
    match input {
        Input::ModelResponded { content, .. } => check_content(limits, content),
        Input::ToolCompleted { output, .. } => check_output(limits, output),
        Input::ToolReconciled { by, outcome, .. } => {
            check_note(limits, by)?;
            match outcome {
                Reconciliation::Applied { output } => check_output(limits, output),
                Reconciliation::NotApplied | Reconciliation::Unknown => Ok(()),
            }
        }
        Input::DecisionGiven { by, decision, .. } => {
            check_note(limits, by)?;
            match decision {
                Decision::Allow | Decision::Deny { note: None } => Ok(()),
                Decision::AllowWith { arguments } => check_depth(arguments),
                Decision::Deny { note: Some(note) } => check_note(limits, note),
            }
        }
        Input::GateAnswered { answer, .. } => match answer {
            GateAnswer::Block { reason: Some(reason) } => check_note(limits, reason),
            GateAnswer::SetResult { content } => check_text(limits, content),
            GateAnswer::Allow | GateAnswer::Block { reason: None } | GateAnswer::Confirm { .. } => Ok(()),
        },
        Input::HookAnswered { commands, context, .. } => {
            check_commands(limits, commands)?;
            context.as_deref().map_or(Ok(()), |context| check_text(limits, context))
        }
        Input::CancelRequested { by: note, .. }
        | Input::ExecutionCrashed { origin: note }
        | Input::ReleaseDelivered { receipt: note } => check_note(limits, note),
        Input::DeadlineElapsed { displaced: Some(displaced) } => check_displaced(limits, displaced),
        Input::RunStarted { spec, nonce, wall_time, .. } => {
            check_start(spec, nonce, wall_time).map(|_| ()).or_else(malformed)
        }
        Input::EnvironmentResolved { environment } => check_written(limits, environment).or_else(malformed),
        Input::ModelFailed { error, .. } | Input::SemanticsFailed { error, .. } => check_text(limits, error.message()),
        Input::ToolFailed { error, .. } => check_text(limits, error.message()),
        Input::NestedCallRequested { parent, nested, kind, tool, arguments, .. } => {
            check_nested(*parent, *nested)?;
            check_wanted(limits, *kind, tool.as_deref(), arguments.as_ref())
        }
        // It stands in the record twice: as the report, and in the signal.
        Input::ResolutionFailed { error } => check_written(limits, &(error, error)).or_else(malformed),
        Input::RunRecovered { tools, .. } => check_written(limits, tools).or_else(malformed),
        Input::ToolsDispatched { calls } => check_written(limits, calls).or_else(malformed),
        Input::BackoffElapsed { .. }
        | Input::ToolTimedOut { .. }
        | Input::NestedCompleted { .. }
        | Input::GateFailed { .. }
        | Input::HookFailed { .. }
        | Input::TicketExpired { .. }
        | Input::SemanticsJudged { .. }
        | Input::DeadlineElapsed { displaced: None }
        | Input::TailRepaired { .. } => Ok(()),
    }
}

fn malformed(reason: impl Into<String>) -> Admission {
    Err(Objection { kind: RefusalKind::Malformed, machine: "engine", reason: Some(reason.into()) })
}

fn check_content(limits: &Limits, content: &Content) -> Admission {
    let text = content.text.as_ref().map_or(0, String::len);
    let size =
        |call: &ToolRequest| call.name.len() + call.arguments.len() + call.provider_id.as_ref().map_or(0, String::len);
    let calls: usize = content.calls.iter().map(size).sum();
    let opaque = content.opaque.as_ref().map_or(0, |opaque| opaque.to_text().len());
    let bytes = (text + calls + opaque) as u64;
    if bytes > limits.response_bytes_max {
        return malformed(format!("a response of {bytes} bytes, over limits.response_bytes_max"));
    }
    if content.calls.len() > limits.calls_in_response_max as usize {
        return malformed(format!("{} calls, over limits.calls_in_response_max", content.calls.len()));
    }
    content.opaque.as_ref().map_or(Ok(()), check_depth)
}

fn check_output(limits: &Limits, output: &ToolOutput) -> Admission {
    check_text(limits, output.content())?;
    match output {
        ToolOutput::Success { facts, commands, .. } => {
            facts.iter().try_for_each(check_depth)?;
            check_commands(limits, commands)
        }
        ToolOutput::Error { .. } => Ok(()),
    }
}

/// A nested call belongs to its parent, and no parent has too many.
fn check_nested(parent: ToolCallId, nested: NestedCallId) -> Admission {
    if nested.parent != parent {
        return malformed(format!("{nested} is no call of {parent}"));
    }
    if nested.index >= NESTED_MAX {
        return malformed(format!("{parent} has asked for {NESTED_MAX} nested calls"));
    }
    Ok(())
}

/// Tool and arguments stand where a tool is called, and nowhere else. They are no larger than a model may write.
fn check_wanted(limits: &Limits, kind: NestedKind, tool: Option<&str>, arguments: Option<&Json>) -> Admission {
    match (kind, tool, arguments) {
        (NestedKind::Model, None, None) => Ok(()),
        (NestedKind::Tool, Some(tool), Some(arguments)) => {
            check_depth(arguments)?;
            let bytes = (tool.len() + arguments.to_text().len()) as u64;
            if bytes > limits.response_bytes_max {
                return malformed(format!("a nested call of {bytes} bytes, over limits.response_bytes_max"));
            }
            Ok(())
        }
        (NestedKind::Model, Some(_), _) | (NestedKind::Model, None, Some(_)) => {
            malformed("a nested model call names no tool and has no arguments")
        }
        (NestedKind::Tool, None, _) | (NestedKind::Tool, Some(_), None) => {
            malformed("a nested tool call names its tool and has arguments")
        }
    }
}

/// How many commands one answer or result may stage: what a step costs has a bound.
const COMMANDS_MAX: usize = 256;

fn check_commands(limits: &Limits, commands: &[StagedCommand]) -> Admission {
    if commands.len() > COMMANDS_MAX {
        return malformed(format!("{} commands, at most {COMMANDS_MAX} are taken", commands.len()));
    }
    for command in commands {
        match command {
            StagedCommand::Set { value: payload, .. } | StagedCommand::Schedule { payload, .. } => {
                check_depth(payload)?
            }
            StagedCommand::Remove { .. } => {}
        }
    }
    check_written(limits, &commands).or_else(malformed)
}

fn check_text(limits: &Limits, text: &str) -> Admission {
    if text.len() as u64 > limits.line_bytes_max {
        return malformed(format!("a text of {} bytes, over limits.line_bytes_max", text.len()));
    }
    Ok(())
}

fn check_note(limits: &Limits, note: &str) -> Admission {
    if note.len() as u64 > limits.note_bytes_max {
        return malformed(format!("{} bytes of remark, over limits.note_bytes_max", note.len()));
    }
    Ok(())
}

/// What is large by nature must be writable and fit a line. The error is the reason.
pub(crate) fn check_written(limits: &Limits, part: &impl serde::Serialize) -> Result<(), String> {
    let written = serde_json::to_vec(part).map_err(|error| format!("cannot be written: {error}"))?;
    if written.len() as u64 > limits.line_bytes_max {
        return Err(format!("{} bytes, over limits.line_bytes_max", written.len()));
    }
    Ok(())
}

/// What comes over the wire is never deeper; what an embedder builds in memory may be.
fn check_depth(json: &Json) -> Admission {
    if json.depth() > DEPTH_MAX {
        return malformed(format!("JSON deeper than {DEPTH_MAX}"));
    }
    Ok(())
}

fn check_displaced(limits: &Limits, displaced: &Input) -> Admission {
    if matches!(displaced, Input::DeadlineElapsed { .. } | Input::RunStarted { .. }) {
        return malformed(format!("`{}` cannot be displaced", displaced.tag()));
    }
    check(limits, displaced)
}
