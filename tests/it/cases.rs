//! Failures that users of other agent runtimes reported, each as a sequence with its right ending. A test is
//! named after its case; where a kind of failure has more faces, they stand below it.

use std::sync::Arc;

use portcullis::history::{self, FaultCode, Policy};
use portcullis::vocabulary::draft::DraftFault;
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::failure::Failure;
use portcullis::vocabulary::input::{Decision, Input, LiveTool, Reconciliation};
use portcullis::vocabulary::llm::{self, FinishReason};
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::outcome::{FailureCode, FallbackType, ReleaseOutcome, RunStatus};
use portcullis::vocabulary::refusal::RefusalKind::{Conflict, Duplicate, Terminal};
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::{JudgePolicy, PriorMessage, PriorRole, Spec, ToolSpec};
use portcullis::vocabulary::tool::{ObservationCode, Recovery, ToolOutput};

use crate::play::{Play, act, call, cancel, conclusion, content, environment, fact, look, spec};

fn capped(model_calls: u64) -> Spec {
    let mut spec = spec();
    spec.budgets.model_calls = Some(model_calls);
    spec.collection.saturation_after = None;
    spec.release.judge = JudgePolicy::Off;
    spec
}

fn unjudged() -> Spec {
    capped(16)
}

/// The model asks for a tool in every answer that it is given.
fn keeps_looking(model_calls: u64) -> Play {
    let mut play = Play::resolved(capped(model_calls), environment(vec![look()]));
    let mut at = 0;
    while play.is_open() {
        at += 1;
        play.looks(at, &format!("seen {at}"));
    }
    play
}

#[test]
fn limit_answers_with_apology() {
    for cap in [0, 1, 9, 10, 11] {
        let play = keeps_looking(cap);
        let ending = play.ending();
        assert_eq!(play.engine.ledger().unwrap().model_calls, cap);
        assert_eq!(ending.row, if cap == 0 { 14 } else { 13 }, "cap {cap}");
        assert_eq!(ending.run_state, RunStatus::BudgetExhausted);
        assert_eq!(u64::from(ending.facts), cap, "the tools of the last paid round ran");
        let said = |message: &&Arc<Message>| matches!(&***message, Message::Assistant { text: Some(_), .. });
        assert_eq!(play.engine.transcript().iter().filter(said).count(), 0, "nobody wrote an answer for the model");
    }
}

#[test]
fn limit_answers_with_apology_not_when_the_last_call_answers() {
    let mut play = Play::resolved(capped(2), environment(vec![look()]));
    play.looks(1, "so");
    play.says(&conclusion(&["f1"]));
    assert_eq!(play.row(), 1, "the last admitted call may still answer");
    assert_eq!(play.engine.ledger().unwrap().model_calls, 2);
}

#[test]
fn batch_overruns_tool_cap() {
    for (cap, asked) in [(6, 8), (6, 5), (6, 6), (6, 7), (0, 2), (1, 2)] {
        let mut spec = unjudged();
        spec.budgets.tool_calls = Some(cap);
        let mut play = Play::resolved(spec, environment(vec![look()]));
        let arguments: Vec<String> = (0..asked).map(|at| format!("{{\"at\":{at}}}")).collect();
        let calls: Vec<(&str, &str)> = arguments.iter().map(|arguments| ("look", arguments.as_str())).collect();
        let step = play.asks(&calls);
        let denied = |signal: &&Signal| {
            matches!(signal, Signal::CallClosed { code: Some(ObservationCode::BudgetExhausted), .. })
        };
        let admitted = asked.min(cap);
        assert_eq!(step.signals.iter().filter(denied).count() as u64, asked - admitted, "before any dispatch");
        assert_eq!(play.engine.ledger().unwrap().tool_calls, admitted);
        if admitted > 0 {
            assert_eq!(play.dispatch().len() as u64, admitted);
            for index in 0..admitted {
                play.returns(&format!("t1.{index}"), fact(&format!("seen {index}")));
            }
        }
        if asked > cap {
            assert_eq!(play.row(), if cap == 0 { 14 } else { 13 }, "the mark ends the run at the next gate");
        } else {
            assert!(play.is_open(), "no call met the limit");
        }
    }
}

#[test]
fn parallel_undercount() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let play = |order: [usize; 3]| {
        let mut play = Play::resolved(unjudged(), environment(vec![look()]));
        play.asks(&[("look", r#"{"at":0}"#), ("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
        play.dispatch();
        for index in order {
            play.returns(&format!("t1.{index}"), fact(&format!("seen {index}")));
        }
        assert_eq!(play.engine.ledger().unwrap().tool_calls, 3);
        (play.engine.facts(), play.engine.transcript().to_vec())
    };
    let first = play(orders[0]);
    for order in orders {
        assert_eq!(play(order), first, "{order:?}");
    }
}

#[test]
fn last_round_is_tools() {
    let mut play = Play::resolved(capped(1), environment(vec![look(), act()]));
    play.asks(&[("look", "{}"), ("act", "{}")]);
    play.dispatch();
    play.returns("t1.1", ToolOutput::text("done"));
    assert!(play.is_open(), "the calls of the last paid response run");
    play.returns("t1.0", fact("so"));
    let ending = play.ending();
    assert_eq!((ending.row, ending.facts, ending.outcome), (13, 1, ReleaseOutcome::Fallback));

    let mut nothing = Play::resolved(capped(1), environment(vec![act()]));
    nothing.asks(&[("act", "{}")]);
    nothing.dispatch();
    nothing.returns("t1.0", ToolOutput::text("done"));
    assert_eq!(nothing.row(), 14, "nothing observed, no success");
}

#[test]
fn limit_lands_on_tool_call() {
    type End = fn(&mut Play);
    let ends: [(u8, End); 3] = [
        (15, |play| drop(play.step(cancel()))),
        (16, |play| {
            play.at_ms = 600_000;
            play.step(Input::DeadlineElapsed { displaced: None });
        }),
        (17, |play| drop(play.step(Input::ExecutionCrashed { origin: "driver".into() }))),
    ];
    for (row, end) in ends {
        let serial = ToolSpec { concurrency: portcullis::vocabulary::tool::Concurrency::Serial, ..act() };
        let mut play = Play::resolved(unjudged(), environment(vec![look(), serial]));
        play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#), ("act", "{}"), ("nobody", "{}")]);
        play.dispatch();
        play.returns("t1.0", fact("so"));
        end(&mut play);
        let ending = play.ending();
        assert_eq!((ending.row, ending.facts), (row, 1), "what was observed is published");
        let unknown = Some(ObservationCode::OutcomeUnknown);
        let codes = [None, unknown, Some(ObservationCode::NotDispatched), Some(ObservationCode::UnknownTool)];
        assert_eq!(play.codes(), codes, "one closing observation each");
    }
}

#[test]
fn cancel_during_tool() {
    let serial = ToolSpec { concurrency: portcullis::vocabulary::tool::Concurrency::Serial, ..look() };
    let mut play = Play::resolved(unjudged(), environment(vec![serial]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
    assert_eq!(play.dispatch().len(), 1);
    let step = play.step(cancel());
    assert!(step.signals.contains(&Signal::CallIndeterminate { call: call("t1.0") }), "not shown as plain failure");
    assert!(step.effects.contains(&Effect::AbortInFlight));
    let ending = play.ending();
    assert_eq!((ending.row, ending.failure_code), (15, Some(FailureCode::RunCancelled)));
    assert_eq!(play.codes(), [Some(ObservationCode::OutcomeUnknown), Some(ObservationCode::NotDispatched)]);
    assert_eq!(play.engine.ledger().unwrap().tool_calls, 1, "what was not dispatched is given back");
}

#[test]
fn crash_after_two_of_three() {
    let tools =
        ["a", "b", "c"].map(|name| ToolSpec { recovery: Some(Recovery::NeverReplay), ..ToolSpec::evidence(name) });
    let mut play = Play::resolved(unjudged(), environment(tools.to_vec()));
    play.asks(&[("a", "{}"), ("b", "{}"), ("c", "{}")]);
    play.dispatch();
    play.returns("t1.0", fact("a"));
    play.returns("t1.1", fact("b"));
    let step = play.recover(1);
    let uncertain: Vec<_> =
        step.signals.iter().filter(|signal| matches!(signal, Signal::CallIndeterminate { .. })).collect();
    assert_eq!(uncertain, [&Signal::CallIndeterminate { call: call("t1.2") }], "only the one that was executing");
    assert!(play.executing().is_empty(), "nothing is entered again");
    let outcome = Reconciliation::Applied { output: fact("c") };
    play.step(Input::ToolReconciled { call: call("t1.2"), by: "a person".into(), outcome });
    assert_eq!(play.codes(), [None, None, None]);
    assert_eq!(play.engine.facts().len(), 3);
}

#[test]
fn provider_ids_repeat() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.looks(1, "so");
    play.looks(2, "and so");
    let ids: Vec<_> = play.observations().iter().map(|observation| observation.call).collect();
    assert_eq!(ids, [call("t1.0"), call("t2.0")], "both calls live, under ids of ours");
    play.asks(&[("look", r#"{"at":3}"#), ("look", r#"{"at":4}"#)]);
    assert_eq!(play.dispatch().len(), 2, "also within one response");
}

#[test]
fn cancel_then_completion() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    play.step(cancel());
    let ending = play.ending();
    let late = Input::ToolCompleted { call: call("t1.0"), attempt: 1, output: fact("late") };
    assert_eq!(play.refused(late), Terminal);
    assert_eq!((play.ending(), ending.row), (ending.clone(), 15));
}

#[test]
fn answer_after_timeout() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.looks(1, "so");
    let late = play.answer(content(Some(&conclusion(&["f1"])), &[]), FinishReason::Stop);
    play.at_ms = 600_000;
    play.step(Input::DeadlineElapsed { displaced: None });
    let ending = play.ending();
    play.at_ms = 660_000;
    assert_eq!(play.refused(late), Terminal);
    assert_eq!((play.ending(), ending.row, ending.outcome), (ending.clone(), 16, ReleaseOutcome::Failed));
}

#[test]
fn answer_after_timeout_also_when_the_answer_itself_shows_it() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.looks(1, "so");
    play.at_ms = 600_000;
    let late = play.answer(content(Some(&conclusion(&["f1"])), &[]), FinishReason::Stop);
    let step = play.step(late.clone());
    assert_eq!(step.input, Input::DeadlineElapsed { displaced: Some(Box::new(late)) });
    assert_eq!(play.row(), 16);
}

#[test]
fn crash_between_effect_and_result() {
    let mut play = Play::resolved(unjudged(), environment(vec![ToolSpec { confirm: true, ..act() }]));
    play.asks(&[("act", "{}")]);
    play.decide(Decision::Allow);
    play.dispatch();
    let tools = vec![LiveTool { name: "act".into(), recovery: Recovery::NeverReplay }];
    play.step(Input::RunRecovered { epoch: 1, tools });
    assert!(play.executing().is_empty(), "not entered again under the old approval");
    let waits = play.engine.outstanding();
    assert!(matches!(waits.as_slice(), [Effect::ReconcileTool { .. }]), "{waits:?}");
    assert_eq!(play.engine.run_state().label(), "awaiting");
    let outcome = Reconciliation::Unknown;
    play.step(Input::ToolReconciled { call: call("t1.0"), by: "a person".into(), outcome });
    assert_eq!(play.codes(), [Some(ObservationCode::OutcomeUnknown)]);
    play.asks(&[("act", "{}")]);
    assert_eq!(play.engine.run_state().label(), "awaiting", "the same call again needs a person");
}

#[test]
fn empty_final_turn() {
    for empty in ["", " \n\t"] {
        let mut play = Play::resolved(unjudged(), environment(vec![look()]));
        play.looks(1, "so");
        play.says(empty);
        let ending = play.ending();
        assert_eq!((ending.row, ending.fallback_type), (7, Some(FallbackType::InsufficientEvidence)));

        let mut nothing = Play::resolved(unjudged(), environment(vec![look()]));
        nothing.says(empty);
        let ending = nothing.ending();
        assert_eq!((ending.row, ending.failure), (8, Some(Failure::DraftContract { kind: DraftFault::Empty })));
    }
}

#[test]
fn empty_final_turn_never_takes_an_older_draft() {
    let older = conclusion(&["f1"]);
    let mut spec = unjudged();
    spec.prior_messages = vec![PriorMessage { role: PriorRole::Assistant, text: older.clone() }];
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.step(play.answer(content(Some(&older), &[("look", "{}")]), FinishReason::ToolCalls));
    play.dispatch();
    play.returns("t1.0", fact("so"));
    play.says("");
    assert_eq!(play.row(), 7, "neither the earlier run's answer nor the commentary beside the calls");
    let release = serde_json::to_string(play.engine.release().unwrap()).unwrap();
    assert!(!release.contains("it is so"), "{release}");
}

#[test]
fn fences_inside_json() {
    let inside = r#"{"conclusion":{"statement":"run ```sh\nls\n``` now"},"citations":["f1"]}"#;
    let fenced = format!("```json\n{inside}\n```");
    let spoken = format!("Here it is:\n```json\n{inside}\n```");
    let twice = format!("```\n{fenced}\n```");
    let rows = [(inside.to_owned(), 1), (fenced, 1), (spoken, 7), (twice, 7), ("```json\n```".to_owned(), 7)];
    for (text, row) in rows {
        let mut play = Play::resolved(unjudged(), environment(vec![look()]));
        play.looks(1, "so");
        play.says(&text);
        assert_eq!(play.row(), row, "{text}");
        let release = serde_json::to_string(play.engine.release().unwrap()).unwrap();
        assert_eq!(release.contains(r"run ```sh\nls\n``` now"), row == 1, "whole, or not at all");
    }
}

#[test]
fn arguments_cut_by_length() {
    let cut = ("look", r#"{"at":"her"#);
    for (finish, code) in [
        (FinishReason::Length, ObservationCode::ArgumentsTruncated),
        (FinishReason::ToolCalls, ObservationCode::InvalidArguments),
    ] {
        let mut play = Play::resolved(unjudged(), environment(vec![look()]));
        let step = play.step(play.answer(content(None, &[cut]), finish));
        assert_eq!(play.codes(), [Some(code)]);
        let executed = |effect: &_| matches!(effect, Effect::DispatchTools { .. } | Effect::InvokeTool { .. });
        assert!(!step.effects.iter().any(executed), "never repaired into something executable");
        assert_eq!(play.engine.ledger().unwrap().tool_calls, 0);
    }
}

#[test]
fn arguments_cut_by_length_are_not_retried_for_ever() {
    let mut play = Play::resolved(capped(3), environment(vec![look()]));
    for _ in 0..3 {
        play.step(play.answer(content(None, &[("look", "{")]), FinishReason::Length));
    }
    assert_eq!(play.row(), 14);
}

#[test]
fn claims_without_acting() {
    let deleted = r#"{"conclusion":{"statement":"deleted"},"citations":[]}"#;
    let cited = r#"{"conclusion":{"statement":"deleted"},"citations":["f1"]}"#;
    let nothing = r#"{"conclusion":null,"citations":[]}"#;
    for (text, row) in [(deleted, 3), (cited, 3), (nothing, 6), ("I have deleted it.", 8)] {
        let mut play = Play::resolved(unjudged(), environment(vec![look(), act()]));
        play.says(text);
        let ending = play.ending();
        assert_eq!((ending.row, ending.outcome, ending.facts), (row, ReleaseOutcome::Failed, 0), "{text}");
        let mut acted = Play::resolved(unjudged(), environment(vec![look(), act()]));
        acted.asks(&[("act", "{}")]);
        acted.dispatch();
        acted.returns("t1.0", ToolOutput::text("deleted"));
        acted.says(text);
        assert_eq!(acted.row(), row, "a tool that gives no evidence gives no facts");
    }
}

#[test]
fn torn_log_tail() {
    let play = keeps_looking(2);
    let whole = play.lines.as_bytes();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in [last + 1, last + 40, whole.len() - 1] {
        let summary = history::replay(&whole[..end], Policy::Stop).unwrap();
        let tail = summary.tail.expect("a torn line is set aside");
        assert_eq!((tail.offset, tail.bytes), (last as u64, (end - last) as u64));
        assert_eq!(tail.ordinal, summary.records);
        assert!(summary.ending.is_none() && summary.divergences.is_empty());
        let mut decider = summary.decider;
        assert!(decider.step(0, tail.repair()).is_ok(), "the repair is recorded before anything is appended");
    }
    let mut inside_a_letter = whole[..last].to_vec();
    inside_a_letter.extend_from_slice("{\"v\":1,\"run\":\"é".as_bytes().split_last().unwrap().1);
    assert!(history::replay(inside_a_letter.as_slice(), Policy::Stop).unwrap().tail.is_some());
    let mut zeroed = whole.to_vec();
    zeroed[last - 20..last - 10].fill(0);
    let fault = history::replay(zeroed.as_slice(), Policy::Stop).unwrap_err();
    let line_begins = whole[..last - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    assert_eq!((fault.code, fault.offset), (FaultCode::MalformedRecord, line_begins as u64), "{fault}");
}

#[test]
fn delivered_twice() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    let report = |text| play.answer(content(None, &[("look", text)]), FinishReason::ToolCalls);
    let (first, other) = (report(r#"{"at":1}"#), report(r#"{"at":2}"#));
    play.step(first.clone());
    let before = (play.engine.decider().state_json(), play.engine.ledger().cloned());
    play.at_ms = 400;
    assert_eq!(play.refused(first), Duplicate);
    assert_eq!(play.refused(other), Conflict);
    assert_eq!((play.engine.decider().state_json(), play.engine.ledger().cloned()), before, "not billed twice");
}

#[derive(Debug, thiserror::Error)]
#[error("a wrapper")]
struct Wrapper(#[source] llm::Error);

#[test]
fn wrapped_retryable() {
    let retryable = || llm::Error::RateLimited { message: "slow down".into(), retry_after_ms: None };
    let wrapper = Wrapper(retryable());
    assert_eq!(llm::Error::first_classified(&wrapper), Some(&retryable()), "the first classified error decides");
    let final_error = || llm::Error::InvalidRequest { message: "429 inside".into() };
    let outer = Wrapper(final_error());
    assert_eq!(llm::Error::first_classified(&outer), Some(&final_error()));
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.looks(1, "so");
    play.fails(llm::Error::first_classified(&outer).unwrap().clone());
    let ending = play.ending();
    let failure = Some(Failure::Inference { code: llm::Code::InvalidRequest });
    assert_eq!((ending.row, ending.failure), (17, failure), "not retried, and facts do not soften it");
    assert_eq!(play.engine.ledger().unwrap().model_attempts, 2);
}
