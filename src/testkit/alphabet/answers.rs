//! The reports that a state accepts: every answer on the menu to everything outstanding, and what may come
//! between.

use super::Report;
use crate::engine::{Engine, Request};
use crate::testkit::world::{HookReply, Menu, NestedAsk, Output, World};
use crate::vocabulary::effect::{Effect, GateSubject, TimerKind};
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::fact::Statement;
use crate::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, Ticket, ToolCallId};
use crate::vocabulary::input::{CancelOrigin, GateAnswer, Input, LiveTool, NestedKind};
use crate::vocabulary::llm::{self, Content};
use crate::vocabulary::spec::ToolSpec;
use crate::vocabulary::tool::ToolOutput;

/// What a state must accept.
#[derive(Debug, Clone)]
pub struct Acceptable {
    /// Every answer on the world's menu to what is outstanding. A run that gets nothing else must end.
    pub replies: Vec<Report>,
    /// What nothing asked for and may come all the same: a cancellation, a crash, the deadline, which carries the
    /// first reply where that comes too late, a takeover, a repair.
    pub interruptions: Vec<Report>,
}

/// Every report that the engine must accept now, in a fixed order.
#[must_use]
pub fn acceptable(engine: &Engine, world: &World) -> Acceptable {
    let outstanding = engine.outstanding();
    let replies = replies(engine, world, &outstanding);
    let interruptions = interruptions(engine, world, &outstanding, replies.first());
    Acceptable { replies, interruptions }
}

/// The same in one list: the replies, then the interruptions.
#[must_use]
pub fn answers(engine: &Engine, world: &World) -> Vec<Report> {
    let Acceptable { mut replies, interruptions } = acceptable(engine, world);
    replies.extend(interruptions);
    replies
}

fn replies(engine: &Engine, world: &World, outstanding: &[Request]) -> Vec<Report> {
    let Some(clock) = engine.decider().clock() else {
        return world.start().map(|input| vec![Report { at_ms: 0, input }]).unwrap_or_default();
    };
    let lapsed = lapsed(outstanding, clock.at_ms());
    let mut answers = Answers { at_ms: clock.at_ms(), menu: &world.menu, lapsed, reports: Vec::new() };
    for effect in outstanding {
        answers.effect(effect);
        if let Effect::InvokeTool { call, attempt, .. } = effect {
            answers.nested_requests(*attempt, engine.next_nested(*call));
        }
    }
    answers.reports
}

fn interruptions(engine: &Engine, world: &World, outstanding: &[Request], late: Option<&Report>) -> Vec<Report> {
    let decider = engine.decider();
    let Some(clock) = decider.clock() else { return Vec::new() };
    let mut reports = Vec::new();
    let mut push = |at_ms, input| reports.push(Report { at_ms, input });
    let at_ms = clock.at_ms();
    if !engine.run_state().is_terminal() {
        push(at_ms, Input::CancelRequested { by: "a person".to_owned(), origin: CancelOrigin::Caller });
        push(at_ms, Input::ExecutionCrashed { origin: "driver".to_owned() });
        if let Some(deadline_ms) = clock.deadline_ms() {
            push(deadline_ms, Input::DeadlineElapsed { displaced: None });
            late.into_iter().for_each(|late| push(deadline_ms, late.input.clone()));
        }
    }
    if decider.epoch() < world.recoveries_max && !outstanding.is_empty() {
        let epoch = decider.epoch().saturating_add(1);
        takeovers(engine, world).into_iter().for_each(|tools| push(at_ms, Input::RunRecovered { epoch, tools }));
    }
    let digest = crate::vocabulary::digest::Digest::ZERO;
    push(at_ms, Input::TailRepaired { ordinal: decider.records(), bytes: 1, digest });
    reports
}

/// With what a driver takes a run over: every tool alive as it was declared, or none.
fn takeovers(engine: &Engine, world: &World) -> Vec<Vec<LiveTool>> {
    let declared = world.menu.environments.iter().flat_map(|environment| &environment.tools);
    let live = |tool: &ToolSpec| LiveTool { name: tool.name.clone(), recovery: tool.recovery_mode() };
    let tools: Vec<LiveTool> = if engine.batch().is_some() { declared.map(live).collect() } else { Vec::new() };
    if tools.is_empty() { vec![tools] } else { vec![tools, Vec::new()] }
}

struct Answers<'a> {
    at_ms: u64,
    menu: &'a Menu,
    lapsed: Vec<String>,
    reports: Vec<Report>,
}

/// Tickets whose time is up: their expiry is due, and a decision comes too late.
pub(super) fn lapsed(outstanding: &[Request], at_ms: u64) -> Vec<String> {
    let lapsed = |effect: &Request| {
        if let Effect::StartTimer { kind: TimerKind::TicketExpiry, of, due_ms } = effect {
            (*due_ms <= at_ms).then(|| of.clone())
        } else {
            None
        }
    };
    outstanding.iter().filter_map(lapsed).collect()
}

impl Answers<'_> {
    fn push(&mut self, input: Input) {
        self.reports.push(Report { at_ms: self.at_ms, input });
    }

    fn effect(&mut self, effect: &Request) {
        match effect {
            Effect::ResolveEnvironment => self.resolution(),
            Effect::CallModel { call, attempt, .. } => self.model(*call, *attempt),
            Effect::StartTimer { kind, of, due_ms } => self.timer(*kind, of, *due_ms),
            Effect::AskGate { ask, about: GateSubject::Tool { .. } | GateSubject::Nested { .. }, .. } => {
                self.gate(*ask, &self.menu.tool_gates);
            }
            Effect::AskGate { ask, about: GateSubject::Release { .. }, .. } => {
                self.gate(*ask, &self.menu.release_gates);
            }
            Effect::DispatchTools { calls } => self.push(Input::ToolsDispatched { calls: calls.clone() }),
            Effect::InvokeTool { call, attempt, .. } => self.invocation(*call, *attempt),
            Effect::AwaitDecision { ticket, .. } => self.person(ticket),
            Effect::ReconcileTool { call, .. } => self.reconciliation(*call),
            Effect::JudgeSemantics { call, attempt, draft } => self.judge(*call, *attempt, *draft),
            Effect::Publish { .. } => self.push(Input::ReleaseDelivered { receipt: "taken".to_owned() }),
            // Nobody answers from the run's end.
            Effect::CallHook { point: HookPoint::RunEnd, .. } => {}
            Effect::CallHook { ask, .. } | Effect::PerformAction { ask, .. } => self.hook(*ask),
            Effect::AdmitNested { nested } => self.nested_completion(*nested),
            Effect::DenyNested { .. } | Effect::AbortInFlight => {}
        }
    }

    fn resolution(&mut self) {
        for environment in &self.menu.environments {
            self.push(Input::EnvironmentResolved { environment: Box::new(environment.clone()) });
        }
        for error in &self.menu.unresolved {
            self.push(Input::ResolutionFailed { error: error.clone() });
        }
    }

    fn model(&mut self, call: ModelCallId, attempt: u32) {
        let usage = self.menu.usage;
        for (text, finish) in &self.menu.drafts {
            let content = Content { text: Some(text.clone()), ..Content::default() };
            self.push(Input::ModelResponded { call, attempt, content, finish: *finish, usage });
        }
        for (calls, finish) in &self.menu.batches {
            let content = Content { calls: calls.clone(), ..Content::default() };
            self.push(Input::ModelResponded { call, attempt, content, finish: *finish, usage });
        }
        for error in &self.menu.model_errors {
            self.push(Input::ModelFailed { call, attempt, error: error.clone(), usage: None });
        }
    }

    /// A timer reports when it is due; `of` names a call and its attempt, or a ticket.
    fn timer(&mut self, kind: TimerKind, of: &str, due_ms: u64) {
        let at_ms = self.at_ms.max(due_ms);
        if let Some(input) = kind.report(of) {
            self.reports.push(Report { at_ms, input });
        }
    }

    fn gate(&mut self, ask: Ask, menu: &[GateAnswer]) {
        for answer in menu {
            self.push(Input::GateAnswered { ask, answer: answer.clone() });
        }
        self.push(Input::GateFailed { ask });
    }

    fn hook(&mut self, ask: Ask) {
        for HookReply { commands, context } in &self.menu.hooks {
            self.push(Input::HookAnswered { ask, commands: commands.clone(), context: context.clone() });
        }
        self.push(Input::HookFailed { ask });
    }

    fn invocation(&mut self, call: ToolCallId, attempt: u32) {
        for output in &self.menu.outputs {
            let output = match output {
                Output::Fresh => fresh(call),
                Output::Given(output) => output.clone(),
            };
            self.push(Input::ToolCompleted { call, attempt, output });
        }
        for error in &self.menu.tool_errors {
            self.push(Input::ToolFailed { call, attempt, error: error.clone() });
        }
    }

    /// What a running tool asks for next.
    fn nested_requests(&mut self, attempt: u32, nested: NestedCallId) {
        if nested.index >= self.menu.nested_max {
            return;
        }
        for ask in &self.menu.nested {
            let (kind, tool, arguments) = match ask {
                NestedAsk::Tool { tool, arguments } => (NestedKind::Tool, Some(tool.clone()), Some(arguments.clone())),
                NestedAsk::Model => (NestedKind::Model, None, None),
            };
            let parent = nested.parent;
            self.push(Input::NestedCallRequested { parent, attempt, nested, kind, tool, arguments });
        }
    }

    /// A nested call is over, and says what it used or not.
    fn nested_completion(&mut self, nested: NestedCallId) {
        for usage in [Some(self.menu.usage), None] {
            self.push(Input::NestedCompleted { nested, usage });
        }
    }

    fn person(&mut self, ticket: &Ticket) {
        if self.lapsed.contains(&ticket.0) {
            return;
        }
        for decision in &self.menu.decisions {
            let (ticket, decision) = (ticket.clone(), decision.clone());
            self.push(Input::DecisionGiven { ticket, by: "a person".to_owned(), decision });
        }
    }

    fn reconciliation(&mut self, call: ToolCallId) {
        for outcome in &self.menu.reconciliations {
            self.push(Input::ToolReconciled { call, by: "a person".to_owned(), outcome: outcome.clone() });
        }
    }

    fn judge(&mut self, call: JudgeCallId, attempt: u32, draft: crate::vocabulary::digest::Digest) {
        for verdict in &self.menu.verdicts {
            let usage = Some(self.menu.usage);
            self.push(Input::SemanticsJudged { call, attempt, draft, verdict: *verdict, usage });
        }
        let error = llm::Error::Timeout { message: "the judge is silent".to_owned() };
        self.push(Input::SemanticsFailed { call, attempt, draft, error });
    }
}

fn fresh(call: ToolCallId) -> ToolOutput {
    ToolOutput::facts("seen", [Statement { statement: format!("seen by {call}"), key: None }])
}
