//! The Agent Trajectory Interchange Format, 1.x, read leniently.
//!
//! | in the file | becomes |
//! |---|---|
//! | a step of `user` | a turn's task |
//! | a step of `system` | instructions |
//! | a step of `agent` | a reply: `message` its text, `tool_calls` its calls, `metrics` its usage |
//! | `observation.results`, each by its `source_call_id` | the results of those calls |
//! | a result's `extra.is_error` | whether it is an error |
//! | `reasoning_content`, a result's subagent reference | left out, with a note |
//! | `session_id`, `agent.model_name` | the recording's id and model |
//!
//! Not in the format, but written by some, read with a note each: `id` and `name` of a call; an observation
//! that is itself one result, with `result.success`; results before the step of their call, and the id of a
//! result in its message (`Tool result for ID`); `extra.success` of the whole, as how it ended.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::line::{Entry, Line, Recorded};
use super::node::{Fields, Form, Node};
use super::note::{NoteKind, Notes};
use super::outline::Outline;
use super::reading::ReadOptions;
use super::speech::{Said, output_text, usage};
use super::transcript::{Call, Claim, Reply};
use crate::vocabulary::llm::Usage;

/// Steps, the first of which says where it comes from.
pub(super) fn is(outline: &Outline<'_>) -> bool {
    outline.field("steps").first().is_some_and(|step| step.has("source", Form::Text))
        || outline.has("steps", Form::List)
            && outline.get("schema_version").is_some_and(|raw| raw.get().contains("ATIF"))
}

/// Reads the one trajectory of a document.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let root = Node::root(document)?;
    let fields = root.fields()?;
    let steps = fields.get("steps").ok_or(TranscriptError::Unrecognised)?;
    let items = steps.items()?;
    options.admit(Format::Atif, items.len())?;
    let mut reader = Reader::new();
    for (index, raw) in items.into_iter().enumerate() {
        reader.step(&steps.index(index, raw), index + 1)?;
    }
    let (last, agent) = (steps.items()?.len(), fields.of("agent", Form::Object));
    if let Some(agent) = agent {
        let agent = agent.fields()?;
        let model = agent.loose(&["model_name", "model"])?;
        reader.model = model.or(reader.model);
        if agent.get("model_name").is_none() && agent.get("model").is_some() {
            reader.notes.file(NoteKind::FieldGuessed { field: "agent.model" });
        }
    }
    reader.ending(&fields, last)?;
    Ok(vec![reader.finish(fields.loose(&["session_id", "trajectory_id"])?)])
}

struct Reader {
    entries: Vec<Entry>,
    notes: Notes,
    model: Option<String>,
    /// The ids of the latest agent step's calls.
    open: BTreeSet<String>,
    /// Results that stand before their call, by its id.
    early: BTreeMap<String, Vec<Recorded>>,
}

impl Reader {
    const fn new() -> Self {
        let notes = Notes::new(Format::Atif);
        Self { entries: Vec::new(), notes, model: None, open: BTreeSet::new(), early: BTreeMap::new() }
    }

    fn step(&mut self, node: &Node<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let step = node.fields()?;
        let source = step.text("source")?.unwrap_or_default();
        let mut said = Said::default();
        if let Some(message) = step.any(&["message", "content"]) {
            said.content(&message, at, &mut self.notes)?;
        }
        let text = said.texts.join("\n");
        if step.get("reasoning_content").is_some() {
            self.notes.at(at, NoteKind::Reasoning);
        }
        let results = match step.get("observation") {
            Some(observation) => self.observed(&observation, &text, at)?,
            None => Vec::new(),
        };
        match source.as_str() {
            "user" => self.push(at, Line::User(text)),
            // What a tool gave back was written down by the system.
            "system" if !results.is_empty() => {}
            "system" => self.push(at, Line::Instructions(text)),
            "agent" | "assistant" => self.reply(&step, text, at)?,
            _ => self.push(at, Line::Unknown(source)),
        }
        for result in results {
            self.give(result);
        }
        Ok(())
    }

    fn push(&mut self, at: usize, line: Line) {
        self.entries.push(Entry { at, line });
    }

    fn reply(&mut self, step: &Fields<'_, '_>, text: String, at: usize) -> Result<(), TranscriptError> {
        let mut calls = Vec::new();
        let mut guessed = false;
        if let Some(list) = step.get("tool_calls") {
            for (index, raw) in list.items()?.into_iter().enumerate() {
                let item = list.index(index, raw);
                let fields = item.fields()?;
                guessed |= fields.get("function_name").is_none() && fields.get("name").is_some();
                calls.push(self.call(&fields, (at, index))?);
            }
        }
        if guessed {
            self.notes.at(at, NoteKind::FieldGuessed { field: "tool_calls.name" });
        }
        if calls.is_empty() && text.trim().is_empty() {
            self.notes.at(at, NoteKind::EmptyReply);
        }
        let used = match step.of("metrics", Form::Object) {
            Some(metrics) => usage(&metrics.fields()?),
            None => Usage::default(),
        };
        if self.model.is_none() {
            self.model = step.text("model_name")?;
        }
        let ids: Vec<_> = calls.iter().filter_map(|call| call.provider_id.clone()).collect();
        self.push(at, Line::Assistant(Reply { calls, usage: used, ..Reply::new(text, at) }));
        self.open = ids.iter().cloned().collect();
        for id in ids {
            for result in self.early.remove(&id).unwrap_or_default() {
                self.notes.at(result.at, NoteKind::ResultBeforeCall);
                self.push(result.at, Line::Result(result));
            }
        }
        Ok(())
    }

    fn call(&mut self, fields: &Fields<'_, '_>, (at, index): (usize, usize)) -> Result<Call, TranscriptError> {
        let name = fields.loose(&["function_name", "name"])?.unwrap_or_default();
        let provider_id = fields.loose(&["tool_call_id", "id"])?;
        let arguments = fields.loose(&["arguments"])?;
        if arguments.is_none() {
            self.notes.at(at, NoteKind::ArgumentsNotText { call: index });
        }
        Ok(Call { name, arguments: arguments.unwrap_or_default(), provider_id, result: None })
    }

    /// The results of an observation; `message` is that of its step.
    fn observed(
        &mut self,
        observation: &Node<'_, '_>,
        message: &str,
        at: usize,
    ) -> Result<Vec<Recorded>, TranscriptError> {
        let mut results = Vec::new();
        if observation.form() != Form::Object {
            self.notes.at(at, NoteKind::FieldGuessed { field: "observation" });
            results.push(Recorded { at, text: observation.loose_text()?, id: None, name: None, is_error: None });
            return Ok(results);
        }
        let fields = observation.fields()?;
        let Some(list) = fields.of("results", Form::List) else {
            self.notes.at(at, NoteKind::FieldGuessed { field: "observation.content" });
            results.push(self.lone_result(&fields, message, at)?);
            return Ok(results);
        };
        for (index, raw) in list.items()?.into_iter().enumerate() {
            let item = list.index(index, raw);
            let fields = item.fields()?;
            if fields.get("subagent_trajectory_ref").is_some() {
                self.notes.at(at, NoteKind::LeftOut { what: "a reference to a subagent's trajectory".to_owned() });
            }
            let text = match fields.get("content") {
                Some(content) => output_text(&content, at, &mut self.notes)?,
                None => String::new(),
            };
            let id = fields.loose(&["source_call_id", "tool_call_id"])?;
            let extra = fields.of("extra", Form::Object);
            let extra = extra.as_ref().map(|extra| extra.fields()).transpose()?;
            let is_error = extra.and_then(|extra| extra.get("is_error").and_then(|flag| flag.truth()));
            results.push(Recorded { at, text, id, name: None, is_error });
        }
        Ok(results)
    }

    /// An observation that is itself the one result.
    fn lone_result(&mut self, fields: &Fields<'_, '_>, message: &str, at: usize) -> Result<Recorded, TranscriptError> {
        let mut id = fields.loose(&["source_call_id", "tool_call_id", "tool_use_id"])?;
        if let (None, Some(told)) = (&id, message.strip_prefix("Tool result for ")) {
            self.notes.at(at, NoteKind::IdFromText);
            id = Some(told.trim().to_owned());
        }
        let mut is_error = None;
        if let Some(result) = fields.of("result", Form::Object) {
            let success = result.fields()?.get("success").and_then(|success| success.truth());
            is_error = success.map(|success| !success);
        }
        let text = match fields.any(&["content", "result"]) {
            Some(content) => output_text(&content, at, &mut self.notes)?,
            None => String::new(),
        };
        Ok(Recorded { at, text, id, name: None, is_error })
    }

    /// A result stands with its call; one that comes before it waits.
    fn give(&mut self, result: Recorded) {
        match &result.id {
            Some(id) if !self.open.contains(id) => {
                self.early.entry(id.clone()).or_default().push(result);
            }
            Some(_) | None => self.push(result.at, Line::Result(result)),
        }
    }

    fn ending(&mut self, fields: &Fields<'_, '_>, last: usize) -> Result<(), TranscriptError> {
        let Some(extra) = fields.of("extra", Form::Object) else { return Ok(()) };
        let Some(success) = extra.fields()?.get("success").and_then(|success| success.truth()) else {
            return Ok(());
        };
        self.notes.file(NoteKind::ClaimGuessed { field: "extra.success" });
        let claim = if success { Claim::Success } else { Claim::Failed { said: "success: false".to_owned() } };
        self.push(last, Line::Closed(claim));
        Ok(())
    }

    fn finish(mut self, id: Option<String>) -> Draft {
        for result in self.early.into_values().flatten() {
            self.notes.at(result.at, NoteKind::OrphanResult);
        }
        Draft { id, model: self.model, entries: self.entries, notes: self.notes }
    }
}
