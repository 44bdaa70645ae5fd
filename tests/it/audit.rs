//! The audit of a history bites: one lie for each rule, in a history that is otherwise true.

use portcullis::testkit::audit::{Rule, audit};
use portcullis::vocabulary::input::{Input, NestedKind, Verdict};
use portcullis::vocabulary::tool::ToolOutput;

use crate::play::{Play, act, call, cancel, conclusion, environment, fact, look, spec};

/// One round of two calls, a fact, a judged success, a receipt.
pub(crate) fn success() -> String {
    let mut play = Play::resolved(spec(), environment(vec![look(), act()]));
    play.asks(&[("look", "{}"), ("act", "{}")]);
    play.dispatch();
    play.returns("t1.1", ToolOutput::text("done"));
    play.returns("t1.0", fact("so"));
    play.says(&conclusion(&["f1"]));
    play.step(play.judged(Verdict::Supported));
    play.step(Input::ReleaseDelivered { receipt: "taken".into() });
    assert_eq!(play.row(), 1);
    play.lines
}

pub(crate) fn fallback() -> String {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "so");
    play.says(r#"{"conclusion":null,"citations":[]}"#);
    assert_eq!(play.row(), 5);
    play.lines
}

/// A call that was executing when the run was taken over.
pub(crate) fn interrupted() -> String {
    let mut play = Play::resolved(spec(), environment(vec![act()]));
    play.asks(&[("act", "{}")]);
    play.dispatch();
    play.recover(1);
    play.step(cancel());
    play.lines
}

/// Changes the first `truth` at or after the record with that place.
#[track_caller]
pub(crate) fn lie(history: &str, seq: u64, truth: &str, lie: &str) -> String {
    let mark = format!("\"seq\":{seq},");
    let from = history.find(&mark).unwrap();
    let at = from + history[from..].find(truth).unwrap_or_else(|| panic!("no {truth} from record {seq} on"));
    format!("{}{lie}{}", &history[..at], &history[at + truth.len()..])
}

#[track_caller]
fn breaks(rule: Rule, history: &str) {
    let broken = audit(history.lines()).map(|audit| audit.records()).map_err(|breach| breach.rule);
    assert_eq!(broken, Err(rule));
}

/// The line of that record.
pub(crate) fn line(history: &str, seq: usize) -> String {
    format!("{}\n", history.lines().nth(seq).unwrap())
}

/// The history with more lines, renumbered so that nothing but what they say is wrong.
pub(crate) fn and(history: &str, lines: &str) -> String {
    let all = history.lines().chain(lines.lines());
    let renumbered = all.zip(0..).map(|(line, seq): (&str, u64)| {
        let (before, rest) = line.split_once("\"seq\":").unwrap();
        let (_, after) = rest.split_once(',').unwrap();
        format!("{before}\"seq\":{seq},{after}\n")
    });
    renumbered.collect()
}

#[test]
fn what_is_no_record_is_unreadable() {
    breaks(Rule::Unreadable, "{");
    breaks(Rule::Unreadable, "{\"seq\":0}");
}

#[test]
fn a_gap_and_time_that_runs_backwards_are_out_of_order() {
    let history = success();
    breaks(Rule::OutOfOrder, &history.replace(&line(&history, 2), ""));
    breaks(Rule::OutOfOrder, &lie(&lie(&history, 1, "\"at_ms\":0", "\"at_ms\":9"), 2, "\"at_ms\":0", "\"at_ms\":8"));
}

#[test]
fn nothing_follows_the_end() {
    let history = success();
    breaks(Rule::OneTerminal, &and(&history, &line(&history, 1)));
    let row = r#""ending":{"row":1,"#;
    let last = history.lines().count() as u64 - 1;
    breaks(Rule::OneTerminal, &lie(&history, last, row, r#""ending":{"row":5,"#));
    breaks(
        Rule::OneTerminal,
        &lie(&history, 2, r#"{"type":"run_ended","state":"success"}"#, r#"{"type":"evidence_held"}"#),
    );
}

#[test]
fn the_row_follows_from_the_signals() {
    let history = fallback();
    breaks(Rule::ClosedTable, &lie(&history, 4, r#""ending":{"row":5,"#, r#""ending":{"row":7,"#));
    breaks(Rule::ClosedTable, &lie(&history, 4, r#""ending":{"row":5,"#, r#""ending":{"row":3,"#));
    breaks(Rule::ClosedTable, &lie(&history, 2, r#""first":"f1""#, r#""first":"f2""#));
    let more = lie(&history, 2, r#""first":"f1","count":1"#, r#""first":"f1","count":2"#);
    breaks(Rule::ClosedTable, &more);
}

#[test]
fn a_success_stands_on_observed_facts_and_a_judge() {
    let history = success();
    breaks(Rule::ProvenSuccess, &lie(&history, 6, r#""citations":[{"id":"f1""#, r#""citations":[{"id":"f2""#));
    breaks(Rule::ProvenSuccess, &lie(&history, 6, r#""judged":true},"key""#, r#""judged":false},"key""#));
}

#[test]
fn a_fallback_gives_every_observed_fact() {
    let history = fallback();
    let from = history.rfind(r#""facts":[{"#).unwrap();
    let to = from + history[from..].find(']').unwrap() + 1;
    breaks(Rule::FoundedFallback, &format!("{}\"facts\":[]{}", &history[..from], &history[to..]));
}

#[test]
fn more_than_the_limit_is_over_it() {
    let history = success();
    breaks(Rule::WithinLimits, &lie(&history, 0, r#""model_calls":16"#, r#""model_calls":1"#));
    breaks(Rule::WithinLimits, &lie(&history, 0, r#""tool_calls":64"#, r#""tool_calls":1"#));
    let by_tool = (r#""tool_calls_by_tool":{}"#, r#""tool_calls_by_tool":{"act":0}"#);
    breaks(Rule::WithinLimits, &lie(&history, 0, by_tool.0, by_tool.1));
}

#[test]
fn every_call_is_closed_once() {
    let history = success();
    let closed = r#"{"type":"call_closed","call":"t1.1"}"#;
    breaks(Rule::OneClosing, &lie(&history, 3, closed, r#"{"type":"evidence_held"}"#));
    breaks(Rule::OneClosing, &lie(&history, 3, closed, &format!("{closed},{closed}")));
    breaks(Rule::OneClosing, &lie(&history, 3, closed, &closed.replace("t1.1", "t1.2")));
}

#[test]
fn no_call_is_entered_before_its_dispatch_is_on_record() {
    let history = success();
    breaks(Rule::DispatchedFirst, &lie(&history, 3, r#""calls":["t1.0","t1.1"]"#, r#""calls":["t1.0"]"#));
}

#[test]
fn no_call_is_entered_again_once_it_is_indeterminate_or_closed() {
    let history = interrupted();
    let asked = r#"{"type":"reconcile_tool","#;
    breaks(Rule::NeverAgain, &lie(&history, 4, asked, r#"{"type":"invoke_tool","#));
    let invoked = r#""effects":[]"#;
    let again = r#""effects":[{"type":"invoke_tool","call":"t1.1","attempt":2}]"#;
    breaks(Rule::NeverAgain, &lie(&success(), 4, invoked, again));
}

#[test]
fn a_batch_commits_as_a_whole_or_not_at_all() {
    let rolled_back = crate::hooks::in_conflict();
    let signal = r#"{"type":"state_rolled_back","commands":1}"#;
    let committed = r#"{"type":"state_committed","commands":1}"#;
    breaks(Rule::WholeBatches, &lie(&rolled_back, 2, signal, committed));
    breaks(Rule::WholeBatches, &lie(&rolled_back, 2, signal, &format!("{signal},{committed}")));
    let conflict = r#"{"type":"state_conflicted""#;
    breaks(Rule::WholeBatches, &lie(&rolled_back, 2, conflict, r#"{"type":"bound_broken""#));
    breaks(Rule::WholeBatches, &lie(&rolled_back, 2, conflict, r#"{"type":"evidence_held""#));
}

#[test]
fn there_is_one_release_and_none_before_the_end() {
    let history = success();
    let early = r#""effects":[{"type":"publish","release":{},"key":""}]"#;
    breaks(Rule::OneRelease, &lie(&history, 4, r#""effects":[]"#, early));
    breaks(Rule::OneRelease, &lie(&history, 6, r#"{"type":"publish","#, r#"{"type":"abort_in_flight","#));
    breaks(Rule::OneRelease, &lie(&history, 8, r#""effects":[]"#, early));
}

/// A call that lets a nested one through and is closed, as records.
fn nested() -> String {
    let mut play = Play::resolved(spec(), environment(vec![look(), act()]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    let (parent, nested) = (call("t1.0"), "n1.0.0".parse().unwrap());
    let (kind, tool, arguments) = (NestedKind::Model, None, None);
    play.step(Input::NestedCallRequested { parent, attempt: 1, nested, kind, tool, arguments });
    play.step(Input::NestedCompleted { nested, usage: None });
    play.returns("t1.0", fact("so"));
    play.lines
}

#[test]
fn a_nested_call_is_asked_for_by_a_call_that_runs_and_is_over_with_it() {
    let history = nested();
    assert!(audit(history.lines()).is_ok());
    let (asked, admitted) = (r#""attempt":1,"nested":"n1.0.0""#, r#"[{"type":"admit_nested","nested":"n1.0.0"}]"#);
    breaks(Rule::NestedInside, &lie(&history, 4, asked, r#""attempt":2,"nested":"n1.0.0""#));
    breaks(Rule::NestedInside, &lie(&history, 4, asked, r#""attempt":1,"nested":"n1.0.1""#));
    breaks(Rule::NestedInside, &lie(&history, 4, admitted, "[]"));
    breaks(Rule::NestedInside, &lie(&history, 4, admitted, &admitted.replace("n1.0.0", "n1.0.1")));
    breaks(Rule::NestedInside, &lie(&history, 5, r#""nested_completed""#, r#""hook_failed""#));
    breaks(Rule::NestedInside, &lie(&history, 5, r#""effects":[]"#, &format!(r#""effects":{admitted}"#)));
}

#[test]
fn every_rule_is_shown_to_bite() {
    let told = include_str!("audit.rs");
    for rule in Rule::ALL {
        let name = format!("Rule::{rule:?}");
        assert!(told.contains(&format!("breaks({name}")), "{name}");
    }
}
