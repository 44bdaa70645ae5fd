//! `fork`: a run of its own that begins with the first records of another.

use std::collections::BTreeSet;

use portcullis::engine::Engine;
use portcullis::history::compare::{Manner, Reading, compare};
use portcullis::history::fork::{ForkError, Prefix};
use portcullis::history::{Policy, replay};
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::{Input, LiveTool};
use portcullis::vocabulary::tool::Recovery;

use super::{bytes, every_history, expect, file, golden, json, reports};
use crate::support::Scratch;

fn id(text: &str) -> RunId {
    text.parse().expect("an id")
}

/// The engine after each record of a history.
fn states(history: &[u8]) -> Vec<Engine> {
    let mut engine = Engine::new();
    let states = reports(history).into_iter().map(|(at_ms, input)| {
        engine.step(at_ms, input).expect("it was accepted once");
        engine.clone()
    });
    states.collect()
}

fn tags(engine: &Engine) -> Vec<&'static str> {
    engine.outstanding().iter().map(Effect::tag).collect()
}

#[test]
fn every_open_record_of_every_history_can_be_forked_and_the_fork_reproduces() {
    let (mut forks, mut ended) = (0, 0);
    for history in every_history() {
        let history = bytes(&history);
        for (at, state) in (0..).zip(states(&history)) {
            if state.ending().is_some() {
                ended += 1;
                assert!(matches!(Prefix::read(&*history, at), Err(ForkError::Ended { .. })));
                continue;
            }
            forks += 1;
            let fork = Prefix::read(&*history, at).unwrap().fork(&id("a-fork"), "t".to_owned()).unwrap();
            let summary = replay(&*fork.lines, Policy::Stop).expect("a whole history");
            assert_eq!((summary.divergences.len(), summary.records), (0, at + 1));
            assert_eq!((summary.run, summary.head), (id("a-fork"), fork.head));
            assert_eq!(fork.engine.run_state(), state.run_state());
            assert_eq!((tags(&fork.engine), fork.engine.ledger()), (tags(&state), state.ledger()));
            assert_eq!(fork.engine.facts(), state.facts());
            assert_eq!((fork.parent.seq, Some(&fork.parent.run)), (at, state.run_id()));
        }
    }
    assert!(forks > 200 && ended > 60, "{forks} {ended}");
}

/// A history as `compare` reads it.
fn reading(history: &[u8]) -> Reading {
    let (mut engine, mut reading) = (Engine::new(), Reading::default());
    for (at_ms, input) in reports(history) {
        let step = engine.step(at_ms, input).expect("it was accepted once");
        reading.see(&step, &engine);
    }
    reading
}

#[cfg(feature = "testkit")]
#[test]
fn whatever_happened_a_fork_reproduces_and_compares_as_its_parents_beginning() {
    use portcullis::testkit::strategies::open_history;
    use proptest::prelude::any;
    use proptest::sample::Index;

    let forked = std::cell::Cell::new(0);
    let cases = (open_history(), any::<Index>());
    let property = |(history, at): (String, Index)| {
        let at = at.index(history.lines().count());
        let fork = Prefix::read(history.as_bytes(), at as u64).unwrap().fork(&id("a-fork"), "t".to_owned()).unwrap();
        assert_eq!(replay(&*fork.lines, Policy::Stop).unwrap().divergences, Vec::new());
        let prefix: String = history.split_inclusive('\n').take(at + 1).collect();
        let found = compare(&reading(prefix.as_bytes()), &reading(&fork.lines), Manner::default());
        assert!(found.same(), "{found:?}");
        forked.set(forked.get() + at);
        Ok(())
    };
    crate::properties::runner(256).run(&cases, property).unwrap();
    assert!(forked.get() > 500, "{} records", forked.get());
}

/// Everything that a run asks of the world under a name that must be its own.
fn names(history: &[u8]) -> BTreeSet<String> {
    let (mut engine, mut names) = (Engine::new(), BTreeSet::new());
    for (at_ms, input) in reports(history) {
        for effect in engine.step(at_ms, input).expect("it was accepted once").effects {
            match effect {
                Effect::InvokeTool { operation_id, .. } | Effect::ReconcileTool { operation_id, .. } => {
                    names.insert(operation_id.0);
                }
                Effect::AwaitDecision { ticket, .. } => {
                    names.insert(ticket.0);
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn no_ticket_and_no_operation_of_a_fork_is_one_of_its_parents() {
    let mut named = 0;
    for name in ["diagnosis", "people-1-edited-arguments", "crash-2-reconciled"] {
        let parent = bytes(&golden(name));
        let at = states(&parent).iter().take_while(|state| state.ending().is_none()).count() as u64 - 1;
        let fork = Prefix::read(&*parent, at).unwrap().fork(&id("a-fork"), "t".to_owned()).unwrap();
        let (parents, own) = (names(&parent), names(&fork.lines));
        assert_eq!(parents.len(), own.len(), "{name}");
        assert!(parents.is_disjoint(&own), "{name}");
        named += own.len();
    }
    assert!(named >= 5, "{named}");
}

#[test]
fn a_call_that_was_under_way_is_not_entered_again_when_the_fork_is_carried_on() {
    let mut lost = 0;
    for history in every_history() {
        let history = bytes(&history);
        for (at, state) in (0..).zip(states(&history)) {
            let running = |effect: &Effect<_>| matches!(effect, Effect::InvokeTool { .. });
            if state.ending().is_some() || !state.outstanding().iter().any(running) {
                continue;
            }
            let mut fork = Prefix::read(&*history, at).unwrap().fork(&id("a-fork"), "t".to_owned()).unwrap();
            // Whatever the tools declare, none of them may run again now.
            let tools = state.environment().unwrap().tools.iter();
            let live = |name: &String| LiveTool { name: name.clone(), recovery: Recovery::NeverReplay };
            let tools = tools.map(|tool| live(&tool.name)).collect();
            let epoch = fork.engine.decider().epoch() + 1;
            let at_ms = fork.engine.decider().clock().unwrap().at_ms();
            let step = fork.engine.step(at_ms, Input::RunRecovered { epoch, tools }).expect("a takeover is accepted");
            assert!(!step.effects.iter().any(running), "{step:?}");
            let left = fork.engine.outstanding();
            assert!(fork.engine.ending().is_some() || !left.iter().any(running));
            lost += 1;
        }
    }
    assert!(lost > 20, "{lost}");
}

#[test]
fn a_decision_is_taken_over_as_the_decision_on_the_forks_own_ticket() {
    let parent = bytes(&golden("people-1-edited-arguments"));
    let fork = Prefix::read(&*parent, 4).unwrap().fork(&id("a-fork"), "t".to_owned()).unwrap();
    let decided = |history: &[u8]| {
        let given = reports(history).into_iter().find_map(|(_, input)| match input {
            Input::DecisionGiven { ticket, by, decision } => Some((ticket, by, decision)),
            _ => None,
        });
        given.expect("a decision")
    };
    let ((ticket, by, decision), (own, own_by, own_decision)) = (decided(&parent), decided(&fork.lines));
    assert_ne!(ticket, own);
    assert_eq!((by, decision), (own_by, own_decision));
}

#[test]
fn a_delay_that_the_forks_nonce_makes_longer_moves_the_reports_after_it() {
    let parent = bytes(&golden("row-17-model-overloaded"));
    let last = states(&parent).iter().take_while(|state| state.ending().is_none()).count() as u64 - 1;
    let mut moved = 0;
    for name in ["a", "b", "c", "d", "e", "f"] {
        let fork = Prefix::read(&*parent, last).unwrap().fork(&id(name), "t".to_owned()).unwrap();
        assert_eq!(replay(&*fork.lines, Policy::Stop).unwrap().divergences, Vec::new());
        let times = |history: &[u8]| reports(history).into_iter().map(|(at_ms, _)| at_ms).collect::<Vec<_>>();
        let (parents, own) = (times(&parent), times(&fork.lines));
        assert!(own.iter().zip(&parents).all(|(own, parents)| own >= parents));
        moved += usize::from(own.iter().zip(&parents).any(|(own, parents)| own > parents));
    }
    assert!(moved > 0, "no fork waits longer");
}

#[test]
fn the_same_fork_has_the_same_bytes_and_another_id_another_nonce() {
    let parent = bytes(&golden("diagnosis"));
    let fork = |name: &str| Prefix::read(&*parent, 4).unwrap().fork(&id(name), "t".to_owned()).unwrap().lines;
    assert_eq!(fork("a"), fork("a"));
    let nonce = |history: &[u8]| match reports(history).swap_remove(0).1 {
        Input::RunStarted { nonce, .. } => nonce,
        _ => panic!("it starts otherwise"),
    };
    assert_ne!(nonce(&fork("a")), nonce(&fork("b")));
    assert_ne!(nonce(&fork("a")), nonce(&parent));
}

#[test]
fn what_cannot_be_forked_says_why_with_2() {
    let history = golden("diagnosis");
    for (arguments, reason) in [
        (&["--at", "10"][..], "the run ended with record 10, in row 1: nothing can follow it. Fork at 0 to 9"),
        (&["--at", "11"], "the run ended with record 10, in row 1"),
        (&["--at", "3", "--as", "diagnosis"], "a fork has an id of its own, and diagnosis is its parent's"),
    ] {
        let said = expect(2, &[&["fork", &history][..], arguments].concat());
        assert!(said.err.contains(reason) && said.out.is_empty(), "{}", said.err);
    }
    let folder = Scratch::new("fork-refused");
    let whole = String::from_utf8(bytes(&history)).unwrap();
    let open = file(&folder, "open.jsonl", whole.split_inclusive('\n').take(5).collect::<String>().as_bytes());
    let said = expect(2, &["fork", &open, "--at", "5"]);
    assert!(said.err.contains("there is no record 5: the history has 5, 0 to 4"), "{}", said.err);
    expect(0, &["fork", &open, "--at", "4"]);
    let damaged = file(&folder, "damaged.jsonl", whole.replace("92 sessions", "93 sessions").as_bytes());
    expect(7, &["fork", &damaged, "--at", "9"]);
}

#[test]
fn a_fork_is_kept_imported_shown_with_its_parent_and_forked_again() {
    let folder = Scratch::new("fork-kept");
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, store) = (place("f.jsonl"), place("s.db"));
    let history = golden("people-1-edited-arguments");
    let forked = json(0, &["fork", &history, "--at", "2", "--out", &out]);
    assert_eq!(forked["run"], "people-1-edited-arguments-fork-2");
    assert_eq!((&forked["forked_from"]["seq"], &forked["records"]), (&2.into(), &3.into()));
    assert!(forked["waits_for"].as_array().unwrap().contains(&"decision_given".into()));
    let whole = String::from_utf8(bytes(&history)).unwrap();
    let parent = file(&folder, "p.jsonl", whole.split_inclusive('\n').take(3).collect::<String>().as_bytes());
    let again = expect(2, &["fork", &history, "--at", "2", "--out", &out]);
    assert!(again.err.contains("is there already"), "{}", again.err);
    expect(0, &["import", &out, "--store", &store]);
    let same = json(0, &["diff", &parent, &out]);
    assert_eq!(same["ids"], serde_json::json!(["run_id", "nonce", "forked_from"]));
    let run = "people-1-edited-arguments-fork-2";
    let shown = expect(8, &["show", run, "--store", &store]).out;
    assert!(shown.contains("forked from people-1-edited-arguments after record 2, head "), "{shown}");
    assert_eq!(json_last(8, &["show", run, "--store", &store])["forked_from"], forked["forked_from"]);
    assert_eq!(json(8, &["explain", run, "--store", &store])["forked_from"], forked["forked_from"]);
    let cancelled = expect(5, &["cancel", run, "--store", &store]);
    assert!(cancelled.out.contains("row 15"), "{}", cancelled.out);
    let second = expect(0, &["fork", run, "--at", "1", "--as", "grandchild", "--store", &store]);
    let second = file(&folder, "second.jsonl", second.out.as_bytes());
    assert!(expect(9, &["show", &second]).out.contains(&format!("forked from {run} after record 1")));
    assert_eq!(expect(9, &["replay", &second]).out.matches("reproduced, 2 records").count(), 1);
    let redacted = place("r.jsonl");
    expect(0, &["export", run, "--redact", "--out", &redacted, "--store", &store]);
    let kept = std::fs::read_to_string(&redacted).unwrap();
    assert!(kept.contains(r#""forked_from":{"run":{"redacted":"#), "{kept}");
    expect(0, &["verify", &redacted]);
}

/// The last line of what `--json` says.
fn json_last(code: i32, arguments: &[&str]) -> serde_json::Value {
    let said = expect(code, &[arguments, &["--json"]].concat()).out;
    serde_json::from_str(said.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn the_field_is_absent_where_there_is_no_parent_and_strict_where_there_is() {
    let history = String::from_utf8(bytes(&golden("diagnosis"))).unwrap();
    assert!(!history.contains("forked_from"));
    let head = "0".repeat(64);
    let started = |parent: &str| {
        format!(
            r#"{{"type":"run_started","run_id":"r","spec":{{"task":"t","model":{{"name":"m"}}}},"nonce":"n","wall_time":"","forked_from":{parent}}}"#
        )
    };
    let read = |parent: &str| serde_json::from_str::<Input>(&started(parent));
    assert!(read(&format!(r#"{{"run":"p","seq":3,"head":"{head}"}}"#)).is_ok());
    for wrong in [r#"{"run":"p","seq":3}"#, &format!(r#"{{"run":"p","seq":3,"head":"{head}","more":1}}"#), "7"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
