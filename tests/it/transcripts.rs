//! Recorded transcripts as runs: the endings of recordings that nobody here wrote, and what the importer
//! decides.

use portcullis::adapters::recording::Recording;
use portcullis::adapters::scenario::Scenario;
use portcullis::adapters::transcripts::Transcript;
use portcullis::engine::Ending;
use portcullis::history::{Policy, replay};
use portcullis::vocabulary::outcome::StopReason;

use crate::shared;
use crate::stage::Played;
use crate::transcript_reader::properties::{conversation, document};
use proptest::prelude::*;

/// File, and the row in which each turn ends. A turn that answers without a look at anything ends in row 3,
/// one that looked in row 2 (it cites nothing); the last turn of a tau-bench file has no answer.
const ROWS: [(&str, &[u8]); 17] = [
    ("tau-bench-airline-00-0.json", &[3, 3, 2, 2, 2, 2, 2, 17]),
    ("tau-bench-airline-01-0.json", &[3, 3, 3, 3, 3, 17]),
    ("tau-bench-airline-02-1.json", &[3, 2, 3, 17]),
    ("tau-bench-airline-03-0.json", &[3, 3, 2, 2, 2, 3, 3, 3, 3, 2, 17]),
    ("tau-bench-airline-09-2.json", &[3, 3, 3, 2, 3, 2, 2, 17]),
    ("tau-bench-airline-13-0.json", &[3, 2, 3, 2, 3, 2, 3, 2, 3, 3, 3, 3, 3, 2, 17]),
    ("tau-bench-airline-13-1.json", &[3, 2, 3, 3, 2, 2, 2, 3, 17]),
    ("tau-bench-airline-15-1.json", &[3, 3, 2, 3, 2, 3, 17]),
    ("tau-bench-airline-18-0.json", &[3, 2, 3, 3, 17]),
    ("tau-bench-airline-23-1.json", &[3, 2, 2, 3, 2, 3, 3, 3, 3, 3, 3, 2, 17]),
    ("tau-bench-airline-33-0.json", &[3, 3, 2, 2, 2, 2, 3, 17]),
    ("tau-bench-airline-46-3.json", &[3, 3, 2, 3, 2, 3, 2, 2, 2, 3, 2, 2, 17]),
    ("toolbench-G1_answer-10_ChatGPT_DFS_woFilter_w2.json", &[2]),
    ("toolbench-G1_answer-69_ChatGPT_DFS_woFilter_w2.json", &[17]),
    ("toolbench-G2_answer-10_ChatGPT_DFS_woFilter_w2.json", &[7]),
    ("toolbench-G2_answer-127_ChatGPT_DFS_woFilter_w2.json", &[7]),
    ("toolbench-G3_answer-3_ChatGPT_DFS_woFilter_w2.json", &[2]),
];

/// Plays one turn and replays its history.
fn played(scenario: Scenario) -> (Ending, Vec<String>, String) {
    let Played { ending, questions, history, .. } = crate::stage::play(scenario);
    let ending = ending.expect("no turn awaits a person");
    let summary = replay(&*history, Policy::ReportAll).unwrap();
    assert_eq!((summary.divergences, summary.ending.as_ref()), (Vec::new(), Some(&ending)));
    (ending, questions, String::from_utf8(history).unwrap())
}

fn recording(json: &str) -> Recording {
    Recording::new(Transcript::read(json.as_bytes()).unwrap())
}

fn first(json: &str) -> Scenario {
    recording(json).scenario(0).unwrap()
}

/// A list of one user message and what follows it.
fn turn(replies: &str) -> String {
    format!(r#"[{{"role":"user","content":"task"}},{replies}]"#)
}

fn called(name: &str, arguments: &str, result: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function",
        "function":{{"name":"{name}","arguments":"{arguments}"}}}}]}},
        {{"role":"tool","tool_call_id":"c","content":"{result}"}}"#
    )
}

const ANSWER: &str = r#"{"role":"assistant","content":"done"}"#;

#[test]
fn every_recording_ends_as_the_table_says_and_its_histories_replay() {
    let Some(data) = shared::data() else { return };
    let folder = data.join("openai-messages");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), ROWS.len(), "a recording has no row");
    for (file, rows) in ROWS {
        let recording = Recording::new(Transcript::read(&std::fs::read(folder.join(file)).unwrap()).unwrap());
        let endings: Vec<_> = recording.scenarios().map(|scenario| played(scenario).0.row).collect();
        assert_eq!(endings, rows, "{file}");
    }
}

#[test]
fn a_recorded_result_is_one_fact_and_an_answer_without_citations_is_never_a_success() {
    let json = turn(&format!("{},{ANSWER}", called("look", "{}", "seen")));
    let (ending, questions, _) = played(first(&json));
    assert_eq!((ending.row, ending.facts, questions.len()), (2, 1, 0));
}

#[test]
fn errors_and_blank_results_are_no_facts() {
    let replies = [called("look", "{}", "Error: no such thing"), called("look", "{}", "  "), ANSWER.to_owned()];
    let (ending, ..) = played(first(&turn(&replies.join(","))));
    assert_eq!((ending.row, ending.facts), (3, 0));
}

#[test]
fn the_same_question_again_is_asked_and_saturates_but_is_no_duplicate() {
    let looks = [called("poll", "{}", "same"), called("poll", "{}", "same"), called("poll", "{}", "same")];
    let saturated = turn(&[&looks[..], &[ANSWER.to_owned()]].concat().join(","));
    let (ending, _, history) = played(first(&saturated));
    assert_eq!((ending.row, ending.stop_reason), (2, Some(StopReason::InformationSaturated)));
    assert!(!history.contains("DUPLICATE_SCOPE"));
    let further = turn(&[&looks[..], &[called("poll", "{}", "new at last"), ANSWER.to_owned()]].concat().join(","));
    let (ending, ..) = played(first(&further));
    assert_eq!(
        (ending.row, ending.facts),
        (9, 3),
        "evidence after the stop ends the run: a finding about the recording"
    );
}

#[test]
fn a_tool_that_never_states_anything_is_no_evidence() {
    let thoughts = vec![called("think", "{}", ""); 4];
    let json = turn(&format!("{},{},{ANSWER}", thoughts.join(","), called("look", "{}", "seen")));
    let recording = recording(&json);
    assert!(
        recording.notes().iter().any(|note| note.starts_with("\"think\" never states anything")),
        "{:?}",
        recording.notes()
    );
    let (ending, ..) = played(recording.scenario(0).unwrap());
    assert_eq!((ending.row, ending.facts, ending.stop_reason), (2, 1, None));
}

#[test]
fn earlier_turns_are_prior_messages_with_their_calls_and_results() {
    let json = format!(
        r#"[{{"role":"system","content":"rules"}},{{"role":"user","content":"one"}},{},{ANSWER},
        {{"role":"user","content":"two"}},{ANSWER}]"#,
        called("look", "{}", "seen")
    );
    let recording = recording(&json);
    let second = recording.scenario(1).unwrap().spec;
    let said: Vec<_> = second.prior_messages.iter().map(|prior| (prior.role.word(), prior.text.as_str())).collect();
    assert_eq!(said, [("user", "one"), ("assistant", "look {}"), ("tool", "seen"), ("assistant", "done")]);
    assert_eq!((second.instructions.as_str(), second.task.as_str()), ("rules", "two"));
}

#[test]
fn what_the_recording_does_not_answer_is_an_internal_failure_that_names_the_question() {
    let silent = first(r#"[{"role":"user","content":"anybody there?"}]"#);
    let (ending, questions, _) = played(silent);
    assert_eq!((ending.row, questions), (17, vec!["what does the model answer to m1, attempt 1 (step)?".to_owned()]));
    let pending = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
        "function":{"name":"look","arguments":"{}"}}]}"#;
    let (ending, questions, _) = played(first(&turn(pending)));
    assert_eq!((ending.row, questions), (17, vec!["what does \"look\" give back to call t1.0, attempt 1?".to_owned()]));
}

#[test]
fn a_name_that_no_tool_may_have_is_an_unknown_tool_and_the_run_goes_on() {
    let json = turn(&format!("{},{ANSWER}", called("look around", "{}", "seen")));
    let (ending, _, history) = played(first(&json));
    assert_eq!((ending.row, ending.facts), (3, 0));
    assert!(history.contains("UNKNOWN_TOOL"));
}

proptest! {
    #![proptest_config(crate::support::remembered("proptest-regressions/transcripts.txt"))]

    #[test]
    fn every_turn_of_any_conversation_comes_to_an_end_that_replays_and_is_no_success(sent in conversation()) {
        let recording = recording(&document(&sent, 0));
        for scenario in recording.scenarios() {
            let (ending, questions, _) = played(scenario);
            prop_assert_eq!(questions.is_empty(), ending.row != 17, "{:?} in row {}", questions, ending.row);
            prop_assert!(ending.row != 1);
        }
    }
}
