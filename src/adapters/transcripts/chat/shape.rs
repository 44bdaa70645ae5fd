//! Which of the known recordings a document is, told by its shape alone.

use std::fmt;

use serde_json::value::RawValue;

use super::super::node::{Form, Node};
use super::super::outline::Outline;

/// The form in which a transcript was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// A bare list of messages.
    List,
    /// An object whose `messages` is the list, as in a request body.
    Messages,
    /// A tau-bench result: an object whose `traj` is the list.
    TauBench,
    /// A ToolBench answer file: an object with `answer_generation`.
    ToolBench,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 4] = [Self::List, Self::Messages, Self::TauBench, Self::ToolBench];

    /// What the shape looks like, in a few characters.
    #[must_use]
    pub const fn sketch(self) -> &'static str {
        match self {
            Self::List => r#"a bare list `[{"role":..},..]`"#,
            Self::Messages => r#"`{"messages":[{"role":..},..]}`"#,
            Self::TauBench => r#"tau-bench `{"traj":[{"role":..},..]}`"#,
            Self::ToolBench => r#"ToolBench `{"answer_generation":{"train_messages":[..]}}`"#,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::List => "message list",
            Self::Messages => "object with `messages`",
            Self::TauBench => "tau-bench file",
            Self::ToolBench => "ToolBench file",
        })
    }
}

/// Tells a transcript from anything else, a scenario (an object with `spec`) among it.
///
/// One pass over the bytes that keeps nothing. `None` for what is not one well-formed JSON value:
/// [`Transcript::read`](super::super::Transcript::read) says what is wrong with it.
/// A list counts as messages when its first item is an object whose `role` is a string, so that
/// other event lists are not taken for transcripts; a list under a key may also be empty.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Shape> {
    let document = std::str::from_utf8(bytes).ok()?;
    located(&Node::root(document).ok()?).map(|found| found.shape())
}

/// A recognised document, with the part of it that holds the messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Located<'a> {
    /// The document is the list.
    List,
    /// The value of `messages`.
    Messages(&'a RawValue),
    /// The value of `traj`.
    TauBench(&'a RawValue),
    /// The value of `answer_generation`.
    ToolBench(&'a RawValue),
}

impl Located<'_> {
    pub(super) const fn shape(&self) -> Shape {
        match self {
            Self::List => Shape::List,
            Self::Messages(_) => Shape::Messages,
            Self::TauBench(_) => Shape::TauBench,
            Self::ToolBench(_) => Shape::ToolBench,
        }
    }
}

/// Whether a document that looks so from outside is one of them.
pub(in super::super) fn is(outline: &Outline<'_>) -> bool {
    seen(outline).is_some()
}

/// The part of a document that holds the messages.
pub(super) fn located<'a>(root: &Node<'a, '_>) -> Option<Located<'a>> {
    seen(&Outline::of(root.raw()))
}

/// The more specific shape wins: a benchmark's file may well have a field called `messages`.
fn seen<'a>(outline: &Outline<'a>) -> Option<Located<'a>> {
    if outline.get("spec").is_some() {
        return None;
    }
    if outline.first().is_some_and(|first| is_message(&first)) {
        return Some(Located::List);
    }
    let answer = outline.get("answer_generation").filter(|raw| Form::of(raw) == Form::Object);
    let listed = |key| outline.get(key).filter(|raw| holds_messages(raw));
    answer
        .map(Located::ToolBench)
        .or_else(|| listed("traj").map(Located::TauBench))
        .or_else(|| listed("messages").map(Located::Messages))
}

fn is_message(outline: &Outline<'_>) -> bool {
    outline.has("role", Form::Text)
}

fn holds_messages(raw: &RawValue) -> bool {
    match Outline::of(raw.get()) {
        Outline::List(None) => true,
        list @ Outline::List(Some(_)) => list.first().is_some_and(|first| is_message(&first)),
        Outline::Object(_) | Outline::Other => false,
    }
}
