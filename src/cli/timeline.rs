//! A run as a person watches it: when, what happened, what it has spent. Names, ids, codes and sizes only:
//! what models and tools wrote is shown when it is released, and not before (SPEC 3.U4).

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::exit::printable;
use crate::adapters::scenario::Scene;
use crate::engine::{Engine, Request, Step};
use crate::machines::ledger::Ledger;
use crate::vocabulary::effect::{Effect, GateSubject, Purpose, TimerKind};
use crate::vocabulary::environment::{Environment, HookPoint};
use crate::vocabulary::ids::{ModelCallId, ToolCallId};
use crate::vocabulary::input::{Decision, GateAnswer, Input, Reconciliation};
use crate::vocabulary::message::Message;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Budgets;
use crate::vocabulary::tool::ToolOutput;

/// Characters of a name that are shown.
const NAME_MAX: usize = 60;

/// What was shown so far, as far as later lines need it.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    tools: BTreeMap<ToolCallId, String>,
    spent: String,
    rounds: Rounds,
    /// Whether it also says what others said when they failed. That is privileged: it may hold text that was not
    /// released.
    errors: bool,
}

/// Whether rounds are set apart. A run that is watched goes line by line; a history is read as a whole.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Rounds {
    #[default]
    Together,
    Apart {
        /// How many were begun.
        begun: u32,
        /// The model call whose answer begins the next one.
        next: Option<ModelCallId>,
    },
}

impl Timeline {
    /// The timeline of a history, its rounds set apart; if so, it also says what others said when they failed.
    pub(crate) fn of_a_history(errors: bool) -> Self {
        Self { errors, rounds: Rounds::Apart { begun: 0, next: None }, ..Self::default() }
    }

    /// Shows one scene.
    pub(crate) fn show(&mut self, scene: &Scene<'_>, out: &mut impl Write) -> io::Result<()> {
        match scene {
            Scene::Stepped { engine, step } => self.step(step, engine, out),
            Scene::Refused { at_ms, report, refusal } => {
                writeln!(out, "{}  {report} comes and is refused: {refusal}", time(*at_ms))
            }
            Scene::Lost { at_ms } => {
                writeln!(out, "{}  the process dies, and what was under way is lost", time(*at_ms))
            }
        }
    }

    /// Shows one step.
    pub(crate) fn step(&mut self, step: &Step, engine: &Engine, out: &mut impl Write) -> io::Result<()> {
        for message in &step.messages {
            if let Message::Assistant { calls, .. } = &**message {
                self.tools.extend(calls.iter().map(|call| (call.call, tool_name(&call.request.name, engine))));
            }
        }
        let mut line = format!("{}  {}", time(step.at_ms), self.happened(&step.input, engine));
        let spent = spent(engine);
        if spent != self.spent {
            line.push_str(&format!("  [{spent}]"));
            self.spent = spent;
        }
        if let Some(round) = self.begun(step) {
            writeln!(out, "  round {round}")?;
        }
        writeln!(out, "{}", printable(&line))?;
        if let Some(said) = self.errors.then(|| said(&step.input)).flatten() {
            writeln!(out, "{:13}- it says: {}", "", printable(&said.replace('\n', " ")))?;
        }
        let consequences = step.signals.iter().filter_map(|signal| self.consequence(signal));
        for consequence in consequences.chain(step.effects.iter().filter_map(|effect| self.asked(effect))) {
            writeln!(out, "{:13}- {}", "", printable(&consequence))?;
        }
        Ok(())
    }

    /// What happened in a step, in one line.
    pub(crate) fn sentence(&self, step: &Step, engine: &Engine) -> String {
        self.happened(&step.input, engine)
    }

    /// The round that this step begins, with what its model call brings. Repairs belong to the round before them.
    fn begun(&mut self, step: &Step) -> Option<u32> {
        let Rounds::Apart { begun, next } = &mut self.rounds else { return None };
        let called = if let Input::ModelResponded { call, .. } | Input::ModelFailed { call, .. } = &step.input {
            next.take_if(|next| *next == *call)
        } else {
            None
        };
        *begun = begun.saturating_add(u32::from(called.is_some()));
        let opened = step.effects.iter().find_map(|effect| {
            if let Effect::CallModel { call, attempt: 1, purpose: Purpose::Step, .. } = effect {
                Some(*call)
            } else {
                None
            }
        });
        *next = opened.or(*next);
        called.map(|_| *begun)
    }

    fn called(&self, call: ToolCallId) -> String {
        self.tools.get(&call).map_or_else(|| call.to_string(), |tool| format!("{tool} ({call})"))
    }

    fn happened(&self, input: &Input, engine: &Engine) -> String {
        match input {
            Input::RunStarted { run_id, spec, .. } => format!("run {run_id} starts with {}", name(&spec.model.name)),
            Input::EnvironmentResolved { environment } => resolved(environment),
            Input::ResolutionFailed { error } => format!("resolution fails: {}", error.tag()),
            Input::ModelResponded { call, content, finish, .. } if content.calls.is_empty() => {
                let bytes = content.text.as_ref().map_or(0, String::len);
                format!("model {call} answers with a draft of {bytes} bytes ({finish})")
            }
            Input::ModelResponded { call, content, .. } => {
                let names: Vec<_> = content.calls.iter().map(|call| tool_name(&call.name, engine)).collect();
                format!("model {call} asks for {}", names.join(", "))
            }
            Input::ModelFailed { call, attempt, error, .. } => {
                format!("model {call} fails, attempt {attempt}: {}", error.code())
            }
            Input::BackoffElapsed { call, attempt } => format!("the delay is over: model {call}, attempt {attempt}"),
            Input::ToolsDispatched { calls } => {
                let calls: Vec<_> = calls.iter().map(|call| self.called(*call)).collect();
                format!("dispatched: {}", calls.join(", "))
            }
            Input::ToolCompleted { call, output, .. } => match output {
                ToolOutput::Success { content, .. } => {
                    format!("{} returns {} bytes", self.called(*call), content.len())
                }
                ToolOutput::Error { .. } => format!("{} answers with an error", self.called(*call)),
            },
            Input::ToolFailed { call, attempt, error } => {
                format!("{} fails, attempt {attempt}: {}", self.called(*call), error.tag())
            }
            Input::ToolTimedOut { call, .. } => format!("{} takes too long", self.called(*call)),
            Input::GateAnswered { ask, answer } => format!("gate question {} is answered: {}", ask.0, gate(answer)),
            Input::GateFailed { ask } => format!("gate question {} fails", ask.0),
            Input::DecisionGiven { by, decision, .. } => format!("{} decides: {}", name(by), decided(decision)),
            Input::TicketExpired { .. } => "nobody decided in time".to_owned(),
            Input::SemanticsJudged { call, verdict, .. } => format!("judge {call}: {verdict}"),
            Input::SemanticsFailed { call, error, .. } => format!("judge {call} fails: {}", error.code()),
            Input::CancelRequested { by, origin } => format!("{} cancels ({origin})", name(by)),
            Input::DeadlineElapsed { displaced: None } => "the deadline passes".to_owned(),
            Input::DeadlineElapsed { displaced: Some(late) } => {
                format!("the deadline has passed when {} comes", late.tag())
            }
            Input::ExecutionCrashed { origin } => format!("driver or port fail: {}", name(origin)),
            Input::RunRecovered { epoch, .. } => format!("another process takes the run over (epoch {epoch})"),
            Input::ToolReconciled { call, by, outcome } => {
                format!("{} finds out what {} did: {}", name(by), self.called(*call), reconciled(outcome))
            }
            Input::ReleaseDelivered { .. } => "the release is delivered".to_owned(),
            Input::HookAnswered { ask, commands, context } => {
                format!("question {} is answered: {}", ask.0, staged(commands.len(), context.is_some()))
            }
            Input::HookFailed { ask } => format!("question {} fails", ask.0),
            Input::NestedCallRequested { parent, nested, tool: Some(tool), .. } => {
                format!("{} wants to call {}: {nested}", self.called(*parent), tool_name(tool, engine))
            }
            Input::NestedCallRequested { parent, nested, tool: None, .. } => {
                format!("{} wants to ask a model: {nested}", self.called(*parent))
            }
            Input::NestedCompleted { nested, .. } => format!("nested call {nested} is over"),
            Input::TailRepaired { .. } => input.tag().to_owned(),
        }
    }

    /// What a signal means for the run; `None` where the line above says it already.
    fn consequence(&self, signal: &Signal) -> Option<String> {
        Some(match signal {
            Signal::EnvironmentRefused { error } => format!("the environment cannot be used: {error}"),
            Signal::RetryScheduled { attempt, delay_ms, .. } => format!("attempt {attempt} in {delay_ms} ms"),
            Signal::ModelReplaced { model, .. } => format!("fallback model {model} takes over"),
            Signal::CallClosed { call, code: Some(code) } => format!("{}: {code}", self.called(*call)),
            Signal::CallIndeterminate { call } => format!("nobody knows what {} did", self.called(*call)),
            Signal::NestedLost { nested } => format!("nobody knows what nested call {nested} did"),
            Signal::FactsObserved { count: 0, call, .. } => format!("no facts from {}", self.called(*call)),
            Signal::FactsObserved { call, first, count, new } => {
                let last = crate::vocabulary::ids::FactId(first.0.saturating_add(count.saturating_sub(1)));
                let ids = if count == &1 { first.to_string() } else { format!("{first} to {last}") };
                format!("{ids} observed by {}, {new} new", self.called(*call))
            }
            Signal::BudgetMarked => "the overall tool limit is met: the next model gate ends the run".to_owned(),
            Signal::BudgetUnmarked => "the tool limit is free again".to_owned(),
            Signal::BudgetExhausted { limit } => format!("the model gate finds {limit} used up"),
            Signal::ToolsWithdrawn => "tools are withdrawn: the model must answer".to_owned(),
            Signal::InformationSaturated => "nothing new is being found: collecting is saturated".to_owned(),
            Signal::StopDelivered => "the model is told to stop collecting".to_owned(),
            Signal::ProtocolViolated { in_a_row } => format!("the protocol is broken, {in_a_row} in a row"),
            Signal::ViolationLimitReached => "too many violations: the loop ends".to_owned(),
            Signal::CollectionStopped => "evidence after the stop: the loop ends".to_owned(),
            Signal::DraftCompleted { conclusion: true, .. } => "the draft is well formed".to_owned(),
            Signal::DraftCompleted { conclusion: false, .. } => "the draft concludes nothing".to_owned(),
            Signal::DraftInvalid { kind, .. } => format!("the draft is bad ({kind}) and dropped"),
            Signal::RepairAsked { of } => format!("a repair of the {of} is asked for"),
            Signal::RepairFailed { of, reason } => format!("the repair of the {of} fails: {reason}"),
            Signal::ExecutionFailed { failure } => format!("the run cannot go on: {}", failure.tag()),
            Signal::EvidenceHeld => "its evidence holds".to_owned(),
            Signal::EvidenceViolated { kind } => format!("its evidence does not hold: {kind}"),
            Signal::SemanticsHeld { judged: true } => "its semantics hold".to_owned(),
            Signal::SemanticsHeld { judged: false } => "no judge is asked: the spec switched it off".to_owned(),
            Signal::SemanticsRefused { kind } => format!("its semantics do not hold: {kind}"),
            Signal::GateBlocked { gate, of } => format!("the {of} gate {} blocks", name(gate)),
            Signal::FactsImported { count: 1 } => "1 fact of an earlier run is imported".to_owned(),
            Signal::FactsImported { count } => format!("{count} facts of earlier runs are imported"),
            Signal::BoundBroken { plugin, contribution } => {
                format!("{} goes beyond its bound: {}", name(plugin), name(contribution))
            }
            Signal::StateConflicted { scope, key, earlier, later } => {
                format!("{} and {} both write the {scope} state key {}", name(earlier), name(later), name(key))
            }
            Signal::StateCommitted { commands } => format!("{} committed", count(*commands as usize, "state command")),
            Signal::StateRolledBack { commands } => {
                format!("{} rolled back", count(*commands as usize, "state command"))
            }
            Signal::EnvironmentFixed { .. }
            | Signal::ResponseAccepted { .. }
            | Signal::BatchOpened { .. }
            | Signal::CallClosed { code: None, .. }
            | Signal::BatchClosed { .. }
            | Signal::ReleaseDecided { .. }
            | Signal::RunEnded { .. } => return None,
        })
    }

    /// A question to a gate or a person; `None` for other effects, whose answers say enough.
    fn asked(&self, effect: &Request) -> Option<String> {
        Some(match effect {
            Effect::AskGate { ask, gate, about: GateSubject::Tool { call } } => {
                format!("gate question {}: {}, about {}", ask.0, name(gate), self.called(*call))
            }
            Effect::AskGate { ask, gate, about: GateSubject::Release { .. } } => {
                format!("gate question {}: {}, about the release", ask.0, name(gate))
            }
            Effect::AskGate { ask, gate, about: GateSubject::Nested { nested } } => {
                format!("gate question {}: {}, about nested call {nested}", ask.0, name(gate))
            }
            Effect::AdmitNested { nested } => format!("nested call {nested} may begin"),
            Effect::DenyNested { nested, code } => format!("nested call {nested}: {code}"),
            Effect::AwaitDecision { ticket, call } => {
                format!("a person must decide on {}: ticket {ticket}", self.called(*call))
            }
            Effect::ReconcileTool { call, .. } => format!("a person must find out what {} did", self.called(*call)),
            Effect::CallHook { point: HookPoint::RunEnd, plugin, .. } => {
                format!("the {} hook of {} is told", HookPoint::RunEnd, name(plugin))
            }
            Effect::CallHook { ask, point, plugin } => {
                format!("question {}: the {point} hook of {}", ask.0, name(plugin))
            }
            Effect::PerformAction { ask, action, plugin } => {
                format!("question {}: {} performs {}", ask.0, name(plugin), name(action))
            }
            Effect::ResolveEnvironment
            | Effect::CallModel { .. }
            | Effect::StartTimer { .. }
            | Effect::DispatchTools { .. }
            | Effect::InvokeTool { .. }
            | Effect::JudgeSemantics { .. }
            | Effect::AbortInFlight
            | Effect::Publish { .. } => return None,
        })
    }
}

/// What a model, a judge or a tool said when it failed, or resolution. Privileged.
pub(crate) fn said(input: &Input) -> Option<String> {
    match input {
        Input::ModelFailed { error, .. } | Input::SemanticsFailed { error, .. } => Some(error.message().to_owned()),
        Input::ToolFailed { error, .. } => Some(error.message().to_owned()),
        Input::ResolutionFailed { error } => Some(error.to_string()),
        Input::ExecutionCrashed { origin } => Some(origin.clone()),
        Input::DeadlineElapsed { displaced } => displaced.as_deref().and_then(said),
        Input::RunStarted { .. }
        | Input::EnvironmentResolved { .. }
        | Input::ModelResponded { .. }
        | Input::BackoffElapsed { .. }
        | Input::ToolsDispatched { .. }
        | Input::ToolCompleted { .. }
        | Input::ToolTimedOut { .. }
        | Input::NestedCallRequested { .. }
        | Input::NestedCompleted { .. }
        | Input::GateAnswered { .. }
        | Input::GateFailed { .. }
        | Input::HookAnswered { .. }
        | Input::HookFailed { .. }
        | Input::DecisionGiven { .. }
        | Input::TicketExpired { .. }
        | Input::SemanticsJudged { .. }
        | Input::CancelRequested { .. }
        | Input::RunRecovered { .. }
        | Input::ToolReconciled { .. }
        | Input::ReleaseDelivered { .. }
        | Input::TailRepaired { .. } => None,
    }
}

/// What is under way, and what was spent, for whoever waits.
pub(crate) fn waited_for(engine: &Engine) -> String {
    let outstanding = engine.outstanding();
    let waits: Vec<String> = outstanding.iter().filter_map(|effect| wait(engine, effect)).collect();
    format!("{}  [{}]", waits.join(", "), spent(engine))
}

fn wait(engine: &Engine, effect: &Request) -> Option<String> {
    Some(match effect {
        Effect::ResolveEnvironment => "finding tools".to_owned(),
        Effect::CallModel { call, model, .. } => format!("asking {} ({call})", name(model)),
        Effect::InvokeTool { call, .. } => {
            let tool = engine.plan(*call).map_or_else(String::new, |plan| name(&plan.tool.name));
            format!("{tool} ({call})")
        }
        Effect::JudgeSemantics { call, .. } => format!("judging ({call})"),
        Effect::StartTimer { kind: TimerKind::Backoff, .. } => "waiting before the next attempt".to_owned(),
        Effect::StartTimer { .. }
        | Effect::AskGate { .. }
        | Effect::CallHook { .. }
        | Effect::PerformAction { .. }
        | Effect::DispatchTools { .. }
        | Effect::AdmitNested { .. }
        | Effect::DenyNested { .. }
        | Effect::AwaitDecision { .. }
        | Effect::ReconcileTool { .. }
        | Effect::AbortInFlight
        | Effect::Publish { .. } => return None,
    })
}

/// What was found. Plugins and hooks are counted where there are any.
fn resolved(environment: &Environment) -> String {
    let Environment { tools, gates, plugins, hooks, .. } = environment;
    let found = |number: usize, word| (number > 0).then(|| count(number, word));
    let always = [count(tools.len(), "tool"), count(gates.len(), "gate")];
    let parts: Vec<_> =
        always.into_iter().chain(found(plugins.len(), "plugin")).chain(found(hooks.len(), "hook")).collect();
    format!("resolved: {}", parts.join(", "))
}

/// What a plugin answered, without its text.
fn staged(commands: usize, context: bool) -> String {
    match (commands, context) {
        (0, false) => "nothing".to_owned(),
        (0, true) => "context".to_owned(),
        (commands, false) => count(commands, "command"),
        (commands, true) => format!("{}, context", count(commands, "command")),
    }
}

fn gate(answer: &GateAnswer) -> &'static str {
    match answer {
        GateAnswer::Allow => "allow",
        GateAnswer::Block { .. } => "block",
        GateAnswer::SetResult { .. } => "a result in the tool's place",
        GateAnswer::Confirm { .. } => "a person must decide",
    }
}

fn decided(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::AllowWith { .. } => "allow, with other arguments",
        Decision::Deny { .. } => "deny",
    }
}

fn reconciled(outcome: &Reconciliation) -> &'static str {
    match outcome {
        Reconciliation::Applied { .. } => "it happened",
        Reconciliation::NotApplied => "nothing",
        Reconciliation::Unknown => "unknown",
    }
}

fn time(at_ms: u64) -> String {
    format!("{:>5}.{:03} s", at_ms / 1_000, at_ms % 1_000)
}

fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// A name that no tool has is the model's own text.
fn tool_name(asked: &str, engine: &Engine) -> String {
    engine.tool(asked).map_or_else(|| "an unknown tool".to_owned(), |tool| name(&tool.name))
}

fn name(text: &str) -> String {
    let shown = text.replace('\n', " ");
    if shown.chars().count() <= NAME_MAX { shown } else { shown.chars().take(NAME_MAX - 3).collect::<String>() + "..." }
}

/// What the run has spent of what it may spend.
fn spent(engine: &Engine) -> String {
    let (Some(ledger), Some(spec)) = (engine.ledger(), engine.spec()) else {
        return String::new();
    };
    let Budgets { model_calls, tool_calls, total_tokens, .. } = &spec.budgets;
    let Ledger { input_tokens, output_tokens, .. } = ledger;
    let of = |limit: &Option<u64>| limit.map(|limit| format!("/{limit}")).unwrap_or_default();
    let mut spent = format!("model {}{}", ledger.model_calls, of(model_calls));
    spent.push_str(&format!(", tools {}{}", ledger.tool_calls, of(tool_calls)));
    let tokens = input_tokens.saturating_add(*output_tokens);
    if tokens > 0 || total_tokens.is_some() {
        spent.push_str(&format!(", tokens {tokens}{}", of(total_tokens)));
    }
    spent
}
