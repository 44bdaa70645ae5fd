//! Trajectories of SWE-agent (`.traj`).
//!
//! | in the file | becomes |
//! |---|---|
//! | `history`: `system` | instructions |
//! | `history`: a message marked `is_demo` | left out: it was shown, and did not happen |
//! | `history`: `user` after a reply, or `tool` | the result of the reply's command |
//! | `history`: another `user` | a turn's task |
//! | `history`: `assistant` | a reply: `thought`, else `content`, its text; `tool_calls`, else `action`, its calls |
//! | `trajectory`, where there is no `history` | a reply and a result a step |
//! | a last call of `submit` | the answer: `info.submission`, else its result |
//! | `info.exit_status` `submitted` | success |
//! | `exit_cost`, `exit_context`, .., also in `submitted (..)` | a limit was reached |
//! | `exit_api` | the model request failed |
//! | any other `info.exit_status` | it failed |
//!
//! Commands of the older form name no tool: their first word is taken, and the whole as `{"command":".."}`.

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::line::{Entry, Line, Recorded};
use super::node::{Fields, Form, Node};
use super::note::{NoteKind, Notes};
use super::outline::Outline;
use super::reading::ReadOptions;
use super::speech::{Said, message};
use super::transcript::{Call, Claim, Reply};
use crate::vocabulary::llm;

/// A history whose first message names its agent, or a trajectory of actions.
pub(super) fn is(outline: &Outline<'_>) -> bool {
    let history = outline.field("history").first();
    let trajectory = outline.field("trajectory").first();
    let of_agent = history.is_some_and(|first| first.has("role", Form::Text) && first.get("agent").is_some());
    let of_steps = trajectory.is_some_and(|first| first.get("action").is_some() && first.get("observation").is_some());
    of_agent || of_steps
}

/// Reads the one run of a document.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let root = Node::root(document)?;
    let fields = root.fields()?;
    let mut reader = Reader { entries: Vec::new(), notes: Notes::new(Format::SweAgent), commands: false };
    let history = fields.of("history", Form::List);
    let history = history.filter(|history| history.items().is_ok_and(|items| !items.is_empty()));
    let list = history.or_else(|| fields.get("trajectory")).ok_or(TranscriptError::Unrecognised)?;
    let items = list.items()?;
    let (last, is_history) = (items.len().saturating_sub(1), history.is_some());
    options.admit(Format::SweAgent, items.len())?;
    for (index, raw) in items.into_iter().enumerate() {
        let item = list.index(index, raw);
        if is_history { reader.message(&item, index)? } else { reader.step(&item, index)? }
    }
    let info = fields.of("info", Form::Object);
    let info = info.as_ref().map(|info| info.fields()).transpose()?;
    let submission = info.as_ref().map(|info| info.text("submission")).transpose()?.flatten();
    let status = info.as_ref().map(|info| info.text("exit_status")).transpose()?.flatten();
    reader.submit(submission);
    if let Some(claim) = status.as_deref().map(claim) {
        reader.entries.push(Entry { at: last, line: Line::Closed(claim) });
    }
    if reader.commands {
        reader.notes.file(NoteKind::CommandsAsTools);
    }
    Ok(vec![Draft { id: None, model: None, entries: reader.entries, notes: reader.notes }])
}

fn claim(status: &str) -> Claim {
    let inner = status.strip_prefix("submitted (").and_then(|rest| rest.strip_suffix(')'));
    let said = status.to_owned();
    match inner.unwrap_or(status) {
        "submitted" => Claim::Success,
        "exit_cost"
        | "exit_context"
        | "exit_total_cost"
        | "exit_total_execution_time"
        | "exit_command_timeout"
        | "exit_max_requeries" => Claim::LimitReached { said },
        "exit_api" => Claim::ModelFailed { error: llm::Error::Provider { message: said } },
        _ => Claim::Failed { said },
    }
}

struct Reader {
    entries: Vec<Entry>,
    notes: Notes,
    /// Whether a call was made of a command.
    commands: bool,
}

impl Reader {
    fn push(&mut self, at: usize, line: Line) {
        self.entries.push(Entry { at, line });
    }

    fn message(&mut self, node: &Node<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let fields = node.fields()?;
        if fields.get("is_demo").is_some_and(|flag| flag.truth() == Some(true)) {
            self.notes.at(at, NoteKind::Demonstration);
            return Ok(());
        }
        let after_reply = matches!(self.entries.last(), Some(Entry { line: Line::Assistant(_), .. }));
        match fields.text("role")?.as_deref() {
            Some("assistant") => self.reply(node, &fields, at),
            Some("tool") => self.result(&fields, at),
            Some("user") if after_reply => self.result(&fields, at),
            Some(_) | None => {
                let mut lines = Vec::new();
                message(node, at, &mut self.notes, &mut lines)?;
                self.entries.extend(lines.into_iter().map(|line| Entry { at, line }));
                Ok(())
            }
        }
    }

    fn reply(&mut self, node: &Node<'_, '_>, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let mut lines = Vec::new();
        message(node, at, &mut self.notes, &mut lines)?;
        for line in lines {
            let Line::Assistant(mut reply) = line else {
                self.push(at, line);
                continue;
            };
            let action = fields.text("action")?.filter(|action| !action.trim().is_empty());
            if let (true, Some(action)) = (reply.calls.is_empty(), action) {
                self.commands = true;
                reply.calls.push(command(&action));
                let thought = fields.text("thought")?;
                reply.text = thought.filter(|thought| !thought.trim().is_empty());
            }
            if reply.calls.is_empty() && reply.text.is_none() {
                self.notes.at(at, NoteKind::EmptyReply);
            }
            self.push(at, Line::Assistant(reply));
        }
        Ok(())
    }

    fn result(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let mut said = Said::default();
        if let Some(content) = fields.get("content") {
            said.content(&content, at, &mut self.notes)?;
        }
        let ids = match fields.of("tool_call_ids", Form::List) {
            Some(ids) => {
                ids.items()?.iter().enumerate().map(|(index, raw)| ids.index(index, raw).loose_text()).collect()
            }
            None => fields.loose(&["tool_call_id"]).map(|id| id.into_iter().collect::<Vec<_>>()),
        }?;
        let id = ids.into_iter().next();
        let recorded = Recorded { at, text: said.texts.join("\n"), id, name: None, is_error: None };
        self.push(at, Line::Result(recorded));
        Ok(())
    }

    fn step(&mut self, node: &Node<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let fields = node.fields()?;
        if self.entries.is_empty() {
            self.notes.at(at, NoteKind::FieldGuessed { field: "trajectory" });
            self.push(at, Line::User(String::new()));
        }
        let action = fields.text("action")?.unwrap_or_default();
        let thought = fields.text("thought")?.or(fields.text("response")?).unwrap_or_default();
        let calls = if action.trim().is_empty() { Vec::new() } else { vec![command(&action)] };
        let called = !calls.is_empty();
        self.commands |= called;
        self.push(at, Line::Assistant(Reply { calls, ..Reply::new(thought.trim(), at) }));
        if let Some(observation) = fields.get("observation").filter(|_| called) {
            let text = observation.loose_text()?;
            self.push(at, Line::Result(Recorded { at, text, id: None, name: None, is_error: None }));
        }
        Ok(())
    }

    /// Reads a last call of `submit` as the answer.
    fn submit(&mut self, submission: Option<String>) {
        let result = self.entries.pop_if(|entry| matches!(entry.line, Line::Result(_)));
        let submitted = match self.entries.last_mut() {
            Some(Entry { at, line: Line::Assistant(reply) }) if reply.calls.len() == 1 => {
                reply.calls.pop_if(|call| call.name == "submit").map(|call| (*at, call, reply))
            }
            Some(_) | None => None,
        };
        let Some((at, call, reply)) = submitted else {
            self.entries.extend(result);
            return;
        };
        let given = match result {
            Some(Entry { line: Line::Result(recorded), .. }) => Some(recorded.text),
            Some(_) | None => None,
        };
        if reply.text.is_some() {
            self.notes.at(at, NoteKind::CommentaryReplaced);
        }
        reply.text = submission.or(given).filter(|text| !text.trim().is_empty());
        self.notes.at(at, NoteKind::TerminalAnswer { tool: call.name });
        self.notes.at(at, NoteKind::SubmissionTaken);
    }
}

/// A command as a call of its first word.
fn command(action: &str) -> Call {
    let name = action.split_whitespace().next().unwrap_or_default().to_owned();
    let arguments = format!("{{\"command\":{}}}", serde_json::Value::from(action.trim_end()));
    Call { name, arguments, provider_id: None, result: None }
}
