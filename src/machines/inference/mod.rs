//! One logical model request at a time: attempts, delays, fallback models (SPEC 6).

mod retry;

use serde::Serialize;
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use super::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::effect::{Purpose, ToolOffer};
use crate::vocabulary::ids::ModelCallId;

pub(crate) use retry::{Remedy, remedy};

/// Every transition of a model request.
const TABLE: &[Transition] = transitions! {
    idle,        asked           => in_flight;

    in_flight,   responded       => idle;
    in_flight,   gave_up         => idle;
    in_flight,   retry_scheduled => backing_off;
    in_flight,   model_replaced  => in_flight;
    in_flight,   interrupted     => in_flight;
    in_flight,   dropped         => idle;

    backing_off, elapsed         => in_flight;
    backing_off, dropped         => idle;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "inference", states: STATES, events: EVENTS, transitions: TABLE };

/// A model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Its id.
    pub call: ModelCallId,
    /// The attempt, from 1, over all models.
    pub attempt: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Whether tools are offered.
    pub tools: ToolOffer,
    /// Which model of the spec: 0, then the fallbacks.
    pub model: u32,
    /// Retries used on this model.
    pub retries: u32,
}

/// Where the request stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// No request is open.
    Idle,
    /// An attempt is under way.
    InFlight {
        /// The request.
        #[serde(flatten)]
        request: Request,
    },
    /// The next attempt waits.
    BackingOff {
        /// The request, with the attempt that comes next.
        #[serde(flatten)]
        request: Request,
        /// When it may begin.
        until_ms: u64,
    },
}

labels! { State, STATES: Idle => idle, InFlight => in_flight, BackingOff => backing_off }

/// What moves a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It is sent.
    Asked(Request),
    /// The model answered.
    Responded,
    /// The attempt failed and the same model is asked again later.
    RetryScheduled {
        /// When.
        until_ms: u64,
    },
    /// The attempt failed and the next model takes over.
    ModelReplaced,
    /// Nothing more can be tried.
    GaveUp,
    /// The delay is over.
    Elapsed,
    /// A crash lost the attempt; it is sent again and not charged to the retry policy.
    Interrupted,
    /// The run ended.
    Dropped,
}

labels! { Event, EVENTS:
    Asked => asked, Responded => responded, RetryScheduled => retry_scheduled, ModelReplaced => model_replaced,
    GaveUp => gave_up, Elapsed => elapsed, Interrupted => interrupted, Dropped => dropped,
}

impl State {
    /// The open request, waiting or under way.
    #[must_use]
    pub const fn request(&self) -> Option<&Request> {
        match self {
            Self::Idle => None,
            Self::InFlight { request } | Self::BackingOff { request, .. } => Some(request),
        }
    }
}

pub(crate) struct Inference;

machine!(Inference);

#[state_machine(
    initial = "State::Idle",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl Inference {
    #[state]
    fn idle(event: &Event) -> Outcome<State> {
        if let Event::Asked(request) = event { To(State::InFlight { request: *request }) } else { Super }
    }

    #[state]
    fn in_flight(request: &mut Request, event: &Event) -> Outcome<State> {
        let again = Request { attempt: request.attempt.saturating_add(1), ..*request };
        match event {
            Event::Responded | Event::GaveUp | Event::Dropped => To(State::Idle),
            Event::RetryScheduled { until_ms } => To(State::BackingOff {
                request: Request { retries: request.retries.saturating_add(1), ..again },
                until_ms: *until_ms,
            }),
            Event::ModelReplaced => {
                To(State::InFlight { request: Request { model: request.model.saturating_add(1), retries: 0, ..again } })
            }
            Event::Interrupted => To(State::InFlight { request: again }),
            Event::Asked(_) | Event::Elapsed => Super,
        }
    }

    #[state]
    fn backing_off(request: &mut Request, until_ms: &mut u64, event: &Event) -> Outcome<State> {
        let _ = until_ms;
        match event {
            Event::Elapsed => To(State::InFlight { request: *request }),
            Event::Dropped => To(State::Idle),
            Event::Asked(_)
            | Event::Responded
            | Event::GaveUp
            | Event::RetryScheduled { .. }
            | Event::ModelReplaced
            | Event::Interrupted => Super,
        }
    }
}
