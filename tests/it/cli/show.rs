//! `show`: rounds, one record looked at closely, and a parent that is named.

use super::{bytes, drafts, expect, golden, json, reports};

#[test]
fn rounds_are_set_apart_and_a_repair_belongs_to_the_round_before_it() {
    let said = expect(0, &["show", "examples/recorded/clock.jsonl"]).out;
    let rounds: Vec<&str> = said.lines().filter(|line| line.starts_with("  round ")).collect();
    assert_eq!(rounds, ["  round 1", "  round 2"]);
    let retried = expect(0, &["show", &golden("row-17-model-overloaded")]).out;
    assert_eq!(retried.matches("\n  round ").count(), 2, "{retried}");
}

#[test]
fn a_step_shows_input_signals_effects_state_and_what_is_outstanding() {
    let history = golden("people-1-edited-arguments");
    let said = expect(0, &["show", &history, "--step", "2"]).out;
    for line in [
        "record 2 of 12 (0 to 11)",
        "  input      model_responded, ",
        "  signals    response_accepted (m1)",
        "  effects    await_decision (t1.0, ticket t1.0-eb9198b5f0f92823); answered by decision_given.",
        "  waits for  A person: await_decision (t1.0, ",
        "  accepts    decision_given, ",
    ] {
        let line = line.replace("effects    await", "effects    A person: await");
        assert!(said.contains(&line), "{line}\n{said}");
    }
    assert!(said.contains(r#"run             {"phase":"awaiting","round":1,"state":"running"}"#), "{said}");
}

#[test]
fn the_state_of_a_step_is_the_one_that_its_record_holds() {
    let history = golden("diagnosis");
    let lines = String::from_utf8(bytes(&history)).expect("text");
    for (seq, line) in lines.lines().enumerate() {
        let record: serde_json::Value = serde_json::from_str(line).expect("a record");
        let shown = json(0, &["show", &history, "--step", &seq.to_string()]);
        assert_eq!(shown["state"], record["state"], "{seq}");
        assert_eq!(shown["effects"], record["effects"], "{seq}");
        assert_eq!(shown["input"]["type"], record["input"]["type"]);
        let input = line.split(",\"input\":").nth(1).and_then(|rest| rest.split(",\"signals\":").next());
        assert_eq!(shown["input"]["bytes"], input.expect("an input").len(), "{seq}");
        assert!(shown["input"].get("payload").is_none());
    }
}

#[test]
fn payloads_come_out_only_when_they_are_asked_for() {
    let history = golden("row-02-unknown-citation");
    let draft = drafts(&bytes(&history)).remove(0);
    let seq = reports(&bytes(&history)).iter().position(|(_, input)| input.tag() == "model_responded").unwrap();
    let last = ["show", &history, "--step", "5"];
    assert!(seq < 5);
    let said = expect(0, &[&last[..], &["--payloads"]].concat());
    let written = serde_json::to_string(&draft).unwrap();
    assert!(said.out.contains(&written) && said.err.contains("privileged"), "{}", said.out);
    assert!(!expect(0, &last).out.contains(&written));
    assert_eq!(json(0, &[&last[..], &["--payloads"]].concat())["input"]["payload"]["content"]["text"], draft);
    expect(2, &["show", &history, "--payloads"]);
}

#[test]
fn what_others_said_when_they_failed_needs_errors_there_too() {
    let failed = ["show", &golden("row-17-model-overloaded"), "--step", "5"];
    let quiet = json(0, &failed);
    let loud = json(0, &[&failed[..], &["--errors"]].concat());
    assert!(quiet["input"].get("said").is_none(), "{quiet}");
    let said = loud["input"]["said"].as_str().expect("what the model said");
    assert!(!expect(0, &failed).out.contains(said));
    assert!(expect(0, &[&failed[..], &["--errors"]].concat()).out.contains(said));
}

#[test]
fn a_record_that_is_not_there_is_2_and_damage_is_7_wherever_it_is() {
    let said = expect(2, &["show", &golden("diagnosis"), "--step", "12"]);
    assert!(said.err.contains("there is no record 12: it has 12, 0 to 11"), "{}", said.err);
    let folder = crate::support::Scratch::new("show-damaged");
    let damaged = String::from_utf8(bytes(&golden("diagnosis"))).unwrap().replace("92 sessions", "93 sessions");
    let path = super::file(&folder, "damaged.jsonl", damaged.as_bytes());
    assert_eq!(expect(7, &["show", &path, "--step", "1"]).out, "");
}
