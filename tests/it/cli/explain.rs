//! `explain`: every row in plain words, and nothing that was not released.

use portcullis::engine::Engine;
use portcullis::engine::table::ROWS;
use portcullis::history::explain::{Condition, Standing, Witness};

use super::{conclusions, every_history, expect, file, golden, json, reports};
use crate::support::Scratch;

/// The explanation as text and as JSON, beside each other.
fn explained(name: &str, row: u8) {
    let history = golden(name);
    let text = expect(0, &["explain", &history]).out;
    let fields = json(0, &["explain", &history]);
    assert_eq!(fields["ended"]["ending"]["row"], row);
    let fields = serde_json::to_string_pretty(&fields).expect("JSON");
    crate::snapshot!(format!("explain_{name}"), format!("{text}\n{fields}"));
}

macro_rules! rows {
    ($($test:ident $row:literal $history:literal;)*) => { $(
        #[test]
        fn $test() {
            explained($history, $row);
        }
    )* };
}

rows! {
    row_1_every_check_let_the_draft_through 1 "row-01-repaired-and-supported";
    row_2_the_evidence_guard_is_named_with_what_it_objects_to 2 "row-02-unknown-citation";
    row_3_says_that_a_fact_would_have_made_a_fallback_of_it 3 "row-03-claims-without-looking";
    row_4_the_judge_is_named_with_its_verdict 4 "row-04-judge-contradicts";
    row_5_a_legal_draft_that_concludes_nothing 5 "row-05-no-conclusion";
    row_6_concludes_nothing_and_saw_nothing 6 "row-06-no-conclusion-nothing-observed";
    row_7_the_output_contract_is_named_with_the_fault 7 "row-07-bad-draft";
    row_8_a_bad_draft_without_facts 8 "row-08-empty-draft-nothing-observed";
    row_9_the_stop_was_delivered_before 9 "row-09-evidence-after-the-stop";
    row_10_the_stop_and_nothing_observed 10 "row-10-evidence-after-the-stop-nothing-observed";
    row_11_each_violation_is_counted 11 "row-11-protocol-violations";
    row_12_violations_and_nothing_observed 12 "row-12-protocol-violations-nothing-observed";
    row_13_the_budget_is_named_with_its_limit 13 "row-13-budget-used-up";
    row_14_no_budget_for_the_first_call 14 "row-14-no-budget-at-all";
    row_15_somebody_cancelled 15 "row-15-cancelled";
    row_16_the_time_was_up 16 "row-16-deadline";
    row_17_each_retry_is_told 17 "row-17-model-overloaded";
    row_18_it_never_came_to_the_loop 18 "row-18-no-route";
    row_19_nobody_may_guess 19 "row-19-outcome-unknown";
    row_20_the_gate_is_named 20 "row-20-release-blocked";
}

#[test]
fn row_19_tells_too_many_crashes_from_an_outcome_that_nobody_knows() {
    for (name, by, told) in [
        ("crash-3-crash-budget", "crashes", "if a report had come between the crashes (5 in a row"),
        ("row-19-outcome-unknown", "recovery", "if it had been known what every interrupted call did"),
    ] {
        let history = golden(name);
        let fields = json(0, &["explain", &history]);
        assert_eq!((&fields["ended"]["ending"]["row"], &fields["ended"]["by"]), (&19.into(), &by.into()));
        let said = expect(0, &["explain", &history]).out;
        assert!(said.contains(told), "{said}");
    }
}

/// Steps a history; the witness and the engine after every record.
fn witnessed(history: &str, mut each: impl FnMut(&Witness, &Engine)) {
    let (mut engine, mut witness) = (Engine::new(), Witness::default());
    for (at_ms, input) in reports(&super::bytes(history)) {
        let step = engine.step(at_ms, input).expect("it was accepted once");
        witness.see(&step, &engine);
        each(&witness, &engine);
    }
}

#[test]
fn every_neighbour_is_another_row_of_the_table_and_fits_its_column_of_facts() {
    let mut asked = 0;
    for history in every_history() {
        witnessed(&history, |witness, engine| {
            let explanation = witness.explain(engine).expect("it began");
            let Standing::Ended(account) = explanation.standing else { return };
            assert!(!account.not_taken.is_empty(), "{history}");
            for neighbour in &account.not_taken {
                assert!(!neighbour.conditions.is_empty(), "{history}");
                let Some(number) = neighbour.row else { continue };
                asked += 1;
                let row = ROWS.iter().find(|row| row.number == number).expect("a row of the table");
                assert_ne!(number, account.ending.row, "{history}");
                assert_eq!(neighbour.happened, Some(row.happened));
                let otherwise = |condition| neighbour.conditions.contains(&condition);
                let facts = account.ending.facts > 0;
                let facts = if otherwise(Condition::FactObserved) {
                    assert!(!facts, "{history}");
                    true
                } else if otherwise(Condition::NothingObserved) {
                    assert!(facts, "{history}");
                    false
                } else {
                    facts
                };
                assert!(row.facts.is_none_or(|column| column == facts), "{history}: row {number}");
            }
        });
    }
    assert!(asked > 60, "{asked}");
}

#[test]
fn every_open_prefix_says_what_it_waits_for() {
    let mut open = 0;
    for history in every_history() {
        witnessed(&history, |witness, engine| {
            let explanation = witness.explain(engine).expect("it began");
            let Standing::Open(waiting) = explanation.standing else { return };
            open += 1;
            assert!(!waiting.waits_for.is_empty(), "{history}");
            let answered = waiting.waits_for.iter().all(|wait| !wait.answered_by.is_empty());
            assert!(answered, "{history}: {:?}", waiting.waits_for);
        });
    }
    assert!(open > 200, "{open}");
}

#[test]
fn an_open_run_waits_for_a_person_with_8_and_for_anything_else_with_9() {
    let folder = Scratch::new("explain-open");
    let whole = String::from_utf8(super::bytes(&golden("people-1-edited-arguments"))).expect("text");
    let first = |count: usize| whole.split_inclusive('\n').take(count).collect::<String>();
    let asking = file(&folder, "asking.jsonl", first(3).as_bytes());
    let said = expect(8, &["explain", &asking]).out;
    assert!(said.contains("A person: await_decision (t1.0, ticket t1.0-"), "{said}");
    let fields = json(8, &["explain", &asking]);
    assert_eq!(fields["open"]["waits_for"][0]["by_a_person"], true);
    let inferring = file(&folder, "inferring.jsonl", first(2).as_bytes());
    assert!(expect(9, &["explain", &inferring]).out.contains("call_model (m1, attempt 1)"));
}

#[test]
fn no_explanation_and_no_step_tells_what_was_not_released() {
    for (name, row) in [("row-02-unknown-citation", 2), ("row-04-judge-contradicts", 4), ("row-20-release-blocked", 20)]
    {
        let history = golden(name);
        let kept = conclusions(&super::bytes(&history));
        assert!(!kept.is_empty() && kept.iter().all(|text| text.len() > 8), "{kept:?}");
        let mut said = vec![expect(0, &["explain", &history]).out, expect(0, &["explain", &history, "--json"]).out];
        let records = reports(&super::bytes(&history)).len();
        for seq in 0..records {
            said.push(expect(0, &["show", &history, "--step", &seq.to_string()]).out);
            said.push(expect(0, &["show", &history, "--step", &seq.to_string(), "--json"]).out);
        }
        for text in &kept {
            assert!(!said.iter().any(|said| said.contains(text.as_str())), "row {row} tells {text:?}");
        }
    }
}

#[test]
fn facts_are_told_only_where_the_release_publishes_them() {
    let stated = |name: &str| json(0, &["explain", &golden(name)])["facts"].to_string().matches("statement").count();
    assert_eq!([stated("row-02-unknown-citation"), stated("row-05-no-conclusion")], [1, 2]);
    assert_eq!(
        [stated("row-16-deadline"), stated("row-17-model-overloaded"), stated("row-20-release-blocked")],
        [0; 3]
    );
}
