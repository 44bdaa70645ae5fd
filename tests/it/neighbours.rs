//! Rules beside their nearest wrong neighbour: each case was a change of one word in the engine that no other test
//! saw.

use portcullis::machines::collection;
use portcullis::vocabulary::effect::{Effect, TimerKind};
use portcullis::vocabulary::environment::{GateOf, HookPoint};
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::ids::{ModelCallId, NestedCallId, ToolCallId};
use portcullis::vocabulary::input::{Decision, GateAnswer, Input, LiveTool, NestedKind, Verdict};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{self, Usage};
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::{ModelSpec, Price, Spec, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, ObservationCode, Recovery, ToolError, ToolOutput};

use crate::play::{Play, act, call, conclusion, environment, gated, look, spec};

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output) }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn price(micros: u64) -> Price {
    Price { input_micros_per_million: micros, output_micros_per_million: micros }
}

/// Another driver takes over, and every tool still declares what it declared.
fn taken_over(play: &mut Play, epoch: u64, tool: &ToolSpec) {
    let tools = vec![LiveTool { name: tool.name.clone(), recovery: tool.recovery_mode() }];
    play.step(Input::RunRecovered { epoch, tools });
}

/// The attempts that are being executed.
fn attempts(play: &Play) -> Vec<(ToolCallId, u32)> {
    let entered =
        |effect| if let Effect::InvokeTool { call, attempt, .. } = effect { Some((call, attempt)) } else { None };
    play.engine.outstanding().into_iter().filter_map(entered).collect()
}

/// SPEC 7: entered again if the tool declares that mode and attempts are left, else indeterminate.
#[test]
fn a_call_without_attempts_left_is_not_entered_again_after_a_crash() {
    let tool = ToolSpec { recovery: Some(Recovery::ReplaySafe), attempts_max: 2, ..look() };
    let mut play = Play::resolved(spec(), environment(vec![tool.clone()]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    taken_over(&mut play, 1, &tool);
    assert_eq!(attempts(&play), [(call("t1.0"), 2)]);
    taken_over(&mut play, 2, &tool);
    assert_eq!(attempts(&play), []);
    let asked = |effect: &Effect<_>| matches!(effect, Effect::ReconcileTool { .. });
    assert!(play.engine.outstanding().iter().any(asked));
}

/// SPEC 6: retry attempts pass the token and cost gate too, and so does another model's.
#[test]
fn another_model_is_not_asked_once_the_tokens_are_used_up() {
    let mut spec = spec();
    spec.budgets.total_tokens = Some(20);
    spec.fallbacks = vec![ModelSpec::new("other")];
    let mut play = Play::resolved(spec, environment(vec![look()]));
    let error = llm::Error::ModelNotFound { message: String::new() };
    play.step(Input::ModelFailed { call: ModelCallId(1), attempt: 1, error, usage: Some(usage(15, 5)) });
    assert_eq!(play.row(), 14);
}

/// SPEC 8: not new when the same tool already gave the same key, whatever it says.
#[test]
fn a_known_key_with_another_statement_is_nothing_new() {
    let mut spec = spec();
    spec.collection.saturation_after = Some(1);
    let mut play = Play::resolved(spec, environment(vec![look()]));
    let said = |statement: &str, key: &str| {
        ToolOutput::facts("seen", [Statement { statement: statement.to_owned(), key: Some(key.to_owned()) }])
    };
    for (round, output) in [(1, said("it is slow", "latency")), (2, said("it is slower", "latency"))] {
        assert!(matches!(play.engine.collection(), collection::State::Collecting { .. }), "before round {round}");
        play.asks(&[("look", &format!(r#"{{"at":{round}}}"#))]);
        play.dispatch();
        play.returns(&format!("t{round}.0"), output);
    }
    assert!(matches!(play.engine.collection(), collection::State::StopDelivered { .. }));
}

/// The key of a fact whose statement is not new is remembered all the same.
#[test]
fn the_key_of_an_old_statement_is_known_from_then_on() {
    let mut spec = spec();
    spec.collection.saturation_after = Some(2);
    let mut play = Play::resolved(spec, environment(vec![look()]));
    let said = |statement: &str, key: Option<&str>| {
        ToolOutput::facts("seen", [Statement { statement: statement.to_owned(), key: key.map(str::to_owned) }])
    };
    let outputs = [said("it is slow", None), said("it is slow", Some("latency")), said("no", Some("latency"))];
    for (round, output) in (1..).zip(outputs) {
        play.asks(&[("look", &format!(r#"{{"at":{round}}}"#))]);
        play.dispatch();
        play.returns(&format!("t{round}.0"), output);
    }
    assert!(matches!(play.engine.collection(), collection::State::StopDelivered { .. }));
}

fn confirmed(tool: ToolSpec) -> ToolSpec {
    ToolSpec { confirm: true, ..tool }
}

/// SPEC 7.8: edited arguments pass 5 again.
#[test]
fn an_edit_into_a_scope_that_was_answered_is_a_duplicate() {
    let mut play = Play::resolved(spec(), environment(vec![confirmed(look())]));
    play.asks(&[("look", r#"{"at":1}"#)]);
    play.decide(Decision::Allow);
    play.dispatch();
    play.returns("t1.0", ToolOutput::text("seen"));
    play.asks(&[("look", r#"{"at":2}"#)]);
    play.decide(Decision::AllowWith { arguments: json(r#"{"at":1}"#) });
    assert_eq!(play.codes(), [None, Some(ObservationCode::DuplicateScope)]);
}

/// SPEC 7.5: denied asks do not count.
#[test]
fn an_edit_into_the_scope_of_a_denied_call_is_no_duplicate() {
    let mut play = Play::resolved(spec(), environment(vec![confirmed(look())]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
    play.decide(Decision::Deny { note: None });
    play.decide(Decision::AllowWith { arguments: json(r#"{"at":1}"#) });
    assert_eq!(play.dispatch(), [call("t1.1")]);
}

/// SPEC 7.8: that decision is their confirmation, also of arguments whose effect is unknown (7.6).
#[test]
fn an_edit_into_arguments_of_unknown_effect_is_confirmed_by_the_edit() {
    let mut play = Play::resolved(spec(), environment(vec![confirmed(act())]));
    play.asks(&[("act", r#"{"n":1}"#)]);
    play.decide(Decision::Allow);
    play.dispatch();
    play.step(Input::ToolFailed {
        call: call("t1.0"),
        attempt: 1,
        error: ToolError::Execution { message: String::new() },
    });
    play.asks(&[("act", r#"{"n":2}"#)]);
    play.decide(Decision::AllowWith { arguments: json(r#"{"n":1}"#) });
    assert_eq!(play.dispatch(), [call("t2.0")], "nobody is asked again");
}

/// Of two gates that want a person's word, the shorter time holds.
#[test]
fn a_later_gate_does_not_lengthen_a_ticket() {
    let environment = gated(vec![look()], &[("door", GateOf::Tool), ("hatch", GateOf::Tool)]);
    for (first, second) in [(Some(100), Some(500)), (Some(500), Some(100)), (Some(100), None), (None, Some(100))] {
        let mut play = Play::resolved(spec(), environment.clone());
        play.asks(&[("look", "{}")]);
        play.gate(GateAnswer::Confirm { expires_ms: first });
        play.gate(GateAnswer::Confirm { expires_ms: second });
        let expiry = |effect| match effect {
            Effect::StartTimer { kind: TimerKind::TicketExpiry, due_ms, .. } => Some(due_ms),
            _ => None,
        };
        let due: Vec<u64> = play.engine.outstanding().into_iter().filter_map(expiry).collect();
        assert_eq!(due, [100], "{first:?}, {second:?}");
    }
}

/// When the next attempt is due.
fn backoff(play: &Play) -> Option<u64> {
    play.engine.outstanding().into_iter().find_map(|effect| match effect {
        Effect::StartTimer { kind: TimerKind::Backoff, due_ms, .. } => Some(due_ms),
        _ => None,
    })
}

/// SPEC 6: the provider's wish lengthens the delay, and never shortens it.
#[test]
fn a_provider_that_asks_for_no_delay_gets_the_policys() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.fails(llm::Error::RateLimited { message: String::new(), retry_after_ms: Some(0) });
    assert!(backoff(&play).unwrap() >= 250, "{:?}", backoff(&play));
}

/// SPEC 6: the delay doubles up to its limit and no further.
#[test]
fn a_delay_never_exceeds_its_limit() {
    let mut spec = Spec { deadline_ms: None, ..spec() };
    spec.retry.retries_max = 12;
    let limit = spec.retry.delay_ms_max;
    let mut play = Play::resolved(spec, environment(vec![look()]));
    let mut longest = 0;
    for attempt in 2..=13 {
        play.fails(llm::Error::Timeout { message: String::new() });
        let due = backoff(&play).unwrap();
        longest = longest.max(due - play.at_ms);
        play.at_ms = due;
        play.step(Input::BackoffElapsed { call: ModelCallId(1), attempt });
    }
    assert!(longest <= limit && longest >= limit / 2, "{longest}");
}

/// SPEC 6: an attempt that could only begin when the run is over is not waited for.
#[test]
fn an_attempt_that_would_begin_at_the_deadline_is_given_up() {
    for (deadline_ms, waits) in [(1_000, false), (1_001, true)] {
        let mut spec = Spec { deadline_ms: Some(deadline_ms), ..spec() };
        spec.retry.base_ms = 1;
        let mut play = Play::resolved(spec, environment(vec![look()]));
        play.fails(llm::Error::RateLimited { message: String::new(), retry_after_ms: Some(1_000) });
        assert_eq!(play.is_open(), waits, "{deadline_ms}");
    }
}

/// A nested model call is charged by the price of the model that is asked now.
#[test]
fn a_nested_model_call_costs_what_the_model_in_use_costs() {
    let mut spec = spec();
    spec.fallbacks = vec![ModelSpec::new("other")];
    spec.budgets.prices = [("model".to_owned(), price(1)), ("other".to_owned(), price(1_000_000))].into();
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.fails(llm::Error::ModelNotFound { message: String::new() });
    play.asks(&[("look", "{}")]);
    play.dispatch();
    let nested = NestedCallId { parent: call("t1.0"), index: 0 };
    let (kind, tool, arguments) = (NestedKind::Model, None, None);
    play.step(Input::NestedCallRequested { parent: nested.parent, attempt: 1, nested, kind, tool, arguments });
    play.step(Input::NestedCompleted { nested, usage: Some(usage(3, 4)) });
    assert_eq!(play.engine.ledger().unwrap().cost_micros, 7);
}

/// A judgement that the deadline displaces is charged by the judge's price.
#[test]
fn a_judgement_that_came_too_late_costs_what_the_judge_costs() {
    let mut spec = spec();
    spec.release.judge_model = Some(ModelSpec::new("judge"));
    spec.budgets.prices = [("model".to_owned(), price(1)), ("judge".to_owned(), price(1_000_000))].into();
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.looks(1, "so");
    play.says(&conclusion(&["f1"]));
    let Input::SemanticsJudged { call, attempt, draft, .. } = play.judged(Verdict::Supported) else { unreachable!() };
    play.at_ms = 600_000;
    play.step(Input::SemanticsJudged { call, attempt, draft, verdict: Verdict::Supported, usage: Some(usage(3, 4)) });
    assert_eq!((play.row(), play.engine.ledger().unwrap().cost_micros), (16, 7));
}

/// SPEC 5: what plugins add for one request counts towards what the model may be shown.
#[test]
fn context_counts_towards_the_size_of_a_request() {
    for (bytes, open) in [(1, true), (4_000, false)] {
        let mut spec = spec();
        spec.limits.transcript_bytes_max = 4_000;
        let mut play = Play::resolved(spec, crate::hooks::environment(&[("p", HookPoint::RoundStart)]));
        let ask = play.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::CallHook { ask, .. } => Some(ask),
            _ => None,
        });
        let context = Some("x".repeat(bytes));
        play.step(Input::HookAnswered { ask: ask.unwrap(), commands: Vec::new(), context });
        assert_eq!(play.is_open(), open, "{bytes}");
    }
}

/// SPEC 7: the crash budget counts recoveries that saw no report since, and the end of a back-off is one.
#[test]
fn the_end_of_a_back_off_is_a_report_that_resets_the_crash_budget() {
    let mut spec = Spec { deadline_ms: None, ..spec() };
    spec.retry.retries_max = 12;
    let mut play = Play::resolved(spec, environment(vec![look()]));
    for epoch in 1..=5 {
        play.recover(epoch);
    }
    let (model, attempt) = play.model();
    play.fails(llm::Error::Timeout { message: String::new() });
    for epoch in 6..=10 {
        play.recover(epoch);
    }
    play.at_ms = backoff(&play).unwrap();
    play.step(Input::BackoffElapsed { call: model, attempt: attempt + 1 });
    play.recover(11);
    assert!(play.is_open(), "five in a row, a report, and one more");
}

/// A repair that the budget denies is not made, and nobody is told that it was asked for.
#[test]
fn a_denied_repair_is_not_announced() {
    let mut spec = spec();
    spec.budgets.model_calls = Some(1);
    spec.draft.repairs = 1;
    let mut play = Play::resolved(spec, environment(vec![look()]));
    let step = play.says(" ");
    let asked = |signal: &Signal| signal.tag() == "repair_asked";
    assert!(!step.signals.iter().any(asked), "{:?}", step.signals);
    assert_eq!(play.row(), 8);
}

/// SPEC 7.5 before 7.7, but an ask that was not admitted closes no scope.
#[test]
fn a_call_that_the_budget_denied_makes_no_duplicate_of_the_next() {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(0);
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":1}"#)]);
    let budget = Some(ObservationCode::BudgetExhausted);
    assert_eq!(play.codes(), [budget, budget]);
}

/// SPEC 7.6, checked again before each wave: everybody who repeats a call of unknown effect is asked about at once.
#[test]
fn all_calls_that_are_held_for_an_unknown_effect_are_asked_about_together() {
    let serial = ToolSpec { concurrency: Concurrency::Serial, ..act() };
    let mut play = Play::resolved(spec(), environment(vec![serial]));
    play.asks(&[("act", "{}"), ("act", "{}"), ("act", "{}")]);
    assert_eq!(play.dispatch(), [call("t1.0")]);
    let error = ToolError::Execution { message: String::new() };
    play.step(Input::ToolFailed { call: call("t1.0"), attempt: 1, error });
    let open = play.engine.outstanding().into_iter().filter(|effect| matches!(effect, Effect::AwaitDecision { .. }));
    assert_eq!(open.count(), 2);
}
