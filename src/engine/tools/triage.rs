//! Triage of a response inside the run: what it does to the loop, to collecting and to the ledger (SPEC 3, 7).

use std::sync::Arc;

use crate::engine::core::{Core, drive};
use crate::engine::outbox::{Outbox, Raised};
use crate::machines::batch::{Remark, Triage, TriagedCall, Verdict};
use crate::machines::collection::{self, Collection};
use crate::vocabulary::effect::ToolOffer;
use crate::vocabulary::llm::{FinishReason, ToolRequest};
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Assessment;
use crate::vocabulary::tool::ObservationCode;

impl Core {
    /// Triage of a response, in model order, all before any dispatch. If one call ends the loop, none is
    /// dispatched or charged (SPEC 3, precedence).
    pub(crate) fn triage(
        &mut self,
        requests: &[ToolRequest],
        finish: FinishReason,
        tools: ToolOffer,
        out: &mut Outbox,
    ) {
        let (Some(toolbox), spec) = (self.tools.toolbox.clone(), Arc::clone(&self.charter.spec)) else {
            return;
        };
        let required = spec.collection.assessment == Assessment::Required;
        let triage = Triage {
            spec: &spec,
            toolbox: &toolbox,
            finish,
            tools,
            stop_delivered: matches!(self.collection, collection::State::StopDelivered { .. }),
            assessment_due: required && self.collection.assessment_due(),
            scopes: &self.tools.scopes,
        };
        let mut calls = triage.read(requests);
        if calls.iter().any(|call| matches!(call.verdict, Verdict::CollectionStopped)) {
            drive::<Collection>(&mut self.collection, &collection::Event::EvidenceAsked, out);
            self.open_batch(undispatched(calls), out);
            return out.raise(Raised::CollectionStopped);
        }
        if required && !keeps_protocol(&mut self.collection, spec.collection.violation_limit, &calls, out) {
            self.open_batch(undispatched(calls), out);
            return out.raise(Raised::ViolationLimitReached);
        }
        if triage.admit(&mut calls, &mut self.ledger).is_some() {
            out.note(Signal::BudgetMarked);
        }
        let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.open_batch(calls, out);
        out.raise(Raised::BatchOpened { round: self.tools.rounds, calls: count });
    }

    /// Closes every call of a response as not dispatched (SPEC 10, answers to repairs).
    pub(crate) fn refuse_calls(&mut self, requests: &[ToolRequest], out: &mut Outbox) {
        let calls = requests.iter().map(|_| not_dispatched()).collect();
        self.open_batch(calls, out);
        self.publish_batch(out);
    }
}

fn not_dispatched() -> TriagedCall {
    TriagedCall { plan: None, verdict: Verdict::Closed(ObservationCode::NotDispatched, Remark::default()) }
}

/// The loop ends with this response: calls that triage closed keep their code, the others are not dispatched.
fn undispatched(calls: Vec<TriagedCall>) -> Vec<TriagedCall> {
    let closed = |call: TriagedCall| match call.verdict {
        Verdict::Closed(..) => call,
        Verdict::Admitted | Verdict::CollectionStopped => not_dispatched(),
    };
    calls.into_iter().map(closed).collect()
}

/// Counts at most one violation for the response; false when too many in a row end the loop (SPEC 7.4).
fn keeps_protocol(collection: &mut collection::State, limit: u32, calls: &[TriagedCall], out: &mut Outbox) -> bool {
    let broken = |call: &TriagedCall| matches!(call.verdict, Verdict::Closed(ObservationCode::ProtocolViolation, _));
    let evidence = |call: &TriagedCall| {
        matches!(call.verdict, Verdict::Admitted) && call.plan.as_ref().is_some_and(|plan| plan.tool.spec.evidence)
    };
    if calls.iter().any(broken) {
        let before = collection.progress().map_or(0, |progress| progress.violations);
        drive::<Collection>(collection, &collection::Event::ProtocolBroken { limit }, out);
        out.note(Signal::ProtocolViolated { in_a_row: before.saturating_add(1) });
    } else if calls.iter().any(evidence) {
        drive::<Collection>(collection, &collection::Event::ProtocolKept, out);
    }
    !matches!(collection, collection::State::Stopped { .. })
}
