//! Calls that a running tool makes of its own: each rule by name, limits at n-1, n and n+1, and every
//! interleaving within the limits (SPEC 6, 7).

use std::collections::BTreeMap;

use portcullis::engine::{Engine, Step};
use portcullis::machines::nested::{NESTED_MAX, State};
use portcullis::vocabulary::effect::{Effect, GateSubject};
use portcullis::vocabulary::environment::{Environment, GateOf};
use portcullis::vocabulary::ids::{NestedCallId, ToolCallId};
use portcullis::vocabulary::input::{GateAnswer, Input, LiveTool, NestedKind, Reconciliation};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::Usage;
use portcullis::vocabulary::refusal::RefusalKind::{self, Conflict, Duplicate, Malformed, Stale, Terminal, Unexpected};
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::{Price, Spec, ToolSpec};
use portcullis::vocabulary::tool::ObservationCode::{
    Blocked, BudgetExhausted, Denied, InvalidArguments, SetByGate, UnknownTool,
};
use portcullis::vocabulary::tool::{ObservationCode, Recovery, ToolError, ToolOutput};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::play::{Play, act, call, cancel, conclusion, environment, fact, gated, look, spec};

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn id(text: &str) -> NestedCallId {
    text.parse().unwrap()
}

/// A run in which `look` is being executed as `t1.0`.
fn running(spec: Spec, environment: Environment) -> Play {
    let mut play = Play::resolved(spec, environment);
    play.asks(&[("look", "{}")]);
    play.dispatch();
    play
}

fn wants(nested: &str, attempt: u32, kind: NestedKind, tool: Option<&str>, arguments: Option<Json>) -> Input {
    let nested = id(nested);
    let tool = tool.map(str::to_owned);
    Input::NestedCallRequested { parent: nested.parent, attempt, nested, kind, tool, arguments }
}

fn wants_tool(nested: &str, tool: &str, arguments: &str) -> Input {
    wants(nested, 1, NestedKind::Tool, Some(tool), Some(json(arguments)))
}

fn wants_model(nested: &str) -> Input {
    wants(nested, 1, NestedKind::Model, None, None)
}

fn completes(nested: &str, usage: Option<Usage>) -> Input {
    Input::NestedCompleted { nested: id(nested), usage }
}

const fn used(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens: Some(input_tokens), output_tokens: Some(output_tokens) }
}

/// What a step says of a nested call: it is let through, turned down with that code, or nothing yet.
fn said(step: &Step) -> Option<Result<(), ObservationCode>> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::AdmitNested { .. } => Some(Ok(())),
        Effect::DenyNested { code, .. } => Some(Err(*code)),
        _ => None,
    })
}

impl Play {
    fn spent(&self) -> (u64, u64) {
        let ledger = self.engine.ledger().unwrap();
        (ledger.model_calls, ledger.tool_calls)
    }

    fn is_marked(&self) -> bool {
        self.engine.ledger().unwrap().marked
    }

    fn unknown_effects(&self) -> u64 {
        let state: serde_json::Value = serde_json::from_str(&self.engine.decider().state_json()).unwrap();
        state["unknown_effects"].as_u64().unwrap()
    }

    fn is_open_nested(&self, nested: &str) -> bool {
        self.engine.nested(id(nested)).is_some()
    }
}

#[test]
fn a_nested_call_of_a_tool_that_is_not_there_is_an_unknown_tool() {
    let mut play = running(spec(), environment(vec![look()]));
    assert_eq!(said(&play.step(wants_tool("n1.0.0", "nobody", "{}"))), Some(Err(UnknownTool)));
    assert_eq!(play.spent(), (1, 1), "nothing is reserved for it");
    assert!(!play.is_open_nested("n1.0.0"));
}

#[test]
fn a_nested_call_whose_arguments_the_schema_refuses_has_invalid_arguments() {
    let parameters = json(r#"{"type":"object","properties":{"at":{"type":"integer"}},"required":["at"]}"#);
    let tool = ToolSpec { parameters, ..act() };
    let mut play = running(spec(), environment(vec![look(), tool]));
    assert_eq!(said(&play.step(wants_tool("n1.0.0", "act", r#"{"at":"here"}"#))), Some(Err(InvalidArguments)));
    assert_eq!(said(&play.step(wants_tool("n1.0.1", "act", "{}"))), Some(Err(InvalidArguments)));
    assert_eq!(said(&play.step(wants_tool("n1.0.2", "act", r#"{"at":1}"#))), Some(Ok(())));
    assert_eq!(play.spent(), (1, 2));
}

#[test]
fn an_admitted_nested_call_is_outstanding_until_it_completes() {
    let mut play = running(spec(), environment(vec![look(), act()]));
    let step = play.step(wants_tool("n1.0.0", "act", "{}"));
    assert_eq!(said(&step), Some(Ok(())));
    let admitted = Effect::AdmitNested { nested: id("n1.0.0") };
    assert!(play.engine.outstanding().contains(&admitted));
    let expected = play.engine.expected();
    assert!(expected.contains(&"nested_completed") && expected.contains(&"nested_call_requested"), "{expected:?}");
    let step = play.step(completes("n1.0.0", None));
    assert_eq!((step.effects, step.signals), (Vec::new(), Vec::new()));
    assert!(!play.engine.outstanding().contains(&admitted));
    play.returns("t1.0", fact("so"));
    assert_eq!(play.unknown_effects(), 0);
    play.says(&conclusion(&["f1"]));
    play.check_history();
}

#[test]
fn a_nested_call_that_repeats_an_unknown_effect_needs_a_person_and_is_denied() {
    let mut play = running(spec(), environment(vec![look(), act()]));
    play.step(wants_tool("n1.0.0", "act", "{}"));
    let step = play.returns("t1.0", fact("so"));
    assert!(step.signals.contains(&Signal::NestedLost { nested: id("n1.0.0") }));
    assert_eq!(play.unknown_effects(), 1);
    play.asks(&[("look", r#"{"again":1}"#)]);
    play.dispatch();
    assert_eq!(said(&play.step(wants_tool("n2.0.0", "act", "{}"))), Some(Err(Denied)));
    assert_eq!(play.spent(), (2, 3), "the lost one counts, the denied one does not");
    assert_eq!(said(&play.step(wants_tool("n2.0.1", "act", r#"{"to":"others"}"#))), Some(Ok(())));
}

#[test]
fn a_call_of_the_model_that_repeats_a_lost_nested_one_awaits_a_person() {
    let mut play = running(spec(), environment(vec![look(), act()]));
    play.step(wants_tool("n1.0.0", "act", "{}"));
    play.returns("t1.0", fact("so"));
    play.asks(&[("act", "{}")]);
    play.ticket();
}

#[test]
fn a_tool_limit_of_n_admits_exactly_n_with_nested_calls_at_n_minus_1_n_and_n_plus_1() {
    let limit = 3;
    let mut spec = spec();
    spec.budgets.tool_calls = Some(limit);
    let mut play = running(spec, environment(vec![look(), act()]));
    for (index, answer) in [(0, Ok(())), (1, Ok(())), (2, Err(BudgetExhausted)), (3, Err(BudgetExhausted))] {
        let step = play.step(wants_tool(&format!("n1.0.{index}"), "act", &format!(r#"{{"n":{index}}}"#)));
        assert_eq!(said(&step), Some(answer), "{index}");
        assert_eq!(step.signals.contains(&Signal::BudgetMarked), index == 2, "the first over the limit marks");
    }
    assert_eq!((play.spent(), play.is_marked()), ((1, limit), true));
    play.step(completes("n1.0.0", None));
    play.returns("t1.0", fact("so"));
    assert_eq!(play.row(), 13, "the next model gate ends the run");
}

#[test]
fn a_tool_limit_of_its_own_only_denies_the_nested_call() {
    let mut spec = spec();
    spec.budgets.tool_calls_by_tool = [("act".to_owned(), 1)].into();
    let mut play = running(spec, environment(vec![look(), act()]));
    assert_eq!(said(&play.step(wants_tool("n1.0.0", "act", "{}"))), Some(Ok(())));
    let step = play.step(wants_tool("n1.0.1", "act", r#"{"n":1}"#));
    assert_eq!(said(&step), Some(Err(BudgetExhausted)));
    assert!(!play.is_marked() && step.signals.is_empty());
    assert_eq!(said(&play.step(wants_tool("n1.0.2", "look", r#"{"n":1}"#))), Some(Ok(())));
}

fn at_the_door() -> Play {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(3);
    let door = gated(vec![look(), act()], &[("door", GateOf::Tool), ("hatch", GateOf::Tool)]);
    let mut play = Play::resolved(spec, door);
    play.asks(&[("look", "{}")]);
    play.gate(GateAnswer::Allow);
    play.gate(GateAnswer::Allow);
    play.dispatch();
    play
}

#[test]
fn gates_are_asked_about_a_nested_call_one_after_the_other() {
    let mut play = at_the_door();
    let step = play.step(wants_tool("n1.0.0", "act", "{}"));
    assert_eq!(said(&step), None, "nothing is said before the last gate");
    let about = GateSubject::Nested { nested: id("n1.0.0") };
    assert!(
        matches!(step.effects.as_slice(), [Effect::AskGate { gate, about: of, .. }] if gate == "door" && *of == about)
    );
    assert_eq!(play.spent(), (1, 2), "it is reserved meanwhile");
    let step = play.gate(GateAnswer::Allow);
    assert!(
        matches!(step.effects.as_slice(), [Effect::AskGate { gate, about: of, .. }] if gate == "hatch" && *of == about)
    );
    assert_eq!(said(&play.gate(GateAnswer::Allow)), Some(Ok(())));
    assert_eq!(play.spent(), (1, 2));
}

#[test]
fn a_gate_that_holds_a_nested_call_back_denies_it_and_gives_its_reservation_back() {
    let answers = [
        (GateAnswer::Block { reason: Some("no".to_owned()) }, Blocked),
        (GateAnswer::SetResult { content: "set".to_owned() }, SetByGate),
        (GateAnswer::Confirm { expires_ms: Some(5) }, Denied),
    ];
    for (answer, code) in answers {
        let mut play = at_the_door();
        play.step(wants_tool("n1.0.0", "act", "{}"));
        let blocked = Signal::GateBlocked { gate: "door".to_owned(), of: GateOf::Tool };
        let step = play.gate(answer);
        assert_eq!((said(&step), step.signals.contains(&blocked)), (Some(Err(code)), code == Blocked));
        assert_eq!(play.spent(), (1, 1), "{code}");
        assert_eq!(play.engine.run_state().label(), "calling_tools");
    }
    let mut play = at_the_door();
    play.step(wants_tool("n1.0.0", "act", "{}"));
    let ask = play.ask();
    assert_eq!(said(&play.step(Input::GateFailed { ask })), Some(Err(Blocked)), "a gate that fails blocks");
    assert_eq!(play.refused(Input::GateAnswered { ask, answer: GateAnswer::Allow }), Unexpected, "nobody is asked");
}

#[test]
fn a_reservation_that_a_gate_gives_back_clears_the_mark() {
    let mut play = at_the_door();
    play.step(wants_tool("n1.0.0", "act", "{}"));
    let first = play.ask();
    play.step(wants_tool("n1.0.1", "act", r#"{"n":1}"#));
    assert_eq!(said(&play.step(wants_tool("n1.0.2", "act", r#"{"n":2}"#))), Some(Err(BudgetExhausted)));
    assert!(play.is_marked());
    let step = play.step(Input::GateAnswered { ask: first, answer: GateAnswer::Block { reason: None } });
    assert!(step.signals.contains(&Signal::BudgetUnmarked) && !play.is_marked());
}

#[test]
fn a_nested_call_of_a_tool_that_a_person_confirms_is_denied_and_no_gate_is_asked() {
    let confirmed = ToolSpec { confirm: true, ..act() };
    let door = Environment {
        gates: gated(Vec::new(), &[("door", GateOf::Tool)]).gates,
        ..environment(vec![look(), confirmed])
    };
    let mut play = Play::resolved(spec(), door);
    play.asks(&[("look", "{}")]);
    play.gate(GateAnswer::Allow);
    play.dispatch();
    let step = play.step(wants_tool("n1.0.0", "act", "{}"));
    assert_eq!((said(&step), step.effects.len()), (Some(Err(Denied)), 1));
    assert_eq!(play.spent(), (1, 1));
}

#[test]
fn a_model_call_limit_of_n_admits_exactly_n_with_nested_calls() {
    let limit = 3;
    let mut spec = spec();
    spec.budgets.model_calls = Some(limit);
    let mut play = running(spec, environment(vec![look()]));
    for (index, answer) in [(0, Ok(())), (1, Ok(())), (2, Err(BudgetExhausted))] {
        let step = play.step(wants_model(&format!("n1.0.{index}")));
        assert_eq!((said(&step), step.signals), (Some(answer), Vec::new()), "{index}: no budget signal is raised");
    }
    assert_eq!((play.spent(), play.is_marked()), ((limit, 1), false));
    for index in 0..2 {
        play.step(completes(&format!("n1.0.{index}"), Some(used(3, 2))));
    }
    play.returns("t1.0", fact("so"));
    assert_eq!(play.row(), 13, "the loop's own gate ends the run");
}

#[test]
fn a_nested_model_call_is_denied_when_the_budget_is_marked() {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(1);
    let mut play = running(spec, environment(vec![look(), act()]));
    assert_eq!(said(&play.step(wants_model("n1.0.0"))), Some(Ok(())));
    play.step(wants_tool("n1.0.1", "act", "{}"));
    assert_eq!(said(&play.step(wants_model("n1.0.2"))), Some(Err(BudgetExhausted)));
}

#[test]
fn a_nested_model_call_leaves_the_reserve_for_the_answer() {
    let mut spec = spec();
    (spec.budgets.model_calls, spec.budgets.final_call_reserve) = (Some(3), 1);
    let mut play = running(spec, environment(vec![look()]));
    assert_eq!(said(&play.step(wants_model("n1.0.0"))), Some(Ok(())));
    assert_eq!(said(&play.step(wants_model("n1.0.1"))), Some(Err(BudgetExhausted)));
    play.step(completes("n1.0.0", None));
    play.returns("t1.0", fact("so"));
    assert!(play.is_open(), "the answer can still be asked for");
}

#[test]
fn what_a_nested_model_call_used_is_charged_when_it_completes() {
    let mut spec = spec();
    spec.budgets.total_tokens = Some(5);
    let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 2_000_000 };
    spec.budgets.prices = [("model".to_owned(), price)].into();
    let mut play = running(spec, environment(vec![look()]));
    let unknown = play.engine.ledger().unwrap().usage_unknown;
    play.step(wants_model("n1.0.0"));
    play.step(wants_model("n1.0.1"));
    play.step(wants_model("n1.0.2"));
    assert_eq!(play.engine.ledger().unwrap().input_tokens, 0, "nothing before it is over");
    play.step(completes("n1.0.0", Some(used(3, 1))));
    assert_eq!(said(&play.step(wants_model("n1.0.3"))), Some(Ok(())), "one token is left");
    play.step(completes("n1.0.1", Some(used(1, 0))));
    play.step(completes("n1.0.2", None));
    let ledger = play.engine.ledger().unwrap().clone();
    assert_eq!((ledger.input_tokens, ledger.output_tokens, ledger.cost_micros), (4, 1, 6));
    assert_eq!(ledger.usage_unknown, unknown + 1, "what is not said is not known");
    assert_eq!(said(&play.step(wants_model("n1.0.4"))), Some(Err(BudgetExhausted)));
    play.returns("t1.0", fact("so"));
    assert_eq!(play.engine.ledger().unwrap().usage_unknown, unknown + 2, "nor what n1.0.3 used");
    assert_eq!(play.row(), 13);
}

#[test]
fn what_breaks_the_form_of_a_nested_request_is_malformed() {
    let mut spec = spec();
    spec.limits.response_bytes_max = 64;
    let mut play = running(spec, environment(vec![look()]));
    let (tool, model) = (NestedKind::Tool, NestedKind::Model);
    let deep = (0..70).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    let malformed = [
        wants("n1.0.0", 1, tool, None, None),
        wants("n1.0.0", 1, tool, Some("look"), None),
        wants("n1.0.0", 1, tool, None, Some(json("{}"))),
        wants("n1.0.0", 1, model, Some("look"), None),
        wants("n1.0.0", 1, model, None, Some(json("{}"))),
        wants("n1.0.0", 1, tool, Some("look"), Some(deep)),
        wants("n1.0.0", 1, tool, Some("look"), Some(json(&format!("{:?}", "x".repeat(59))))),
        wants(&format!("n1.0.{NESTED_MAX}"), 1, model, None, None),
    ];
    for input in malformed {
        assert_eq!(play.refused(input.clone()), Malformed, "{input:?}");
    }
    let Input::NestedCallRequested { attempt, nested, kind, .. } = wants_model("n1.0.0") else { unreachable!() };
    let stranger =
        Input::NestedCallRequested { parent: call("t1.1"), attempt, nested, kind, tool: None, arguments: None };
    assert_eq!(play.refused(stranger), Malformed);
    let fits = wants("n1.0.0", 1, tool, Some("look"), Some(json(&format!("{:?}", "x".repeat(58)))));
    assert_eq!(said(&play.step(fits)), Some(Err(InvalidArguments)), "64 bytes are taken");
}

#[test]
fn a_tool_call_asks_for_1024_nested_calls_and_for_no_more() {
    let mut play = running(spec(), environment(vec![look()]));
    for index in 0..NESTED_MAX {
        assert!(play.engine.expected().contains(&"nested_call_requested"), "{index}");
        let input = wants_tool(&format!("n1.0.{index}"), "nobody", "{}");
        play.engine.step(0, input).unwrap_or_else(|refusal| panic!("{index}: {refusal}"));
    }
    assert_eq!(play.refused(wants_model(&format!("n1.0.{NESTED_MAX}"))), Malformed);
    assert!(!play.engine.expected().contains(&"nested_call_requested"));
}

#[test]
fn a_nested_request_fits_a_call_that_runs_with_that_attempt_and_its_next_index() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    assert_eq!(play.refused(wants_model("n1.0.0")), Unexpected, "there is no batch");
    play.asks(&[("look", "{}")]);
    assert_eq!(play.refused(wants_model("n1.0.0")), Stale, "it is not entered yet");
    play.dispatch();
    assert_eq!(play.refused(wants("n1.0.0", 2, NestedKind::Model, None, None)), Stale);
    assert_eq!(play.refused(wants_model("n1.1.0")), Stale);
    assert_eq!(play.refused(wants_model("n1.0.1")), Stale, "a gap");
    play.step(wants_model("n1.0.0"));
    assert_eq!(play.refused(wants_model("n1.0.0")), Duplicate);
    assert_eq!(play.refused(wants_tool("n1.0.0", "look", "{}")), Conflict);
    assert_eq!(play.engine.next_nested(call("t1.0")), id("n1.0.1"));
    play.step(cancel());
    assert_eq!(play.refused(wants_model("n1.0.1")), Terminal);
    assert_eq!(play.refused(completes("n1.0.0", None)), Terminal);
}

#[test]
fn a_nested_call_completes_once_and_only_when_it_was_admitted() {
    let mut play = at_the_door();
    assert_eq!(play.refused(completes("n1.0.0", None)), Stale, "nobody asked for it");
    play.step(wants_tool("n1.0.0", "act", "{}"));
    assert_eq!(play.refused(completes("n1.0.0", None)), Unexpected, "a gate is asked");
    play.gate(GateAnswer::Allow);
    play.gate(GateAnswer::Allow);
    play.step(completes("n1.0.0", None));
    assert_eq!(play.refused(completes("n1.0.0", None)), Duplicate);
    assert_eq!(play.refused(completes("n1.0.0", Some(used(1, 1)))), Conflict);
    play.step(wants_model("n1.0.1"));
    play.returns("t1.0", fact("so"));
    assert_eq!(play.refused(completes("n1.0.1", None)), Stale, "its parent is over");
}

/// Every way in which a parent can close, by name.
fn closings() -> Vec<(&'static str, Input)> {
    let (call, attempt) = (call("t1.0"), 1);
    let error = ToolError::Execution { message: String::new() };
    vec![
        ("completed", Input::ToolCompleted { call, attempt, output: fact("so") }),
        ("answered with an error", Input::ToolCompleted { call, attempt, output: ToolOutput::error("no") }),
        ("failed", Input::ToolFailed { call, attempt, error }),
        ("timed out", Input::ToolTimedOut { call, attempt }),
        ("cancelled", cancel()),
        ("crashed", Input::ExecutionCrashed { origin: String::new() }),
        ("past the deadline", Input::DeadlineElapsed { displaced: None }),
        ("lost", Input::RunRecovered { epoch: 1, tools: Vec::new() }),
    ]
}

#[test]
fn when_the_parent_closes_its_open_nested_calls_are_over() {
    for (how, closing) in closings() {
        let mut spec = spec();
        spec.budgets.tool_calls = Some(4);
        let door = Environment {
            gates: vec![portcullis::vocabulary::environment::Gate {
                id: "door".to_owned(),
                of: GateOf::Tool,
                tools: vec!["pay".to_owned()],
            }],
            ..environment(vec![look(), act(), ToolSpec::new("pay")])
        };
        let mut play = running(spec, door);
        let before = play.engine.ledger().unwrap().usage_unknown;
        play.step(wants_tool("n1.0.0", "act", "{}"));
        play.step(wants_tool("n1.0.1", "pay", "{}"));
        play.step(wants_model("n1.0.2"));
        play.step(wants_tool("n1.0.3", "act", r#"{"done":1}"#));
        play.step(completes("n1.0.3", None));
        assert_eq!(play.spent(), (2, 4), "{how}");
        play.at_ms = if matches!(closing, Input::DeadlineElapsed { .. }) { 600_000 } else { 60_000 };
        let step = play.step(closing);
        let lost: Vec<&Signal> =
            step.signals.iter().filter(|signal| matches!(signal, Signal::NestedLost { .. })).collect();
        let expected = ["n1.0.0", "n1.0.2"].map(|nested| Signal::NestedLost { nested: id(nested) });
        assert_eq!(lost, expected.iter().collect::<Vec<_>>(), "{how}");
        assert_eq!(play.spent().1, 3, "{how}: what was asked about is given back");
        assert_eq!(play.engine.ledger().unwrap().usage_unknown, before + 1, "{how}");
        assert!((0..4).all(|index| !play.is_open_nested(&format!("n1.0.{index}"))), "{how}");
        let nested = |effect: &Effect<_>| {
            matches!(effect, Effect::AdmitNested { .. } | Effect::AskGate { about: GateSubject::Nested { .. }, .. })
        };
        assert!(!play.engine.outstanding().iter().any(nested), "{how}");
        assert!(matches!(play.refused(completes("n1.0.0", None)), Stale | Terminal), "{how}");
        play.check_history();
    }
}

#[test]
fn after_a_crash_the_next_attempt_goes_on_with_new_indices() {
    let mut play = running(spec(), environment(vec![look(), act()]));
    play.step(wants_tool("n1.0.0", "act", "{}"));
    let tools = vec![LiveTool { name: "look".to_owned(), recovery: Recovery::ReplaySafe }];
    let step = play.step(Input::RunRecovered { epoch: 1, tools });
    assert!(step.signals.contains(&Signal::NestedLost { nested: id("n1.0.0") }));
    assert_eq!(play.engine.next_nested(call("t1.0")), id("n1.0.1"));
    assert_eq!(play.refused(wants("n1.0.1", 1, NestedKind::Model, None, None)), Stale, "of the lost attempt");
    let again = wants("n1.0.1", 2, NestedKind::Tool, Some("act"), Some(json("{}")));
    assert_eq!(said(&play.step(again)), Some(Err(Denied)), "its effect is unknown");
    assert_eq!(said(&play.step(wants("n1.0.2", 2, NestedKind::Model, None, None))), Some(Ok(())));
    play.step(completes("n1.0.2", None));
    play.step(Input::ToolCompleted { call: call("t1.0"), attempt: 2, output: fact("so") });
    play.says(&conclusion(&["f1"]));
    play.check_history();
}

#[test]
fn reconciling_the_parent_says_nothing_of_its_nested_calls() {
    let parent = ToolSpec { recovery: Some(Recovery::NeverReplay), ..look() };
    let mut play = running(spec(), environment(vec![parent, act()]));
    play.step(wants_tool("n1.0.0", "act", "{}"));
    play.recover(1);
    assert_eq!(play.unknown_effects(), 2);
    let outcome = Reconciliation::Applied { output: fact("so") };
    play.step(Input::ToolReconciled { call: call("t1.0"), by: "a person".into(), outcome });
    assert_eq!(play.unknown_effects(), 1, "the nested call's stays");
}

#[test]
fn an_attempt_that_proves_that_nothing_happened_ends_its_nested_calls_too() {
    let mut play = running(spec(), environment(vec![look(), act()]));
    play.step(wants_tool("n1.0.0", "act", "{}"));
    let error = ToolError::UnavailableBeforeDispatch { message: String::new() };
    let step = play.step(Input::ToolFailed { call: call("t1.0"), attempt: 1, error });
    assert!(step.signals.contains(&Signal::NestedLost { nested: id("n1.0.0") }));
    assert_eq!(play.refused(wants_model("n1.0.1")), Stale, "of the attempt that is over");
    assert_eq!(said(&play.step(wants("n1.0.1", 2, NestedKind::Model, None, None))), Some(Ok(())));
}

#[test]
fn a_completion_that_comes_after_the_deadline_is_charged_once() {
    let mut play = running(spec(), environment(vec![look()]));
    let unknown = play.engine.ledger().unwrap().usage_unknown;
    play.step(wants_model("n1.0.0"));
    play.step(wants_model("n1.0.1"));
    play.at_ms = 600_000;
    let step = play.step(completes("n1.0.0", Some(used(7, 2))));
    assert_eq!(step.input.tag(), "deadline_elapsed");
    assert_eq!(play.row(), 16);
    let ledger = play.engine.ledger().unwrap();
    assert_eq!((ledger.input_tokens, ledger.output_tokens), (7, 2));
    assert_eq!(ledger.usage_unknown, unknown + 1, "only of the one that is still open");
}

#[test]
fn a_request_that_comes_after_the_deadline_is_not_admitted() {
    let mut play = running(spec(), environment(vec![look()]));
    play.at_ms = 600_000;
    let step = play.step(wants_model("n1.0.0"));
    assert_eq!((step.input.tag(), said(&step)), ("deadline_elapsed", None));
    assert_eq!((play.row(), play.spent()), (16, (1, 1)));
}

#[test]
fn the_record_shows_nested_calls_once_there_are_any_and_stays_small_however_many() {
    let mut play = running(spec(), environment(vec![look()]));
    let shown = |play: &Play| -> serde_json::Value {
        let state: serde_json::Value = serde_json::from_str(&play.engine.decider().state_json()).unwrap();
        state.get("nested").cloned().unwrap_or_default()
    };
    assert!(shown(&play).is_null());
    play.step(wants_model("n1.0.0"));
    let before = shown(&play);
    assert_eq!(
        (&before[0]["call"], &before[0]["requested"], &before[0]["open"]),
        (&"t1.0".into(), &1.into(), &1.into())
    );
    play.step(completes("n1.0.0", None));
    assert_ne!(shown(&play)[0]["digest"], before[0]["digest"]);
    for index in 1..200 {
        play.step(wants_tool(&format!("n1.0.{index}"), "nobody", "{}"));
    }
    assert!(shown(&play).to_string().len() < 200);
    play.returns("t1.0", fact("so"));
    assert!(shown(&play).is_null(), "the batch is over");
    play.check_history();
}

#[test]
fn a_redacted_export_keeps_what_nested_calls_are_and_not_what_they_carry() {
    use portcullis::history::redaction::Redactor;
    use portcullis::history::{Lines, Next};
    let mut play = at_the_door();
    play.step(wants_tool("n1.0.0", "act", r#"{"secret":"hush"}"#));
    play.gate(GateAnswer::Block { reason: Some("hush".to_owned()) });
    let (mut lines, mut redactor, mut export) = (Lines::new(play.lines.as_bytes()), Redactor::new(), Vec::new());
    while let Next::Line(line) = lines.next_line().unwrap() {
        export.extend_from_slice(redactor.redact(line).unwrap());
    }
    let export = String::from_utf8(export).unwrap();
    assert!(!export.contains("hush"));
    for kept in [
        r#""nested":[{"call":"t1.0","requested":1,"open":1,"#,
        r#""about":{"type":"nested","nested":"n1.0.0"}"#,
        r#"{"type":"deny_nested","nested":"n1.0.0","code":"BLOCKED"}"#,
    ] {
        assert!(export.contains(kept), "{kept}\n{export}");
    }
}

/// What happens next in an interleaving.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// One of the two running calls asks, for a tool, for a tool behind a gate, or for a model.
    Asks { parent: u32, what: u8 },
    /// An open gate answers.
    Answers { nth: usize, allows: bool },
    /// An admitted call completes.
    Completes { nth: usize },
    /// One of the two running calls returns, if it still runs.
    Returns { parent: u32 },
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        6 => (0..2u32, 0..3u8).prop_map(|(parent, what)| Turn::Asks { parent, what }),
        3 => (0..8usize, any::<bool>()).prop_map(|(nth, allows)| Turn::Answers { nth, allows }),
        3 => (0..8usize).prop_map(|nth| Turn::Completes { nth }),
        1 => (0..2u32).prop_map(|parent| Turn::Returns { parent }),
    ]
}

/// The report of that turn, if anything fits it.
fn report(engine: &Engine, turn: Turn, n: usize) -> Option<Input> {
    let outstanding = engine.outstanding();
    let parent = |index| ToolCallId { round: 1, index };
    match turn {
        Turn::Asks { parent: index, what } => {
            let nested = engine.next_nested(parent(index));
            let (kind, tool) = match what {
                0 => (NestedKind::Tool, Some("act")),
                1 => (NestedKind::Tool, Some("pay")),
                _ => (NestedKind::Model, None),
            };
            let arguments = tool.map(|_| json(&format!(r#"{{"n":{n}}}"#)));
            let tool = tool.map(str::to_owned);
            Some(Input::NestedCallRequested { parent: parent(index), attempt: 1, nested, kind, tool, arguments })
        }
        Turn::Answers { nth, allows } => {
            let asks = |effect: &Effect<_>| if let Effect::AskGate { ask, .. } = effect { Some(*ask) } else { None };
            let asked: Vec<_> = outstanding.iter().filter_map(asks).collect();
            let answer = if allows { GateAnswer::Allow } else { GateAnswer::Block { reason: None } };
            let ask = asked.get(nth % asked.len().max(1)).copied()?;
            Some(Input::GateAnswered { ask, answer })
        }
        Turn::Completes { nth } => {
            let admitted =
                |effect: &Effect<_>| if let Effect::AdmitNested { nested } = effect { Some(*nested) } else { None };
            let open: Vec<_> = outstanding.iter().filter_map(admitted).collect();
            let nested = open.get(nth % open.len().max(1)).copied()?;
            Some(Input::NestedCompleted { nested, usage: Some(used(2, 1)) })
        }
        Turn::Returns { parent: index } => {
            Some(Input::ToolCompleted { call: parent(index), attempt: 1, output: fact(&format!("fact {index}")) })
        }
    }
}

/// Takes the turns, and counts by hand what is admitted or reserved.
fn interleave(limit: u64, model_limit: u64, turns: &[Turn]) -> TestCaseResult {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(limit);
    spec.budgets.model_calls = Some(model_limit);
    spec.budgets.tool_calls_by_tool = [("pay".to_owned(), 2)].into();
    let gate = portcullis::vocabulary::environment::Gate {
        id: "door".to_owned(),
        of: GateOf::Tool,
        tools: vec!["pay".to_owned()],
    };
    let gates = vec![gate];
    let mut play =
        Play::resolved(spec, Environment { gates, ..environment(vec![look(), act(), ToolSpec::new("pay")]) });
    play.asks(&[("look", r#"{"n":1}"#), ("look", r#"{"n":2}"#)]);
    play.dispatch();
    let mut admitted = BTreeMap::from([("tool", 2u64), ("model", 1)]);
    for (turn, n) in turns.iter().zip(0..) {
        let Some(input) = report(&play.engine, *turn, n).filter(|_| play.is_open()) else { continue };
        let Ok(step) = play.engine.step(0, input.clone()) else { continue };
        let of_model = |nested: &NestedCallId| play.engine.nested(*nested).is_some_and(|open| open.plan.is_none());
        for effect in &step.effects {
            if let Effect::AdmitNested { nested } = effect {
                *admitted.entry(if of_model(nested) { "model" } else { "tool" }).or_default() += 1;
            }
        }
        let asking = |effect: &&Effect<_>| matches!(effect, Effect::AskGate { .. });
        let reserved = play.engine.outstanding().iter().filter(asking).count() as u64;
        let ledger = play.engine.ledger().unwrap();
        prop_assert!(admitted["tool"] <= limit && ledger.tool_calls <= limit, "13.I4: {input:?}");
        prop_assert!(admitted["model"] <= model_limit, "13.I4: {input:?}");
        prop_assert!(ledger.tool_calls_by_tool.get("pay").is_none_or(|count| *count <= 2), "13.I4: {input:?}");
        prop_assert_eq!(ledger.tool_calls, admitted["tool"] + reserved, "what is counted is what was admitted");
        prop_assert_eq!(play.engine.decider().violations(), Vec::new());
        if step.effects.iter().any(|effect| matches!(effect, Effect::CallModel { .. })) {
            *admitted.entry("model").or_default() += 1;
        }
        prop_assert_eq!(ledger.model_calls, admitted["model"]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_of_nested_calls_admits_more_than_the_limits(
        limit in 2..8u64,
        model_limit in 1..6u64,
        turns in proptest::collection::vec(turn(), 1..60),
    ) {
        interleave(limit, model_limit, &turns)?;
    }
}

#[test]
fn a_refused_request_is_stale_for_every_call_of_the_batch_that_does_not_run() {
    let mut play = Play::resolved(spec(), environment(vec![look(), ToolSpec { confirm: true, ..act() }]));
    play.asks(&[("look", "{}"), ("nobody", "{}")]);
    play.dispatch();
    let kinds: Vec<RefusalKind> = ["n1.1.0", "n2.0.0"].map(|nested| play.refused(wants_model(nested))).to_vec();
    assert_eq!(kinds, [Stale, Stale]);
    play.step(wants_model("n1.0.0"));
    assert_eq!(play.engine.nested(id("n1.0.0")).unwrap().phase, State::Admitted);
}
