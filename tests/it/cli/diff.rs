//! `diff`: where two histories part, with ids and times looked through.

use std::fs;

use portcullis::vocabulary::input::Input;

use super::{bytes, conclusions, expect, file, golden, json, portcullis, recorded, reports};
use crate::support::{Scratch, project};

/// Runs a scenario under another id, and gives the path of its history.
fn run_as(folder: &Scratch, scenario: &str, id: &str) -> String {
    let text = fs::read_to_string(project(&format!("examples/{scenario}.json"))).unwrap();
    let written = file(folder, &format!("{id}.json"), text.as_bytes());
    let history = folder.path().join(format!("{id}.jsonl")).to_str().unwrap().to_owned();
    let said = portcullis(&["run", &written, "--no-store", "--history", &history]);
    assert!([0, 3, 4, 5, 8].contains(&said.code), "{}", said.err);
    history
}

/// A history with one report changed, and the run's identity with it.
fn changed(history: &str, change: impl Fn(usize, &mut u64, &mut Input)) -> Vec<u8> {
    let mut reports = reports(&bytes(history));
    for (seq, (at_ms, input)) in reports.iter_mut().enumerate() {
        change(seq, at_ms, input);
    }
    recorded(reports)
}

#[test]
fn the_same_bytes_are_the_same_with_0() {
    let history = golden("diagnosis");
    let said = expect(0, &["diff", &history, &history]).out;
    assert!(said.ends_with("the same, byte for byte\n"), "{said}");
    let fields = json(0, &["diff", &history, &history]);
    assert_eq!((&fields["identical"], &fields["same"]), (&true.into(), &true.into()));
}

#[test]
fn one_scenario_under_two_names_is_the_same_for_every_example() {
    let folder = Scratch::new("diff-names");
    let mut compared = 0;
    for entry in fs::read_dir(project("examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(scenario) = name.strip_suffix(".json") else { continue };
        let [first, second] = ["one", "other"].map(|id| run_as(&folder, scenario, &format!("{scenario}-{id}")));
        let fields = json(0, &["diff", &first, &second]);
        assert_eq!(fields["same"], true, "{scenario}: {fields}");
        assert_eq!(fields["identical"], false, "{scenario}");
        assert!(fields["ids"].as_array().unwrap().contains(&"run_id".into()), "{scenario}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn a_changed_report_is_found_in_its_record_and_field() {
    let folder = Scratch::new("diff-changed");
    let history = golden("diagnosis");
    let mut found = 0;
    for place in 0..reports(&bytes(&history)).len() {
        let other = changed(&history, |seq, _, input| match input {
            Input::RunStarted { nonce, .. } => nonce.push('x'),
            Input::ModelResponded { usage, .. } if seq == place => usage.input_tokens = Some(4_321),
            _ => {}
        });
        let other = file(&folder, &format!("{place}.jsonl"), &other);
        if !matches!(reports(&bytes(&history))[place].1, Input::ModelResponded { .. }) {
            expect(0, &["diff", &history, &other]);
            continue;
        }
        found += 1;
        let fields = json(6, &["diff", &history, &other]);
        assert_eq!(fields["parting"]["seq"], place, "{fields}");
        assert_eq!(fields["parting"]["field"], "input.usage.input_tokens");
        assert_eq!((&fields["parting"]["b"], fields["parting"].get("a")), (&4_321.into(), None));
    }
    assert_eq!(found, 3);
}

#[test]
fn times_are_looked_through_and_said_unless_they_are_asked_for() {
    let folder = Scratch::new("diff-times");
    let history = golden("diagnosis");
    let other = changed(&history, |seq, at_ms, _| *at_ms += if seq > 3 { 7 } else { 0 });
    let other = file(&folder, "late.jsonl", &other);
    let said = expect(0, &["diff", &history, &other]).out;
    assert!(said.contains("when records come, which differs from record 4 on (A 1100 ms, B 1107 ms)"), "{said}");
    let fields = json(6, &["diff", &history, &other, "--times"]);
    assert_eq!((&fields["parting"]["seq"], &fields["parting"]["field"]), (&4.into(), &"at_ms".into()));
}

#[test]
fn settings_are_named_by_path_with_both_values_and_texts_stay_sealed() {
    let folder = Scratch::new("diff-settings");
    let history = golden("diagnosis");
    let other = changed(&history, |_, _, input| {
        if let Input::RunStarted { spec, .. } = input {
            spec.budgets.model_calls = Some(9);
            spec.task = "A secret task".to_owned();
        }
    });
    let other = file(&folder, "set.jsonl", &other);
    let said = expect(6, &["diff", &history, &other]).out;
    assert!(said.contains("setting budgets.model_calls: 6 -> 9\n"), "{said}");
    assert!(said.contains("setting task: ") && said.contains("bytes (") && !said.contains("secret"), "{said}");
    assert!(said.contains("apart from settings they are the same"), "{said}");
    assert!(expect(6, &["diff", &history, &other, "--payloads"]).out.contains("A secret task"));
}

#[test]
fn other_settings_that_lead_elsewhere_are_found_where_they_do() {
    let folder = Scratch::new("diff-elsewhere");
    let history = golden("row-02-unknown-citation");
    let mut reports = reports(&bytes(&history));
    reports.truncate(6);
    if let Input::RunStarted { spec, .. } = &mut reports[0].1 {
        spec.release.evidence_repairs = 0;
    }
    let other = file(&folder, "strict.jsonl", &recorded(reports));
    let fields = json(6, &["diff", &history, &other]);
    assert_eq!(fields["settings"][0]["field"], "release.evidence_repairs");
    assert_eq!(fields["parting"]["seq"], 5, "{fields}");
    assert!(fields["parting"]["field"].as_str().unwrap().starts_with("signals."), "{fields}");
}

#[test]
fn payloads_are_sizes_and_digests_unless_they_are_asked_for() {
    let (a, b) = (golden("row-02-unknown-citation"), golden("row-01-repaired-and-supported"));
    let kept = conclusions(&bytes(&a));
    for arguments in [&["diff", &a, &b][..], &["diff", &a, &b, "--json"], &["diff", &a, &b, "--width", "160"]] {
        let said = expect(6, arguments).out;
        assert!(!kept.iter().any(|text| said.contains(text.as_str())), "{said}");
        assert!(!said.contains("service"), "a tool's arguments are told: {said}");
    }
    let said = expect(6, &["diff", &a, &b, "--payloads"]);
    assert!(said.out.contains("service") && said.err.contains("privileged"), "{}", said.out);
}

#[test]
fn a_history_that_ends_before_the_other_is_said_to() {
    let folder = Scratch::new("diff-shorter");
    let history = golden("diagnosis");
    let whole = String::from_utf8(bytes(&history)).unwrap();
    let first = file(&folder, "first.jsonl", whole.split_inclusive('\n').take(5).collect::<String>().as_bytes());
    let said = expect(6, &["diff", &history, &first]).out;
    assert!(said.contains("they part at record 5: A goes on with tool_completed, and B ends before it"), "{said}");
    let said = expect(6, &["diff", &first, &history]).out;
    assert!(said.contains("B goes on with tool_completed, and A ends before it"), "{said}");
}

#[test]
fn two_columns_fit_the_width_and_below_100_there_is_one() {
    let (a, b) = (golden("row-05-no-conclusion"), golden("row-07-bad-draft"));
    let wide = expect(6, &["diff", &a, &b, "--width", "110"]).out;
    let rows: Vec<&str> = wide.lines().filter(|line| line.contains(" | ") || line.contains(" ! ")).collect();
    assert!(rows.len() > 10 && rows.iter().all(|row| row.chars().count() <= 110), "{wide}");
    assert!(rows[0].contains("row-05") && rows[0].contains("row-07"), "{}", rows[0]);
    for narrow in [&["--width", "99"][..], &[]] {
        let said = expect(6, &[&["diff", &a, &b][..], narrow].concat()).out;
        assert!(said.contains("\n-     1.000 s") && said.contains("\n+     1.000 s"), "{said}");
        assert!(!said.contains(" ! "), "{said}");
    }
}

#[test]
fn damage_on_either_side_is_7_and_a_missing_history_2() {
    let folder = Scratch::new("diff-damaged");
    let whole = String::from_utf8(bytes(&golden("diagnosis"))).unwrap();
    let damaged = file(&folder, "damaged.jsonl", whole.replace("92 sessions", "93 sessions").as_bytes());
    expect(7, &["diff", &golden("diagnosis"), &damaged]);
    expect(7, &["diff", &damaged, &golden("diagnosis")]);
    expect(2, &["diff", &golden("diagnosis"), "no such file"]);
}
