//! From the spans of all traces to their conversations.

use std::collections::{BTreeMap, VecDeque};

use super::super::draft::Draft;
use super::super::error::TranscriptError;
use super::super::format::Format;
use super::super::line::{Line, Recorded};
use super::super::note::{NoteKind, Notes};
use super::super::thread::Thread;
use super::super::transcript::Claim;
use super::agents::owners;
use super::dialect::{agent_context, answer, context, failure, instructions, model, result, was_cancelled};
use super::kind::Kind;
use super::span::Span;

/// Reads the conversations of these spans: one an agent of a trace, in the order of their first requests.
pub(super) fn drafts(spans: &[Span<'_>]) -> Result<Vec<Draft>, TranscriptError> {
    let kinds: Vec<_> = spans.iter().map(Kind::of).collect();
    let owners = owners(spans, &kinds);
    let mut order: Vec<_> = (0..spans.len()).collect();
    // A request ends before the tools that it asked for begin, also where the clock is coarse.
    order.sort_by_key(|index| spans.get(*index).map(|span| (span.start, span.end, span.at)));
    let mut traces =
        Traces { spans, owners: &owners, threads: Vec::new(), by_owner: BTreeMap::new(), by_name: BTreeMap::new() };
    let mut notes = Notes::new(Format::Otlp);
    let mut tools = Tools::default();
    for index in &order {
        if let (Some(Kind::Tool), Some(span)) = (kinds.get(*index), spans.get(*index)) {
            tools.add(traces.key(*index), result(span));
        }
    }
    for index in order {
        match (kinds.get(index), spans.get(index)) {
            (Some(Kind::Model), Some(span)) => traces.request(index, span, &mut tools),
            (Some(Kind::Other), Some(span)) => {
                notes.at(span.at, NoteKind::LeftOut { what: format!("the span {:?}", span.name) });
            }
            _ => {}
        }
    }
    for (index, span) in spans.iter().enumerate() {
        if let Some(attributes) = span.attributes.text(&["x.restored_from_langfuse_columns"]) {
            traces.notes_of(index).unwrap_or(&mut notes).at(span.at, NoteKind::Restored { attributes });
        }
    }
    for left in tools.left() {
        notes.at(left.at, NoteKind::OrphanResult);
    }
    Ok(traces.finish(notes))
}

/// The trace and the agent that a span belongs to.
type Key<'s> = (&'s str, Option<usize>);

/// Results that wait for their calls, by call and by name.
#[derive(Debug, Default)]
struct Tools<'s> {
    by_id: BTreeMap<(Key<'s>, String), VecDeque<Recorded>>,
    by_name: BTreeMap<(Key<'s>, String), VecDeque<Recorded>>,
}

impl<'s> Tools<'s> {
    fn add(&mut self, key: Key<'s>, result: Recorded) {
        let waiting = match (&result.id, &result.name) {
            (Some(id), _) => self.by_id.entry((key, id.clone())).or_default(),
            (None, name) => self.by_name.entry((key, name.clone().unwrap_or_default())).or_default(),
        };
        waiting.push_back(result);
    }

    /// The results of a reply's calls, each under its call's id.
    fn take(&mut self, key: Key<'s>, lines: &[Line]) -> Vec<Recorded> {
        let mut taken = Vec::new();
        for line in lines {
            let Line::Assistant(reply) = line else { continue };
            for call in &reply.calls {
                let by_id = call.provider_id.as_ref().and_then(|id| self.by_id.get_mut(&(key, id.clone())));
                let found = match by_id.and_then(VecDeque::pop_front) {
                    Some(found) => Some(found),
                    None => self.by_name.get_mut(&(key, call.name.clone())).and_then(VecDeque::pop_front),
                };
                taken.extend(found.map(|found| Recorded { id: call.provider_id.clone(), ..found }));
            }
        }
        taken
    }

    fn left(self) -> impl Iterator<Item = Recorded> {
        self.by_id.into_values().chain(self.by_name.into_values()).flatten()
    }
}

/// One conversation, its first span and its agent's name, and the agents' spans that it ran in.
struct Conversation {
    thread: Thread,
    begins: usize,
    name: Option<String>,
    agents: Vec<usize>,
}

/// The conversations in the making.
struct Traces<'s, 'a> {
    spans: &'s [Span<'a>],
    owners: &'s [Option<usize>],
    threads: Vec<Conversation>,
    by_owner: BTreeMap<Key<'s>, usize>,
    /// The latest conversation of an agent's name in a trace.
    by_name: BTreeMap<(&'s str, String), usize>,
}

impl<'s, 'a> Traces<'s, 'a> {
    fn key(&self, index: usize) -> Key<'s> {
        let trace = self.spans.get(index).map_or("", |span| &*span.trace);
        (trace, self.owners.get(index).copied().flatten())
    }

    fn request(&mut self, index: usize, span: &Span<'a>, tools: &mut Tools<'s>) {
        let key = self.key(index);
        let mut notes = Notes::new(Format::Otlp);
        let mut context = context(span, &mut notes);
        let agent = key.1.and_then(|agent| self.spans.get(agent));
        let beside = instructions(span, &mut notes).or_else(|| instructions(agent?, &mut notes));
        if let Some(beside) = beside.filter(|_| !context.iter().any(|line| matches!(line, Line::Instructions(_)))) {
            context.insert(0, Line::Instructions(beside));
        }
        let place = self.conversation(key, &context, span);
        let Some(Conversation { thread, .. }) = self.threads.get_mut(place) else { return };
        thread.notes.append(notes);
        if !context.iter().any(|line| matches!(line, Line::User(_))) && !thread.has_user() {
            let told = agent.map(|agent| agent_context(agent, &mut thread.notes)).unwrap_or_default();
            if !told.is_empty() {
                thread.notes.at(span.at, NoteKind::ContextFromAgent);
                context.extend(told);
            }
        }
        thread.model = thread.model.take().or_else(|| model(span));
        thread.ask(span.at, context);
        let lines = answer(span, &mut thread.notes);
        match &span.error {
            Some(said) if lines.is_empty() => {
                let error = failure(span, said, &mut thread.notes);
                thread.fail(span.at, error);
            }
            None if lines.is_empty() => thread.notes.at(span.at, NoteKind::RequestUnanswered),
            Some(_) | None => {
                let results = tools.take(key, &lines);
                thread.reply(span.at, lines);
                for result in results {
                    thread.give(result);
                }
            }
        }
    }

    /// The conversation that a request belongs to.
    fn conversation(&mut self, key: Key<'s>, context: &[Line], span: &Span<'a>) -> usize {
        if let Some(place) = self.by_owner.get(&key) {
            return *place;
        }
        let name = key.1.and_then(|agent| self.spans.get(agent)).map(|agent| {
            let named = agent.attributes.text(&["gen_ai.agent.name", "agent_name", "graph.node.id"]);
            (key.0, named.unwrap_or_else(|| agent.name.clone()))
        });
        let before = name.as_ref().and_then(|name| self.by_name.get(name)).copied();
        let goes_on = before
            .filter(|place| self.threads.get(*place).is_some_and(|before| before.thread.is_continued_by(context)));
        let place = goes_on.unwrap_or_else(|| {
            let id = Some(key.0.to_owned()).filter(|id| !id.is_empty());
            let thread = Thread::new(id, Notes::new(Format::Otlp));
            let name = name.as_ref().map(|(_, name)| name.clone());
            self.threads.push(Conversation { thread, begins: span.at, name, agents: Vec::new() });
            self.threads.len() - 1
        });
        if let Some(conversation) = self.threads.get_mut(place) {
            conversation.agents.extend(key.1);
        }
        self.by_owner.insert(key, place);
        self.by_name.extend(name.map(|name| (name, place)));
        place
    }

    /// The notes of the conversation that a span belongs to.
    fn notes_of(&mut self, index: usize) -> Option<&mut Notes> {
        let key = self.key(index);
        let place = self.by_owner.get(&key).or_else(|| self.by_owner.get(&(key.0, Some(index))))?;
        self.threads.get_mut(*place).map(|conversation| &mut conversation.thread.notes)
    }

    fn finish(self, notes: Notes) -> Vec<Draft> {
        let spans = self.spans;
        let ended = |agents: &[usize]| {
            let last = agents.last().and_then(|agent| spans.get(*agent))?;
            let said = last.error.clone()?;
            let claim = if was_cancelled(last) { Claim::Cancelled } else { Claim::Failed { said } };
            Some((last.at, claim))
        };
        let several = self.threads.len() > 1;
        let mut drafts: Vec<_> = self
            .threads
            .into_iter()
            .map(|Conversation { mut thread, begins, name, agents }| {
                if let Some(name) = name.filter(|_| several) {
                    thread.notes.at(begins, NoteKind::Aside { of: format!("agent {name:?}") });
                }
                thread.finish(ended(&agents))
            })
            .collect();
        if let Some(first) = drafts.first_mut() {
            first.notes.append(notes);
        }
        drafts
    }
}
