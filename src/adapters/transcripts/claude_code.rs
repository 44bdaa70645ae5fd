//! Sessions of Claude Code: one JSON object a line.
//!
//! | line | becomes |
//! |---|---|
//! | `user`, its text | a turn's task |
//! | `user`, its `tool_result` parts | results of the calls, by id |
//! | `user` with `isMeta` | left out: the runtime wrote it |
//! | `user` that begins with `[Request interrupted by user` | the turn was cancelled |
//! | `assistant` | a reply; lines with one `message.id` are one reply, also with results between them |
//! | `assistant` with `isApiErrorMessage` | the model request failed; `error` is its type |
//! | `result` of a streamed session | success, a limit (`error_max_turns`), or a failure |
//! | `isSidechain` | a recording of its own for every subagent: by `agentId`, else by `parentUuid` |
//! | `system`, `summary`, and every other type | left out, with a note |
//! | a line that is no object, or not JSON | skipped, with its place and the reason |

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::error::TranscriptError;
use super::failure::classed;
use super::format::Format;
use super::line::{Entry, Line};
use super::lines::{Skips, lines};
use super::node::{Fields, Form, Node};
use super::note::{NoteKind, Notes};
use super::outline::Outline;
use super::reading::ReadOptions;
use super::speech::{Said, finish, join};
use super::transcript::{Claim, Reply};
use crate::vocabulary::llm::Usage;

/// A typed line that names its session, itself or a leaf of it.
pub(super) fn is(outline: &Outline<'_>) -> bool {
    let named = ["sessionId", "session_id", "uuid", "leafUuid"].iter().any(|key| outline.has(key, Form::Text));
    named && outline.has("type", Form::Text)
}

/// Reads the session of a document, and those of its subagents.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let (mut file, mut skips) = (File::default(), Skips::default());
    for line in lines(document) {
        options.admit(Format::ClaudeCode, line.number)?;
        let read = Node::root(line.text).and_then(|node| file.line(&node, line.number));
        read.unwrap_or_else(|error| skips.add(line, &error));
    }
    skips.settle(file.chains.into_iter().map(Chain::finish).collect(), None)
}

/// The conversations of a file. Each line belongs to one.
#[derive(Default)]
struct File {
    chains: Vec<Chain>,
    /// The chain of a session's main conversation, by its id.
    sessions: BTreeMap<String, usize>,
    /// The chain of a subagent, by its id.
    agents: BTreeMap<String, usize>,
    /// The chain of every line, by its id.
    places: BTreeMap<String, usize>,
    /// The main conversation of the line before.
    current: Option<usize>,
}

impl File {
    fn line(&mut self, node: &Node<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let fields = node.fields()?;
        let kind = fields.text("type")?.unwrap_or_default();
        let index = self.place(&fields, &kind, at)?;
        let Some(chain) = self.chains.get_mut(index) else { return Ok(()) };
        if let Some(uuid) = fields.loose(&["uuid"])?
            && self.places.insert(uuid, index).is_some()
        {
            chain.notes.at(at, NoteKind::RepeatedId);
        }
        chain.line(&fields, &kind, at)
    }

    /// Which conversation a line belongs to.
    fn place(&mut self, fields: &Fields<'_, '_>, kind: &str, at: usize) -> Result<usize, TranscriptError> {
        let session = fields.loose(&["sessionId", "session_id"])?;
        let parent = fields.loose(&["parentUuid", "parent_tool_use_id"])?;
        if fields.get("isSidechain").and_then(|flag| flag.truth()) == Some(true) {
            return self.aside(fields, session, parent.as_deref(), at);
        }
        let known = session.as_ref().and_then(|id| self.sessions.get(id)).copied();
        let begins = kind == "user" && parent.is_none();
        let index = match (known, self.current, session) {
            (Some(known), ..) => known,
            (None, Some(current), None) => current,
            (None, Some(current), Some(_)) if !begins => {
                if let Some(chain) = self.chains.get_mut(current) {
                    chain.notes.at(at, NoteKind::OtherSession);
                }
                current
            }
            (None, _, session) => {
                let index = self.begin(session.clone());
                self.sessions.extend(session.map(|id| (id, index)));
                index
            }
        };
        self.current = Some(index);
        Ok(index)
    }

    /// The conversation of a subagent.
    fn aside(
        &mut self,
        fields: &Fields<'_, '_>,
        session: Option<String>,
        parent: Option<&str>,
        at: usize,
    ) -> Result<usize, TranscriptError> {
        let agent = fields.loose(&["agentId"])?;
        let known = match &agent {
            Some(agent) => self.agents.get(agent).copied(),
            None => parent
                .and_then(|parent| self.places.get(parent))
                .copied()
                .filter(|place| self.chains.get(*place).is_some_and(|chain| chain.is_aside)),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let index = self.begin(session);
        if let Some(chain) = self.chains.get_mut(index) {
            let of = agent.clone().map_or_else(|| "a subagent".to_owned(), |agent| format!("subagent {agent}"));
            chain.is_aside = true;
            chain.notes.at(at, NoteKind::Aside { of });
        }
        self.agents.extend(agent.map(|agent| (agent, index)));
        Ok(index)
    }

    fn begin(&mut self, id: Option<String>) -> usize {
        self.chains.push(Chain {
            id,
            model: None,
            entries: Vec::new(),
            notes: Notes::new(Format::ClaudeCode),
            open: None,
            spoken: BTreeSet::new(),
            is_aside: false,
        });
        self.chains.len() - 1
    }
}

/// One conversation in the making.
struct Chain {
    id: Option<String>,
    model: Option<String>,
    entries: Vec<Entry>,
    notes: Notes,
    /// The latest message of the model: its id, and which entry it is.
    open: Option<(String, usize)>,
    /// The ids of its messages so far.
    spoken: BTreeSet<String>,
    is_aside: bool,
}

impl Chain {
    fn push(&mut self, at: usize, line: Line) {
        self.entries.push(Entry { at, line });
    }

    fn leave_out(&mut self, at: usize, what: String) {
        self.notes.at(at, NoteKind::LeftOut { what });
    }

    fn line(&mut self, fields: &Fields<'_, '_>, kind: &str, at: usize) -> Result<(), TranscriptError> {
        match kind {
            "user" => self.user(fields, at),
            "assistant" => self.assistant(fields, at),
            "result" => self.ending(fields, at),
            _ => {
                let subtype = fields.text("subtype")?.map(|subtype| format!(" {subtype:?}")).unwrap_or_default();
                self.leave_out(at, format!("a line of type {kind:?}{subtype}"));
                Ok(())
            }
        }
    }

    fn user(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        if fields.get("isMeta").and_then(|flag| flag.truth()) == Some(true) {
            self.leave_out(at, "a message that the runtime wrote".to_owned());
            return Ok(());
        }
        let Some(message) = fields.get("message") else {
            self.leave_out(at, "a user line without a message".to_owned());
            return Ok(());
        };
        let message = message.fields()?;
        let Some(content) = message.get("content") else {
            self.leave_out(at, "a user message without content".to_owned());
            return Ok(());
        };
        let mut said = Said::default();
        said.content(&content, at, &mut self.notes)?;
        let only_results = said.texts.is_empty() && !said.results.is_empty();
        for result in said.results {
            self.push(at, Line::Result(result));
        }
        if only_results {
            return Ok(());
        }
        let text = said.texts.join("\n");
        if text.starts_with("[Request interrupted by user") {
            self.push(at, Line::Closed(Claim::Cancelled));
        } else {
            self.open = None;
            self.push(at, Line::User(text));
        }
        Ok(())
    }

    fn assistant(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let message = fields.get("message");
        let Some(message) = message else {
            self.leave_out(at, "an assistant line without a message".to_owned());
            return Ok(());
        };
        let message = message.fields()?;
        let mut said = Said::default();
        if let Some(content) = message.get("content") {
            said.content(&content, at, &mut self.notes)?;
        }
        let text = said.texts.join("\n");
        if fields.get("isApiErrorMessage").and_then(|flag| flag.truth()) == Some(true) {
            let (error, known) = classed(None, fields.text("error")?.as_deref(), text);
            if !known {
                self.notes.at(at, NoteKind::FailureUnclassed);
            }
            self.push(at, Line::Closed(Claim::ModelFailed { error }));
            return Ok(());
        }
        let used = message.of("usage", Form::Object);
        let usage = used.as_ref().map(|used| used.fields().map(|used| used_in_all(&used))).transpose()?;
        let finish = message.text("stop_reason")?.as_deref().and_then(finish);
        let reply = Reply { calls: said.calls, finish, usage: usage.unwrap_or_default(), ..Reply::new(text, at) };
        if self.model.is_none() {
            self.model = message.loose(&["model"])?;
        }
        self.say(message.loose(&["id"])?, reply, at);
        for result in said.results {
            self.push(at, Line::Result(result));
        }
        Ok(())
    }

    /// Adds to the message of that id while it is the latest, else begins a new one.
    fn say(&mut self, id: Option<String>, reply: Reply, at: usize) {
        if let (Some(id), Some((open, index))) = (&id, &self.open)
            && id == open
            && let Some(Entry { line: Line::Assistant(before), .. }) = self.entries.get_mut(*index)
        {
            before.usage = reply.usage;
            join(before, reply);
            return;
        }
        if id.as_ref().is_some_and(|id| !self.spoken.insert(id.clone())) {
            self.notes.at(at, NoteKind::RepeatedId);
        }
        self.open = id.map(|id| (id, self.entries.len()));
        self.push(at, Line::Assistant(reply));
    }

    fn ending(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let said = fields.text("subtype")?.unwrap_or_default();
        let failed = fields.get("is_error").and_then(|flag| flag.truth()) == Some(true);
        let claim = match said.as_str() {
            "success" if !failed => Claim::Success,
            "error_max_turns" | "error_max_budget_usd" => Claim::LimitReached { said },
            _ => Claim::Failed { said },
        };
        self.push(at, Line::Closed(claim));
        Ok(())
    }

    fn finish(mut self) -> Draft {
        for entry in &self.entries {
            if let Line::Assistant(reply) = &entry.line
                && reply.calls.is_empty()
                && reply.text.is_none()
            {
                self.notes.at(entry.at, NoteKind::EmptyReply);
            }
        }
        Draft { id: self.id, model: self.model, entries: self.entries, notes: self.notes }
    }
}

/// What was read from a cache or written to one was input too.
fn used_in_all(usage: &Fields<'_, '_>) -> Usage {
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let cached = cached.iter().filter_map(|key| usage.number(&[*key])).fold(0, u64::saturating_add);
    let input = usage.number(&["input_tokens"]).map(|tokens| tokens.saturating_add(cached));
    Usage { input_tokens: input, output_tokens: usage.number(&["output_tokens"]) }
}
