//! Rounds: the model gate, the model's answers and its failures (SPEC 6).

use super::core::{Core, drive, offer};
use super::outbox::{Outbox, Raised};
use super::outstanding::Detail;
use crate::machines::collection;
use crate::machines::consultation::{Held, Then};
use crate::machines::inference::{self, Inference, Remedy, Request, remedy};
use crate::machines::run::{self, Run};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::{Effect, Purpose, TimerKind, ToolOffer};
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::ModelCallId;
use crate::vocabulary::llm::{self, Content, FinishReason, Usage};
use crate::vocabulary::message::{AssistantCall, Message, NoticeKind};
use crate::vocabulary::signal::{BudgetLimit, RepairFailure, RepairOf, Signal};

/// A model request that the budget denied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Denied(pub(crate) BudgetLimit);

impl Core {
    /// Begins the next round; at the gate the run may end, and then nobody is asked about a round that will not
    /// be (SPEC 3.13, 3.14).
    pub(crate) fn open_round(&mut self, out: &mut Outbox) {
        match self.ledger.model_gate(&self.spec().budgets) {
            Some(limit) => out.raise(Raised::BudgetExhausted(limit)),
            None => self.consult(HookPoint::RoundStart, Then::OpenRound, out),
        }
    }

    /// Asks for the round's model call.
    pub(crate) fn ask_step(&mut self, out: &mut Outbox) {
        if let Err(Denied(limit)) = self.ask_model(Purpose::Step, out) {
            out.raise(Raised::BudgetExhausted(limit));
        }
    }

    /// Asks the model, if the budget admits it.
    pub(crate) fn ask_model(&mut self, purpose: Purpose, out: &mut Outbox) -> Result<(), Denied> {
        if let Some(limit) = self.ledger.model_gate(&self.spec().budgets) {
            return Err(Denied(limit));
        }
        self.consult(HookPoint::BeforeInference, Then::CallModel(purpose), out);
        Ok(())
    }

    /// Calls the model, unless it would be shown too much.
    pub(crate) fn call_model(&mut self, purpose: Purpose, out: &mut Outbox) {
        let shown = self.transcript.bytes.saturating_add(self.context_bytes());
        if shown > self.spec().limits.transcript_bytes_max {
            let code = llm::Code::ContextOverflow;
            return out.raise(Raised::ExecutionFailed(Failure::Inference { code }));
        }
        let tools = self.offer(purpose, out);
        let delivers = matches!(self.collection, collection::State::Saturated { .. });
        let accepted = offer::<collection::Collection>(&mut self.collection, &collection::Event::ModelCalled, out);
        if accepted && delivers {
            out.note(Signal::StopDelivered);
        }
        self.ledger.model_calls = self.ledger.model_calls.saturating_add(1);
        let call = ModelCallId(u32::try_from(self.ledger.model_calls).unwrap_or(u32::MAX));
        let request = Request { call, attempt: 1, purpose, tools, model: self.model, retries: 0 };
        drive::<Inference>(&mut self.inference, &inference::Event::Asked(request), out);
        self.send_request(out);
    }

    /// Whether tools are offered. When only the reserve is left, the model is told to answer.
    fn offer(&mut self, purpose: Purpose, out: &mut Outbox) -> ToolOffer {
        if purpose != Purpose::Step {
            return ToolOffer::Withdrawn;
        }
        if !self.ledger.only_reserve_left(&self.spec().budgets) {
            return ToolOffer::Offered;
        }
        out.note(Signal::ToolsWithdrawn);
        let text = "No more tools are available. Write your answer now.".to_owned();
        self.say(Message::Notice { kind: NoticeKind::AnswerNow, text }, out);
        ToolOffer::Withdrawn
    }

    /// Sends the open attempt.
    pub(crate) fn send_request(&mut self, out: &mut Outbox) {
        self.ledger.model_attempts = self.ledger.model_attempts.saturating_add(1);
        if let Some(request) = self.inference.request() {
            let event = run::Event::ModelCalled(request.call);
            drive::<Run>(&mut self.run, &event, out);
            out.effects.extend(self.inference_effect(Detail::Whole));
        }
    }

    /// What the open request has outstanding.
    pub(crate) fn inference_effect(&self, detail: Detail) -> Option<super::outbox::Request> {
        match &self.inference {
            inference::State::Idle => None,
            inference::State::InFlight { request } => {
                let model = self.spec().model_at(request.model).map(|model| model.name.clone()).unwrap_or_default();
                Some(Effect::CallModel {
                    call: request.call,
                    attempt: request.attempt,
                    request: match detail {
                        Detail::Whole => self.request_digest(request, &model),
                        Detail::Kind => Digest::ZERO,
                    },
                    model,
                    purpose: request.purpose,
                    tools: request.tools,
                })
            }
            inference::State::BackingOff { request, until_ms } => Some(Effect::StartTimer {
                kind: TimerKind::Backoff,
                of: format!("{}/{}", request.call, request.attempt),
                due_ms: *until_ms,
            }),
        }
    }

    /// Of everything the model is shown: transcript, tools and how it is asked.
    fn request_digest(&self, request: &Request, model: &str) -> Digest {
        let environment = self.tools.toolbox.as_ref().map_or(Digest::ZERO, |toolbox| toolbox.digest());
        let context = self.context_digest();
        let parts: [&[u8]; 6] = [
            self.charter.run.as_str().as_bytes(),
            self.transcript.digest.as_bytes(),
            environment.as_bytes(),
            request.purpose.word().as_bytes(),
            request.tools.word().as_bytes(),
            model.as_bytes(),
        ];
        let context = context.as_ref().map(|digest| &digest.as_bytes()[..]);
        Digest::of("portcullis.request.1", &parts.into_iter().chain(context).collect::<Vec<_>>())
    }

    /// The model answered.
    pub(crate) fn model_responded(&mut self, content: &Content, finish: FinishReason, usage: Usage, out: &mut Outbox) {
        let Some(request) = self.inference.request().copied() else {
            return;
        };
        self.charge(&request, Some(usage));
        if finish == FinishReason::ContentFilter {
            let message = "the answer was cut by a content filter".to_owned();
            return self.settle_failure(&request, &llm::Error::ContentFiltered { message }, out);
        }
        drive::<Inference>(&mut self.inference, &inference::Event::Responded, out);
        self.context.clear();
        let calls = u32::try_from(content.calls.len()).unwrap_or(u32::MAX);
        out.note(Signal::ResponseAccepted { call: request.call, calls });
        if self.hooks_at(HookPoint::AfterInference, None).is_empty() {
            return self.read_response(content, finish, &request, out);
        }
        let held = Held { content: content.clone(), finish, request };
        self.consult(HookPoint::AfterInference, Then::ReadResponse(Box::new(held)), out);
    }

    /// Reads a response: tool calls, or a draft.
    pub(crate) fn read_response(
        &mut self,
        content: &Content,
        finish: FinishReason,
        request: &Request,
        out: &mut Outbox,
    ) {
        if content.calls.is_empty() {
            self.receive_draft(content, finish, request.purpose, out);
        } else {
            self.receive_calls(content, finish, request, out);
        }
    }

    /// Tool calls came. In the answer to a repair they are closed and the repair has failed (SPEC 10).
    fn receive_calls(&mut self, content: &Content, finish: FinishReason, request: &Request, out: &mut Outbox) {
        let repaired = match request.purpose {
            Purpose::Step => None,
            Purpose::DraftRepair => Some(RepairOf::Draft),
            Purpose::EvidenceRepair => Some(RepairOf::Evidence),
        };
        self.take_calls(content, out);
        match repaired {
            None => self.triage(&content.calls, finish, request.tools, out),
            Some(of) => {
                self.refuse_calls(&content.calls, out);
                out.raise(Raised::RepairFailed(of, RepairFailure::ToolsRequested));
            }
        }
    }

    /// Opens the next round with the calls of a response: under our ids, they stand in the transcript.
    fn take_calls(&mut self, content: &Content, out: &mut Outbox) {
        self.tools.rounds = self.tools.rounds.saturating_add(1);
        let round = self.tools.rounds;
        let calls = content.calls.iter().zip(0..).map(|(request, index)| AssistantCall {
            call: crate::vocabulary::ids::ToolCallId { round, index },
            request: request.clone(),
        });
        let calls = calls.collect();
        self.say(Message::Assistant { text: content.text.clone(), calls, opaque: content.opaque.clone() }, out);
    }

    /// The run ends while a response is held: nobody reads it any more, and each of its calls gets its closing
    /// (SPEC 13.I5).
    pub(crate) fn drop_held(&mut self, then: &Then, out: &mut Outbox) {
        let Then::ReadResponse(held) = then else { return };
        if !held.content.calls.is_empty() {
            self.take_calls(&held.content, out);
            self.refuse_calls(&held.content.calls, out);
        }
    }

    /// An attempt failed.
    pub(crate) fn model_failed(&mut self, error: &llm::Error, usage: Option<Usage>, out: &mut Outbox) {
        let Some(request) = self.inference.request().copied() else {
            return;
        };
        self.charge(&request, usage);
        self.settle_failure(&request, error, out);
    }

    fn charge(&mut self, request: &Request, usage: Option<Usage>) {
        let spec = std::sync::Arc::clone(&self.charter.spec);
        let model = spec.model_at(request.model).map_or("", |model| model.name.as_str());
        self.ledger.charge(&spec.budgets, model, usage);
    }

    /// Chooses the remedy. Another attempt passes the token and cost gate too.
    fn settle_failure(&mut self, request: &Request, error: &llm::Error, out: &mut Outbox) {
        let (at_ms, deadline_ms) = (self.clock.at_ms(), self.clock.deadline_ms());
        let remedy = remedy(self.spec(), &self.charter.nonce, request, error, at_ms, deadline_ms);
        let denied = self.ledger.attempt_gate(&self.spec().budgets);
        match (remedy, denied) {
            (Remedy::GiveUp, _) => {
                drive::<Inference>(&mut self.inference, &inference::Event::GaveUp, out);
                self.context.clear();
                out.raise(Raised::ExecutionFailed(Failure::Inference { code: error.code() }));
            }
            (Remedy::Retry { .. } | Remedy::Replace, Some(limit)) => {
                drive::<Inference>(&mut self.inference, &inference::Event::GaveUp, out);
                self.context.clear();
                match request.purpose {
                    Purpose::Step => out.raise(Raised::BudgetExhausted(limit)),
                    Purpose::DraftRepair => out.raise(Raised::RepairFailed(RepairOf::Draft, RepairFailure::Denied)),
                    Purpose::EvidenceRepair => {
                        out.raise(Raised::RepairFailed(RepairOf::Evidence, RepairFailure::Denied));
                    }
                }
            }
            (Remedy::Retry { delay_ms }, None) => {
                let until_ms = at_ms.saturating_add(delay_ms);
                drive::<Inference>(&mut self.inference, &inference::Event::RetryScheduled { until_ms }, out);
                let attempt = request.attempt.saturating_add(1);
                out.note(Signal::RetryScheduled { call: request.call, attempt, delay_ms });
                drive::<Run>(&mut self.run, &run::Event::BackedOff(request.call), out);
                out.effects.extend(self.inference_effect(Detail::Whole));
            }
            (Remedy::Replace, None) => {
                drive::<Inference>(&mut self.inference, &inference::Event::ModelReplaced, out);
                self.model = request.model.saturating_add(1);
                out.note(Signal::ModelReplaced { call: request.call, model: self.model });
                self.send_request(out);
            }
        }
    }

    /// The delay before an attempt is over.
    pub(crate) fn backoff_elapsed(&mut self, out: &mut Outbox) {
        drive::<Inference>(&mut self.inference, &inference::Event::Elapsed, out);
        self.send_request(out);
    }
}
