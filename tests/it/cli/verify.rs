//! `replay --verify`: the closed table and the invariants, asked of a history that is read from a file.

use super::{bytes, every_history, expect, file, golden, resealed};
use crate::support::Scratch;

#[test]
fn every_golden_and_recorded_history_holds_all_invariants() {
    let histories = every_history();
    let arguments: Vec<&str> = ["replay", "--verify"].into_iter().chain(histories.iter().map(String::as_str)).collect();
    let said = expect(0, &arguments).out;
    assert_eq!(said.matches("12 invariants, 6 rules of an audit: all hold").count(), histories.len(), "{said}");
    assert_eq!(said.matches("closed table: its ending is row ").count(), histories.len());
}

#[test]
fn what_was_asked_stands_in_the_json() {
    let said = expect(0, &["replay", "--verify", "--json", &golden("diagnosis")]).out;
    let [replayed, verified] = &said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(replayed.starts_with(r#"{"run":"diagnosis","row":1,"#), "{replayed}");
    let fields: serde_json::Value = serde_json::from_str(verified).unwrap();
    assert_eq!(fields["closed_table"], true);
    assert_eq!(fields["invariants"].as_array().unwrap().len(), 12);
    assert_eq!(fields["broken"].as_array().unwrap().len(), 0);
}

/// The lines of a golden history, to be forged.
fn lines(name: &str) -> Vec<String> {
    String::from_utf8(bytes(&golden(name))).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_rehashed_ending_that_is_no_row_breaks_the_closed_table_with_6() {
    let folder = Scratch::new("verify-table");
    let mut forged = lines("row-02-unknown-citation");
    for line in &mut forged {
        *line = line.replace(r#""ending":{"row":2,"run_state":"success""#, r#""ending":{"row":2,"run_state":"failed""#);
    }
    let path = file(&folder, "forged.jsonl", &resealed(&forged));
    let said = expect(6, &["replay", "--verify", &path]).out;
    assert!(said.contains("diverges in state.ending.run_state"), "{said}");
    assert!(said.contains("closed table: no legal ending: no row has these columns together"), "{said}");
    let without = expect(6, &["replay", &path]).out;
    assert!(!without.contains("closed table"), "{without}");
}

#[test]
fn a_rehashed_release_without_facts_breaks_a_named_invariant() {
    let folder = Scratch::new("verify-invariant");
    let mut forged = lines("row-05-no-conclusion");
    let publishes = forged.iter_mut().find(|line| line.contains(r#""type":"publish""#)).unwrap();
    let from = publishes.find(r#""facts":[{"#).unwrap();
    let to = from + publishes[from..].find("]").unwrap();
    publishes.replace_range(from..to, r#""facts":["#);
    let path = file(&folder, "forged.jsonl", &resealed(&forged));
    let said = expect(6, &["replay", "--verify", &path]).out;
    assert!(said.contains("13.I3 founded_fallback at record"), "{said}");
    assert!(said.contains("demands: a fallback gives every observed fact"), "{said}");
}

#[test]
fn an_open_history_is_verified_and_keeps_its_9_and_a_damaged_one_its_7() {
    let folder = Scratch::new("verify-open");
    let first = lines("diagnosis")[..4].join("\n") + "\n";
    let open = file(&folder, "open.jsonl", first.as_bytes());
    let said = expect(9, &["replay", "--verify", &open]).out;
    assert!(said.contains("the run is open and has no ending") && said.contains("all hold"), "{said}");
    assert!(json_line(&open).get("closed_table").is_none());
    let damaged = file(&folder, "damaged.jsonl", first.replacen("diagnosis", "diagnosit", 1).as_bytes());
    assert!(!expect(7, &["replay", "--verify", &damaged]).out.contains("invariants"));
    expect(7, &["replay", "--verify", "no-such-file.jsonl"]);
}

fn json_line(path: &str) -> serde_json::Value {
    let said = expect(9, &["replay", "--verify", "--json", path]).out;
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

#[test]
fn several_histories_give_the_worst_exit_code() {
    let said = expect(7, &["replay", "--verify", &golden("diagnosis"), "no-such-file.jsonl"]).out;
    assert!(said.contains("all hold") && said.contains("cannot be read"), "{said}");
}
