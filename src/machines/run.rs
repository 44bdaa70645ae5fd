//! The run itself: may it go on, and what does it wait for? (SPEC 2)

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use super::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::ModelCallId;
use crate::vocabulary::outcome::RunStatus;

/// Every transition of a run. Ends are handled once, in the superstate of all running phases.
const TABLE: &[Transition] = transitions! {
    created,       started          => resolving;

    resolving,     model_called     => inferring;
    resolving,     consulted        => consulting;

    inferring,     model_called     => inferring;
    inferring,     backed_off       => backing_off;
    inferring,     tools_called     => calling_tools;
    inferring,     consulted        => consulting;
    inferring,     person_awaited   => awaiting;
    inferring,     release_entered  => releasing;

    backing_off,   model_called     => inferring;

    calling_tools, model_called     => inferring;
    calling_tools, tools_called     => calling_tools;
    calling_tools, consulted        => consulting;
    calling_tools, person_awaited   => awaiting;

    awaiting,      model_called     => inferring;
    awaiting,      tools_called     => calling_tools;
    awaiting,      consulted        => consulting;
    awaiting,      person_awaited   => awaiting;

    consulting,    model_called     => inferring;
    consulting,    tools_called     => calling_tools;
    consulting,    consulted        => consulting;
    consulting,    person_awaited   => awaiting;
    consulting,    release_entered  => releasing;

    releasing,     consulted        => consulting;

    resolving,     failed           => failed;
    resolving,     cancelled        => cancelled;
    resolving,     timed_out        => timed_out;
    resolving,     budget_exhausted => budget_exhausted;

    inferring,     succeeded        => success;
    inferring,     failed           => failed;
    inferring,     cancelled        => cancelled;
    inferring,     timed_out        => timed_out;
    inferring,     budget_exhausted => budget_exhausted;

    backing_off,   failed           => failed;
    backing_off,   cancelled        => cancelled;
    backing_off,   timed_out        => timed_out;

    calling_tools, failed           => failed;
    calling_tools, cancelled        => cancelled;
    calling_tools, timed_out        => timed_out;
    calling_tools, budget_exhausted => budget_exhausted;

    awaiting,      failed           => failed;
    awaiting,      cancelled        => cancelled;
    awaiting,      timed_out        => timed_out;
    awaiting,      budget_exhausted => budget_exhausted;

    consulting,    succeeded        => success;
    consulting,    failed           => failed;
    consulting,    cancelled        => cancelled;
    consulting,    timed_out        => timed_out;
    consulting,    budget_exhausted => budget_exhausted;

    releasing,     succeeded        => success;
    releasing,     failed           => failed;
    releasing,     cancelled        => cancelled;
    releasing,     timed_out        => timed_out;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "run", states: STATES, events: EVENTS, transitions: TABLE };

/// Where a run stands. Each phase carries what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing was asked yet.
    Created,
    /// The environment is being found.
    Resolving,
    /// A model is being asked.
    Inferring {
        /// The request.
        call: ModelCallId,
    },
    /// A failed model request waits for its next attempt.
    BackingOff {
        /// The request.
        call: ModelCallId,
    },
    /// Tools are being called.
    CallingTools {
        /// The round.
        round: u32,
    },
    /// A person must decide or reconcile.
    Awaiting {
        /// The round.
        round: u32,
    },
    /// A gate or a plugin is being asked.
    Consulting,
    /// The draft is being checked.
    Releasing,
    /// The run came to its own end.
    Success,
    /// It failed.
    Failed {
        /// The committed cause.
        failure: Failure,
    },
    /// It was cancelled.
    Cancelled,
    /// Its deadline passed.
    TimedOut,
    /// Its budget was used up.
    BudgetExhausted,
}

labels! { State, STATES:
    Created => created, Resolving => resolving, Inferring => inferring, BackingOff => backing_off,
    CallingTools => calling_tools, Awaiting => awaiting, Consulting => consulting, Releasing => releasing,
    Success => success, Failed => failed, Cancelled => cancelled, TimedOut => timed_out,
    BudgetExhausted => budget_exhausted,
}

/// What moves a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It was started.
    Started,
    /// A model request went out.
    ModelCalled(ModelCallId),
    /// A failed one waits.
    BackedOff(ModelCallId),
    /// A wave of tools is under way.
    ToolsCalled(u32),
    /// A person is asked.
    PersonAwaited(u32),
    /// A gate or a plugin is asked.
    Consulted,
    /// A draft came.
    ReleaseEntered,
    /// It ended by itself.
    Succeeded,
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
    /// Its deadline passed.
    TimedOut,
    /// Its budget was used up.
    BudgetExhausted,
}

labels! { Event, EVENTS:
    Started => started, ModelCalled => model_called, BackedOff => backed_off, ToolsCalled => tools_called,
    PersonAwaited => person_awaited, Consulted => consulted, ReleaseEntered => release_entered,
    Succeeded => succeeded, Failed => failed, Cancelled => cancelled, TimedOut => timed_out,
    BudgetExhausted => budget_exhausted,
}

impl State {
    /// The execution layer's value.
    #[must_use]
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Created
            | Self::Resolving
            | Self::Inferring { .. }
            | Self::BackingOff { .. }
            | Self::CallingTools { .. }
            | Self::Awaiting { .. }
            | Self::Consulting
            | Self::Releasing => RunStatus::Running,
            Self::Success => RunStatus::Success,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
            Self::TimedOut => RunStatus::TimedOut,
            Self::BudgetExhausted => RunStatus::BudgetExhausted,
        }
    }

    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        !matches!(self.status(), RunStatus::Running)
    }

    /// The committed cause, when it failed.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        if let Self::Failed { failure } = self { Some(failure) } else { None }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("RunState", 2)?;
        out.serialize_field("state", &self.status())?;
        match self {
            Self::Success | Self::Cancelled | Self::TimedOut | Self::BudgetExhausted => {}
            Self::Failed { failure } => out.serialize_field("failure", failure)?,
            Self::Created | Self::Resolving | Self::Consulting | Self::Releasing => {
                out.serialize_field("phase", self.label())?;
            }
            Self::Inferring { call } | Self::BackingOff { call } => {
                out.serialize_field("phase", self.label())?;
                out.serialize_field("call", call)?;
            }
            Self::CallingTools { round } | Self::Awaiting { round } => {
                out.serialize_field("phase", self.label())?;
                out.serialize_field("round", round)?;
            }
        }
        out.end()
    }
}

pub(crate) struct Run;

machine!(Run);

#[state_machine(
    initial = "State::Created",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl Run {
    #[state]
    fn created(event: &Event) -> Outcome<State> {
        if matches!(event, Event::Started) { To(State::Resolving) } else { Super }
    }

    #[state(superstate = "running")]
    fn resolving(event: &Event) -> Outcome<State> {
        match event {
            Event::ModelCalled(call) => To(State::Inferring { call: *call }),
            Event::Consulted => To(State::Consulting),
            Event::Started
            | Event::BackedOff(_)
            | Event::ToolsCalled(_)
            | Event::PersonAwaited(_)
            | Event::ReleaseEntered
            | Event::Succeeded
            | Event::Failed(_)
            | Event::Cancelled
            | Event::TimedOut
            | Event::BudgetExhausted => Super,
        }
    }

    #[state(superstate = "looping")]
    fn inferring(call: &mut ModelCallId, event: &Event) -> Outcome<State> {
        let _ = call;
        match event {
            Event::BackedOff(call) => To(State::BackingOff { call: *call }),
            Event::ReleaseEntered => To(State::Releasing),
            Event::Started
            | Event::ModelCalled(_)
            | Event::ToolsCalled(_)
            | Event::PersonAwaited(_)
            | Event::Consulted
            | Event::Succeeded
            | Event::Failed(_)
            | Event::Cancelled
            | Event::TimedOut
            | Event::BudgetExhausted => Super,
        }
    }

    #[state(superstate = "running")]
    fn backing_off(call: &mut ModelCallId, event: &Event) -> Outcome<State> {
        let _ = call;
        if let Event::ModelCalled(call) = event { To(State::Inferring { call: *call }) } else { Super }
    }

    #[state(superstate = "looping")]
    fn calling_tools(round: &mut u32, event: &Event) -> Outcome<State> {
        let _ = (round, event);
        Super
    }

    #[state(superstate = "looping")]
    fn awaiting(round: &mut u32, event: &Event) -> Outcome<State> {
        let _ = (round, event);
        Super
    }

    #[state(superstate = "looping")]
    fn consulting(event: &Event) -> Outcome<State> {
        if matches!(event, Event::ReleaseEntered) { To(State::Releasing) } else { Super }
    }

    #[state(superstate = "running")]
    fn releasing(event: &Event) -> Outcome<State> {
        if matches!(event, Event::Consulted) { To(State::Consulting) } else { Super }
    }

    /// The phases between which a round moves.
    #[superstate(superstate = "running")]
    fn looping(event: &Event) -> Outcome<State> {
        match event {
            Event::ModelCalled(call) => To(State::Inferring { call: *call }),
            Event::ToolsCalled(round) => To(State::CallingTools { round: *round }),
            Event::PersonAwaited(round) => To(State::Awaiting { round: *round }),
            Event::Consulted => To(State::Consulting),
            Event::Started
            | Event::BackedOff(_)
            | Event::ReleaseEntered
            | Event::Succeeded
            | Event::Failed(_)
            | Event::Cancelled
            | Event::TimedOut
            | Event::BudgetExhausted => Super,
        }
    }

    /// Every phase of a running run: here it ends, once.
    #[superstate]
    fn running(event: &Event) -> Outcome<State> {
        match event {
            Event::Succeeded => To(State::Success),
            Event::Failed(failure) => To(State::Failed { failure: failure.clone() }),
            Event::Cancelled => To(State::Cancelled),
            Event::TimedOut => To(State::TimedOut),
            Event::BudgetExhausted => To(State::BudgetExhausted),
            Event::Started
            | Event::ModelCalled(_)
            | Event::BackedOff(_)
            | Event::ToolsCalled(_)
            | Event::PersonAwaited(_)
            | Event::Consulted
            | Event::ReleaseEntered => Super,
        }
    }

    #[state]
    fn success(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state]
    fn failed(failure: &mut Failure, event: &Event) -> Outcome<State> {
        let _ = (failure, event);
        Super
    }

    #[state]
    fn cancelled(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state]
    fn timed_out(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state]
    fn budget_exhausted(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }
}
