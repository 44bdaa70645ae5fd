//! What an open run waits for (SPEC 13.I11).

use serde::Serialize;

use super::witness::Place;
use crate::engine::{Engine, Request};
use crate::vocabulary::effect::{Effect, GateSubject};

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// The run's phase.
    pub phase: &'static str,
    /// Where it stands, seen from the loop.
    pub place: Place,
    /// What is outstanding.
    pub waits_for: Vec<Wait>,
    /// The types of input that would be accepted now.
    pub expected: Vec<&'static str>,
}

/// An effect that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Its type.
    pub effect: &'static str,
    /// What it is about: a call, a ticket, a gate, a plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The types of input that answer it.
    pub answered_by: &'static [&'static str],
    /// When a timer is due, in milliseconds from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
    /// Whether only a person can answer.
    pub by_a_person: bool,
}

impl Waiting {
    pub(super) fn of(engine: &Engine, place: Place) -> Self {
        Self {
            phase: engine.run_state().label(),
            place,
            waits_for: engine.outstanding().iter().map(Wait::of).collect(),
            expected: engine.expected(),
        }
    }
}

impl Wait {
    /// What an effect waits for.
    #[must_use]
    pub fn of(effect: &Request) -> Self {
        let about = match effect {
            Effect::CallModel { call, attempt, .. } => Some(format!("{call}, attempt {attempt}")),
            Effect::StartTimer { kind, of, .. } => Some(format!("{kind} of {of}")),
            Effect::AskGate { gate, about, .. } => Some(match about {
                GateSubject::Tool { call } => format!("{gate}, about {call}"),
                GateSubject::Nested { nested } => format!("{gate}, about {nested}"),
                GateSubject::Release { .. } => format!("{gate}, about the release"),
            }),
            Effect::CallHook { point, plugin, .. } => Some(format!("{point} of {plugin}")),
            Effect::PerformAction { action, plugin, .. } => Some(format!("{action} of {plugin}")),
            Effect::DispatchTools { calls } => {
                let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
                Some(calls.join(", "))
            }
            Effect::InvokeTool { call, attempt, .. } => Some(format!("{call}, attempt {attempt}")),
            Effect::AdmitNested { nested } | Effect::DenyNested { nested, .. } => Some(nested.to_string()),
            Effect::AwaitDecision { ticket, call } => Some(format!("{call}, ticket {ticket}")),
            Effect::ReconcileTool { call, .. } => Some(call.to_string()),
            Effect::JudgeSemantics { call, attempt, .. } => Some(format!("{call}, attempt {attempt}")),
            Effect::ResolveEnvironment | Effect::AbortInFlight | Effect::Publish { .. } => None,
        };
        let due_ms = if let Effect::StartTimer { due_ms, .. } = effect { Some(*due_ms) } else { None };
        let by_a_person = matches!(effect, Effect::AwaitDecision { .. } | Effect::ReconcileTool { .. });
        Self { effect: effect.tag(), about, answered_by: effect.answers(), due_ms, by_a_person }
    }
}
