//! What a model is asked, in no provider's form.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::object;
use super::dialect::Reply;
use super::endpoint::Endpoint;
use super::failure::Failed;
use super::names::{self, Names};
use super::reading::provider;
use super::{answer, steps};
use crate::machines::toolbox::Tool;
use crate::runtime::ports::{ModelAnswer, ModelCall};
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, FinishReason};
use crate::vocabulary::message::Message;
use crate::vocabulary::spec::{DraftFormat, ModelSpec, PriorRole, ToolCalling};

/// A request to a model.
pub(super) struct Prompt<'a> {
    pub(super) model: &'a ModelSpec,
    /// Instructions, and the form of the answer.
    pub(super) system: String,
    /// The conversation; no two user turns follow each other.
    pub(super) turns: Vec<Turn>,
    /// The tools that are offered in the provider's own form.
    pub(super) tools: &'a [Arc<Tool>],
    /// The schema that the provider is asked to hold the answer to.
    pub(super) schema: Option<Json>,
    names: Names,
    form: Form,
}

/// In what form the answer comes.
#[derive(Clone, Copy)]
enum Form {
    /// Text and tool calls, as the provider has them.
    Plain,
    /// A step as JSON in the text.
    Steps(DraftFormat),
}

/// One turn of the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// What is said to the model.
    User(String),
    /// What the model said: never nothing at all.
    Assistant(Spoken),
    /// What became of a call.
    Observed(Observed),
}

/// What the model said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spoken {
    /// Text that is not blank.
    pub(super) text: Option<String>,
    pub(super) calls: Vec<Called>,
    /// What its dialect kept of the answer. Only what this model said itself is given back to it.
    pub(super) kept: Option<Json>,
}

/// A call, under the names that providers see.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) id: String,
    pub(super) name: String,
    /// Always an object.
    pub(super) arguments: Json,
}

/// What became of a call, under the names that providers see.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
}

impl<'a> Prompt<'a> {
    /// What the engine asks.
    ///
    /// # Errors
    /// Tools that a provider could not tell apart.
    pub(super) fn of(call: &'a ModelCall) -> Result<Self, llm::Error> {
        match call.model.tool_calling {
            ToolCalling::Native => Self::native(call),
            ToolCalling::JsonSteps => Ok(Self::steps(call)),
        }
    }

    /// One question without tools.
    pub(super) fn question(model: &'a ModelSpec, system: String, question: String, schema: Option<Json>) -> Self {
        let turns = vec![Turn::User(question)];
        let schema = schema.filter(|_| model.structured_output);
        Self { model, system, turns, tools: &[], schema, names: Names::default(), form: Form::Plain }
    }

    fn native(call: &'a ModelCall) -> Result<Self, llm::Error> {
        let names = Names::of(&call.tools)?;
        let schema = answer::schema(&call.answer).filter(|_| call.model.structured_output);
        let system = system(&call.messages, &answer::told(&call.answer));
        let turns = turns(&call.messages, &call.model);
        Ok(Self { model: &call.model, system, turns, tools: &call.tools, schema, names, form: Form::Plain })
    }

    fn steps(call: &'a ModelCall) -> Self {
        let schema = Some(steps::schema(&call.tools, &call.answer)).filter(|_| call.model.structured_output);
        let system = system(&call.messages, &steps::told(&call.tools, &call.answer));
        let turns = steps::turns(&call.messages);
        let form = Form::Steps(call.answer.format);
        Self { model: &call.model, system, turns, tools: &[], schema, names: Names::default(), form }
    }

    /// The names of the calls that stand in the conversation.
    pub(super) fn called(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().filter_map(|turn| match turn {
            Turn::Observed(observed) => Some(observed.name.as_str()),
            Turn::User(_) | Turn::Assistant(_) => None,
        })
    }

    /// An answer in our words: tools under our names, a step taken out of its text.
    ///
    /// # Errors
    /// It ends for calls, and has none.
    pub(super) fn received(&self, endpoint: &Endpoint, mut reply: Reply) -> Result<ModelAnswer, llm::Error> {
        leave_open(&mut reply);
        let Reply { mut content, mut finish, usage, last_object: _ } = reply;
        content.text = content.text.take().filter(|text| !text.is_empty());
        match self.form {
            Form::Plain if content.calls.is_empty() && finish == FinishReason::ToolCalls => {
                return Err(provider("the answer ends for tool calls and has none"));
            }
            Form::Plain => {
                for call in &mut content.calls {
                    call.name = self.names.ours(std::mem::take(&mut call.name));
                }
                content.opaque = content.opaque.take().map(|kept| Owner::of(endpoint, self.model).signed(kept));
            }
            Form::Steps(format) => {
                steps::receive(format, &mut content);
                content.opaque = None;
            }
        }
        if !content.calls.is_empty() && finish == FinishReason::Stop {
            finish = FinishReason::ToolCalls;
        }
        Ok(ModelAnswer { content, finish, usage })
    }
}

/// An object that somebody else closed does not show where the length limit cut it: a call that may be cut must
/// not run (SPEC 7.3).
fn leave_open(reply: &mut Reply) {
    let last = reply.last_object.filter(|_| reply.finish == FinishReason::Length);
    if let Some(call) = last.and_then(|last| reply.content.calls.get_mut(last)) {
        let open = call.arguments.trim_end().trim_end_matches('}').len();
        call.arguments.truncate(open);
    }
}

/// Whose it is what a dialect keeps of an answer. Nobody else is sent it: no other model, and no other address,
/// whatever its model is called.
struct Owner([(&'static str, Json); 3]);

impl Owner {
    fn of(endpoint: &Endpoint, model: &ModelSpec) -> Self {
        // A query may hold what is nobody's business.
        let mut at = endpoint.url.clone();
        at.set_query(None);
        Self([("api", endpoint.api.word().into()), ("at", at.as_str().into()), ("model", model.name.as_str().into())])
    }

    fn signed(self, kept: Json) -> Json {
        let [api, at, model] = self.0;
        object([api, at, model, ("kept", kept)])
    }

    fn own<'a>(&self, opaque: &'a Json) -> Option<&'a Json> {
        let members = opaque.as_object()?;
        let same = self.0.iter().all(|(name, value)| members.get(*name) == Some(value));
        members.get("kept").filter(|_| same)
    }
}

fn system(messages: &[Arc<Message>], form: &str) -> String {
    let instructions = messages.iter().filter_map(|message| instruction(message));
    instructions.chain([form]).collect::<Vec<_>>().join("\n\n")
}

fn instruction(message: &Message) -> Option<&str> {
    if let Message::Instructions { text } = message { Some(text) } else { None }
}

/// A fact with the id under which it can be cited.
pub(super) fn shown_fact(fact: &Fact) -> String {
    format!("[{}] {}", fact.id, fact.statement)
}

/// A message that neither the model nor a call of its own brought, as the user's words. What other sources wrote
/// stands in JSON strings: nothing in it can end its place and speak as somebody else.
pub(super) fn said_to_the_model(message: &Message) -> Option<String> {
    let quoted = |text: &str| Json::from(text).to_text();
    match message {
        Message::Prior { by: PriorRole::User, text } | Message::Task { text } | Message::Notice { text, .. } => {
            Some(text.clone())
        }
        Message::Prior { by: PriorRole::Tool, text } => {
            Some(format!("A tool showed earlier, as a JSON string: {}", quoted(text)))
        }
        Message::Imported { facts } => {
            let facts: String = facts.iter().map(|fact| format!("\n{}", quoted(&shown_fact(fact)))).collect();
            Some(format!("Facts observed by earlier runs, to be cited by id, as JSON strings:{facts}"))
        }
        Message::Context { by, text } => {
            Some(format!("Context from {}, as a JSON string: {}", quoted(by), quoted(text)))
        }
        Message::Instructions { .. }
        | Message::Prior { by: PriorRole::Assistant, .. }
        | Message::Assistant { .. }
        | Message::Observation(_) => None,
    }
}

fn turns(messages: &[Arc<Message>], model: &ModelSpec) -> Vec<Turn> {
    let mut called: BTreeMap<ToolCallId, String> = BTreeMap::new();
    let mut turns = Turns::default();
    // Without an address nothing is sent at all.
    let owner = Endpoint::of(model).ok().map(|endpoint| Owner::of(&endpoint, model));
    for message in messages {
        match message.as_ref() {
            Message::Assistant { text, calls, opaque } => {
                called.extend(calls.iter().map(|call| (call.call, names::given(&call.request.name))));
                let text = text.clone().filter(|text| !text.trim().is_empty());
                let kept = owner.as_ref().zip(opaque.as_ref()).and_then(|(owner, opaque)| owner.own(opaque)).cloned();
                let calls = calls.iter().map(|call| Called {
                    id: names::call_id(call.call),
                    name: names::given(&call.request.name),
                    arguments: arguments(&call.request.arguments),
                });
                turns.assistant(Spoken { text, calls: calls.collect(), kept });
            }
            Message::Prior { by: PriorRole::Assistant, text } => turns.assistant_text(text),
            Message::Observation(observation) => turns.observed(Observed {
                id: names::call_id(observation.call),
                name: called.get(&observation.call).cloned().unwrap_or_default(),
                text: observation.shown(),
            }),
            Message::Instructions { .. }
            | Message::Prior { by: PriorRole::User | PriorRole::Tool, .. }
            | Message::Task { .. }
            | Message::Imported { .. }
            | Message::Context { .. }
            | Message::Notice { .. } => turns.user(said_to_the_model(message)),
        }
    }
    turns.0
}

/// Arguments as they are sent back. What is no JSON object would break the request, in some providers even
/// where arguments are text; the model then sees what it wrote as text.
fn arguments(written: &str) -> Json {
    match Json::parse(written) {
        Ok(arguments @ Json::Object(_)) => arguments,
        Ok(_) | Err(_) => object([("unreadable_arguments", written.into())]),
    }
}

/// Turns as they are gathered.
#[derive(Default)]
pub(super) struct Turns(pub(super) Vec<Turn>);

impl Turns {
    /// User turns that follow each other become one: some models take no two in a row.
    pub(super) fn user(&mut self, text: Option<String>) {
        match (self.0.last_mut(), text) {
            (_, None) => {}
            (Some(Turn::User(before)), Some(text)) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (_, Some(text)) => self.0.push(Turn::User(text)),
        }
    }

    pub(super) fn assistant_text(&mut self, text: &str) {
        let text = Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        self.assistant(Spoken { text, ..Spoken::default() });
    }

    /// A model that said nothing left nothing to show, and providers take no empty turn.
    fn assistant(&mut self, spoken: Spoken) {
        if spoken.text.is_some() || !spoken.calls.is_empty() {
            self.0.push(Turn::Assistant(spoken));
        }
    }

    fn observed(&mut self, observed: Observed) {
        self.0.push(Turn::Observed(observed));
    }
}

impl From<llm::Error> for Failed {
    fn from(error: llm::Error) -> Self {
        Self { error, usage: None }
    }
}
