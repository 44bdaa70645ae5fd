//! Questions to plugins: the hooks of a point and the actions that they schedule, one after the other, and what
//! the run goes on with once nobody is left to be asked (SPEC 12).

use std::collections::VecDeque;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use super::inference::Request;
use super::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::Purpose;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::{Ask, ToolCallId};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{Content, FinishReason};

/// Every transition of a consultation.
const TABLE: &[Transition] = transitions! {
    silent,  asked    => asking;
    silent,  told     => telling;

    asking,  answered => silent;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "consultation", states: STATES, events: EVENTS, transitions: TABLE };

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nobody.
    Silent,
    /// A plugin.
    Asking {
        /// The question, what comes after it, and what the run goes on with.
        open: Box<Open>,
    },
    /// The hooks at the run's end: they are told, and nobody waits for them.
    Telling {
        /// The first hook's question; those after it follow in order.
        first: Ask,
    },
}

labels! { State, STATES: Silent => silent, Asking => asking, Telling => telling }

/// What moves a consultation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A plugin is asked.
    Asked(Box<Open>),
    /// The last one has answered, or nobody wants the answer any more.
    Answered,
    /// The run has ended.
    Told(Ask),
}

labels! { Event, EVENTS: Asked => asked, Answered => answered, Told => told }

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Its number.
    pub ask: Ask,
    /// Who is asked what.
    pub question: Question,
    /// The questions after it.
    pub pending: VecDeque<Question>,
    /// What the run goes on with after the last of them.
    pub then: Then,
}

/// One question to one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Question {
    /// A hook.
    Hook {
        /// The plugin.
        plugin: String,
        /// Where the run stands.
        point: HookPoint,
        /// The closed call, at `after_tool`.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<ToolCallId>,
    },
    /// A scheduled action.
    Action {
        /// The plugin that contributes the kind.
        plugin: String,
        /// The kind.
        action: String,
        /// What it is performed with.
        payload: Json,
    },
}

impl Question {
    /// The plugin that is asked.
    #[must_use]
    pub fn plugin(&self) -> &str {
        match self {
            Self::Hook { plugin, .. } | Self::Action { plugin, .. } => plugin,
        }
    }
}

/// What the run goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// The round's model call is asked for.
    OpenRound,
    /// The model is called.
    CallModel(Purpose),
    /// The model's response is read.
    ReadResponse(Box<Held>),
    /// The hooks at the round's end are asked.
    EndRound,
    /// The batch is committed and published.
    CloseBatch,
    /// The release gates are asked.
    AskReleaseGates,
}

/// A response that is held while hooks are asked. Privileged: its text is not released.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// What the model answered.
    pub(crate) content: Content,
    /// Why it stopped.
    pub(crate) finish: FinishReason,
    /// What it was asked.
    pub(crate) request: Request,
}

/// Shows what was asked, not what was answered: unreleased text stays out of traces (SPEC 13.I10).
impl std::fmt::Debug for Held {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Held").field("request", &self.request).finish_non_exhaustive()
    }
}

labels! {
    Then, pub(crate) THEN: OpenRound => open_round, CallModel => call_model, ReadResponse => read_response,
    EndRound => end_round, CloseBatch => close_batch, AskReleaseGates => ask_release_gates,
}

impl Then {
    /// Of what is held; the others hold nothing.
    fn digest(&self) -> Option<Digest> {
        match self {
            Self::ReadResponse(held) => {
                let bytes = serde_json::to_vec(held).unwrap_or_default();
                Some(Digest::of("portcullis.held.1", &[&bytes]))
            }
            Self::CallModel(purpose) => Some(Digest::of("portcullis.held.1", &[purpose.word().as_bytes()])),
            Self::OpenRound | Self::EndRound | Self::CloseBatch | Self::AskReleaseGates => None,
        }
    }
}

/// Bounded, whatever is held and however many are still to be asked (SPEC 13).
impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Consultation", 2)?;
        out.serialize_field("state", self.label())?;
        match self {
            Self::Silent => {}
            Self::Asking { open } => {
                let asked = serde_json::to_vec(&(&open.question, &open.pending)).unwrap_or_default();
                out.serialize_field("ask", &open.ask)?;
                out.serialize_field("pending", &open.pending.len())?;
                out.serialize_field("questions", &Digest::of("portcullis.questions.1", &[&asked]))?;
                out.serialize_field("then", open.then.label())?;
                if let Some(digest) = open.then.digest() {
                    out.serialize_field("held", &digest)?;
                }
            }
            Self::Telling { first } => out.serialize_field("ask", first)?,
        }
        out.end()
    }
}

pub(crate) struct Consultation;

machine!(Consultation);

#[state_machine(
    initial = "State::Silent",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl Consultation {
    #[state]
    fn silent(event: &Event) -> Outcome<State> {
        match event {
            Event::Asked(open) => To(State::Asking { open: open.clone() }),
            Event::Told(first) => To(State::Telling { first: *first }),
            Event::Answered => Super,
        }
    }

    #[state]
    fn asking(open: &mut Box<Open>, event: &Event) -> Outcome<State> {
        let _ = open;
        if matches!(event, Event::Answered) { To(State::Silent) } else { Super }
    }

    #[state]
    fn telling(first: &mut Ask, event: &Event) -> Outcome<State> {
        let _ = (first, event);
        Super
    }
}
