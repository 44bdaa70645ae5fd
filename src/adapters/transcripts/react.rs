//! Texts of thoughts, actions and observations.
//!
//! | in the file | becomes |
//! |---|---|
//! | `Question: ..` | a recording of its own, and its one turn's task |
//! | `Thought N: ..` | the text of the next action's reply |
//! | `Action N: Name[..]` | a reply that calls `Name` with `{"input":".."}` |
//! | `Action: Name`, `Action Input: ..` | the same; an input that is an object stands as it is |
//! | `Observation N: ..` | the result of the action before it |
//! | `Action N: Finish[..]`, `Final Answer: ..` | the answer |
//! | what follows the answer; `Correct answer: ..` | left out: it was written by who judged the run |
//! | a line without a label | goes on with the text before it |

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::line::{Entry, Line, Recorded};
use super::lines::lines;
use super::note::{NoteKind, Notes};
use super::reading::ReadOptions;
use super::transcript::{Call, Reply};

/// What a line is, told by its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Question,
    Thought,
    Action,
    ActionInput,
    Observation,
    FinalAnswer,
    CorrectAnswer,
}

/// Longer labels stand before those that begin them.
const LABELS: [(&str, Label); 7] = [
    ("Question", Label::Question),
    ("Thought", Label::Thought),
    ("Action Input", Label::ActionInput),
    ("Action", Label::Action),
    ("Observation", Label::Observation),
    ("Final Answer", Label::FinalAnswer),
    ("Correct answer", Label::CorrectAnswer),
];

/// A line's label, and the text after it.
fn labelled(line: &str) -> Option<(Label, &str)> {
    let (head, text) = line.split_once(':')?;
    let head = head.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end();
    let (_, label) = LABELS.iter().find(|(name, _)| *name == head)?;
    Some((*label, text.trim()))
}

/// A question, and after it a thought or an action.
pub(super) fn is(document: &str) -> bool {
    let mut labels = lines(document).map(|line| labelled(line.text).map(|(label, _)| label));
    labels.next() == Some(Some(Label::Question))
        && matches!(labels.flatten().next(), Some(Label::Thought | Label::Action | Label::FinalAnswer))
}

/// A labelled text with the lines that go on with it.
struct Block {
    at: usize,
    label: Label,
    text: String,
}

/// Reads every question's run.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let mut drafts: Vec<Run> = Vec::new();
    let mut before = Notes::new(Format::React);
    let mut block: Option<Block> = None;
    let mut close = |block: Block| match (drafts.last_mut(), block.label) {
        (_, Label::Question) => drafts.push(Run::begin(block)),
        (Some(run), _) => run.take(block),
        (None, _) => before.at(block.at, NoteKind::LeftOut { what: "text before any question".to_owned() }),
    };
    for line in lines(document) {
        options.admit(Format::React, line.number)?;
        match labelled(line.text) {
            Some((label, text)) => {
                let next = Block { at: line.number, label, text: text.to_owned() };
                block.replace(next).into_iter().for_each(&mut close);
            }
            None => match &mut block {
                Some(block) => {
                    block.text.push('\n');
                    block.text.push_str(line.text);
                }
                None => block = Some(Block { at: line.number, label: Label::Observation, text: line.text.to_owned() }),
            },
        }
    }
    block.into_iter().for_each(&mut close);
    if let Some(first) = drafts.first_mut() {
        first.notes.append(before);
    }
    Ok(drafts.into_iter().map(Run::finish).collect())
}

/// One question's run in the making.
struct Run {
    entries: Vec<Entry>,
    notes: Notes,
    thought: Option<Block>,
    answered: bool,
}

impl Run {
    fn begin(question: Block) -> Self {
        let asked = Entry { at: question.at, line: Line::User(question.text) };
        Self { entries: vec![asked], notes: Notes::new(Format::React), thought: None, answered: false }
    }

    fn take(&mut self, block: Block) {
        let Block { at, label, text } = block;
        match label {
            Label::Thought => {
                self.speak();
                self.thought = Some(Block { at, label, text });
            }
            Label::Action => self.act(at, &text),
            Label::ActionInput => match self.entries.last_mut() {
                Some(Entry { line: Line::Assistant(reply), .. }) if reply.calls.len() == 1 => {
                    reply.calls.iter_mut().for_each(|call| call.arguments = input(&text));
                }
                Some(_) | None => self.leave_out(at, "an action's input without its action"),
            },
            Label::Observation if self.answered => self.leave_out(at, "an observation after the answer"),
            Label::Observation => {
                let recorded = Recorded { at, text, id: None, name: None, is_error: None };
                self.entries.push(Entry { at, line: Line::Result(recorded) });
            }
            Label::FinalAnswer => self.answer(at, text, "Final Answer"),
            Label::CorrectAnswer => self.leave_out(at, "the correct answer"),
            // It begins a run, so that none takes it.
            Label::Question => self.leave_out(at, "a question"),
        }
    }

    fn leave_out(&mut self, at: usize, what: &str) {
        self.notes.at(at, NoteKind::LeftOut { what: what.to_owned() });
    }

    /// A thought that no action follows was all that the model said.
    fn speak(&mut self) {
        if let Some(Block { at, text, .. }) = self.thought.take() {
            self.entries.push(Entry { at, line: Line::Assistant(Reply::new(text, at)) });
        }
    }

    fn act(&mut self, at: usize, action: &str) {
        let inside = action.split_once('[').and_then(|(name, rest)| Some((name.trim(), rest.strip_suffix(']')?)));
        if let Some(("Finish", answer)) = inside {
            return self.answer(at, answer.to_owned(), "Finish");
        }
        let (name, arguments) = inside.map_or_else(|| (action, "{}".to_owned()), |(name, text)| (name, input(text)));
        if name.is_empty() || name.contains(char::is_whitespace) {
            self.notes.at(at, NoteKind::ActionUnreadable);
        }
        let call = Call { name: name.to_owned(), arguments, provider_id: None, result: None };
        let thought = self.thought.take().map(|thought| thought.text).unwrap_or_default();
        self.answered = false;
        let reply = Reply { calls: vec![call], ..Reply::new(thought, at) };
        self.entries.push(Entry { at, line: Line::Assistant(reply) });
    }

    fn answer(&mut self, at: usize, text: String, tool: &str) {
        if tool == "Finish" {
            self.notes.at(at, NoteKind::TerminalAnswer { tool: tool.to_owned() });
        }
        if let Some(thought) = self.thought.take() {
            self.notes.at(thought.at, NoteKind::CommentaryReplaced);
        }
        self.answered = true;
        self.entries.push(Entry { at, line: Line::Assistant(Reply::new(text, at)) });
    }

    fn finish(mut self) -> Draft {
        self.speak();
        Draft { id: None, model: None, entries: self.entries, notes: self.notes }
    }
}

/// The arguments of an action: an object stands as it is, a text becomes one.
fn input(text: &str) -> String {
    let is_object = text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_object { text.to_owned() } else { format!("{{\"input\":{}}}", serde_json::Value::from(text)) }
}
