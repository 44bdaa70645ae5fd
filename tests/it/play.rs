//! A run that is played by hand: each line of a test is one report. Refusals are checked to change nothing,
//! and the history to audit and to replay.

use portcullis::engine::{Ending, Engine, Step};
use portcullis::history::{self, Policy, Recorder};
use portcullis::testkit::audit::audit;
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::ids::{Ask, ModelCallId, Ticket, ToolCallId};
use portcullis::vocabulary::input::{CancelOrigin, Decision, GateAnswer, Input, Verdict};
use portcullis::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::message::{Message, Observation};
use portcullis::vocabulary::refusal::{Refusal, RefusalKind};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ObservationCode, ToolOutput};

pub(crate) struct Play {
    pub(crate) engine: Engine,
    pub(crate) lines: String,
    pub(crate) at_ms: u64,
    recorder: Recorder,
}

/// A spec with every default.
pub(crate) fn spec() -> Spec {
    Spec::new("find out", "model")
}

/// Looks, and only looks.
pub(crate) fn look() -> ToolSpec {
    ToolSpec::evidence("look")
}

/// Does something that must not be done twice.
pub(crate) fn act() -> ToolSpec {
    ToolSpec::new("act")
}

pub(crate) fn environment(tools: Vec<ToolSpec>) -> Environment {
    Environment { tools, ..Environment::default() }
}

pub(crate) fn gated(tools: Vec<ToolSpec>, gates: &[(&str, GateOf)]) -> Environment {
    let gates = gates.iter().map(|(id, of)| Gate { id: (*id).to_owned(), of: *of, tools: Vec::new() });
    Environment { gates: gates.collect(), ..environment(tools) }
}

/// A result with one fact.
pub(crate) fn fact(statement: &str) -> ToolOutput {
    ToolOutput::facts("seen", [Statement { statement: statement.to_owned(), key: None }])
}

pub(crate) fn call(text: &str) -> ToolCallId {
    text.parse().unwrap()
}

/// A draft that concludes from the facts it cites.
pub(crate) fn conclusion(citations: &[&str]) -> String {
    format!(r#"{{"conclusion":{{"statement":"it is so"}},"citations":{citations:?}}}"#)
}

pub(crate) fn content(text: Option<&str>, calls: &[(&str, &str)]) -> Content {
    let request = |(name, arguments): &(&str, &str)| ToolRequest {
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
        provider_id: Some("call_1".to_owned()),
    };
    Content { text: text.map(str::to_owned), calls: calls.iter().map(request).collect(), opaque: None }
}

pub(crate) fn started(run: &str, spec: Spec) -> Input {
    let (nonce, wall_time) = ("nonce".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    Input::RunStarted { run_id: run.parse().unwrap(), spec: Box::new(spec), nonce, wall_time, forked_from: None }
}

pub(crate) fn cancel() -> Input {
    Input::CancelRequested { by: "a person".to_owned(), origin: CancelOrigin::Caller }
}

impl Play {
    /// Before the first input.
    pub(crate) fn unborn() -> Self {
        Self { engine: Engine::new(), lines: String::new(), at_ms: 0, recorder: Recorder::new() }
    }

    /// A run that resolves its environment.
    pub(crate) fn started(spec: Spec) -> Self {
        let mut play = Self::unborn();
        play.step(started("played", spec));
        play
    }

    /// A run in front of its first model call's answer, or at its end.
    pub(crate) fn resolved(spec: Spec, environment: Environment) -> Self {
        let mut play = Self::started(spec);
        play.step(Input::EnvironmentResolved { environment: Box::new(environment) });
        play
    }

    /// Takes a report that must be accepted.
    pub(crate) fn step(&mut self, input: Input) -> Step {
        let step = self.engine.step(self.at_ms, input).unwrap_or_else(|refusal| panic!("{refusal}\n{}", self.told()));
        self.lines.push_str(std::str::from_utf8(self.recorder.record(&self.engine, &step)).unwrap());
        step
    }

    /// Takes a report that must be refused, twice alike, and change nothing.
    pub(crate) fn refusal(&mut self, input: Input) -> Refusal {
        let before = (self.engine.decider().state_json(), self.engine.outstanding(), self.engine.transcript().len());
        let refusal = self.engine.step(self.at_ms, input.clone()).expect_err("it was accepted");
        let again = self.engine.step(self.at_ms, input).expect_err("it was accepted the second time");
        assert_eq!(refusal, again);
        let after = (self.engine.decider().state_json(), self.engine.outstanding(), self.engine.transcript().len());
        assert_eq!(before, after);
        refusal
    }

    pub(crate) fn refused(&mut self, input: Input) -> RefusalKind {
        self.refusal(input).kind
    }

    /// The open model call and its attempt.
    pub(crate) fn model(&self) -> (ModelCallId, u32) {
        let open = self.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::CallModel { call, attempt, .. } => Some((call, attempt)),
            _ => None,
        });
        open.unwrap_or_else(|| panic!("no model call is open\n{}", self.told()))
    }

    pub(crate) fn answer(&self, content: Content, finish: FinishReason) -> Input {
        let (call, attempt) = self.model();
        Input::ModelResponded { call, attempt, content, finish, usage: Usage::default() }
    }

    /// The model answers with text.
    pub(crate) fn says(&mut self, text: &str) -> Step {
        self.step(self.answer(content(Some(text), &[]), FinishReason::Stop))
    }

    /// The model asks for tools.
    pub(crate) fn asks(&mut self, calls: &[(&str, &str)]) -> Step {
        self.step(self.answer(content(None, calls), FinishReason::ToolCalls))
    }

    /// The model request fails.
    pub(crate) fn fails(&mut self, error: llm::Error) -> Step {
        let (call, attempt) = self.model();
        self.step(Input::ModelFailed { call, attempt, error, usage: None })
    }

    /// The dispatch that is asked for is made durable.
    pub(crate) fn dispatch(&mut self) -> Vec<ToolCallId> {
        let wave = self.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::DispatchTools { calls } => Some(calls),
            _ => None,
        });
        let calls = wave.unwrap_or_else(|| panic!("no dispatch is open\n{}", self.told()));
        self.step(Input::ToolsDispatched { calls: calls.clone() });
        calls
    }

    /// A call returns from its first attempt.
    pub(crate) fn returns(&mut self, id: &str, output: ToolOutput) -> Step {
        self.step(Input::ToolCompleted { call: call(id), attempt: 1, output })
    }

    /// One whole round with one call of `look`, which brings one fact.
    pub(crate) fn looks(&mut self, at: u32, statement: &str) {
        self.asks(&[("look", &format!("{{\"at\":{at}}}"))]);
        let wave = self.dispatch();
        let id = wave.first().unwrap().to_string();
        self.returns(&id, fact(statement));
    }

    /// The question that a gate has open.
    pub(crate) fn ask(&self) -> Ask {
        let open = self.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::AskGate { ask, .. } => Some(ask),
            _ => None,
        });
        open.unwrap_or_else(|| panic!("no gate is asked\n{}", self.told()))
    }

    pub(crate) fn gate(&mut self, answer: GateAnswer) -> Step {
        let ask = self.ask();
        self.step(Input::GateAnswered { ask, answer })
    }

    /// The ticket that a person holds.
    pub(crate) fn ticket(&self) -> Ticket {
        let open = self.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::AwaitDecision { ticket, .. } => Some(ticket),
            _ => None,
        });
        open.unwrap_or_else(|| panic!("no ticket is open\n{}", self.told()))
    }

    pub(crate) fn decide(&mut self, decision: Decision) -> Step {
        let ticket = self.ticket();
        self.step(Input::DecisionGiven { ticket, by: "a person".to_owned(), decision })
    }

    pub(crate) fn judged(&self, verdict: Verdict) -> Input {
        let open = self.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::JudgeSemantics { call, attempt, draft } => {
                Some(Input::SemanticsJudged { call, attempt, draft, verdict, usage: None })
            }
            _ => None,
        });
        open.unwrap_or_else(|| panic!("no judge is asked\n{}", self.told()))
    }

    pub(crate) fn recover(&mut self, epoch: u64) -> Step {
        self.step(Input::RunRecovered { epoch, tools: Vec::new() })
    }

    /// The observations so far, in order.
    pub(crate) fn observations(&self) -> Vec<&Observation> {
        self.engine
            .transcript()
            .iter()
            .filter_map(
                |message| if let Message::Observation(observation) = &**message { Some(observation) } else { None },
            )
            .collect()
    }

    /// How each call of the transcript was closed, in order.
    pub(crate) fn codes(&self) -> Vec<Option<ObservationCode>> {
        self.observations().iter().map(|observation| observation.code).collect()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.engine.ending().is_none()
    }

    /// The calls that are being executed now.
    pub(crate) fn executing(&self) -> Vec<ToolCallId> {
        let invoked = |effect| match effect {
            Effect::InvokeTool { call, .. } => Some(call),
            _ => None,
        };
        self.engine.outstanding().into_iter().filter_map(invoked).collect()
    }

    /// The inputs so far, for people.
    fn told(&self) -> String {
        let input = |line: &str| {
            let from = line.find(r#""input":"#).unwrap_or(0);
            line[from..].chars().take(300).collect::<String>()
        };
        self.lines.lines().skip(1).map(input).collect::<Vec<_>>().join("\n")
    }

    /// The ending, after the history was audited and replayed.
    #[track_caller]
    pub(crate) fn ending(&self) -> Ending {
        let ending = self.engine.ending().unwrap_or_else(|| panic!("the run is open\n{}", self.told())).clone();
        self.check_history();
        ending
    }

    /// The row of the ending.
    #[track_caller]
    pub(crate) fn row(&self) -> u8 {
        self.ending().row
    }

    /// Audits and replays what was recorded.
    #[track_caller]
    pub(crate) fn check_history(&self) {
        if let Err(breach) = audit(self.lines.lines()) {
            panic!("{breach}\n{}", self.told());
        }
        let summary = history::replay(self.lines.as_bytes(), Policy::Stop).unwrap();
        assert_eq!(summary.divergences, Vec::new());
        assert_eq!(summary.ending.as_ref(), self.engine.ending());
        assert_eq!(summary.decider.state_json(), self.engine.decider().state_json());
    }
}
