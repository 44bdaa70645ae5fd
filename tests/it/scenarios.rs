//! Scenarios: what the examples promise, what the driver keeps, what the reader refuses.

use std::collections::BTreeSet;
use std::sync::Arc;

use portcullis::adapters::scenario::Scenario;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::history::{Policy, replay};
use portcullis::runtime::execution::Error;
use portcullis::runtime::store::StoreError;
use proptest::prelude::*;

use crate::breaking::BreakingStore;
use crate::stage::{Played, block_on, history, perform};
use crate::support::{assert_generated, project};

/// Every example: its name and its text.
fn examples() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(project("examples")).unwrap();
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    found
}

fn scenario(text: &str) -> Scenario {
    Scenario::read(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

fn play(text: &str) -> Played {
    crate::stage::play(scenario(text))
}

/// A scenario of one tool, with `script` as it stands.
fn with_script(script: &str) -> String {
    format!(
        r#"{{"spec":{{"task":"t","model":{{"name":"m"}},"tools":[{{"name":"look","evidence":true}},
        {{"name":"act","confirm":true}}],"release":{{"judge":"off"}}}},"script":{script}}}"#
    )
}

const LOOKS: &str = r#"{"calls":[{"tool":"look","result":{"content":"c","facts":["a fact"]}}]}"#;
const CITES: &str = r#"{"draft":{"conclusion":{"statement":"s"},"citations":["f1"]}}"#;

fn row(played: &Played) -> Option<u8> {
    played.ending.as_ref().map(|ending| ending.row)
}

#[test]
fn every_example_ends_as_it_says_in_every_column_and_its_history_replays() {
    let mut rows = BTreeSet::new();
    for (name, text) in examples() {
        let played = play(&text);
        assert_eq!(played.questions, Vec::<String>::new(), "{name} leaves a question open");
        assert_eq!(played.unused, Vec::<String>::new(), "{name} holds more than it needs");
        let summary = replay(&*played.history, Policy::ReportAll).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(summary.divergences, Vec::new(), "{name}");
        assert_eq!((summary.records, &summary.ending), (played.records, &played.ending), "{name}");
        match (&scenario(&text).expect, &played.ending) {
            (Some(expected), Some(ending)) => {
                assert_eq!(expected.differences(ending), Vec::new(), "{name}");
                rows.insert(ending.row);
            }
            (None, None) => assert!(!played.people.is_empty(), "{name} is stuck"),
            (expected, ending) => panic!("{name}: expected {expected:?}, got {ending:?}"),
        }
    }
    assert_eq!(rows, (1..=20).collect(), "the examples cover the closed table");
}

#[test]
fn the_examples_hold_the_rows_the_nine_scenarios_and_the_five_combinations_by_name() {
    let names: Vec<_> = examples().into_iter().map(|(name, _)| name).collect();
    let numbered = |kind: &str, number: usize| names.iter().any(|name| name.starts_with(&format!("{kind}-{number}-")));
    for (kind, count) in [("loop", 9), ("state", 5), ("plugins", 8)] {
        for number in 1..=count {
            assert!(numbered(kind, number), "{kind}-{number} is missing");
        }
    }
    for number in 1..=20u8 {
        let name = names.iter().find(|name| name.starts_with(&format!("row-{number:02}-"))).unwrap();
        let text = std::fs::read_to_string(project("examples").join(format!("{name}.json"))).unwrap();
        assert_eq!(scenario(&text).expect.unwrap().row, number, "{name}");
    }
}

#[test]
fn every_example_keeps_the_published_schema() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, text) in examples() {
        let example: serde_json::Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<_> = validator.iter_errors(&example).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
}

fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).unwrap() + "\n"
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    assert_generated("docs/scenario.schema.json", &schema());
}

#[test]
fn the_scenario_in_the_documentation_ends_as_it_says() {
    let page = std::fs::read_to_string(project("docs/scenario.md")).unwrap();
    let blocks: Vec<_> = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let whole: Vec<_> = blocks.iter().filter(|block| block.contains("\"spec\"")).collect();
    assert!(!whole.is_empty(), "the page shows no scenario");
    for text in whole {
        let expected = scenario(text).expect.unwrap();
        assert_eq!(expected.differences(&play(text).ending.unwrap()), Vec::new());
    }
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    for (name, text) in examples() {
        assert_eq!(play(&text).history, play(&text).history, "{name}");
    }
}

#[test]
fn a_record_that_is_not_stored_has_no_effect_and_what_is_stored_is_a_valid_prefix() {
    for (name, text) in examples() {
        let whole = play(&text);
        for appends in 0.. {
            let store = Arc::new(BreakingStore::after(appends, MemoryStore::new()));
            let broken = block_on(perform(scenario(&text), Arc::clone(&store) as _));
            let stored = block_on(history(&*store, "a-run"));
            assert!(whole.history.starts_with(&stored), "{name}, {appends} appends");
            let error = match broken {
                Err(error) => error,
                Ok(_) => {
                    assert_eq!(stored.len(), whole.history.len(), "{name}: the store broke and nobody noticed");
                    break;
                }
            };
            assert!(matches!(error, Error::Commit(StoreError::Medium { .. })), "{name}: {error}");
            if appends > 0 {
                let summary = replay(&*stored, Policy::Stop).unwrap();
                assert_eq!(summary.divergences, Vec::new(), "{name}");
            }
        }
    }
}

#[test]
fn a_question_that_the_script_leaves_open_ends_the_run_as_internal_and_is_named() {
    let cases = [
        ("{}", "what does the model answer to m1, attempt 1 (step)?"),
        (r#"{"model":[{"calls":[{"tool":"look"}]}]}"#, "what does \"look\" give back to call t1.0, attempt 1?"),
    ];
    for (script, question) in cases {
        let played = play(&with_script(script));
        assert_eq!(played.questions, [question]);
        assert_eq!(row(&played), Some(17));
        let history = String::from_utf8(played.history).unwrap();
        assert!(history.contains(&question.replace('"', "\\\"")), "the history does not say why");
    }
    let judged =
        with_script(&format!(r#"{{"model":[{LOOKS},{CITES}]}}"#)).replace(r#""judge":"off""#, r#""judge":"on""#);
    assert_eq!(play(&judged).questions, ["what is the judge's verdict on j1, attempt 1?"]);
    let gate = r#""environment":{"gates":[{"id":"g","of":"release"}]},"script""#;
    let gated = with_script(&format!(r#"{{"model":[{LOOKS},{CITES}]}}"#)).replace(r#""script""#, gate);
    assert_eq!(play(&gated).questions, [r#"what does the gate "g" answer to question 1?"#]);
}

#[test]
fn a_run_that_needs_a_person_stays_open_unless_the_script_decides_or_says_that_nobody_does() {
    let acts = |more: &str| with_script(&format!(r#"{{"model":[{{"calls":[{{"tool":"act"{more}}}]}},{CITES}]}}"#));
    let open = play(&acts(""));
    assert_eq!(open.ending, None);
    assert!(
        open.people[0].starts_with("\"act\" (t1.0) waits for a person's decision under ticket t1.0-"),
        "{:?}",
        open.people
    );
    let denied = play(&acts(r#","decision":{"deny":"no"}"#));
    assert_eq!((row(&denied), denied.people.len()), (Some(3), 0));
    let silent = play(&acts(r#","decision":"silence""#));
    assert_eq!((row(&silent), silent.people.len()), (Some(16), 0), "the deadline goes on while a person is awaited");
}

#[test]
fn a_person_who_is_awaited_is_no_obstacle_to_a_cancellation() {
    let script = r#"{"model":[{"calls":[{"tool":"act"}]}],"interruptions":[{"at_ms":90000,"cancel":"caller"}]}"#;
    let played = play(&with_script(script));
    assert_eq!((row(&played), played.people.len()), (Some(15), 0));
}

#[test]
fn a_report_after_the_end_is_refused_and_leaves_no_record() {
    let script = format!(r#"{{"model":[{LOOKS},{CITES}],"interruptions":[{{"at_ms":1050,"cancel":"caller"}}]}}"#);
    let played = play(&with_script(&script));
    assert_eq!(row(&played), Some(15));
    assert_eq!(played.refused, [(1_100, "tool_completed", "terminal".to_owned())]);
    assert_eq!(played.history.iter().filter(|byte| **byte == b'\n').count() as u64, played.records);
}

#[test]
fn a_tool_that_takes_longer_than_it_may_times_out_and_its_late_result_is_refused() {
    let slow = r#"{"calls":[{"tool":"look","result":{"content":"c","facts":["f"],"after_ms":60001}}]}"#;
    let nothing = r#"{"draft":{"conclusion":null,"citations":[]}}"#;
    let played = play(&with_script(&format!(r#"{{"model":[{slow},{nothing}]}}"#)));
    assert_eq!(row(&played), Some(6), "a tool that took too long states nothing");
    assert_eq!(played.refused.len(), 1);
}

#[test]
fn a_report_over_a_limit_fails_its_call_and_never_leaves_it_open() {
    let long = "x".repeat(5_000);
    let limited = |script: &str| {
        with_script(script).replace(
            r#""release""#,
            r#""limits":{"line_bytes_max":4096,"response_bytes_max":4096},"tools_":0,"release""#,
        )
    };
    let spec = |script: &str| {
        limited(script)
            .replace(r#""tools_":0,"#, "")
            .replace(r#""evidence":true"#, r#""evidence":true,"result_bytes_max":4096"#)
            .replace(r#""confirm":true"#, r#""result_bytes_max":4096"#)
    };
    let answer = format!(r#"{{"model":[{{"text":"{long}"}},{{"text":"{long}"}},{{"text":"{long}"}}]}}"#);
    let played = play(&spec(&answer));
    assert_eq!(row(&played), Some(17), "three attempts failed as the provider's");
    assert_eq!(played.refused.len(), 3);
    let nothing = r#"{"draft":{"conclusion":null,"citations":[]}}"#;
    let result = format!(r#"{{"model":[{{"calls":[{{"tool":"look","result":{{"content":"{long}"}}}}]}},{nothing}]}}"#);
    let played = play(&spec(&result));
    assert_eq!((row(&played), played.refused.len()), (Some(6), 1));
    assert!(String::from_utf8(played.history).unwrap().contains("TOOL_EXECUTION_ERROR"));
}

#[test]
fn a_restart_loses_what_was_under_way_and_the_run_goes_on() {
    let looks = r#"{"calls":[{"tool":"look","result":{"content":"lost","facts":["lost"]},
        "retries":[{"content":"again","facts":["seen again"]}]}]}"#;
    let script = format!(r#"{{"model":[{looks},{CITES}],"interruptions":[{{"at_ms":1050,"restart":{{}}}}]}}"#);
    let played = play(&with_script(&script));
    assert_eq!((row(&played), played.crashes), (Some(1), 1));
    let history = String::from_utf8(played.history).unwrap();
    assert!(history.contains("seen again") && !history.contains("\"lost\""));
}

#[test]
fn a_live_tool_that_declares_another_mode_is_not_entered_again() {
    let restart = r#"[{"before":"invoke_tool","restart":{"tools":[{"name":"look","recovery":"never_replay"}]}}]"#;
    let played = play(&with_script(&format!(r#"{{"model":[{LOOKS},{CITES}],"interruptions":{restart}}}"#)));
    assert_eq!(played.ending, None);
    assert!(played.people[0].starts_with("\"look\" (t1.0) was interrupted"), "{:?}", played.people);
}

#[test]
fn interruptions_at_one_point_all_come_in_order_and_the_first_end_wins() {
    let both = r#"[{"before":"invoke_tool","cancel":"caller"},{"before":"invoke_tool","fault":"port"}]"#;
    let played = play(&with_script(&format!(r#"{{"model":[{LOOKS},{CITES}],"interruptions":{both}}}"#)));
    assert_eq!(row(&played), Some(15));
    assert_eq!(played.refused[0], (1_000, "execution_crashed", "terminal".to_owned()));
}

#[test]
fn what_the_script_holds_beyond_need_is_named() {
    let script = format!(
        r#"{{"model":[{LOOKS},{CITES},{CITES}],"judge":[{{"verdict":"unknown"}}],"gates":{{"g":["allow"]}},
        "interruptions":[{{"before":"call_model","nth":9,"cancel":"caller"}}]}}"#
    );
    let named = [
        "1 more of the model's answers than were asked for",
        "1 more of the judge's answers than were asked for",
        "1 more of the gate \"g\"'s answers than were asked for",
        "an interruption before call_model 9, which never came",
    ];
    assert_eq!(play(&with_script(&script)).unused, named);
}

/// A scenario whose plugin `p` is asked before each model call and when the round ends, with `answers` for its
/// hooks. Its action `a` is performed by itself.
fn with_plugin(answers: &str, more: &str) -> String {
    let environment = r#""environment":{"hooks":[{"plugin":"p","point":"before_inference"},
        {"plugin":"p","point":"round_end"},{"plugin":"p","point":"run_end"}],"action_kinds":["a"],
        "capabilities":[{"plugin":"p","action_kinds":["a"],"bound":{"hooks":["before_inference","round_end","run_end"],
        "action_kinds":{"ids":["a"]}}}]},"script""#;
    with_script(&format!(r#"{{"model":[{LOOKS},{CITES}],"hooks":{{"p":{answers}}}{more}}}"#))
        .replace(r#""script""#, environment)
}

#[test]
fn a_hook_without_an_answer_is_an_open_question_and_one_at_the_end_is_none() {
    let none = play(&with_plugin("{}", ""));
    assert_eq!(none.questions, ["what does the before_inference hook of \"p\" answer to question 1?"]);
    assert_eq!(row(&none), Some(17));
    let once = play(&with_plugin(r#"{"before_inference":["nothing"],"round_end":["nothing"]}"#, ""));
    assert_eq!(once.questions, ["what does the before_inference hook of \"p\" answer to question 3?"]);
    let all = play(&with_plugin(r#"{"before_inference":["nothing",{}],"round_end":["nothing"]}"#, ""));
    assert_eq!((row(&all), all.questions.len(), all.unused.len()), (Some(1), 0, 0));
    let told = String::from_utf8(all.history).unwrap();
    assert!(told.contains(r#""point":"run_end""#), "the hook at the end is told");
}

#[test]
fn an_answer_that_stands_always_is_given_whenever_the_others_have_run_out() {
    let played = play(&with_plugin(
        r#"{"before_inference":[{"context":"once"},{"context":"again","always":true}],"round_end":[{"always":true}]}"#,
        "",
    ));
    assert_eq!((row(&played), played.questions.len(), played.unused.len()), (Some(1), 0, 0));
    let history = String::from_utf8(played.history).unwrap();
    assert_eq!((history.matches("\"once\"").count(), history.matches("\"again\"").count()), (1, 1));
}

#[test]
fn an_action_is_performed_as_the_script_says_or_its_question_stays_open() {
    let hooks =
        r#"{"before_inference":[{"always":true}],"round_end":[{"commands":[{"type":"schedule","action":"a"}]}]}"#;
    let open = play(&with_plugin(hooks, ""));
    assert_eq!(open.questions, ["how does \"p\" perform the action \"a\" of question 3?"]);
    let performed = play(&with_plugin(hooks, r#","actions":{"a":[{"context":"done","after_ms":400}]}"#));
    assert_eq!((row(&performed), performed.questions.len()), (Some(1), 0));
    let failed = play(&with_plugin(hooks, r#","actions":{"a":["fail"]}"#));
    assert_eq!(row(&failed), Some(17));
    assert!(String::from_utf8(failed.history).unwrap().contains("hook_failed"));
}

#[test]
fn what_plugins_would_still_answer_is_named_and_what_stands_always_is_not() {
    let hooks = r#"{"before_inference":["nothing","nothing","nothing"],"round_end":["nothing",{"always":true}],
        "after_tool":[{}],"round_start":[{"always":true}]}"#;
    let named = [
        "1 more of \"p\"'s answers at before_inference than were asked for",
        "1 more of \"p\"'s answers at after_tool than were asked for",
        "1 more of the action \"a\"'s answers than were asked for",
    ];
    assert_eq!(play(&with_plugin(hooks, r#","actions":{"a":["nothing"]}"#)).unused, named);
}

#[test]
fn a_hook_that_was_asked_when_the_process_died_is_asked_the_same_again_and_answers_once() {
    let hooks = r#"{"before_inference":[{"context":"once"},"nothing"],"round_end":["nothing"]}"#;
    for death in [r#"{"before":"call_hook","restart":{}}"#, r#"{"at_ms":5,"restart":{}}"#] {
        let played = play(&with_plugin(hooks, &format!(r#","interruptions":[{death}]"#)));
        assert_eq!((row(&played), played.crashes, played.questions.len()), (Some(1), 1, 0), "{death}");
        let history = String::from_utf8(played.history).unwrap();
        let asked = r#""type":"call_hook","ask":1,"point":"before_inference""#;
        assert_eq!((history.matches(asked).count(), history.matches("\"once\"").count()), (2, 1), "{death}");
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_no_run_at_all() {
    let text = with_script("{}").replace(r#""release""#, r#""draft":{"data_schema":{"type":7}},"release""#);
    let store = Arc::new(MemoryStore::new());
    let refused = block_on(perform(scenario(&text), Arc::clone(&store) as _));
    assert!(matches!(refused, Err(Error::Resolution { .. })));
    assert!(block_on(history(&*store, "a-run")).is_empty(), "there is no record 0");
}

#[test]
fn a_person_who_stays_silent_for_ever_is_named_when_nothing_expires() {
    let script = r#"{"model":[{"calls":[{"tool":"act","decision":"silence"}]}]}"#;
    let paused = with_script(script).replace(r#""release""#, r#""deadline_pauses_while_awaiting":true,"release""#);
    let played = play(&paused);
    assert_eq!(played.ending, None);
    assert!(played.people[0].contains("never comes, and nothing expires"), "{:?}", played.people);
}

#[test]
fn a_reader_that_went_away_leaves_the_release_without_a_receipt() {
    let script = |receipt: &str| with_script(&format!(r#"{{"model":[{LOOKS},{CITES}]{receipt}}}"#));
    let delivered = |text: &str| replay(&*play(text).history, Policy::Stop).unwrap().delivered;
    assert!(delivered(&script("")));
    assert!(!delivered(&script(r#","receipt":null"#)));
}

#[test]
fn a_file_that_is_no_scenario_is_refused_with_its_place() {
    let spec = r#""spec":{"task":"t","model":{"name":"m"}}"#;
    let cases = [
        ("{}", 1, 2, "missing field `spec`"),
        ("{\n  \"spec\": {\"task\": \"t\"}\n}", 2, 23, "missing field `model`"),
        (
            "{\"spec\":{\"task\":\"t\",\"model\":{\"name\":\"m\"},\"deadline_ms\":0}}",
            1,
            58,
            "spec.deadline_ms: 0 is outside",
        ),
        ("{%,\"sript\":{}}", 1, 49, "unknown field `sript`"),
        ("{%,\"about\":\"\",\"about\":\"\"}", 1, 60, "duplicate field `about`"),
        ("{%} {}", 1, 44, "trailing characters"),
        ("{%,\"script\":{\"model\":[{}]}}", 1, 64, "a model's answer has `text`, `draft`, `calls` or `error`"),
        ("{%,\"script\":{\"model\":[{\"text\":\"\",\"draft\":1}]}}", 1, 83, "`draft` stands in the place of `text`"),
        ("{%,\"script\":{\"interruptions\":[{\"cancel\":\"caller\"}]}}", 1, 89, "comes `at_ms` or `before`"),
        ("{%,\"script\":{\"interruptions\":[{\"at_ms\":1}]}}", 1, 81, "one of `cancel`, `restart` and `fault`"),
        ("{%,\"script\":{\"judge\":[{}]}}", 1, 64, "either `verdict` or `error`"),
        ("{%,\"script\":{\"actions\":{\"a\":[{\"says\":1}]}}}", 1, 75, "unknown field `says`"),
        ("{%,\"script\":{\"actions\":{\"a\":[\"maybe\"]}}}", 1, 75, "unknown variant `maybe`"),
        ("{%,\"script\":{\"actions\":{\"a\":[{\"always\":true},{}]}}}", 1, 88, "is the last of its list"),
        ("{%,\"script\":{\"hooks\":{\"p\":{\"run_end\":[]}}}}", 1, 75, "unknown variant `run_end`"),
        ("{%,\"script\":{\"gates\":{\"g\":[],\"g\":[]}}}", 1, 71, "duplicate field `g`"),
        ("{%,\"script\":{\"hooks\":{\"p\":{},\"p\":{}}}}", 1, 71, "duplicate field `p`"),
        (
            "{%,\"script\":{\"hooks\":{\"p\":{\"round_end\":[],\"round_end\":[]}}}}",
            1,
            92,
            "duplicate field `round_end`",
        ),
    ];
    for (text, line, column, reason) in cases {
        let text = text.replace('%', spec);
        let fault = Scenario::read(text.as_bytes()).expect_err(&text);
        assert!(fault.reason.contains(reason), "{text}: {fault}");
        assert_eq!((fault.line, fault.column), (line, column), "{text}: {fault}");
    }
}

proptest! {
    #![proptest_config(crate::support::remembered("proptest-regressions/scenarios.txt"))]

    #[test]
    fn any_edit_of_an_example_is_read_or_refused_and_what_is_read_plays_to_a_halt(
        example in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), byte in 32u8..127,
    ) {
        let examples = examples();
        let mut text = example.get(&examples).1.clone().into_bytes();
        let at = place.index(text.len());
        text[at] = byte;
        if let Ok(scenario) = Scenario::read(&text) {
            let played = match block_on(perform(scenario, Arc::new(MemoryStore::new()))) {
                Ok(played) => played,
                Err(Error::Resolution { .. }) => return Ok(()),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            prop_assert!(played.ending.is_some() || !played.people.is_empty(), "the run is stuck");
            prop_assert_eq!(replay(&*played.history, Policy::Stop).unwrap().divergences, Vec::new());
        }
    }
}
