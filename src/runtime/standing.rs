//! Where a run stands, by its engine.

use super::store::Standing;
use crate::engine::Engine;
use crate::machines::run;
use crate::vocabulary::effect::Effect;

impl Standing {
    /// Where the run of this engine stands. `started_ms` is when it began, in wall milliseconds since 1970.
    #[must_use]
    pub fn of(engine: &Engine, started_ms: u64) -> Self {
        match engine.ending() {
            Some(ending) => {
                let delivered = engine.decider().is_delivered();
                Self::Ended { row: ending.row, outcome: ending.outcome, delivered }
            }
            None => awaits_only_people(engine).map_or(Self::Running, |due_ms| {
                let due_ms = due_ms.map(|due_ms| started_ms.saturating_add(due_ms));
                Self::Awaiting { due_ms }
            }),
        }
    }
}

/// When the next timer is due, in milliseconds since the run's start, if nothing else can move the run but a
/// person.
fn awaits_only_people(engine: &Engine) -> Option<Option<u64>> {
    if !matches!(engine.run_state(), run::State::Awaiting { .. }) {
        return None;
    }
    let mut due_ms = engine.decider().clock().and_then(crate::machines::clock::Clock::deadline_ms);
    for effect in engine.outstanding() {
        match effect {
            Effect::AwaitDecision { .. } | Effect::ReconcileTool { .. } => {}
            Effect::StartTimer { due_ms: next, .. } => due_ms = Some(due_ms.map_or(next, |due| due.min(next))),
            Effect::ResolveEnvironment
            | Effect::CallModel { .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::PerformAction { .. }
            | Effect::DispatchTools { .. }
            | Effect::InvokeTool { .. }
            | Effect::AdmitNested { .. }
            | Effect::DenyNested { .. }
            | Effect::JudgeSemantics { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => return None,
        }
    }
    Some(due_ms)
}
