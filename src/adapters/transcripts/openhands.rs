//! Event lists of OpenHands: bare, under `history` (one run, or one a line), or one event a line.
//!
//! | event | becomes |
//! |---|---|
//! | action `system` | instructions |
//! | action `message` of the user | a turn's task |
//! | action `message` of the agent without a model response | a reply |
//! | any action with `tool_call_metadata.model_response` | that response: a reply with all its calls, once a response |
//! | an action of the agent without one | a reply that calls the action's name with its `args`, with a note |
//! | an observation of a call, by its `tool_call_id` or its `cause` | the result; `success: false` and `error` are errors |
//! | action `finish` | the answer: its call's `message`, else its thought; `task_completed` says how it ended |
//! | recall, state changes, and all else that nobody said | left out, with a note |
//! | `error` that tells of the maximum iteration | a limit was reached |
//! | another `error` | it failed |

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::line::{Entry, Line, Recorded};
use super::lines::{Skips, lines};
use super::node::{Fields, Form, Node};
use super::note::{NoteKind, Notes};
use super::outline::Outline;
use super::reading::ReadOptions;
use super::speech::{finish, message, nested, usage};
use super::transcript::{Call, Claim, Reply};
use crate::vocabulary::llm::FinishReason;

fn is_event(outline: &Outline<'_>) -> bool {
    outline.has("source", Form::Text) && (outline.get("action").is_some() || outline.get("observation").is_some())
}

/// Events, each with its source and what it is.
pub(super) fn is(outline: &Outline<'_>) -> bool {
    is_event(outline)
        || outline.first().is_some_and(|first| is_event(&first))
        || outline.field("history").first().is_some_and(|first| is_event(&first) || is_pair(&first))
}

/// Older files keep each action with its observation as a pair.
fn is_pair(outline: &Outline<'_>) -> bool {
    outline.first().is_some_and(|first| is_event(&first))
}

/// Reads every run of a document.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let whole = Node::root(document);
    if let Ok(root) = &whole {
        return Ok(vec![run(root, options)?]);
    }
    let (mut drafts, mut skips) = (Vec::new(), Skips::default());
    let mut events = Reader::new();
    for (index, line) in lines(document).enumerate() {
        options.admit(Format::OpenHands, index)?;
        let read = Node::root(line.text).and_then(|node| {
            if is_event(&Outline::of(line.text)) {
                return events.event(&node, index);
            }
            drafts.push(run(&node, options)?);
            Ok(())
        });
        read.unwrap_or_else(|error| skips.add(line, &error));
    }
    drafts.push(events.finish(None));
    skips.settle(drafts, whole.err())
}

fn run(root: &Node<'_, '_>, options: &ReadOptions) -> Result<Draft, TranscriptError> {
    let mut reader = Reader::new();
    if root.form() == Form::List {
        reader.events(root, options)?;
        return Ok(reader.finish(None));
    }
    if is_event(&Outline::of(root.raw())) {
        reader.event(root, 0)?;
        return Ok(reader.finish(None));
    }
    let fields = root.fields()?;
    let history = fields.get("history").ok_or_else(|| root.expected("an object with `history`"))?;
    let events = reader.events(&history, options)?;
    if let Some(error) = fields.loose(&["error"])?.filter(|error| !error.is_empty()) {
        // The one sign of it that these files keep is this error's text.
        let is_limit = error.to_ascii_lowercase().contains("maximum iteration");
        let claim = if is_limit { Claim::LimitReached { said: error } } else { Claim::Failed { said: error } };
        reader.entries.push(Entry { at: events.saturating_sub(1), line: Line::Closed(claim) });
    }
    Ok(reader.finish(fields.loose(&["instance_id", "id"])?))
}

struct Reader {
    entries: Vec<Entry>,
    notes: Notes,
    model: Option<String>,
    /// The model responses that were taken.
    responses: BTreeSet<String>,
    /// The call that was made of an action, by its event.
    made: BTreeMap<String, String>,
}

impl Reader {
    const fn new() -> Self {
        let notes = Notes::new(Format::OpenHands);
        Self { entries: Vec::new(), notes, model: None, responses: BTreeSet::new(), made: BTreeMap::new() }
    }

    fn finish(self, id: Option<String>) -> Draft {
        Draft { id, model: self.model, entries: self.entries, notes: self.notes }
    }

    fn push(&mut self, at: usize, line: Line) {
        self.entries.push(Entry { at, line });
    }

    fn events(&mut self, list: &Node<'_, '_>, options: &ReadOptions) -> Result<usize, TranscriptError> {
        let items = list.items()?;
        let count = items.len();
        options.admit(Format::OpenHands, count)?;
        for (index, raw) in items.into_iter().enumerate() {
            let item = list.index(index, raw);
            if item.form() == Form::List {
                for (part, raw) in item.items()?.into_iter().enumerate() {
                    self.event(&item.index(part, raw), index)?;
                }
            } else {
                self.event(&item, index)?;
            }
        }
        Ok(count)
    }

    fn event(&mut self, node: &Node<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let event = node.fields()?;
        if let Some(observation) = event.text("observation")? {
            return self.observation(&event, &observation, at);
        }
        let Some(action) = event.text("action")? else {
            self.leave_out(at, "an event that is neither an action nor an observation");
            return Ok(());
        };
        let arguments = event.of("args", Form::Object);
        let args = arguments.as_ref().map(|args| args.fields()).transpose()?;
        let content = || -> Result<String, TranscriptError> {
            let told = args.as_ref().map(|args| args.loose(&["content"])).transpose()?.flatten();
            Ok(told.or(event.loose(&["message"])?).unwrap_or_default())
        };
        let source = event.text("source")?.unwrap_or_default();
        let response = self.response(&event, at)?;
        match (source.as_str(), action.as_str()) {
            (_, "system") => self.push(at, Line::Instructions(content()?)),
            ("user", "message") => self.push(at, Line::User(content()?)),
            ("agent", "finish") => self.answer(&event, args.as_ref(), response, at)?,
            ("agent", _) if response => {}
            ("agent", "message") => self.push(at, Line::Assistant(Reply::new(content()?, at))),
            ("agent", "recall" | "change_agent_state" | "null" | "condensation" | "condensation_request") => {
                self.leave_out(at, &action);
            }
            ("agent", _) => self.made_call(&event, args.as_ref(), &action, at)?,
            _ => self.leave_out(at, &format!("{action} of {source}")),
        }
        Ok(())
    }

    fn leave_out(&mut self, at: usize, what: &str) {
        self.notes.at(at, NoteKind::LeftOut { what: format!("event {what}") });
    }

    /// Takes the model response that the event came from, once. Whether there is one.
    fn response(&mut self, event: &Fields<'_, '_>, at: usize) -> Result<bool, TranscriptError> {
        let Some(metadata) = event.of("tool_call_metadata", Form::Object) else { return Ok(false) };
        let metadata = metadata.fields()?;
        let Some(response) = metadata.of("model_response", Form::Object) else { return Ok(false) };
        let response = response.fields()?;
        if response.loose(&["id"])?.is_some_and(|id| !self.responses.insert(id)) {
            return Ok(true);
        }
        let Some(choices) = response.of("choices", Form::List) else { return Ok(false) };
        let Some(first) = choices.items()?.first().copied() else { return Ok(false) };
        let choice = choices.index(0, first);
        let choice = choice.fields()?;
        let Some(said) = choice.get("message") else { return Ok(false) };
        let mut lines = Vec::new();
        message(&said, at, &mut self.notes, &mut lines)?;
        let used = response.of("usage", Form::Object);
        let used = used.as_ref().map(|used| used.fields().map(|used| usage(&used))).transpose()?.unwrap_or_default();
        let ended = choice.text("finish_reason")?.as_deref().and_then(finish);
        if self.model.is_none() {
            self.model = response.loose(&["model"])?;
        }
        for mut line in lines {
            if let Line::Assistant(reply) = &mut line {
                (reply.usage, reply.finish) = (used, ended);
            }
            self.push(at, line);
        }
        Ok(true)
    }

    /// An action whose model call was not recorded.
    fn made_call(
        &mut self,
        event: &Fields<'_, '_>,
        args: Option<&Fields<'_, '_>>,
        action: &str,
        at: usize,
    ) -> Result<(), TranscriptError> {
        self.notes.at(at, NoteKind::CallFromEvent);
        let thought = args.map(|args| args.loose(&["thought"])).transpose()?.flatten().unwrap_or_default();
        let id = event.loose(&["id"])?;
        let provider_id = Some(format!("event {}", id.as_deref().unwrap_or("-")));
        if let (Some(id), Some(call)) = (id, provider_id.clone()) {
            self.made.insert(id, call);
        }
        let arguments = event.get("args").map_or_else(|| "{}".to_owned(), |args| args.raw().to_owned());
        let call = Call { name: action.to_owned(), arguments, provider_id, result: None };
        self.push(at, Line::Assistant(Reply { calls: vec![call], ..Reply::new(thought, at) }));
        Ok(())
    }

    fn observation(&mut self, event: &Fields<'_, '_>, kind: &str, at: usize) -> Result<(), TranscriptError> {
        let metadata = event.of("tool_call_metadata", Form::Object);
        let metadata = metadata.as_ref().map(|metadata| metadata.fields()).transpose()?;
        let called = metadata.as_ref().map(|metadata| metadata.loose(&["tool_call_id"])).transpose()?.flatten();
        let cause = event.loose(&["cause"])?;
        let id = called.or_else(|| self.made.get(cause.as_deref()?).cloned());
        let Some(id) = id else {
            self.leave_out(at, &format!("observation {kind}"));
            return Ok(());
        };
        let success = event.get("success").and_then(|success| success.truth());
        let is_error = if kind == "error" { Some(true) } else { success.map(|success| !success) };
        let text = event.loose(&["content", "message"])?.unwrap_or_default();
        let name = metadata.as_ref().map(|metadata| metadata.text("function_name")).transpose()?.flatten();
        self.push(at, Line::Result(Recorded { at, text, id: Some(id), name, is_error }));
        Ok(())
    }

    /// The agent says that it is done; its call is its answer.
    fn answer(
        &mut self,
        event: &Fields<'_, '_>,
        args: Option<&Fields<'_, '_>>,
        response: bool,
        at: usize,
    ) -> Result<(), TranscriptError> {
        let mut told = None;
        let mut completed = args.and_then(|args| args.loose(&["task_completed"]).transpose()).transpose()?;
        if let Some(Entry { at: called_at, line: Line::Assistant(reply) }) =
            self.entries.last_mut().filter(|_| response)
        {
            let called_at = *called_at;
            if let Some(call) = reply.calls.pop_if(|call| call.name == "finish") {
                let text = reply.text.take();
                nested(&call.arguments, "the finish call's arguments", at, &mut self.notes, |node, _| {
                    let fields = node.fields()?;
                    told = fields.loose(&["message"])?;
                    completed = completed.take().or(fields.loose(&["task_completed"])?);
                    Ok(())
                });
                if told.is_some() && text.is_some() {
                    self.notes.at(called_at, NoteKind::CommentaryReplaced);
                }
                told = told.or(text);
                self.notes.at(called_at, NoteKind::TerminalAnswer { tool: call.name });
            }
        }
        let said = args.and_then(|args| args.loose(&["final_thought", "thought"]).transpose()).transpose()?;
        let said = said.filter(|said| !said.is_empty()).or(event.loose(&["message"])?);
        let text = told.or(said).unwrap_or_default();
        match self.entries.last_mut() {
            Some(Entry { line: Line::Assistant(reply), .. }) if response && reply.calls.is_empty() => {
                reply.text = Some(text).filter(|text| !text.is_empty());
                reply.finish = reply.finish.filter(|finish| *finish != FinishReason::ToolCalls);
            }
            Some(_) | None => self.push(at, Line::Assistant(Reply::new(text, at))),
        }
        if let Some(completed) = completed.filter(|completed| completed != "null") {
            let done = completed == "true";
            let said = format!("task_completed: {completed}");
            self.push(at, Line::Closed(if done { Claim::Success } else { Claim::Failed { said } }));
        }
        Ok(())
    }
}
