//! The named invariants that one state can be asked about (SPEC 13). They are checked after every step in
//! tests and debug builds; those that compare several states are properties of the test suite.

use super::core::Core;
use super::outstanding::Detail;
use super::table;
use crate::machines::batch::{Call, call};
use crate::machines::release::{self, Body};
use crate::vocabulary::outcome::ReleaseOutcome;
use crate::vocabulary::spec::JudgePolicy;
use crate::vocabulary::wire::words;

words! {
    /// A broken invariant, by name.
    pub enum Violation {
        /// 13.I1: a run has an ending exactly when it is terminal.
        TerminalWithoutEnding = "terminal_without_ending",
        /// The ending stands outside the closed table.
        EndingOutsideTable = "ending_outside_table",
        /// 13.I2: a success without an observed fact behind every citation, or without its guards.
        SuccessWithoutProof = "success_without_proof",
        /// 13.I3: a fallback without observed facts.
        FallbackWithoutFacts = "fallback_without_facts",
        /// 13.I4: more was admitted than a limit allows.
        AdmittedOverLimit = "admitted_over_limit",
        /// 13.I5: a closed call without its observation, or an open one with it, or a batch that outlives its run.
        CallWithoutObservation = "call_without_observation",
        /// 7.P5: a nested call that outlives its parent, or that is over and still there.
        NestedWithoutParent = "nested_without_parent",
        /// 13.I11: a running run that waits for nothing.
        StuckRun = "stuck_run",
        /// 13.I12: a release that is offered before the run has ended.
        PublishBeforeEnd = "publish_before_end",
    }
}

type Rule = fn(&Core) -> bool;

/// Every invariant that `core` breaks.
pub(crate) fn check(core: &Core) -> Vec<Violation> {
    let rules: [(Violation, Rule); 9] = [
        (Violation::TerminalWithoutEnding, |core| core.run.is_terminal() == core.ending.is_some()),
        (Violation::EndingOutsideTable, |core| core.ending.iter().all(|(ending, _)| table::is_legal(ending))),
        (Violation::SuccessWithoutProof, success_is_proven),
        (Violation::FallbackWithoutFacts, fallback_has_facts),
        (Violation::AdmittedOverLimit, admitted_is_within_limits),
        (Violation::CallWithoutObservation, calls_have_observations),
        (Violation::NestedWithoutParent, nested_calls_have_parents),
        (Violation::StuckRun, |core| core.run.is_terminal() || !core.waits(Detail::Kind).is_empty()),
        (Violation::PublishBeforeEnd, release_follows_end),
    ];
    rules.into_iter().filter(|(_, holds)| !holds(core)).map(|(violation, _)| violation).collect()
}

fn success_is_proven(core: &Core) -> bool {
    core.ending.iter().all(|(_, release)| match release.body() {
        Body::Success { citations, judged, .. } => {
            let judged = *judged || core.spec().release.judge == JudgePolicy::Off;
            let observed = |id: String| core.facts.cited(&id).is_some();
            judged && !citations.is_empty() && citations.iter().all(|citation| observed(citation.fact.id.to_string()))
        }
        Body::Fallback { .. } | Body::Failed { .. } | Body::Cancelled { .. } => true,
    })
}

fn fallback_has_facts(core: &Core) -> bool {
    core.ending.iter().all(|(ending, release)| match release.body() {
        Body::Fallback { facts, .. } => {
            ending.outcome == ReleaseOutcome::Fallback && !facts.is_empty() && facts.len() == ending.facts as usize
        }
        Body::Success { .. } | Body::Failed { .. } | Body::Cancelled { .. } => true,
    })
}

fn admitted_is_within_limits(core: &Core) -> bool {
    let budgets = &core.spec().budgets;
    let within = |spent: u64, limit: Option<u64>| limit.is_none_or(|limit| spent <= limit);
    within(core.ledger.model_calls, budgets.model_calls)
        && within(core.ledger.tool_calls, budgets.tool_calls)
        && core
            .ledger
            .tool_calls_by_tool
            .iter()
            .all(|(tool, spent)| within(*spent, budgets.tool_calls_by_tool.get(tool.as_ref()).copied()))
}

fn calls_have_observations(core: &Core) -> bool {
    let fits = |call: &Call| match call.phase {
        call::State::Completed | call::State::Failed { .. } => call.is_closed(),
        call::State::Indeterminate => true,
        call::State::Requested
        | call::State::Asking { .. }
        | call::State::Ticketed { .. }
        | call::State::Ready
        | call::State::Executing { .. } => !call.is_closed(),
    };
    let mut calls = core.tools.batch.iter().flat_map(|batch| &batch.calls);
    calls.all(fits) && !(core.run.is_terminal() && core.tools.batch.is_some())
}

fn nested_calls_have_parents(core: &Core) -> bool {
    core.tools.nested.iter().all(|(id, nested)| {
        let parent = core.call_of(id.parent).map(|call| &call.phase);
        matches!(parent, Some(call::State::Executing { .. })) && !nested.phase.is_over()
    })
}

fn release_follows_end(core: &Core) -> bool {
    let offered = matches!(core.release, release::State::Decided { .. } | release::State::Delivered { .. });
    offered == core.run.is_terminal()
}
