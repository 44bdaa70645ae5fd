//! Wire forms: strict in, fixed out (SPEC 4).

use portcullis::vocabulary::input::Input;

#[cfg(feature = "schema")]
use crate::support::assert_generated;
use crate::support::small_success;

fn refused(text: &str) -> String {
    serde_json::from_str::<Input>(text).expect_err(text).to_string()
}

#[test]
fn unknown_fields_are_refused_for_variants_without_fields_too() {
    assert!(refused(r#"{"type":"deadline_elapsed","x":1}"#).contains("unknown field"));
    assert!(refused(r#"{"type":"gate_answered","ask":1,"answer":{"type":"allow","x":1}}"#).contains("unknown field"));
}

#[test]
fn duplicate_keys_are_refused_in_inputs_and_payloads() {
    assert!(refused(r#"{"type":"gate_failed","ask":1,"ask":1}"#).contains("duplicate field"));
    let payload =
        r#"{"type":"decision_given","ticket":"k","by":"p","decision":{"type":"allow_with","arguments":{"a":1,"a":2}}}"#;
    assert!(refused(payload).contains("duplicate_key"));
}

#[test]
fn the_tag_must_be_there_and_known() {
    assert!(refused(r#"{"type":"nonsense"}"#).contains("unknown variant"));
    assert!(refused(r#"{"ask":1,"type":"nonsense"}"#).contains("unknown variant"));
    assert!(refused(r#"{}"#).contains("missing field `type`"));
    assert!(refused(r#"{"ask":1}"#).contains("missing field `type`"));
    assert!(refused(r#"{"ask":1,"type":7}"#).contains("`type` is a string"));
}

#[test]
fn a_tag_that_comes_later_loses_nothing_of_the_strictness() {
    assert!(refused(r#"{"ask":1,"type":"gate_failed","x":1}"#).contains("unknown field"));
    assert!(refused(r#"{"ask":1,"type":"gate_failed","ask":1}"#).contains("duplicate field"));
    assert!(refused(r#"{"ask":1,"type":"gate_failed","type":"gate_failed"}"#).contains("duplicate field"));
    assert!(refused(r#"{"ask":1.5,"type":"gate_failed"}"#).contains("invalid type"));
    assert!(refused(r#"{"ask":18446744073709551616,"type":"gate_failed"}"#).contains("invalid"));
    let beyond = r#"{"by":"p","decision":{"arguments":18446744073709551616,"type":"allow_with"},"ticket":"k","type":"decision_given"}"#;
    assert!(refused(beyond).contains("number_out_of_range"));
    assert!(serde_json::from_str::<Input>(&beyond.replace("616", "615")).is_ok());
}

#[test]
fn inputs_may_be_built_through_maps_that_sort_their_keys() {
    for line in small_success().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let record: serde_json::Value = serde_json::from_slice(line).expect("a record");
        let sorted: Input = serde_json::from_value(record["input"].clone()).expect("an input");
        let text = serde_json::to_string(&record["input"]).expect("text");
        assert_eq!(sorted, serde_json::from_str::<Input>(&text).expect("an input"));
        let written = serde_json::to_string(&sorted).expect("text");
        let line = String::from_utf8(line.to_vec()).expect("text");
        assert!(line.contains(&written), "{written}");
    }
}

#[test]
fn trailing_bytes_are_refused() {
    assert!(refused(r#"{"type":"gate_failed","ask":1} {}"#).contains("trailing"));
}

#[test]
fn payloads_keep_their_exact_numbers() {
    let text = r#"{"type":"decision_given","ticket":"k","by":"p","decision":{"type":"allow_with","arguments":{"big":18446744073709551615,"half":0.5,"negative":-9223372036854775808}}}"#;
    let input: Input = serde_json::from_str(text).expect("it is well formed");
    assert_eq!(serde_json::to_string(&input).expect("it can be written"), text);
    let beyond = text.replace("18446744073709551615", "18446744073709551616");
    assert!(refused(&beyond).contains("number_out_of_range"));
}

#[test]
fn lone_surrogates_and_deep_nesting_are_refused() {
    let with = |arguments: &str| {
        format!(
            r#"{{"type":"decision_given","ticket":"k","by":"p","decision":{{"type":"allow_with","arguments":{arguments}}}}}"#
        )
    };
    assert!(refused(&with(r#""\ud800""#)).contains("surrogate"));
    let deep = |depth: usize| with(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    assert!(serde_json::from_str::<Input>(&deep(64)).is_ok());
    assert!(refused(&deep(65)).contains("depth"));
}

/// Names on the wire are frozen: this snapshot changes only when a new name joins.
#[test]
fn wire_names_are_pinned() {
    use portcullis::engine::Request;
    use portcullis::vocabulary::{environment, failure, input, llm, outcome, refusal, signal, tool};
    let words = |all: &[&str]| all.join(" ");
    let names = [
        ("inputs", words(Input::TAGS)),
        ("signals", words(signal::Signal::TAGS)),
        ("effects", words(Request::TAGS)),
        ("commands", words(input::StagedCommand::TAGS)),
        ("hook points", words(&environment::HookPoint::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("state scopes", words(&environment::StateScope::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("merge policies", words(&environment::MergePolicy::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("llm errors", words(llm::Error::TAGS)),
        ("tool errors", words(tool::ToolError::TAGS)),
        ("failures", words(failure::Failure::TAGS)),
        ("resolution errors", words(failure::ResolutionError::TAGS)),
        ("resolution kinds", words(&failure::ResolutionKind::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("observations", words(&tool::ObservationCode::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("refusals", words(&refusal::RefusalKind::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("run states", words(&outcome::RunStatus::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("stop reasons", words(&outcome::StopReason::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("fallbacks", words(&outcome::FallbackType::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("failure codes", words(&outcome::FailureCode::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
        ("limits", words(&signal::BudgetLimit::ALL.iter().map(|word| word.word()).collect::<Vec<_>>())),
    ];
    let pinned: Vec<String> = names.iter().map(|(name, words)| format!("{name}: {words}")).collect();
    snapshot!("wire_names", pinned.join("\n"));
}

#[test]
fn a_small_history_is_pinned_byte_for_byte() {
    snapshot!("small_success_history", String::from_utf8(small_success()).expect("text"));
}

#[cfg(feature = "schema")]
#[test]
fn the_schema_in_the_docs_is_the_code_s() {
    let schema = serde_json::to_string_pretty(&portcullis::history::schema()).expect("a schema is JSON");
    assert_generated("docs/wire.schema.json", &format!("{schema}\n"));
}
