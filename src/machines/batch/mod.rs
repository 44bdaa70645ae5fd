//! The tool batch: all calls of one response, triaged together, dispatched in waves, published together
//! (SPEC 7).

pub mod call;
mod closing;
mod projection;
mod triage;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::Serializer;

use crate::machines::toolbox::Tool;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::{Ask, Ticket, ToolCallId};
use crate::vocabulary::json::Json;
use crate::vocabulary::tool::{Concurrency, ObservationCode};

pub(crate) use closing::{Closing, Remark, Staged, after_failure, after_success};
pub(crate) use triage::{Triage, TriagedCall, Verdict, is_held, plan_edited};

/// The calls of one response.
#[derive(Debug, Clone, Serialize)]
pub struct Batch {
    /// The round, from 1.
    pub round: u32,
    /// The calls, in model order.
    pub calls: Vec<Call>,
    /// The wave whose dispatch is being made durable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub announced: Vec<ToolCallId>,
}

/// One call of a batch.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id.
    pub id: ToolCallId,
    /// Where it stands.
    pub phase: call::State,
    /// What will be called, once the arguments were found good.
    pub plan: Option<Arc<Plan>>,
    /// That a gate wants a person to confirm it, once every gate was asked (SPEC 7.8).
    pub confirm: Option<Confirm>,
    /// How many unknown effects of the same plan a person knew of when they allowed it (SPEC 7.6).
    pub cleared: Option<u32>,
    /// Whether a crash lost one of its attempts: then no later attempt can prove that nothing happened.
    pub attempt_lost: bool,
    /// The closing observation, staged until the batch is published.
    pub(crate) closing: Option<Staged>,
}

/// A confirmation that gates want of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Confirm {
    /// When the question expires: the shortest wait that a gate named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

impl Confirm {
    /// One more gate wants it.
    #[must_use]
    pub fn and(self, expires_ms: Option<u64>) -> Self {
        Self { expires_ms: shorter(self.expires_ms, expires_ms) }
    }
}

/// The shorter of two waits; an absent one is for ever.
pub(crate) fn shorter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// A tool and the arguments that it will be called with.
#[derive(Debug)]
pub struct Plan {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The arguments, without what belongs to the engine.
    pub arguments: Json,
    /// Of tool and arguments.
    pub digest: Digest,
    /// Of tool and what it looks at.
    pub scope: Digest,
}

/// Effects that nobody knows the outcome of, by plan (SPEC 7.6).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Unknowns(BTreeMap<Digest, u32>);

impl Unknowns {
    /// How many with this plan.
    #[must_use]
    pub fn of(&self, plan: &Digest) -> u32 {
        self.0.get(plan).copied().unwrap_or(0)
    }

    /// One more.
    pub fn note(&mut self, plan: Digest) {
        let count = self.0.entry(plan).or_default();
        *count = count.saturating_add(1);
    }

    /// One of them was reconciled.
    pub fn settle(&mut self, plan: &Digest) {
        if let Some(count) = self.0.get_mut(plan) {
            *count = count.saturating_sub(1);
        }
    }

    /// How many plans have any, and a digest of them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().map(|count| u64::from(*count)).sum()
    }
}

/// What a batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Gates.
    Gates,
    /// A person.
    Person,
    /// Tools.
    Tools,
    /// Nothing more: it can be published.
    Nothing,
    /// The next wave can be dispatched.
    Dispatch,
}

impl Batch {
    /// What it waits for now. While tickets are open nothing is dispatched.
    #[must_use]
    pub fn waits(&self) -> Waits {
        let any = |phase: fn(&call::State) -> bool| {
            self.calls.iter().any(|call| call.closing.is_none() && phase(&call.phase))
        };
        if any(|phase| matches!(phase, call::State::Asking { .. })) {
            Waits::Gates
        } else if any(|phase| matches!(phase, call::State::Executing { .. })) || !self.announced.is_empty() {
            Waits::Tools
        } else if any(|phase| matches!(phase, call::State::Ticketed { .. } | call::State::Indeterminate)) {
            Waits::Person
        } else if any(|phase| matches!(phase, call::State::Ready)) {
            Waits::Dispatch
        } else {
            Waits::Nothing
        }
    }

    /// The next wave: in model order, parallel neighbours together, a serial call alone.
    #[must_use]
    pub fn next_wave(&self) -> Vec<ToolCallId> {
        let ready = self.calls.iter().filter(|call| matches!(call.phase, call::State::Ready));
        let mut wave = Vec::new();
        for call in ready {
            let serial = call.plan.as_ref().is_none_or(|plan| plan.tool.spec.concurrency == Concurrency::Serial);
            if serial && !wave.is_empty() {
                break;
            }
            wave.push(call.id);
            if serial {
                break;
            }
        }
        wave
    }

    /// The call of that id.
    #[must_use]
    pub fn call(&self, id: ToolCallId) -> Option<&Call> {
        (id.round == self.round).then(|| self.calls.get(id.index as usize)).flatten()
    }

    /// The call of that id.
    pub fn call_mut(&mut self, id: ToolCallId) -> Option<&mut Call> {
        if id.round == self.round { self.calls.get_mut(id.index as usize) } else { None }
    }

    /// The call that asks this question.
    #[must_use]
    pub fn asking(&self, ask: Ask) -> Option<&Call> {
        self.calls.iter().find(|call| matches!(&call.phase, call::State::Asking { ask: open, .. } if *open == ask))
    }

    /// The call that waits for this ticket.
    #[must_use]
    pub fn ticketed(&self, ticket: &Ticket) -> Option<&Call> {
        self.calls
            .iter()
            .find(|call| matches!(&call.phase, call::State::Ticketed { ticket: open, .. } if open == ticket))
    }
}

impl Call {
    /// Why it is not an ordinary success, once it is closed.
    #[must_use]
    pub fn code(&self) -> Option<ObservationCode> {
        self.closing.as_ref().and_then(|staged| staged.closing.code)
    }

    /// Whether it has its closing observation.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closing.is_some()
    }
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct View<'a> {
            call: ToolCallId,
            #[serde(flatten)]
            phase: &'a call::State,
            #[serde(skip_serializing_if = "Option::is_none")]
            plan: Option<Digest>,
            #[serde(skip_serializing_if = "Option::is_none")]
            confirm: Option<Confirm>,
            #[serde(skip_serializing_if = "Option::is_none")]
            cleared: Option<u32>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            attempt_lost: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            closing: Option<Digest>,
        }
        View {
            call: self.id,
            phase: &self.phase,
            plan: self.plan.as_ref().map(|plan| plan.digest),
            confirm: self.confirm,
            cleared: self.cleared,
            attempt_lost: self.attempt_lost,
            closing: self.closing.as_ref().map(|staged| staged.digest),
        }
        .serialize(serializer)
    }
}
