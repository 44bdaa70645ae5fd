//! The world of a script: it answers effects with reports.

use std::collections::{BTreeMap, VecDeque};

use super::Scenario;
use super::interruption::Restart;
use super::plugin_reply::{PluginReply, PluginSays};
use super::plugins::{Asked, Plugins};
use super::reply::{ModelReply, ModelSays};
use super::script::{GateReply, JudgeReply, JudgeSays};
use super::tool_call::{PersonReply, ScriptedCall};
use crate::engine::Request;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::environment::{Environment, HookPoint};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, Ticket, ToolCallId};
use crate::vocabulary::input::{Input, LiveTool};
use crate::vocabulary::llm;

/// How long a gate takes, in milliseconds.
const GATE_MS: u64 = 10;
/// How long a person takes, in milliseconds.
const PERSON_MS: u64 = 5_000;
/// Who a scripted person is.
const PERSON: &str = "a person";

/// What the world does about an effect.
#[derive(Debug)]
pub(super) enum Reaction {
    /// It reports back.
    Report { after_ms: u64, input: Input },
    /// Nothing: the effect needs no answer, or the script says that none comes.
    Silence,
    /// A person is asked about a call, and the script does not say what they answer.
    PersonNeeded { call: ToolCallId, question: String },
    /// Nobody is asked, and the script has no answer.
    Open(String),
}

/// What the script has not used up yet. An answer is lent when it is asked for, and used up when it is given:
/// what a process that died was waiting for is given to the next one.
#[derive(Debug)]
pub(super) struct World {
    environment: Environment,
    live: Option<Vec<LiveTool>>,
    unresolved: Option<ResolutionError>,
    model: VecDeque<ModelReply>,
    judge: VecDeque<JudgeReply>,
    gates: BTreeMap<String, VecDeque<GateReply>>,
    plugins: Plugins,
    receipt: Option<String>,
    /// The calls of the latest answer that has any: tools are entered for no others.
    calls: Vec<ScriptedCall>,
    lent: Lent,
    /// How many attempts of each call have been answered.
    answered: BTreeMap<ToolCallId, u32>,
}

/// Answers that are under way.
#[derive(Debug, Default)]
struct Lent {
    model: Option<ModelReply>,
    judge: Option<JudgeReply>,
    gates: BTreeMap<Ask, (String, GateReply)>,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let script = scenario.script.clone();
        Self {
            environment: scenario.environment(),
            plugins: Plugins::new(&script),
            unresolved: script.unresolved,
            model: script.model.into(),
            judge: script.judge.into(),
            gates: script.gates.into_iter().map(|(gate, replies)| (gate, replies.into())).collect(),
            receipt: script.receipt,
            calls: Vec::new(),
            live: None,
            lent: Lent::default(),
            answered: BTreeMap::new(),
        }
    }

    /// What the live tools declare.
    pub(super) fn live(&self) -> Vec<LiveTool> {
        self.live.clone().unwrap_or_else(|| Restart::default().live(&self.environment))
    }

    /// Another process finds the tools like this.
    pub(super) fn declare(&mut self, restart: Restart) {
        self.live = Some(restart.live(&self.environment));
    }

    /// A report was given: the answer behind it is used up.
    pub(super) fn settle(&mut self, report: &Input) {
        match report {
            Input::ModelResponded { .. } | Input::ModelFailed { .. } => self.lent.model = None,
            Input::SemanticsJudged { .. } | Input::SemanticsFailed { .. } => self.lent.judge = None,
            Input::GateAnswered { ask, .. } | Input::GateFailed { ask } => {
                self.lent.gates.remove(ask);
            }
            Input::HookAnswered { ask, .. } | Input::HookFailed { ask } => self.plugins.settle(*ask),
            Input::ToolCompleted { call, .. } | Input::ToolFailed { call, .. } => {
                *self.answered.entry(*call).or_default() += 1;
            }
            Input::RunStarted { .. }
            | Input::EnvironmentResolved { .. }
            | Input::ResolutionFailed { .. }
            | Input::BackoffElapsed { .. }
            | Input::ToolsDispatched { .. }
            | Input::ToolTimedOut { .. }
            | Input::NestedCallRequested { .. }
            | Input::NestedCompleted { .. }
            | Input::DecisionGiven { .. }
            | Input::TicketExpired { .. }
            | Input::CancelRequested { .. }
            | Input::DeadlineElapsed { .. }
            | Input::ExecutionCrashed { .. }
            | Input::RunRecovered { .. }
            | Input::ToolReconciled { .. }
            | Input::ReleaseDelivered { .. }
            | Input::TailRepaired { .. } => {}
        }
    }

    /// Whoever was waiting has died: what they were lent comes back.
    pub(super) fn take_back(&mut self) {
        let Lent { model, judge, gates } = std::mem::take(&mut self.lent);
        if let Some(reply) = model {
            self.model.push_front(reply);
        }
        if let Some(reply) = judge {
            self.judge.push_front(reply);
        }
        for (_, (gate, reply)) in gates.into_iter().rev() {
            self.gates.entry(gate).or_default().push_front(reply);
        }
        self.plugins.take_back();
    }

    /// The answers that nobody asked for, for people.
    pub(super) fn unused(&self) -> Vec<String> {
        let gates = self.gates.iter().map(|(gate, replies)| (format!("the gate {gate:?}"), replies.len()));
        let answers = [("the model".to_owned(), self.model.len()), ("the judge".to_owned(), self.judge.len())];
        let left = answers.into_iter().chain(gates).filter(|(_, count)| *count > 0);
        let named = left.map(|(of, count)| format!("{count} more of {of}'s answers than were asked for"));
        named.chain(self.plugins.unused()).collect()
    }

    /// Performs an effect.
    pub(super) fn perform(&mut self, effect: &Request) -> Reaction {
        match effect {
            Effect::ResolveEnvironment => self.resolve(),
            Effect::CallModel { call, attempt, purpose, .. } => match self.model.pop_front() {
                Some(reply) => self.answer(*call, *attempt, reply),
                None => Reaction::Open(format!("what does the model answer to {call}, attempt {attempt} ({purpose})?")),
            },
            Effect::AskGate { ask, gate, .. } => self.ask_gate(*ask, gate),
            Effect::DispatchTools { calls } => report(0, Input::ToolsDispatched { calls: calls.clone() }),
            Effect::InvokeTool { call, attempt, .. } => self.invoke(*call, *attempt),
            Effect::AwaitDecision { ticket, call } => self.decide(ticket, *call),
            Effect::ReconcileTool { call, .. } => self.reconcile(*call),
            Effect::JudgeSemantics { call, attempt, draft } => self.judge(*call, *attempt, *draft),
            Effect::Publish { .. } => match self.receipt.clone() {
                Some(receipt) => report(0, Input::ReleaseDelivered { receipt }),
                None => Reaction::Silence,
            },
            // Those at the run's end are told: nobody waits for an answer.
            Effect::CallHook { point: HookPoint::RunEnd, .. } => Reaction::Silence,
            Effect::CallHook { ask, point, plugin } => {
                let reply = self.plugins.ask(*ask, Asked::Hook(plugin.clone(), *point));
                plugin_answers(*ask, reply, || {
                    format!("what does the {point} hook of {plugin:?} answer to question {}?", ask.0)
                })
            }
            Effect::PerformAction { ask, action, plugin } => {
                let reply = self.plugins.ask(*ask, Asked::Action(action.clone()));
                plugin_answers(*ask, reply, || {
                    format!("how does {plugin:?} perform the action {action:?} of question {}?", ask.0)
                })
            }
            Effect::AdmitNested { nested } => Reaction::Open(format!("what becomes of the nested call {nested}?")),
            Effect::StartTimer { .. } | Effect::DenyNested { .. } | Effect::AbortInFlight => Reaction::Silence,
        }
    }

    fn resolve(&self) -> Reaction {
        let input = match &self.unresolved {
            Some(error) => Input::ResolutionFailed { error: error.clone() },
            None => Input::EnvironmentResolved { environment: Box::new(self.environment.clone()) },
        };
        report(0, input)
    }

    fn answer(&mut self, call: ModelCallId, attempt: u32, reply: ModelReply) -> Reaction {
        self.lent.model = Some(reply.clone());
        let ModelReply { says, usage, after_ms } = reply;
        let input = match says {
            ModelSays::Error(error) => Input::ModelFailed { call, attempt, error, usage },
            ModelSays::Answer { text, calls, finish } => {
                let requests = calls.iter().map(ScriptedCall::request).collect();
                if !calls.is_empty() {
                    self.calls = calls;
                }
                let content = llm::Content { text, calls: requests, opaque: None };
                Input::ModelResponded { call, attempt, content, finish, usage: usage.unwrap_or_default() }
            }
        };
        report(after_ms, input)
    }

    fn ask_gate(&mut self, ask: Ask, gate: &str) -> Reaction {
        let reply = self.gates.get_mut(gate).and_then(VecDeque::pop_front);
        if let Some(reply) = &reply {
            self.lent.gates.insert(ask, (gate.to_owned(), reply.clone()));
        }
        match reply.map(GateReply::answer) {
            Some(Some(answer)) => report(GATE_MS, Input::GateAnswered { ask, answer }),
            Some(None) => report(GATE_MS, Input::GateFailed { ask }),
            None => Reaction::Open(format!("what does the gate {gate:?} answer to question {}?", ask.0)),
        }
    }

    fn invoke(&self, call: ToolCallId, attempt: u32) -> Reaction {
        // An attempt after one that was lost is answered as that one would have been, unless the script says more.
        let unanswered = self.answered.get(&call).copied().unwrap_or(0) + 1;
        let answer =
            |scripted: &ScriptedCall| scripted.attempt(attempt).or_else(|| scripted.attempt(unanswered)).cloned();
        let Some(reply) = self.call(call).and_then(answer) else {
            let name = self.name(call);
            return Reaction::Open(format!("what does {name:?} give back to call {call}, attempt {attempt}?"));
        };
        let input = match reply.outcome {
            Ok(output) => Input::ToolCompleted { call, attempt, output },
            Err(error) => Input::ToolFailed { call, attempt, error },
        };
        report(reply.after_ms, input)
    }

    fn decide(&self, ticket: &Ticket, call: ToolCallId) -> Reaction {
        match self.call(call).and_then(|scripted| scripted.decision.clone()).map(PersonReply::decision) {
            Some(Some(decision)) => {
                let (ticket, by) = (ticket.clone(), PERSON.to_owned());
                report(PERSON_MS, Input::DecisionGiven { ticket, by, decision })
            }
            Some(None) => Reaction::Silence,
            None => Reaction::PersonNeeded {
                call,
                question: format!(
                    "{:?} ({call}) waits for a person's decision under ticket {ticket}; give the call a `decision`: \
                     \"allow\", {{\"allow_with\": {{..}}}}, {{\"deny\": \"why\"}} or \"silence\"",
                    self.name(call)
                ),
            },
        }
    }

    fn reconcile(&self, call: ToolCallId) -> Reaction {
        match self.call(call).and_then(|scripted| scripted.reconciled.clone()) {
            Some(reply) => {
                let (by, outcome) = (PERSON.to_owned(), reply.into());
                report(PERSON_MS, Input::ToolReconciled { call, by, outcome })
            }
            None => Reaction::PersonNeeded {
                call,
                question: format!(
                    "{:?} ({call}) was interrupted, and a person must find out what it did; give the call \
                     `reconciled`: {{\"applied\": {{..}}}}, \"not_applied\" or \"unknown\"",
                    self.name(call)
                ),
            },
        }
    }

    fn judge(&mut self, call: JudgeCallId, attempt: u32, draft: Digest) -> Reaction {
        let Some(reply) = self.judge.pop_front() else {
            return Reaction::Open(format!("what is the judge's verdict on {call}, attempt {attempt}?"));
        };
        self.lent.judge = Some(reply.clone());
        let JudgeReply { says, usage, after_ms } = reply;
        let input = match says {
            JudgeSays::Verdict(verdict) => Input::SemanticsJudged { call, attempt, draft, verdict, usage },
            JudgeSays::Error(error) => Input::SemanticsFailed { call, attempt, draft, error },
        };
        report(after_ms, input)
    }

    fn call(&self, id: ToolCallId) -> Option<&ScriptedCall> {
        self.calls.get(id.index as usize)
    }

    fn name(&self, id: ToolCallId) -> &str {
        self.call(id).map_or("a tool", |call| &call.tool)
    }
}

fn plugin_answers(ask: Ask, reply: Option<PluginReply>, question: impl FnOnce() -> String) -> Reaction {
    let Some(PluginReply { says, after_ms }) = reply else {
        return Reaction::Open(question());
    };
    let input = match says {
        PluginSays::Answer { commands, context } => Input::HookAnswered { ask, commands, context },
        PluginSays::Failure => Input::HookFailed { ask },
    };
    report(after_ms, input)
}

const fn report(after_ms: u64, input: Input) -> Reaction {
    Reaction::Report { after_ms, input }
}
