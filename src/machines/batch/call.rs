//! One tool call, from the model's request to its one closing (SPEC 7). Phases are monotone: requested
//! (in four shades), executing, closed.

use serde::Serialize;
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use crate::machines::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::ids::{Ask, Ticket};
use crate::vocabulary::tool::ObservationCode;

/// Every transition of a call.
const TABLE: &[Transition] = transitions! {
    requested,     rejected         => failed;
    requested,     gate_asked       => asking;
    requested,     decision_asked   => ticketed;
    requested,     admitted         => ready;

    asking,        gate_asked       => asking;
    asking,        decision_asked   => ticketed;
    asking,        admitted         => ready;
    asking,        rejected         => failed;

    ticketed,      gate_asked       => asking;
    ticketed,      admitted         => ready;
    ticketed,      rejected         => failed;

    ready,         decision_asked   => ticketed;
    ready,         dispatched       => executing;
    ready,         rejected         => failed;

    executing,     dispatched       => executing;
    executing,     completed        => completed;
    executing,     rejected         => failed;
    executing,     interrupted      => indeterminate;

    indeterminate, completed        => completed;
    indeterminate, rejected         => failed;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "tool_call", states: STATES, events: EVENTS, transitions: TABLE };

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum State {
    /// The model asked for it.
    Requested,
    /// A gate is asked about it.
    Asking {
        /// The question.
        ask: Ask,
        /// Which of the tool's gates, from 0.
        gate: u32,
    },
    /// A person must decide.
    Ticketed {
        /// The ticket.
        ticket: Ticket,
        /// When it expires.
        #[serde(skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// It may be dispatched.
    Ready,
    /// It was entered.
    Executing {
        /// Which attempt, from 1.
        attempt: u32,
        /// When it times out.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_ms: Option<u64>,
    },
    /// It is not known what it did.
    Indeterminate,
    /// It returned.
    Completed,
    /// It was closed in another way.
    Failed {
        /// Which.
        code: ObservationCode,
    },
}

labels! { State, STATES:
    Requested => requested, Asking => asking, Ticketed => ticketed, Ready => ready, Executing => executing,
    Indeterminate => indeterminate, Completed => completed, Failed => failed,
}

/// What moves a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A gate is asked.
    GateAsked {
        /// The question.
        ask: Ask,
        /// Which of the tool's gates.
        gate: u32,
    },
    /// A person is asked.
    DecisionAsked {
        /// The ticket.
        ticket: Ticket,
        /// When it expires.
        until_ms: Option<u64>,
    },
    /// Nothing stands in its way.
    Admitted,
    /// It is entered, for the first time or again.
    Dispatched {
        /// Which attempt, from 1.
        attempt: u32,
        /// When it times out.
        due_ms: Option<u64>,
    },
    /// It returned.
    Completed,
    /// It is closed in another way.
    Rejected(ObservationCode),
    /// Its end was lost.
    Interrupted,
}

labels! { Event, EVENTS:
    GateAsked => gate_asked, DecisionAsked => decision_asked, Admitted => admitted, Dispatched => dispatched,
    Completed => completed, Rejected => rejected, Interrupted => interrupted,
}

pub(crate) struct Call;

machine!(Call);

#[state_machine(
    initial = "State::Requested",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl Call {
    #[state(superstate = "undispatched")]
    fn requested(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state(superstate = "undispatched")]
    fn asking(ask: &mut Ask, gate: &mut u32, event: &Event) -> Outcome<State> {
        let _ = (ask, gate, event);
        Super
    }

    /// A ticket is single use: it is answered, never replaced.
    #[state(superstate = "open")]
    fn ticketed(ticket: &mut Ticket, until_ms: &mut Option<u64>, event: &Event) -> Outcome<State> {
        let _ = (ticket, until_ms);
        match event {
            Event::GateAsked { ask, gate } => To(State::Asking { ask: *ask, gate: *gate }),
            Event::Admitted => To(State::Ready),
            Event::DecisionAsked { .. }
            | Event::Dispatched { .. }
            | Event::Completed
            | Event::Rejected(_)
            | Event::Interrupted => Super,
        }
    }

    #[state(superstate = "open")]
    fn ready(event: &Event) -> Outcome<State> {
        match event {
            Event::DecisionAsked { ticket, until_ms } => {
                To(State::Ticketed { ticket: ticket.clone(), until_ms: *until_ms })
            }
            Event::Dispatched { attempt, due_ms } => To(State::Executing { attempt: *attempt, due_ms: *due_ms }),
            Event::GateAsked { .. } | Event::Admitted | Event::Completed | Event::Rejected(_) | Event::Interrupted => {
                Super
            }
        }
    }

    #[state(superstate = "open")]
    fn executing(attempt: &mut u32, due_ms: &mut Option<u64>, event: &Event) -> Outcome<State> {
        let _ = (attempt, due_ms);
        match event {
            Event::Dispatched { attempt, due_ms } => To(State::Executing { attempt: *attempt, due_ms: *due_ms }),
            Event::Completed => To(State::Completed),
            Event::Interrupted => To(State::Indeterminate),
            Event::GateAsked { .. } | Event::DecisionAsked { .. } | Event::Admitted | Event::Rejected(_) => Super,
        }
    }

    #[state(superstate = "open")]
    fn indeterminate(event: &Event) -> Outcome<State> {
        if matches!(event, Event::Completed) { To(State::Completed) } else { Super }
    }

    #[state]
    fn completed(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state]
    fn failed(code: &mut ObservationCode, event: &Event) -> Outcome<State> {
        let _ = (code, event);
        Super
    }

    /// Before anything but questions went out.
    #[superstate(superstate = "open")]
    fn undispatched(event: &Event) -> Outcome<State> {
        match event {
            Event::GateAsked { ask, gate } => To(State::Asking { ask: *ask, gate: *gate }),
            Event::DecisionAsked { ticket, until_ms } => {
                To(State::Ticketed { ticket: ticket.clone(), until_ms: *until_ms })
            }
            Event::Admitted => To(State::Ready),
            Event::Dispatched { .. } | Event::Completed | Event::Rejected(_) | Event::Interrupted => Super,
        }
    }

    /// Every call that is not closed can be closed.
    #[superstate]
    fn open(event: &Event) -> Outcome<State> {
        if let Event::Rejected(code) = event { To(State::Failed { code: *code }) } else { Super }
    }
}

impl State {
    /// Whether it holds a reservation that it gives back when it is closed now (SPEC 6).
    #[must_use]
    pub const fn is_reserved(&self) -> bool {
        matches!(self, Self::Asking { .. } | Self::Ticketed { .. } | Self::Ready)
    }
}
