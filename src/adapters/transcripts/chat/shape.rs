//! Which of the known recordings a document is, told by its shape alone.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::super::node::{Form, Node};

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

#[derive(Deserialize)]
struct Outline<'a> {
    spec: Option<IgnoredAny>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    traj: Option<&'a RawValue>,
    #[serde(borrow)]
    answer_generation: Option<&'a RawValue>,
}

/// The more specific shape wins: a benchmark's file may well have a field called `messages`.
pub(super) fn located<'a>(root: &Node<'a, '_>) -> Option<Located<'a>> {
    match root.form() {
        Form::List => {
            let first = root.items().ok()?.first().copied()?;
            root.index(0, first).object::<Item>().ok()?.is_message().then_some(Located::List)
        }
        Form::Object => {
            let outline: Outline = root.object().ok()?;
            if outline.spec.is_some() {
                return None;
            }
            let answer = outline.answer_generation.filter(|raw| Form::of(raw) == Form::Object);
            let traj = outline.traj.filter(|raw| holds_messages(&root.key("traj", raw)));
            let messages = outline.messages.filter(|raw| holds_messages(&root.key("messages", raw)));
            answer
                .map(Located::ToolBench)
                .or_else(|| traj.map(Located::TauBench))
                .or_else(|| messages.map(Located::Messages))
        }
        Form::Text | Form::Scalar => None,
    }
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
}

impl Item<'_> {
    fn is_message(&self) -> bool {
        self.role.is_some_and(|role| Form::of(role) == Form::Text)
    }
}

fn holds_messages(list: &Node<'_, '_>) -> bool {
    match list.items() {
        Ok(items) => {
            items.first().is_none_or(|first| list.index(0, first).object::<Item>().is_ok_and(|item| item.is_message()))
        }
        Err(_) => false,
    }
}
