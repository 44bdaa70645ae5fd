//! Calls that a running tool makes of its own: asked for, held back or let through, and over with their parent at
//! the latest (SPEC 6, 7).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::Serializer;
use statig::Outcome::{self, Super, Transition as To};
use statig::blocking::StateExt;
use statig::prelude::state_machine;

use super::batch::Plan;
use super::{Chart, Transition, labels, machine, transitions};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::{Ask, NestedCallId, ToolCallId};
use crate::vocabulary::tool::ObservationCode;

/// How many nested calls one tool call may ask for, over all its attempts.
pub const NESTED_MAX: u32 = 1_024;

/// Every transition of a nested call.
const TABLE: &[Transition] = transitions! {
    requested, gate_asked    => asking;
    requested, admitted      => admitted;
    requested, rejected      => denied;

    asking,    gate_asked    => asking;
    asking,    admitted      => admitted;
    asking,    rejected      => denied;
    asking,    parent_closed => dropped;

    admitted,  completed     => completed;
    admitted,  parent_closed => lost;
};

/// The machine as data.
pub const CHART: Chart = Chart { machine: "nested_call", states: STATES, events: EVENTS, transitions: TABLE };

/// Where a nested call stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum State {
    /// The tool asked for it.
    Requested,
    /// A gate is asked about it.
    Asking {
        /// The question.
        ask: Ask,
        /// Which of the tool's gates, from 0.
        gate: u32,
    },
    /// The tool may make it.
    Admitted,
    /// The tool has made it.
    Completed,
    /// The tool may not make it.
    Denied {
        /// Why.
        code: ObservationCode,
    },
    /// Its parent closed before it was let through.
    Dropped,
    /// Its parent closed before it completed: nobody knows what it did.
    Lost,
}

labels! { State, STATES:
    Requested => requested, Asking => asking, Admitted => admitted, Completed => completed, Denied => denied,
    Dropped => dropped, Lost => lost,
}

/// What moves a nested call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A gate is asked.
    GateAsked {
        /// The question.
        ask: Ask,
        /// Which of the tool's gates.
        gate: u32,
    },
    /// Nothing stands in its way.
    Admitted,
    /// It is turned down.
    Rejected(ObservationCode),
    /// The tool has made it.
    Completed,
    /// Its parent is over, or the attempt that asked for it.
    ParentClosed,
}

labels! { Event, EVENTS:
    GateAsked => gate_asked, Admitted => admitted, Rejected => rejected, Completed => completed,
    ParentClosed => parent_closed,
}

pub(crate) struct NestedCall;

machine!(NestedCall);

#[state_machine(
    initial = "State::Requested",
    state(name = "State", custom),
    superstate(derive()),
    visibility = "pub(crate)"
)]
impl NestedCall {
    #[state(superstate = "undecided")]
    fn requested(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state(superstate = "undecided")]
    fn asking(ask: &mut Ask, gate: &mut u32, event: &Event) -> Outcome<State> {
        let _ = (ask, gate);
        if matches!(event, Event::ParentClosed) { To(State::Dropped) } else { Super }
    }

    #[state]
    fn admitted(event: &Event) -> Outcome<State> {
        match event {
            Event::Completed => To(State::Completed),
            Event::ParentClosed => To(State::Lost),
            Event::GateAsked { .. } | Event::Admitted | Event::Rejected(_) => Super,
        }
    }

    #[state]
    fn completed(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state]
    fn denied(code: &mut ObservationCode, event: &Event) -> Outcome<State> {
        let _ = (code, event);
        Super
    }

    #[state]
    fn dropped(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    #[state]
    fn lost(event: &Event) -> Outcome<State> {
        let _ = event;
        Super
    }

    /// Before it was let through.
    #[superstate]
    fn undecided(event: &Event) -> Outcome<State> {
        match event {
            Event::GateAsked { ask, gate } => To(State::Asking { ask: *ask, gate: *gate }),
            Event::Admitted => To(State::Admitted),
            Event::Rejected(code) => To(State::Denied { code: *code }),
            Event::Completed | Event::ParentClosed => Super,
        }
    }
}

impl State {
    /// Whether it is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        match self {
            Self::Requested | Self::Asking { .. } | Self::Admitted => false,
            Self::Completed | Self::Denied { .. } | Self::Dropped | Self::Lost => true,
        }
    }
}

/// One nested call that is not over.
#[derive(Debug, Clone)]
pub struct Nested {
    /// Where it stands.
    pub phase: State,
    /// What would be called; none for a model call.
    pub plan: Option<Arc<Plan>>,
}

/// The nested calls of the open batch, by the tool call that asks for them.
#[derive(Debug, Clone, Default)]
pub struct NestedCalls(BTreeMap<ToolCallId, Asker>);

/// One tool call's nested calls.
#[derive(Debug, Clone)]
struct Asker {
    /// How many it has asked for: the next index.
    requested: u32,
    open: BTreeMap<u32, Nested>,
    /// Of everything that became of them, in order.
    digest: Digest,
}

impl NestedCalls {
    /// How many `parent` has asked for so far: the index of its next one.
    #[must_use]
    pub fn requested(&self, parent: ToolCallId) -> u32 {
        self.0.get(&parent).map_or(0, |asker| asker.requested)
    }

    /// The nested call of that id, unless it is over.
    #[must_use]
    pub fn get(&self, id: NestedCallId) -> Option<&Nested> {
        self.0.get(&id.parent).and_then(|asker| asker.open.get(&id.index))
    }

    /// The one that asks this question.
    #[must_use]
    pub fn asking(&self, ask: Ask) -> Option<NestedCallId> {
        self.iter()
            .find(|(_, nested)| matches!(nested.phase, State::Asking { ask: open, .. } if open == ask))
            .map(|(id, _)| id)
    }

    /// Whether any asks a question.
    #[must_use]
    pub fn any_asks(&self) -> bool {
        self.iter().any(|(_, nested)| matches!(nested.phase, State::Asking { .. }))
    }

    /// Every one that is not over, by parent and index.
    pub fn iter(&self) -> impl Iterator<Item = (NestedCallId, &Nested)> {
        self.0.iter().flat_map(|(parent, asker)| {
            asker.open.iter().map(|(index, nested)| (NestedCallId { parent: *parent, index: *index }, nested))
        })
    }

    /// The ones of that parent that are not over.
    pub fn of(&self, parent: ToolCallId) -> impl Iterator<Item = (NestedCallId, &Nested)> {
        let open = self.0.get(&parent).into_iter().flat_map(|asker| &asker.open);
        open.map(move |(index, nested)| (NestedCallId { parent, index: *index }, nested))
    }

    /// A tool asks for one.
    pub(crate) fn request(&mut self, id: NestedCallId, plan: Option<Arc<Plan>>) {
        let none = Asker { requested: 0, open: BTreeMap::new(), digest: Digest::ZERO };
        let asker = self.0.entry(id.parent).or_insert(none);
        asker.requested = id.index.saturating_add(1);
        asker.open.insert(id.index, Nested { phase: State::Requested, plan });
    }

    /// Its phase, to be moved.
    pub(crate) fn phase_mut(&mut self, id: NestedCallId) -> Option<&mut State> {
        let asker = self.0.get_mut(&id.parent)?;
        asker.open.get_mut(&id.index).map(|nested| &mut nested.phase)
    }

    /// It has moved: what became of it enters the digest, and one that is over is dropped.
    pub(crate) fn moved(&mut self, id: NestedCallId) {
        let Some(asker) = self.0.get_mut(&id.parent) else { return };
        let Some(nested) = asker.open.get(&id.index) else { return };
        let became = serde_json::to_vec(&(id, &nested.phase, nested.plan.as_ref().map(|plan| plan.digest)));
        asker.digest = Digest::of("portcullis.nested.1", &[asker.digest.as_bytes(), &became.unwrap_or_default()]);
        if nested.phase.is_over() {
            asker.open.remove(&id.index);
        }
    }

    /// The batch is over, and with it every parent.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What a record shows; `None` while nobody has asked for any.
    pub(crate) fn view(&self) -> Option<View<'_>> {
        (!self.0.is_empty()).then_some(View(self))
    }

    /// Everything that a rule reads of them.
    #[cfg(feature = "explorer")]
    pub(crate) fn identity(&self) -> impl Serialize {
        let open = |asker: &Asker| -> Vec<(u32, State, Option<Digest>)> {
            let shown = |(index, nested): (&u32, &Nested)| {
                (*index, nested.phase.clone(), nested.plan.as_ref().map(|plan| plan.digest))
            };
            asker.open.iter().map(shown).collect()
        };
        self.0.iter().map(|(parent, asker)| (*parent, asker.requested, open(asker))).collect::<Vec<_>>()
    }
}

/// The nested calls in a record: bounded by the calls of a batch, however many each of them makes (SPEC 13).
pub(crate) struct View<'a>(&'a NestedCalls);

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            call: ToolCallId,
            requested: u32,
            open: usize,
            digest: Digest,
        }
        let shown = |(call, asker): (&ToolCallId, &Asker)| Shown {
            call: *call,
            requested: asker.requested,
            open: asker.open.len(),
            digest: asker.digest,
        };
        serializer.collect_seq(self.0.0.iter().map(shown))
    }
}
