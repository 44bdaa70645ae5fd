//! Model requests that each carry the conversation so far, put together to the one conversation.
//!
//! Traces and workflow histories keep no conversation: they keep requests, and every request repeats what was
//! said before it. A thread takes the requests in the order of time and keeps of each only what is new.
//!
//! | a request's context | is taken as |
//! |---|---|
//! | holds a reply, or nothing was answered yet | the whole conversation: what comes after the known part is new |
//! | holds no reply, though something was answered | only what is new |
//! | is no continuation of what is known | rewritten: the user messages and results at its end, with a note |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::draft::Draft;
use super::line::{Entry, Line, Recorded};
use super::note::{NoteKind, Notes};
use super::speech::join;
use super::transcript::{Claim, Reply};
use crate::vocabulary::llm;

/// What was said, as far as a context is compared with it.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    User(String),
    Reply,
}

impl Mark {
    /// An empty reply is left out by most runtimes when they ask again, so it is no mark.
    fn of(line: &Line) -> Option<Self> {
        match line {
            Line::User(text) => Some(Self::User(text.clone())),
            Line::Assistant(reply) if reply.text.is_some() || !reply.calls.is_empty() => Some(Self::Reply),
            Line::Assistant(_)
            | Line::Instructions(_)
            | Line::Withdrawn
            | Line::Result(_)
            | Line::Closed(_)
            | Line::Unknown(_) => None,
        }
    }
}

/// One conversation in the making.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) notes: Notes,
    entries: Vec<Entry>,
    said: Vec<Mark>,
    /// How many of them are replies.
    replies: usize,
    instructions: Option<String>,
    /// The calls of the latest reply that have no result yet: how many of an id, and how many have none.
    open: BTreeMap<Option<String>, usize>,
    /// The ids of those calls, by the tool's name and in order.
    named: BTreeMap<String, VecDeque<Option<String>>>,
    /// The results of the latest reply's calls, and the ids of all results that were given.
    given: usize,
    given_ids: BTreeSet<String>,
    /// The latest request, if it failed and nothing came after it.
    failed: Option<(usize, llm::Error)>,
}

impl Thread {
    /// An empty one.
    pub(super) const fn new(id: Option<String>, notes: Notes) -> Self {
        Self {
            id,
            model: None,
            notes,
            entries: Vec::new(),
            said: Vec::new(),
            replies: 0,
            instructions: None,
            open: BTreeMap::new(),
            named: BTreeMap::new(),
            given: 0,
            given_ids: BTreeSet::new(),
            failed: None,
        }
    }

    /// Whether a user message was heard.
    pub(super) fn has_user(&self) -> bool {
        self.said.len() > self.replies
    }

    /// Whether a context goes on with this conversation: it holds all of it, a reply among it.
    pub(super) fn is_continued_by(&self, context: &[Line]) -> bool {
        self.replies > 0 && self.is_begun_by(context)
    }

    fn is_begun_by(&self, context: &[Line]) -> bool {
        let mut marks = context.iter().filter_map(Mark::of);
        self.said.iter().all(|known| marks.next().as_ref() == Some(known))
    }

    /// A request to the model, by its context.
    pub(super) fn ask(&mut self, at: usize, context: Vec<Line>) {
        let (instructions, context): (Vec<_>, Vec<_>) =
            context.into_iter().partition(|line| matches!(line, Line::Instructions(_)));
        self.instruct(at, &instructions);
        let holds_reply = context.iter().any(|line| matches!(line, Line::Assistant(_)));
        let answered = self.replies > 0;
        if answered && !holds_reply {
            self.take(at, context);
        } else if self.is_begun_by(&context) {
            let known = self.known_part(&context);
            self.take(at, context.into_iter().skip(known).collect());
        } else {
            self.notes.at(at, NoteKind::ContextDiffers);
            let last_reply = context.iter().rposition(|line| matches!(line, Line::Assistant(_)));
            let tail = last_reply.map_or(0, |index| index + 1);
            let heard = self.said.last();
            let news =
                context.into_iter().skip(tail).filter(|line| Mark::of(line).is_none_or(|mark| Some(&mark) != heard));
            let news = news.collect();
            self.take(at, news);
        }
    }

    /// How many lines of a context that continues this conversation are known.
    fn known_part(&self, context: &[Line]) -> usize {
        let mut marks = 0;
        for (index, line) in context.iter().enumerate() {
            if marks == self.said.len() {
                return index;
            }
            marks += usize::from(Mark::of(line).is_some());
        }
        context.len()
    }

    fn instruct(&mut self, at: usize, lines: &[Line]) {
        let mut text = String::new();
        for line in lines {
            if let Line::Instructions(more) = line {
                text.push_str(if text.is_empty() || more.is_empty() { "" } else { "\n\n" });
                text.push_str(more);
            }
        }
        if text.is_empty() || self.instructions.as_deref() == Some(&text) {
            return;
        }
        self.entries.push(Entry { at, line: Line::Instructions(text.clone()) });
        self.instructions = Some(text);
    }

    fn take(&mut self, at: usize, news: Vec<Line>) {
        for line in news {
            match line {
                Line::Result(result) => self.give(result),
                Line::User(text) => self.hear(at, text),
                Line::Assistant(reply) => {
                    self.notes.at(at, NoteKind::FromContext);
                    self.push_reply(at, reply);
                }
                Line::Instructions(_) | Line::Withdrawn | Line::Closed(_) | Line::Unknown(_) => {
                    self.entries.push(Entry { at, line });
                }
            }
        }
    }

    /// A user message. A request that failed before it ended the turn.
    pub(super) fn hear(&mut self, at: usize, text: String) {
        if let Some((failed_at, error)) = self.failed.take() {
            self.entries.push(Entry { at: failed_at, line: Line::Closed(Claim::ModelFailed { error }) });
        }
        self.said.push(Mark::User(text.clone()));
        self.open.clear();
        self.entries.push(Entry { at, line: Line::User(text) });
    }

    /// The answer to the latest request.
    pub(super) fn reply(&mut self, at: usize, lines: Vec<Line>) {
        let mut whole: Option<Reply> = None;
        for line in lines {
            match line {
                Line::Assistant(reply) => match &mut whole {
                    Some(whole) => join(whole, reply),
                    None => whole = Some(reply),
                },
                Line::Unknown(role) => self.notes.at(at, NoteKind::UnknownRole { role }),
                Line::Instructions(_) | Line::User(_) | Line::Withdrawn | Line::Result(_) | Line::Closed(_) => {
                    self.notes.at(at, NoteKind::LeftOut { what: "an answer that is not the model's".to_owned() });
                }
            }
        }
        let reply = whole.unwrap_or_else(|| Reply::new("", at));
        if reply.calls.is_empty() && reply.text.as_ref().is_none_or(|text| text.trim().is_empty()) {
            self.notes.at(at, NoteKind::EmptyReply);
        }
        self.push_reply(at, reply);
    }

    fn push_reply(&mut self, at: usize, reply: Reply) {
        if let Some((failed_at, error)) = self.failed.take() {
            self.notes.at(failed_at, NoteKind::FailedAttempt { code: error.code() });
        }
        self.open.clear();
        self.named.clear();
        self.given = 0;
        for call in &reply.calls {
            self.named.entry(call.name.clone()).or_default().push_back(call.provider_id.clone());
            *self.open.entry(call.provider_id.clone()).or_default() += 1;
        }
        let line = Line::Assistant(reply);
        let mark = Mark::of(&line);
        self.replies += usize::from(mark.is_some());
        self.said.extend(mark);
        self.entries.push(Entry { at, line });
    }

    /// A result of the latest reply's calls. One that is there already is the same one, told again.
    pub(super) fn give(&mut self, result: Recorded) {
        let named = self.open.contains_key(&result.id);
        let key = if named { Some(result.id.clone()) } else { self.unnamed(&result) };
        let Some(key) = key else {
            let again = result.id.as_ref().map_or(self.given > 0, |id| self.given_ids.contains(id));
            if !again {
                self.notes.at(result.at, NoteKind::OrphanResult);
            }
            return;
        };
        if let Some(open) = self.open.get_mut(&key) {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&key);
            }
        }
        self.given += 1;
        self.given_ids.extend(result.id.clone());
        self.entries.push(Entry { at: result.at, line: Line::Result(result) });
    }

    /// A result that says which tool it is of, and not which call: it is that of the first open one.
    pub(super) fn give_named(&mut self, mut result: Recorded) {
        let calls = result.name.as_ref().and_then(|name| self.named.get_mut(name));
        let open = &self.open;
        let call = calls.and_then(|calls| std::iter::from_fn(|| calls.pop_front()).find(|id| open.contains_key(id)));
        match call {
            Some(id) => {
                result.id = id;
                self.give(result);
            }
            None => self.notes.at(result.at, NoteKind::OrphanResult),
        }
    }

    /// The open call that a result without an id, or for a call without one, belongs to.
    fn unnamed(&self, result: &Recorded) -> Option<Option<String>> {
        let mut open = self.open.keys();
        if result.id.is_none() { open.next().cloned() } else { open.find(|id| id.is_none()).cloned() }
    }

    /// The latest request failed.
    pub(super) fn fail(&mut self, at: usize, error: llm::Error) {
        if let Some((failed_at, error)) = self.failed.replace((at, error)) {
            self.notes.at(failed_at, NoteKind::FailedAttempt { code: error.code() });
        }
    }

    /// The finished conversation, with what the recording says of its end. A request that failed last is
    /// the end, unless somebody cancelled it.
    pub(super) fn finish(mut self, claim: Option<(usize, Claim)>) -> Draft {
        let claim = match (claim, self.failed) {
            (Some((at, Claim::Cancelled)), _) => Some((at, Claim::Cancelled)),
            (_, Some((at, error))) => Some((at, Claim::ModelFailed { error })),
            (claim, None) => claim,
        };
        self.entries.extend(claim.map(|(at, claim)| Entry { at, line: Line::Closed(claim) }));
        Draft { id: self.id, model: self.model, entries: self.entries, notes: self.notes }
    }
}
