//! What a run waits for, and what to type next (SPEC 7.8, 14).

use serde::Serialize;

use crate::engine::Engine;
use crate::runtime::{Question, question};
use crate::vocabulary::ids::{OperationId, RunId, Ticket, ToolCallId};

/// The questions that people have to answer, in the order in which they were asked.
pub(crate) fn open(engine: &Engine) -> Vec<Question> {
    engine.outstanding().iter().filter_map(|effect| question(engine, effect)).collect()
}

/// A question as a person reads it.
pub(crate) fn asked(question: &Question) -> String {
    match question {
        Question::Decision { ticket, call, tool } => {
            format!("may {} run? ticket {ticket}", called(tool.as_deref(), *call))
        }
        Question::Reconciliation { call, operation_id, tool } => {
            format!("what did {} do? operation {operation_id}", called(tool.as_deref(), *call))
        }
    }
}

/// What to type to see what it is about. `history` is the run or the file, as a shell reads it, with its options.
pub(crate) fn see(history: &str, question: &Question) -> String {
    match question {
        Question::Decision { ticket, .. } => format!("portcullis show {history} --ticket {ticket}"),
        Question::Reconciliation { call, .. } => format!("portcullis show {history} --call {call}"),
    }
}

/// What to type to answer it. `store` is the option that names the store, if one was given.
pub(crate) fn answer(run: &RunId, question: &Question, store: &str) -> String {
    match question {
        Question::Decision { ticket, .. } => format!("portcullis decide {run} {ticket} allow|deny{store}"),
        Question::Reconciliation { call, .. } => {
            format!("portcullis reconcile {run} {call} applied|not-applied|unknown{store}")
        }
    }
}

fn called(tool: Option<&str>, call: ToolCallId) -> String {
    tool.map_or_else(|| call.to_string(), |tool| format!("{tool} ({call})"))
}

/// A question as `--json` shows it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum QuestionLine<'a> {
    /// May this call run?
    Decision { ticket: &'a Ticket, call: ToolCallId, tool: Option<&'a str> },
    /// What did it do?
    Reconciliation { call: ToolCallId, operation_id: &'a OperationId, tool: Option<&'a str> },
}

impl<'a> From<&'a Question> for QuestionLine<'a> {
    fn from(question: &'a Question) -> Self {
        match question {
            Question::Decision { ticket, call, tool } => Self::Decision { ticket, call: *call, tool: tool.as_deref() },
            Question::Reconciliation { call, operation_id, tool } => {
                Self::Reconciliation { call: *call, operation_id, tool: tool.as_deref() }
            }
        }
    }
}
