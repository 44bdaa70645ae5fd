//! Bugs that these suites or their authors found, each as the sequence that showed it.

use portcullis::vocabulary::environment::GateOf;
use portcullis::vocabulary::input::{Decision, GateAnswer, Input};
use portcullis::vocabulary::spec::ToolSpec;
use portcullis::vocabulary::tool::ObservationCode;

use crate::play::{Play, act, call, environment, gated, look, spec};

#[test]
fn a_gate_that_asks_a_person_lets_no_call_past_the_gates_after_it() {
    let environment = gated(vec![act()], &[("first", GateOf::Tool), ("second", GateOf::Tool)]);
    let mut play = Play::resolved(spec(), environment);
    play.asks(&[("act", "{}")]);
    play.gate(GateAnswer::Confirm { expires_ms: None });
    play.gate(GateAnswer::Block { reason: None });
    assert_eq!(play.codes(), [Some(ObservationCode::Blocked)], "and the person is not asked for nothing");
}

#[test]
fn a_person_is_asked_once_whoever_wants_it_and_the_shortest_wait_holds() {
    let environment = gated(
        vec![ToolSpec { confirm: true, confirm_expires_ms: Some(300), ..act() }],
        &[("first", GateOf::Tool), ("second", GateOf::Tool)],
    );
    let mut play = Play::resolved(spec(), environment);
    play.asks(&[("act", "{}")]);
    play.gate(GateAnswer::Confirm { expires_ms: Some(100) });
    play.gate(GateAnswer::Confirm { expires_ms: None });
    play.at_ms = 99;
    let ticket = play.ticket();
    play.decide(Decision::Allow);
    play.dispatch();
    play.at_ms = 100;
    assert_eq!(play.refused(Input::TicketExpired { ticket }).word(), "unexpected");
    assert_eq!(play.executing(), [call("t1.0")]);
}

#[test]
fn a_crash_that_meets_the_budget_mark_is_a_budget_stop_whatever_closing_gives_back() {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(1);
    let mut play = Play::resolved(spec, environment(vec![ToolSpec { confirm: true, ..look() }]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
    assert!(play.engine.ledger().unwrap().marked);
    play.step(Input::ExecutionCrashed { origin: "driver".into() });
    assert_eq!(play.row(), 14);
}
