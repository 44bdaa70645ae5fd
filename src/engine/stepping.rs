//! One step: an input taken to completion (SPEC 1). All signals are drained, all effects collected.

use std::sync::Arc;

use super::admission::Objection;
use super::core::{Charter, Core, drive};
use super::form::check_written;
use super::outbox::{Outbox, Raised};
use super::table::Cause;
use crate::machines::release::{self, Releasing};
use crate::machines::run::{self, Run};
use crate::machines::schema::Schema;
use crate::machines::toolbox::Toolbox;
use crate::vocabulary::environment::Environment;
use crate::vocabulary::fact::Fact;
use crate::vocabulary::failure::{Failure, ResolutionError};
use crate::vocabulary::ids::Ask;
use crate::vocabulary::input::{GateAnswer, Input};
use crate::vocabulary::message::Message;
use crate::vocabulary::refusal::RefusalKind;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Spec;

impl Core {
    /// Begins a run. The error says what is wrong with `run_started`.
    pub(crate) fn begin(input: &Input, out: &mut Outbox) -> Result<Self, Objection> {
        let Input::RunStarted { run_id, spec, nonce, wall_time, .. } = input else {
            return Err(Objection { kind: RefusalKind::NotStarted, machine: "run", reason: None });
        };
        let data_schema = check_start(spec, nonce, wall_time).map_err(|reason| Objection {
            kind: RefusalKind::Malformed,
            machine: "run",
            reason: Some(reason),
        })?;
        let charter =
            Charter { run: run_id.clone(), nonce: nonce.clone(), spec: Arc::new(Spec::clone(spec)), data_schema };
        let mut core = Self::new(charter);
        drive::<Run>(&mut core.run, &run::Event::Started, out);
        core.open_transcript(out);
        out.effects.extend(core.outstanding());
        out.effects.extend(core.deadline_effect());
        core.seq = 1;
        Ok(core)
    }

    fn open_transcript(&mut self, out: &mut Outbox) {
        let spec = Arc::clone(&self.charter.spec);
        if !spec.instructions.is_empty() {
            self.say(Message::Instructions { text: spec.instructions.clone() }, out);
        }
        for prior in &spec.prior_messages {
            self.say(Message::Prior { by: prior.role, text: prior.text.clone() }, out);
        }
        self.say(Message::Task { text: spec.task.clone() }, out);
    }

    /// Takes an admitted input to completion.
    pub(crate) fn apply(&mut self, at_ms: u64, input: &Input, out: &mut Outbox) {
        self.clock.advance(at_ms);
        self.seq = self.seq.saturating_add(1);
        if !matches!(input, Input::RunRecovered { .. } | Input::TailRepaired { .. }) {
            self.recoveries.crashes = 0;
        }
        self.perform(input, out);
        while let Some(raised) = out.next() {
            self.route(raised, out);
        }
    }

    /// Hands an admitted input to the machine it belongs to.
    fn perform(&mut self, input: &Input, out: &mut Outbox) {
        match input {
            Input::EnvironmentResolved { environment } => self.resolved(environment, out),
            Input::ResolutionFailed { error } => self.unresolved(error, out),
            Input::ModelResponded { content, finish, usage, .. } => self.model_responded(content, *finish, *usage, out),
            Input::ModelFailed { error, usage, .. } => self.model_failed(error, *usage, out),
            Input::BackoffElapsed { .. } => self.backoff_elapsed(out),
            Input::ToolsDispatched { .. } => self.tools_dispatched(out),
            Input::ToolCompleted { call, output, .. } => self.tool_completed(*call, output, out),
            Input::ToolFailed { call, attempt, error } => self.tool_failed(*call, *attempt, error, out),
            Input::ToolTimedOut { call, .. } => self.tool_timed_out(*call, out),
            Input::GateAnswered { ask, answer } => self.gate_answered(*ask, answer, out),
            Input::GateFailed { ask } => self.gate_failed(*ask, out),
            Input::DecisionGiven { ticket, decision, .. } => {
                if let Some(call) = self.ticketed(ticket) {
                    self.decided(call, decision, out);
                }
            }
            Input::TicketExpired { ticket } => {
                if let Some(call) = self.ticketed(ticket) {
                    self.decision_expired(call, out);
                }
            }
            Input::SemanticsJudged { verdict, usage, .. } => self.judged(*verdict, *usage, out),
            Input::SemanticsFailed { .. } => self.judge_failed(out),
            Input::CancelRequested { .. } => self.end(Cause::Cancelled, out),
            Input::DeadlineElapsed { displaced } => self.deadline_elapsed(displaced.as_deref(), out),
            Input::ExecutionCrashed { .. } => out.raise(Raised::ExecutionFailed(Failure::Internal)),
            Input::RunRecovered { epoch, tools } => self.recovered(*epoch, tools, out),
            Input::ToolReconciled { call, outcome, .. } => self.reconciled(*call, outcome, out),
            Input::ReleaseDelivered { .. } => {
                drive::<Releasing>(&mut self.release, &release::Event::Delivered, out);
            }
            Input::TailRepaired { .. } => {}
            Input::HookAnswered { commands, context, .. } => self.hook_answered(commands, context.as_deref(), out),
            Input::HookFailed { .. } => Self::hook_failed(out),
            Input::NestedCallRequested { nested, tool, arguments, .. } => {
                self.nested_requested(*nested, tool.as_deref().zip(arguments.as_ref()), out);
            }
            Input::NestedCompleted { nested, usage } => self.nested_completed(*nested, *usage, out),
            Input::RunStarted { .. } => {}
        }
    }

    /// A gate answered about a call of the batch, about a nested call, or about the release.
    fn gate_answered(&mut self, ask: Ask, answer: &GateAnswer, out: &mut Outbox) {
        match (self.asking(ask), self.tools.nested.asking(ask)) {
            (Some(call), _) => self.tool_gate_answered(call, answer, out),
            (None, Some(nested)) => self.nested_gate_answered(nested, answer, out),
            (None, None) => self.release_gate_answered(answer, out),
        }
    }

    /// A gate failed: it blocks.
    fn gate_failed(&mut self, ask: Ask, out: &mut Outbox) {
        match (self.asking(ask), self.tools.nested.asking(ask)) {
            (Some(call), _) => self.tool_gate_failed(call, out),
            (None, Some(nested)) => self.nested_gate_answered(nested, &GateAnswer::Block { reason: None }, out),
            (None, None) => self.release_gate_failed(out),
        }
    }

    fn resolved(&mut self, environment: &Environment, out: &mut Outbox) {
        match Toolbox::new(self.spec(), environment.clone()) {
            Ok(toolbox) => {
                out.raise(Raised::EnvironmentFixed(toolbox.digest()));
                self.tools.toolbox = Some(Arc::new(toolbox));
                self.import_facts(out);
            }
            Err(error) => self.unresolved(&error, out),
        }
    }

    /// Facts of earlier runs are numbered before the run's own, once it is sure that the run can begin.
    fn import_facts(&mut self, out: &mut Outbox) {
        let spec = Arc::clone(&self.charter.spec);
        let facts: Vec<Arc<Fact>> = spec.prior_facts.iter().map(|prior| self.facts.import(prior)).collect();
        if !facts.is_empty() {
            out.note(Signal::FactsImported { count: self.facts.count() });
            self.say(Message::Imported { facts }, out);
        }
    }

    fn unresolved(&mut self, error: &ResolutionError, out: &mut Outbox) {
        out.note(Signal::EnvironmentRefused { error: error.clone() });
        self.end(Cause::Unresolved(error.failure()), out);
    }

    /// The deadline passed. What a displaced report says it used enters the ledger, if the report would have
    /// been accepted (SPEC 4).
    fn deadline_elapsed(&mut self, displaced: Option<&Input>, out: &mut Outbox) {
        let accepted = displaced.filter(|input| self.admit(self.clock.at_ms(), input).is_ok());
        let spec = Arc::clone(&self.charter.spec);
        let place = self.inference.request().map_or(0, |request| request.model);
        let asked = spec.model_at(place).map_or("", |model| model.name.as_str());
        let usage = match accepted {
            Some(Input::ModelResponded { usage, .. }) => Some((asked, Some(*usage))),
            Some(Input::ModelFailed { usage, .. }) => Some((asked, *usage)),
            Some(Input::SemanticsJudged { usage, .. }) => Some((spec.judge_name(), *usage)),
            // It is settled by that, so that the end does not count what it used as unknown once more.
            Some(Input::NestedCompleted { nested, usage }) => {
                self.nested_completed(*nested, *usage, out);
                None
            }
            Some(_) | None => None,
        };
        if let Some((model, usage)) = usage {
            self.ledger.charge(&spec.budgets, model, usage);
        }
        self.end(Cause::Deadline, out);
    }
}

/// Checks what a run would start with; the error is the reason. The schema of `data` comes back compiled.
pub(super) fn check_start(spec: &Spec, nonce: &str, wall_time: &str) -> Result<Option<Schema>, String> {
    if !(1..=128).contains(&nonce.len()) {
        return Err("nonce: 1 to 128 bytes".to_owned());
    }
    if wall_time.len() > 64 {
        return Err("wall_time: at most 64 bytes".to_owned());
    }
    check_written(&spec.limits, spec).map_err(|reason| format!("spec: {reason}"))?;
    spec.check().map_err(|fault| fault.to_string())?;
    let compiled = spec.draft.data_schema.as_ref().map(Schema::compile).transpose();
    compiled.map_err(|reason| format!("spec.draft.data_schema: {reason}"))
}
