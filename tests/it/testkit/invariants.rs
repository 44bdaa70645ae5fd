//! Every invariant bites: a forged history or an engine with a seeded bug breaks it, and it is named.

use portcullis::engine::Engine;
use portcullis::testkit::audit::Rule;
use portcullis::testkit::invariants::{Breach, Broken, Invariant, Subject, check, check_with, report};

use super::forged::rechained;
use super::seeded::{CancelsTwice, CountsRefusals, IsDeaf, LetsTheDeadlineWin, TakesWhatIsForeign};
use crate::audit::{and, fallback, interrupted, lie, line, success};
use crate::play::{Play, environment, look, spec};

/// The whole check and the invariant alone find it, stepped by `S`.
#[track_caller]
fn caught_in<S: Subject>(invariant: Invariant, history: &str) -> Breach {
    let named = Broken::Invariant(invariant);
    let breaches = check_with::<S>(history.as_bytes()).expect_err("nothing is found");
    assert!(breaches.iter().any(|breach| breach.broken == named), "{invariant}: {breaches:#?}");
    let breach = invariant.holds_with::<S>(history.as_bytes()).expect_err("it alone finds nothing");
    assert_eq!(breach.broken, named, "{breach}");
    breach
}

#[track_caller]
fn caught(invariant: Invariant, forged: &str) {
    caught_in::<Engine>(invariant, forged);
}

/// A run that waits for its second model call.
fn open() -> String {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "so");
    play.lines
}

#[test]
fn a_second_ending_is_caught() {
    let history = success();
    caught(Invariant::OneTerminal, &and(&history, &line(&history, 1)));
}

#[test]
fn a_success_without_a_fact_or_a_judge_is_caught() {
    let history = success();
    let cited = lie(&history, 6, r#""citations":[{"id":"f1""#, r#""citations":[{"id":"f2""#);
    caught(Invariant::ProvenSuccess, &rechained(&cited));
    let judged = lie(&history, 6, r#""judged":true},"key""#, r#""judged":false},"key""#);
    caught(Invariant::ProvenSuccess, &rechained(&judged));
}

#[test]
fn a_fallback_without_facts_is_caught() {
    let history = fallback();
    let from = history.rfind(r#""facts":[{"#).unwrap();
    let to = from + history[from..].find(']').unwrap() + 1;
    caught(Invariant::FoundedFallback, &format!("{}\"facts\":[]{}", &history[..from], &history[to..]));
}

#[test]
fn more_than_the_limit_is_caught() {
    caught(Invariant::WithinLimits, &lie(&success(), 0, r#""tool_calls":64"#, r#""tool_calls":1"#));
}

#[test]
fn a_call_that_is_never_closed_is_caught() {
    let closed = r#"{"type":"call_closed","call":"t1.1"}"#;
    caught(Invariant::OneClosing, &lie(&success(), 3, closed, r#"{"type":"evidence_held"}"#));
}

#[test]
fn a_record_that_does_not_come_out_is_caught_wherever_it_stands() {
    let history = success();
    for seq in 0..history.lines().count() as u64 {
        let forged = rechained(&lie(&history, seq, r#""state":{"run":{"#, r#""state":{"ran":{"#));
        let breach = caught_in::<Engine>(Invariant::FoldIsRecord, &forged);
        assert_eq!(breach.seq, seq);
    }
}

#[test]
fn a_refusal_that_changes_something_is_caught() {
    let breach = caught_in::<CountsRefusals>(Invariant::RefusalChangesNothing, &success());
    assert!(breach.reason.contains("otherwise than before"), "{breach}");
}

#[test]
fn a_foreign_report_that_is_accepted_is_caught() {
    let breach = caught_in::<TakesWhatIsForeign>(Invariant::RefusalChangesNothing, &success());
    assert!(breach.reason.contains("tool_completed"), "{breach}");
}

#[test]
fn an_indeterminate_call_that_is_entered_again_is_caught() {
    let asked = r#"{"type":"reconcile_tool","#;
    caught(Invariant::NeverAgain, &lie(&interrupted(), 4, asked, r#"{"type":"invoke_tool","#));
}

#[test]
fn two_winners_are_caught() {
    let breach = caught_in::<LetsTheDeadlineWin>(Invariant::OneWinner, &open());
    assert!(breach.reason.contains("row Some(16) instead of 15"), "{breach}");
    let breach = caught_in::<CancelsTwice>(Invariant::OneWinner, &open());
    assert!(breach.reason.contains("has ended"), "{breach}");
}

#[test]
fn unreleased_text_is_caught_in_signals_state_effects_and_releases() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "so");
    play.says(r#"{"conclusion":{"statement":"it was the neighbour"},"citations":["f9"]}"#);
    play.says("I do insist");
    let history = play.lines;
    assert_eq!(check(&history), Ok(()));
    let last = history.lines().count() as u64 - 1;
    let text = "it was the neighbour";
    let signal =
        lie(&history, last - 1, r#""signals":["#, &format!(r#""signals":[{{"type":"said","what":"{text}"}},"#));
    let state = lie(&history, last - 1, r#""state":{"#, &format!(r#""state":{{"draft":"so: {text}","#));
    let effect = lie(&history, last, r#""effects":["#, &format!(r#""effects":[{{"type":"told","what":"{text}"}},"#));
    let insisted = lie(&history, last, r#""effects":["#, r#""effects":[{"I do insist":0},"#);
    let released = lie(&history, last, r#""statement":"so""#, &format!(r#""statement":"{text}""#));
    for forged in [signal, state, effect, insisted, released] {
        caught(Invariant::UnreleasedStaysInside, &forged);
    }
}

#[test]
fn a_draft_that_a_later_one_replaced_is_not_released_with_it() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "so");
    play.says(r#"{"conclusion":{"statement":"it was the neighbour"},"citations":["f9"]}"#);
    play.says(r#"{"conclusion":{"statement":"it was the butler"},"citations":["f1"]}"#);
    play.step(play.judged(portcullis::vocabulary::input::Verdict::Supported));
    assert_eq!(play.row(), 1);
    let history = play.lines;
    assert_eq!(check(&history), Ok(()), "the butler was released");
    let last = history.lines().count() as u64 - 1;
    caught(Invariant::UnreleasedStaysInside, &lie(&history, last, "the butler", "the neighbour"));
}

#[test]
fn a_run_that_takes_no_answer_is_caught() {
    let breach = caught_in::<IsDeaf>(Invariant::NeverStuck, &open());
    assert_eq!(breach.reason, "it waits for call_model, and takes no answer to it");
}

#[test]
fn a_release_before_the_end_is_caught() {
    let early = r#""effects":[{"type":"publish","release":{},"key":""}]"#;
    caught(Invariant::OneRelease, &lie(&success(), 4, r#""effects":[]"#, early));
}

#[test]
fn what_is_no_history_is_unreadable() {
    let damaged = lie(&success(), 3, "done", "gone");
    let gap = success().lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
    for history in ["", "{", "\n", "{}\n", &damaged, &gap] {
        let breaches = check(history).expect_err("it passes");
        let unreadable = breaches.iter().any(|breach| breach.broken == Broken::Rule(Rule::Unreadable));
        assert!(unreadable, "{history}: {breaches:#?}");
    }
    assert!(check(b"\xff\n").is_err());
}

#[test]
fn every_invariant_is_shown_to_bite() {
    let told = include_str!("invariants.rs");
    for invariant in Invariant::ALL {
        let name = format!("(Invariant::{invariant:?}");
        assert!(told.contains(&name), "{name}");
    }
}

#[test]
fn the_report_names_invariant_record_and_reason_and_no_word_of_a_model() {
    let history = success();
    let asked = r#""effects":[{"type":"publish","release":{},"key":""}]"#;
    let text = report(rechained(&lie(&history, 4, r#""effects":[]"#, asked))).expect_err("it passes").to_string();
    for part in ["13.I12 one_release, at record 4", "a release before the end", "input tool_completed", "13.I6"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains("it is so"), "{text}");
}

#[test]
#[should_panic(expected = "my run: this history is not fail-closed")]
fn the_assertion_fails_with_its_message() {
    portcullis::assert_fail_closed!(fallback().replace("\"so\"", "\"if so\""), "{} run", "my");
}
