//! What if: the reports of a history under other rules (SPEC 13.20).

use std::path::{Path, PathBuf};

use portcullis::history::{Change, OtherRequest, Supposable, Supposed, Supposition, Unfounded, Unsupposable};
use portcullis::testkit::strategies::history;
use portcullis::vocabulary::spec::{Settings, SettingsFault};
use proptest::prelude::*;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> Supposable {
    let bytes = std::fs::read(project(path)).unwrap();
    Supposable::read(bytes.as_slice()).unwrap()
}

fn settings(written: &[&str]) -> Settings {
    let mut settings = Settings::none();
    written.iter().try_for_each(|written| settings.set(written)).unwrap();
    settings
}

fn under(path: &str, written: &[&str]) -> Supposition {
    read(path).under(&settings(written), OtherRequest::Stop, |_, _| {}).unwrap()
}

fn row(supposition: &Supposition) -> u8 {
    match &supposition.supposed {
        Supposed::Ended(ending) => ending.row,
        other => panic!("it does not end: {other:?}"),
    }
}

/// Nothing is supposed, so nothing changes: the supposed run is the recorded one, up to its ending.
fn unchanged(bytes: &[u8]) {
    let supposable = match Supposable::read(bytes) {
        Ok(supposable) => supposable,
        Err(Unsupposable::Empty) => return,
        Err(other) => panic!("{other}"),
    };
    let mut steps = 0;
    let supposition = supposable.under(&Settings::none(), OtherRequest::Stop, |_, _| steps += 1).unwrap();
    assert_eq!((supposition.change, &*supposition.assumed, supposition.steps), (None, &[][..], steps));
    match (&supposition.recorded, &supposition.supposed) {
        (Some(recorded), Supposed::Ended(supposed)) => assert_eq!(recorded, supposed),
        (None, Supposed::Open { .. }) => {
            let records = bytes.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(steps, records as u64, "every record of an open history is a step");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn under_its_own_rules_every_golden_history_is_itself() {
    let mut seen = 0;
    for entry in std::fs::read_dir(project("tests/golden/v1")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            unchanged(&std::fs::read(path).unwrap());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn under_its_own_rules_every_history_is_itself(history in history()) {
        unchanged(history.as_bytes());
    }

    #[test]
    fn under_any_rules_a_history_comes_to_an_end_and_its_rows_are_those_of_the_table(
        history in history(),
        calls in 0..4_u64,
        tools in 0..4_u64,
        saturation in 1..3_u64,
        deadline in prop_oneof![Just("null".to_owned()), (1..2_000_u64).prop_map(|due| due.to_string())],
    ) {
        let rules = settings(&[
            &format!("budgets.model_calls={calls}"),
            &format!("budgets.tool_calls={tools}"),
            &format!("collection.saturation_after={saturation}"),
            &format!("deadline_ms={deadline}"),
        ]);
        let Ok(supposable) = Supposable::read(history.as_bytes()) else { return Ok(()) };
        for other in [OtherRequest::Stop, OtherRequest::AssumeSameAnswer] {
            match supposable.under(&rules, other, |_, engine| assert_eq!(engine.decider().violations(), [])) {
                Ok(supposition) => if let Supposed::Ended(ending) = supposition.supposed {
                    prop_assert!((1..=20).contains(&ending.row));
                },
                Err(Unfounded::Refused(_)) => {}
                Err(Unfounded::Settings(fault)) => return Err(TestCaseError::fail(fault.to_string())),
            }
        }
    }
}

/// The recorded clock: three model calls, a fact, no citation, row 2.
const CLOCK: &str = "examples/recorded/clock.jsonl";

#[test]
fn a_smaller_budget_ends_the_run_where_it_is_met() {
    let supposition = under(CLOCK, &["budget.model_calls=1"]);
    assert_eq!(row(&supposition), 13);
    assert_eq!(supposition.recorded.as_ref().map(|ending| ending.row), Some(2));
    let change = supposition.change.unwrap();
    assert_eq!(change, Change { seq: 4, at_ms: 6_634 }, "when the tool has returned and the model would be asked");
    assert_eq!(row(&under(CLOCK, &["budget.model_calls=0"])), 14);
    assert_eq!(row(&under(CLOCK, &["budget.model_calls=3"])), 2);
    assert_eq!(under(CLOCK, &["budget.model_calls=3"]).change, None, "exactly as many as were used");
}

#[test]
fn what_the_model_was_never_asked_is_said_and_not_guessed() {
    let supposition = under(CLOCK, &["collection.saturation_after=1", "release.evidence_repairs=2"]);
    match &supposition.supposed {
        Supposed::Unanswered { seq, question, differs, .. } => {
            assert_eq!(
                (*seq, question.tag(), *differs),
                (6, "call_model", false),
                "a second repair was never asked for"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_answer_may_be_assumed_where_the_request_differs_and_it_is_counted() {
    // The second observation that brings nothing new saturates: from then on the model is told to stop.
    let path = "tests/golden/v1/row-09-evidence-after-the-stop.jsonl";
    let sooner = settings(&["collection.saturation_after=1"]);
    let strict = read(path).under(&sooner, OtherRequest::Stop, |_, _| {}).unwrap();
    assert!(matches!(strict.supposed, Supposed::Unanswered { differs: true, .. }), "{:?}", strict.supposed);
    let assumed = read(path).under(&sooner, OtherRequest::AssumeSameAnswer, |_, _| {}).unwrap();
    assert!(!assumed.assumed.is_empty());
    assert!(matches!(assumed.supposed, Supposed::Ended(_)), "{:?}", assumed.supposed);
}

#[test]
fn a_deadline_that_was_not_there_passes_when_it_is_due() {
    let supposition = under(CLOCK, &["deadline_ms=6632"]);
    assert_eq!(row(&supposition), 16);
    // The tool returns two milliseconds later than that.
    assert_eq!(row(&under(CLOCK, &["deadline_ms=9000"])), 16);
    assert_eq!(row(&under(CLOCK, &["deadline_ms=17000"])), 2);
}

#[test]
fn rules_that_fit_no_run_are_refused_with_their_reason() {
    let supposable = read(CLOCK);
    let refused = |written| supposable.under(&settings(&[written]), OtherRequest::Stop, |_, _| {}).unwrap_err();
    assert!(matches!(refused("budgets.nothing=1"), Unfounded::Settings(SettingsFault::Unfit { .. })));
    assert!(matches!(refused("retry.base_ms=0"), Unfounded::Refused(_)));
}

#[test]
fn a_damaged_history_is_not_supposed_about() {
    let bytes = std::fs::read(project(CLOCK)).unwrap();
    let flipped = String::from_utf8(bytes.clone()).unwrap().replacen("Rome", "Oslo", 1);
    assert!(matches!(Supposable::read(flipped.as_bytes()), Err(Unsupposable::Damaged(_))));
    assert!(matches!(Supposable::read(&b""[..]), Err(Unsupposable::Empty | Unsupposable::Damaged(_))));
}
