//! Drafts on their way out: repairs, evidence, semantics, gates (SPEC 10, 11).

use super::core::{Core, drive};
use super::outbox::{Outbox, Raised, Request};
use super::rounds::Denied;
use super::table::Cause;
use crate::machines::consultation::Then;
use crate::machines::release::{self, Candidate, Event, EvidencedDraft, Releasing, State, VerifiedDraft, draft, guard};
use crate::machines::run::{self, Run};
use crate::vocabulary::draft::BadDraft;
use crate::vocabulary::effect::{Effect, GateSubject, Purpose};
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::{Ask, JudgeCallId};
use crate::vocabulary::input::{GateAnswer, Verdict};
use crate::vocabulary::llm::{Content, FinishReason, Usage};
use crate::vocabulary::message::{Message, NoticeKind};
use crate::vocabulary::outcome::{EvidenceViolation, SemanticRefusal};
use crate::vocabulary::signal::{RepairFailure, RepairOf, Signal};
use crate::vocabulary::spec::{DraftFormat, JudgePolicy};

impl Core {
    /// A response without tool calls is a draft: this run's own last response, nothing else ever is.
    pub(crate) fn receive_draft(
        &mut self,
        content: &Content,
        finish: FinishReason,
        purpose: Purpose,
        out: &mut Outbox,
    ) {
        let text = content.text.as_deref().unwrap_or_default();
        let read = draft::read(self.spec().draft.format, self.charter.data_schema.as_ref(), text, finish);
        let digest = draft::digest(text);
        self.say(
            Message::Assistant { text: Some(text.to_owned()), calls: Vec::new(), opaque: content.opaque.clone() },
            out,
        );
        match read.map(|draft| Candidate::new(self.charter.run.clone(), digest, draft)) {
            Ok(Ok(candidate)) => out.raise(Raised::DraftCompleted(candidate)),
            Ok(Err(draft)) => out.raise(Raised::DraftConcludesNothing(digest, draft.citations)),
            Err(bad) => out.raise(Raised::DraftInvalid(bad, purpose)),
        }
    }

    /// A bad draft: asked for again while repairs are left. A repair of evidence never uses one.
    pub(crate) fn draft_invalid(&mut self, bad: BadDraft, purpose: Purpose, out: &mut Outbox) {
        if purpose == Purpose::EvidenceRepair {
            return out.raise(Raised::RepairFailed(RepairOf::Evidence, RepairFailure::DraftInvalid));
        }
        if self.release.draft_repairs() >= self.spec().draft.repairs {
            return self.end(Cause::BadDraft(bad.kind), out);
        }
        drive::<Releasing>(&mut self.release, &Event::DraftRepairAsked(bad.kind), out);
        let form = match self.spec().draft.format {
            DraftFormat::Json => "the required JSON object and nothing else",
            DraftFormat::Text => "your whole answer as text",
        };
        let text = format!("Your answer could not be used ({}). Write {form}.", bad.kind);
        self.repair(RepairOf::Draft, text, out);
    }

    /// Evidence that does not hold: asked for again while repairs are left and something was observed.
    pub(crate) fn evidence_violated(&mut self, kind: EvidenceViolation, out: &mut Outbox) {
        let first = match &self.release {
            State::RepairingEvidence { violation, .. } => {
                let reason = RepairFailure::EvidenceViolated;
                out.note(Signal::RepairFailed { of: RepairOf::Evidence, reason });
                *violation
            }
            State::Waiting
            | State::RepairingDraft { .. }
            | State::Judging { .. }
            | State::Verified { .. }
            | State::Gating { .. }
            | State::Decided { .. }
            | State::Delivered { .. } => kind,
        };
        let repairable = self.facts.any() && self.spec().draft.format == DraftFormat::Json;
        if !repairable || self.release.evidence_repairs() >= self.spec().release.evidence_repairs {
            return self.end(Cause::EvidenceViolated(first), out);
        }
        drive::<Releasing>(&mut self.release, &Event::EvidenceRepairAsked(kind), out);
        let text = format!(
            "The evidence of your answer does not hold ({kind}). Write the answer again: cite observed facts by \
             their ids, and quote only words that stand in the fact you cite."
        );
        self.repair(RepairOf::Evidence, text, out);
    }

    /// Asks for a draft again, through the gate. A denial raises no budget signal (SPEC 6).
    fn repair(&mut self, of: RepairOf, text: String, out: &mut Outbox) {
        let (kind, purpose) = match of {
            RepairOf::Draft => (NoticeKind::DraftRepair, Purpose::DraftRepair),
            RepairOf::Evidence => (NoticeKind::EvidenceRepair, Purpose::EvidenceRepair),
        };
        if self.ledger.model_gate(&self.spec().budgets).is_some() {
            return out.raise(Raised::RepairFailed(of, RepairFailure::Denied));
        }
        out.note(Signal::RepairAsked { of });
        self.say(Message::Notice { kind, text }, out);
        if let Err(Denied(_)) = self.ask_model(purpose, out) {
            out.raise(Raised::RepairFailed(of, RepairFailure::Denied));
        }
    }

    /// A repair brought nothing: the first fault stands, unless another repair is left.
    pub(crate) fn repair_failed(&mut self, reason: RepairFailure, out: &mut Outbox) {
        let again = reason != RepairFailure::Denied;
        match self.release {
            State::RepairingDraft { fault, repair } if again && repair < self.spec().draft.repairs => {
                drive::<Releasing>(&mut self.release, &Event::DraftRepairAsked(fault), out);
                self.repair(RepairOf::Draft, "No tools are available: write your answer.".to_owned(), out);
            }
            State::RepairingDraft { fault, .. } => self.end(Cause::BadDraft(fault), out),
            State::RepairingEvidence { violation, repair }
                if again && repair < self.spec().release.evidence_repairs =>
            {
                drive::<Releasing>(&mut self.release, &Event::EvidenceRepairAsked(violation), out);
                let text = "No tools are available: write your answer and cite observed facts.".to_owned();
                self.repair(RepairOf::Evidence, text, out);
            }
            State::RepairingEvidence { violation, .. } => self.end(Cause::EvidenceViolated(violation), out),
            State::Waiting
            | State::Judging { .. }
            | State::Verified { .. }
            | State::Gating { .. }
            | State::Decided { .. }
            | State::Delivered { .. } => {}
        }
    }

    /// A draft with a conclusion meets the evidence guard.
    pub(crate) fn guard_evidence(&mut self, candidate: Candidate, out: &mut Outbox) {
        match guard::check(candidate, &self.facts) {
            Ok(evidenced) => out.raise(Raised::EvidenceHeld(evidenced)),
            Err((_, kind)) => out.raise(Raised::EvidenceViolated(kind)),
        }
    }

    /// Evidence holds: the judge is asked, if the spec wants one and the budget admits it.
    pub(crate) fn judge(&mut self, evidenced: EvidencedDraft, out: &mut Outbox) {
        if self.spec().release.judge == JudgePolicy::Off {
            return out.raise(Raised::SemanticsHeld(evidenced.unjudged()));
        }
        if self.ledger.attempt_gate(&self.spec().budgets).is_some() {
            return out.raise(Raised::SemanticsRefused(evidenced, SemanticRefusal::Unavailable));
        }
        self.ledger.judge_calls = self.ledger.judge_calls.saturating_add(1);
        let call = JudgeCallId(u32::try_from(self.ledger.judge_calls).unwrap_or(u32::MAX));
        drive::<Releasing>(&mut self.release, &Event::JudgeAsked(call, evidenced), out);
        drive::<Run>(&mut self.run, &run::Event::ReleaseEntered, out);
        out.effects.extend(self.release_effect());
    }

    /// The judge gave a verdict: anything but support is a refusal (SPEC 11).
    pub(crate) fn judged(&mut self, verdict: Verdict, usage: Option<Usage>, out: &mut Outbox) {
        let State::Judging { evidenced, .. } = self.release.clone() else {
            return;
        };
        self.ledger.charge(&self.charter.spec.budgets, self.charter.spec.judge_name(), usage);
        match verdict {
            Verdict::Supported => out.raise(Raised::SemanticsHeld(evidenced.supported())),
            Verdict::Unsupported => out.raise(Raised::SemanticsRefused(evidenced, SemanticRefusal::Unsupported)),
            Verdict::Contradicted => out.raise(Raised::SemanticsRefused(evidenced, SemanticRefusal::Contradicted)),
            Verdict::Unknown => out.raise(Raised::SemanticsRefused(evidenced, SemanticRefusal::Unavailable)),
        }
    }

    /// The judge failed: never a pass.
    pub(crate) fn judge_failed(&mut self, out: &mut Outbox) {
        if let State::Judging { evidenced, .. } = self.release.clone() {
            out.raise(Raised::SemanticsRefused(evidenced, SemanticRefusal::Unavailable));
        }
    }

    /// A draft holds: the hooks before a release hear of it, and then the gates are asked.
    pub(crate) fn verified(&mut self, verified: VerifiedDraft, out: &mut Outbox) {
        if self.hooks_at(HookPoint::BeforeRelease, None).is_empty() {
            return self.ask_release_gate(verified, 0, out);
        }
        drive::<Releasing>(&mut self.release, &Event::Verified(verified), out);
        self.consult(HookPoint::BeforeRelease, Then::AskReleaseGates, out);
    }

    /// The hooks have heard of the draft.
    pub(crate) fn ask_first_gate(&mut self, out: &mut Outbox) {
        if let State::Verified { verified } = self.release.clone() {
            self.ask_release_gate(verified, 0, out);
        }
    }

    /// A verified draft meets the release gate in that place, or is released when there is none.
    pub(crate) fn ask_release_gate(&mut self, verified: VerifiedDraft, gate: usize, out: &mut Outbox) {
        let stands = self.tools.toolbox.as_ref().is_some_and(|toolbox| toolbox.release_gates().get(gate).is_some());
        if !stands {
            return self.end(Cause::Verified(verified), out);
        }
        let ask = self.next_ask();
        let gate = u32::try_from(gate).unwrap_or(u32::MAX);
        drive::<Releasing>(&mut self.release, &Event::GateAsked { ask, gate, verified }, out);
        drive::<Run>(&mut self.run, &run::Event::Consulted, out);
        out.effects.extend(self.release_effect());
    }

    /// A release gate answered. It may only allow or block.
    pub(crate) fn release_gate_answered(&mut self, answer: &GateAnswer, out: &mut Outbox) {
        let State::Gating { gate, verified, .. } = self.release.clone() else {
            return;
        };
        match answer {
            GateAnswer::Allow => self.ask_release_gate(verified, gate as usize + 1, out),
            GateAnswer::Block { .. } => out.raise(Raised::ReleaseBlocked(self.release_gate_name(gate))),
            GateAnswer::SetResult { .. } | GateAnswer::Confirm { .. } => {
                out.raise(Raised::ExecutionFailed(crate::vocabulary::failure::Failure::CapabilityBound));
            }
        }
    }

    /// A release gate failed: it blocks.
    pub(crate) fn release_gate_failed(&mut self, out: &mut Outbox) {
        if let State::Gating { gate, .. } = self.release {
            out.raise(Raised::ReleaseBlocked(self.release_gate_name(gate)));
        }
    }

    fn release_gate_name(&self, gate: u32) -> String {
        let gates = self.tools.toolbox.as_ref().map(|toolbox| toolbox.release_gates()).unwrap_or_default();
        gates.get(gate as usize).cloned().unwrap_or_default()
    }

    /// What the release has outstanding.
    pub(crate) fn release_effect(&self) -> Option<Request> {
        match &self.release {
            State::Waiting
            | State::RepairingDraft { .. }
            | State::RepairingEvidence { .. }
            | State::Verified { .. } => None,
            State::Judging { call, attempt, evidenced } => {
                Some(Effect::JudgeSemantics { call: *call, attempt: *attempt, draft: evidenced.digest() })
            }
            State::Gating { ask, gate, verified } => Some(Effect::AskGate {
                ask: *ask,
                gate: self.release_gate_name(*gate),
                about: GateSubject::Release { draft: verified.digest() },
            }),
            State::Decided { key, .. } => self
                .ending
                .as_ref()
                .map(|(_, release)| Effect::Publish { release: release::Release::clone(release), key: *key }),
            State::Delivered { .. } => None,
        }
    }

    /// The question that a release gate has open.
    pub(crate) const fn release_ask(&self) -> Option<Ask> {
        if let State::Gating { ask, .. } = &self.release { Some(*ask) } else { None }
    }
}
