//! One activity: what it was asked, and what came of it.

use super::super::error::TranscriptError;
use super::super::line::{Line, Recorded};
use super::super::node::{Fields, Form, Node};
use super::super::note::{NoteKind, Notes};
use super::super::speech::{messages, nested, usage};
use super::super::transcript::Reply;

/// What an activity is to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// A request to a model, which belongs to the thread of that index.
    Model { thread: usize },
    /// The work of a tool.
    Tool,
}

/// An activity that was scheduled.
#[derive(Debug, Clone)]
pub(super) struct Activity {
    pub(super) name: String,
    pub(super) role: Role,
    /// Whether it was started, too.
    pub(super) started: bool,
}

/// A request to a model, out of the payload of its activity.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) model: Option<String>,
    pub(super) instructions: String,
    pub(super) context: Vec<Line>,
}

/// Reads a payload as a request to a model; `None` when it is none.
pub(super) fn request(payload: &str, name: &str, at: usize, notes: &mut Notes) -> Option<Request> {
    let named = name == "invoke_model_activity";
    let holds = |fields: &Fields<'_, '_>| fields.get("input").is_some() && fields.get("model_settings").is_some();
    let mut unread = Notes::of(notes);
    let found = nested(payload, "a model's request", at, &mut unread, |node, notes| {
        let fields = node.fields()?;
        if !named && !holds(&fields) {
            return Ok(None);
        }
        let instructions = fields.loose(&["system_instructions"])?.unwrap_or_default();
        let mut context = vec![Line::Instructions(instructions.clone())];
        if let Some(input) = fields.get("input") {
            context.extend(messages(&input, at, notes)?);
        }
        Ok(Some(Request { model: fields.loose(&["model_name"])?, instructions, context }))
    });
    let request = found.flatten();
    if named || request.is_some() {
        // What the payload of a tool is, is no matter of the model's.
        notes.append(unread);
    }
    request
}

/// Reads the payload of a completed model activity as the model's answer.
pub(super) fn answer(payload: &str, at: usize, notes: &mut Notes) -> Vec<Line> {
    let read = nested(payload, "a model's answer", at, notes, |node, notes| {
        let fields = node.fields()?;
        let output = fields.get("output").ok_or_else(|| node.expected("an object with `output`"))?;
        let mut lines = messages(&output, at, notes)?;
        let used = fields.of("usage", Form::Object);
        let used = used.as_ref().map(|used| used.fields().map(|used| usage(&used))).transpose()?;
        if let (Some(Line::Assistant(reply)), Some(used)) = (lines.last_mut(), used) {
            reply.usage = used;
        }
        Ok(lines)
    });
    read.unwrap_or_else(|| vec![Line::Assistant(Reply::new("", at))])
}

/// What a tool's activity gave back: the text of its payload.
pub(super) fn result(payload: Option<&String>, name: &str, at: usize, is_error: bool) -> Recorded {
    let text = payload.map(|payload| text(payload)).unwrap_or_default();
    Recorded { at, text, id: None, name: Some(name.to_owned()), is_error: is_error.then_some(true) }
}

/// A payload's text: a string's own, the JSON text of anything else.
pub(super) fn text(payload: &str) -> String {
    Node::root(payload).and_then(|node| node.loose_text()).unwrap_or_else(|_| payload.to_owned())
}

/// The user's texts in a payload: a string, strings of a list, or the one string of an object.
pub(super) fn told(payload: &str, at: usize, notes: &mut Notes) -> Vec<String> {
    let read = nested(payload, "a message to the workflow", at, notes, |node, _| match node.form() {
        Form::Text => Ok(vec![node.text()?]),
        Form::List => texts(node),
        Form::Object => object_text(node),
        Form::Scalar => Ok(Vec::new()),
    });
    let texts = read.unwrap_or_default();
    if texts.is_empty() {
        notes.at(at, NoteKind::LeftOut { what: "a payload without a text".to_owned() });
    }
    texts
}

fn texts(node: &Node<'_, '_>) -> Result<Vec<String>, TranscriptError> {
    let items = node.items()?;
    let items = items.into_iter().enumerate().map(|(index, raw)| node.index(index, raw));
    let texts: Vec<_> =
        items.filter(|item| item.form() == Form::Text).map(|item| item.text()).collect::<Result<_, _>>()?;
    Ok(texts)
}

fn object_text(node: &Node<'_, '_>) -> Result<Vec<String>, TranscriptError> {
    let fields = node.fields()?;
    let strings = fields.iter().filter(|(_, raw)| Form::of(raw) == Form::Text).map(|(_, raw)| raw.get());
    let strings: Vec<_> = strings.filter_map(|raw| serde_json::from_str::<String>(raw).ok()).collect();
    Ok(if strings.len() == 1 { strings } else { Vec::new() })
}
