//! Redacted exports: nothing that was written survives, damage shows, and none passes for the original.

use std::collections::BTreeSet;

use portcullis::engine::Request;
use portcullis::history::redaction::{Origin, Redactor, verify};
use portcullis::history::{Chain, Envelope, Fault, FaultCode, Line, Lines, Next, Policy, replay};
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::signal::Signal;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{project, small_success};

fn redacted(history: &[u8]) -> Vec<u8> {
    let (mut lines, mut redactor, mut export) = (Lines::new(history), Redactor::new(), Vec::new());
    while let Next::Line(line) = lines.next_line().unwrap() {
        export.extend_from_slice(redactor.redact(line).unwrap_or_else(|fault| panic!("{fault}")));
    }
    export.extend_from_slice(redactor.close());
    export
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn goldens() -> Vec<(String, Vec<u8>)> {
    let folder = std::fs::read_dir(project("tests/golden/v1")).unwrap();
    let mut goldens: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    goldens.sort();
    goldens.into_iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

/// A line over `fields`, chained after `prev`.
fn chained(domain: &str, fields: &Value, prev: Digest) -> (String, Digest) {
    let mut fields = fields.clone();
    let members = fields.as_object_mut().unwrap();
    members.remove("hash");
    members.insert("prev".to_owned(), json!(prev.to_string()));
    // Whatever order the map has, `redaction` and `v` mark a line by standing first.
    let mut covered = String::from("{");
    for name in ["redaction", "v"] {
        if let Some(value) = members.remove(name) {
            covered.push_str(&format!("\"{name}\":{value},"));
        }
    }
    covered.push_str(&fields.to_string()[1..]);
    covered.pop();
    let hash = Digest::of(domain, &[covered.as_bytes()]);
    (format!("{covered},\"hash\":\"{hash}\"}}\n"), hash)
}

/// A history of these records, chained anew.
fn rechained(records: &[Value]) -> Vec<u8> {
    let (mut history, mut prev) = (String::new(), Digest::ZERO);
    for record in records {
        let (line, hash) = chained("portcullis.record.1", record, prev);
        history.push_str(&line);
        prev = hash;
    }
    history.into_bytes()
}

fn records(history: &[u8]) -> Vec<Value> {
    history.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(read).collect()
}

fn read(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

/// Every value that holds no other, and every object: the places where text could stand.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(path.to_owned());
            for (name, value) in members {
                places(value, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{path}/{index}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

const MARK: &str = "zqxj";

/// Writes the mark into every place where a record is still one with it: as a value, and as a member's name.
fn marked_everywhere(record: &Value) -> (Value, usize) {
    const OURS: [&str; 6] = ["/v", "/run", "/seq", "/at_ms", "/prev", "/hash"];
    let (mut all, mut marked) = (Vec::new(), record.clone());
    places(record, "", &mut all);
    let mut count = 0;
    for path in all.iter().filter(|path| !path.is_empty() && !OURS.contains(&path.as_str())) {
        let Some(place) = marked.pointer_mut(path) else { continue };
        let before = place.clone();
        let own_id = path == "/input/run_id";
        match place {
            Value::Object(members) => drop(members.insert(format!("{MARK}-name"), json!(format!("{MARK}-member")))),
            _ if own_id => continue,
            other => *other = json!(format!("{MARK} \u{fc}\"\\ {count}")),
        }
        // Numbers of ours in inputs are typed: then the record is none, and the place is left alone.
        if serde_json::from_str::<Envelope<'_>>(&marked.to_string()).is_ok() {
            count += 1;
        } else {
            *marked.pointer_mut(path).unwrap() = before;
        }
    }
    (marked, count)
}

#[test]
fn nothing_that_is_written_anywhere_in_a_record_survives() {
    let mut count = 0;
    for (name, history) in goldens().into_iter().chain([("small".to_owned(), small_success())]) {
        let mut marked = Vec::new();
        for record in records(&history) {
            let (record, places) = marked_everywhere(&record);
            count += places;
            marked.push(record);
        }
        let history = rechained(&marked);
        assert!(text(history.clone()).contains(MARK));
        let export = redacted(&history);
        assert!(!text(export.clone()).contains(MARK), "{name}: {}", text(export));
        verify(&*export).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
    assert!(count > 10_000, "only {count} places were marked");
}

#[test]
fn each_place_alone_is_redacted_too() {
    let history = records(&small_success());
    for (index, record) in history.iter().enumerate() {
        let mut all = Vec::new();
        places(record, "", &mut all);
        for path in all
            .iter()
            .filter(|path| path.starts_with("/signals") || path.starts_with("/state") || path.starts_with("/effects"))
        {
            for value in [json!(MARK), json!({ MARK: 1 }), json!([MARK]), json!(-1), json!(1.5), json!("\u{202e}")] {
                let mut changed = history.clone();
                *changed[index].pointer_mut(path).unwrap() = value.clone();
                let export = text(redacted(&rechained(&changed)));
                assert!(!export.contains(MARK), "record {index}, {path}");
                assert!(!export.contains(":1.5") && !export.contains(":-1"), "record {index}, {path}");
            }
        }
    }
}

/// Every input with the mark in every payload. Numbers, words and ids are kept.
fn every_input(mark: &str) -> Vec<Value> {
    let tool = json!({"name": mark, "description": mark, "parameters": {mark: mark}, "scope": ["/a"],
        "projection": {"type": "pointers", "pointers": ["/a"], "fact_key": "/b"}, "recovery": "idempotent"});
    let commands = json!([{"type": "set", "scope": "run", "key": mark, "value": {mark: mark}},
        {"type": "remove", "scope": "thread", "key": mark}, {"type": "schedule", "action": mark, "payload": {mark: mark}}]);
    let output = json!({"type": "success", "content": mark, "facts": [{mark: mark}, 7, mark], "commands": commands});
    let earlier = json!({"origin": {"run": format!("run-{MARK}"), "fact": "f1"}, "call": "t1.0", "tool": mark,
        "statement": mark, "key": mark});
    let spec = json!({"instructions": mark, "prior_messages": [{"role": "user", "text": mark}],
        "prior_state": {mark: mark}, "prior_facts": [earlier], "task": mark,
        "model": {"name": mark, "base_url": mark, "key": {"env": mark}, "parameters": {mark: [mark]}},
        "fallbacks": [{"name": mark}], "tools": [tool],
        "tool_sources": [{"name": mark, "transport": {"type": "stdio", "command": mark, "args": [mark]}}],
        "budgets": {"tool_calls_by_tool": {mark: 3}, "prices": {mark: {}}},
        "draft": {"data_schema": {mark: mark}}, "plugins": [{"id": mark, "config": mark}]});
    let environment = json!({"tools": [tool], "gates": [{"id": mark, "of": "tool", "tools": [mark]}],
        "hooks": [{"plugin": mark, "point": "run_end"}],
        "state_keys": [{"scope": "run", "key": mark, "policy": "exclusive"}], "action_kinds": [mark], "plugins": [mark],
        "capabilities": [{"plugin": mark, "tools": [mark], "gates": [mark], "action_kinds": [mark],
            "bound": {"tools": {"namespace": mark, "ids": [mark]}, "hooks": ["round_end"],
                "state_keys": {"namespace": mark}, "action_kinds": {"ids": [mark]}}}]});
    let draft = Digest::of("d", &[mark.as_bytes()]).to_string();
    vec![
        json!({"type": "run_started", "run_id": "every", "spec": spec, "nonce": mark, "wall_time": mark}),
        json!({"type": "environment_resolved", "environment": environment}),
        json!({"type": "resolution_failed", "error": {"type": "duplicate_tool", "id": mark, "first": mark, "second": mark}}),
        json!({"type": "resolution_failed", "error": {"type": "bound", "plugin": mark, "contribution": mark}}),
        json!({"type": "resolution_failed", "error": {"type": "missing_dependency", "plugin": mark, "missing": mark}}),
        json!({"type": "model_responded", "call": "m1", "attempt": 1, "finish": "stop", "usage": {"input_tokens": 3},
            "content": {"text": mark, "opaque": {mark: mark},
                "calls": [{"name": mark, "arguments": mark, "provider_id": mark}]}}),
        json!({"type": "model_failed", "call": "m1", "attempt": 1,
            "error": {"type": "rate_limited", "message": mark, "retry_after_ms": 5}}),
        json!({"type": "backoff_elapsed", "call": "m1", "attempt": 2}),
        json!({"type": "tools_dispatched", "calls": ["t1.0"]}),
        json!({"type": "tool_completed", "call": "t1.0", "attempt": 1, "output": output}),
        json!({"type": "tool_failed", "call": "t1.0", "attempt": 1, "error": {"type": "execution", "message": mark}}),
        json!({"type": "tool_timed_out", "call": "t1.0", "attempt": 1}),
        json!({"type": "nested_call_requested", "parent": "t1.0", "attempt": 1, "nested": "n1.0.0", "kind": "tool",
            "tool": mark, "arguments": {mark: mark}}),
        json!({"type": "nested_completed", "nested": "n1.0.0"}),
        json!({"type": "gate_answered", "ask": 1, "answer": {"type": "block", "reason": mark}}),
        json!({"type": "gate_answered", "ask": 1, "answer": {"type": "set_result", "content": mark}}),
        json!({"type": "gate_failed", "ask": 1}),
        json!({"type": "hook_answered", "ask": 1, "context": mark, "commands": commands}),
        json!({"type": "hook_failed", "ask": 1}),
        json!({"type": "decision_given", "ticket": mark, "by": mark,
            "decision": {"type": "allow_with", "arguments": {mark: [mark]}}}),
        json!({"type": "decision_given", "ticket": mark, "by": mark, "decision": {"type": "deny", "note": mark}}),
        json!({"type": "ticket_expired", "ticket": mark}),
        json!({"type": "semantics_judged", "call": "j1", "attempt": 1, "draft": draft, "verdict": "supported"}),
        json!({"type": "semantics_failed", "call": "j1", "attempt": 1, "draft": draft,
            "error": {"type": "timeout", "message": mark}}),
        json!({"type": "cancel_requested", "by": mark, "origin": "caller"}),
        json!({"type": "deadline_elapsed", "displaced":
            {"type": "tool_completed", "call": "t1.0", "attempt": 1, "output": output}}),
        json!({"type": "execution_crashed", "origin": mark}),
        json!({"type": "run_recovered", "epoch": 2, "tools": [{"name": mark, "recovery": "never_replay"}]}),
        json!({"type": "tool_reconciled", "call": "t1.0", "by": mark, "outcome": {"type": "applied", "output": output}}),
        json!({"type": "release_delivered", "receipt": mark}),
        json!({"type": "tail_repaired", "ordinal": 1, "bytes": 2, "digest": draft}),
    ]
}

/// Every effect and signal, in the same way.
fn every_effect(mark: &str) -> Vec<Value> {
    let digest = Digest::of("e", &[mark.as_bytes()]).to_string();
    let fact = json!({"id": "f1", "call": "t1.0", "tool": mark, "statement": mark, "quote": mark,
        "origin": {"run": mark, "fact": "f1"}});
    vec![
        json!({"type": "resolve_environment"}),
        json!({"type": "call_model", "call": "m1", "attempt": 1, "model": mark, "purpose": "step", "tools": "offered", "request": digest}),
        json!({"type": "start_timer", "kind": "ticket_expiry", "of": mark, "due_ms": 5}),
        json!({"type": "ask_gate", "ask": 1, "gate": mark, "about": {"type": "release", "draft": digest}}),
        json!({"type": "ask_gate", "ask": 1, "gate": mark, "about": {"type": "nested", "nested": "n1.0.0"}}),
        json!({"type": "call_hook", "ask": 1, "point": "run_end", "plugin": mark}),
        json!({"type": "perform_action", "ask": 1, "action": mark, "plugin": mark}),
        json!({"type": "dispatch_tools", "calls": ["t1.0"]}),
        json!({"type": "invoke_tool", "call": "t1.0", "attempt": 1, "operation_id": mark}),
        json!({"type": "admit_nested", "nested": "n1.0.0"}),
        json!({"type": "deny_nested", "nested": "n1.0.0", "code": "BLOCKED"}),
        json!({"type": "await_decision", "ticket": mark, "call": "t1.0"}),
        json!({"type": "reconcile_tool", "call": "t1.0", "operation_id": mark}),
        json!({"type": "judge_semantics", "call": "j1", "attempt": 1, "draft": digest}),
        json!({"type": "abort_in_flight"}),
        json!({"type": "publish", "key": digest, "release": {"run": mark, "outcome": "success", "statement": mark,
            "data": {mark: mark}, "citations": [fact], "judged": true, "message": mark, "facts": [fact]}}),
    ]
}

fn every_signal(mark: &str) -> Vec<Value> {
    let digest = Digest::of("s", &[mark.as_bytes()]).to_string();
    let fields = json!({"digest": digest, "error": {"type": "routing", "message": mark}, "gate": mark, "call": mark,
        "kind": mark, "of": mark, "reason": mark, "state": mark, "failure": {"type": "blocked", "gate": mark}, "plugin": mark,
        "contribution": mark, "scope": mark, "key": mark, "earlier": mark, "later": mark, "commands": mark,
        "count": mark});
    let with = |tag: &&str| {
        let mut signal = fields.clone();
        signal["type"] = json!(tag);
        signal
    };
    Signal::TAGS.iter().map(with).collect()
}

/// The state of a run that has failed while a hook was asked, in the same way.
fn state(mark: &str) -> Value {
    let digest = Digest::of("state", &[mark.as_bytes()]).to_string();
    let sum = json!({"count": 1, "digest": digest});
    json!({"run": {"state": "failed", "failure": {"type": "blocked", "gate": mark}},
        "consultation": {"state": "asking", "ask": 3, "pending": 1, "questions": digest, "then": "read_response",
            "held": digest},
        "context": sum, "shared": {"keys": 2, "digest": digest, "staged": 1, "staged_digest": digest}, "actions": 4,
        "facts": sum})
}

fn everything(mark: &str) -> Vec<u8> {
    let records: Vec<Value> = every_input(mark)
        .into_iter()
        .enumerate()
        .map(|(seq, input)| {
            json!({"v": 1, "run": "every", "seq": seq, "at_ms": 0, "input": input, "signals": every_signal(mark),
                "state": if seq == 0 { json!({mark: mark}) } else { state(mark) },
                "effects": every_effect(mark)})
        })
        .collect();
    rechained(&records)
}

#[test]
fn the_marked_history_has_every_input_signal_and_effect() {
    let tags = |values: &[Value]| -> BTreeSet<String> {
        values.iter().map(|value| value["type"].as_str().unwrap().to_owned()).collect()
    };
    let all = |tags: &[&str]| -> BTreeSet<String> { tags.iter().map(|tag| (*tag).to_owned()).collect() };
    assert_eq!(tags(&every_input(MARK)), all(Input::TAGS));
    assert_eq!(tags(&every_signal(MARK)), all(Signal::TAGS));
    assert_eq!(tags(&every_effect(MARK)), all(Request::TAGS));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_any_payload_survives(before in ".{0,8}", after in ".{0,8}") {
        let mark = format!("{before}{MARK}{after}");
        let history = everything(&mark);
        let export = redacted(&history);
        prop_assert!(!text(export.clone()).contains(MARK));
        // Nor a digest by which a guess could be checked.
        for (domain, at) in [("d", "input"), ("e", "effects"), ("s", "signals"), ("state", "state")] {
            let digest = Digest::of(domain, &[mark.as_bytes()]).to_string();
            prop_assert!(text(history.clone()).contains(&digest), "{}", at);
            prop_assert!(!text(export.clone()).contains(&digest), "{}", at);
        }
        let origin = verify(&*export).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        prop_assert_eq!(origin.records, every_input(&mark).len() as u64);
    }

    #[test]
    fn text_that_looks_like_structure_is_redacted_where_text_stands(
        payload in prop::sample::select(vec!["t1.0", "success", "run", "true", "7", "running", "every"])
    ) {
        let [original, export] = [everything(payload), redacted(&everything(payload))];
        let parsed = records(&export);
        for (before, after) in records(&original).iter().zip(&parsed) {
            for path in ["/input/by", "/input/ticket", "/input/receipt", "/input/content/text", "/input/spec/task",
                "/input/decision/note", "/input/output/content", "/input/nonce"] {
                if before.pointer(path).is_some() {
                    prop_assert!(after.pointer(path).is_some_and(|value| value.get("redacted").is_some()), "{}", path);
                }
            }
        }
    }
}

#[test]
fn the_words_and_counts_of_plugins_and_of_what_they_share_are_kept() {
    let export = records(&redacted(&everything(MARK)));
    let kept = |path: &str| export[1].pointer(path).unwrap_or_else(|| panic!("{path} is gone")).clone();
    for (path, value) in [
        ("/state/consultation/state", json!("asking")),
        ("/state/consultation/ask", json!(3)),
        ("/state/consultation/pending", json!(1)),
        ("/state/consultation/then", json!("read_response")),
        ("/state/context/count", json!(1)),
        ("/state/shared/keys", json!(2)),
        ("/state/shared/staged", json!(1)),
        ("/state/actions", json!(4)),
    ] {
        assert_eq!(kept(path), value, "{path}");
    }
    for path in [
        "/state/consultation/questions",
        "/state/consultation/held",
        "/state/context/digest",
        "/state/shared/digest",
        "/state/shared/staged_digest",
    ] {
        assert!(kept(path).get("redacted").is_some(), "{path}");
    }
}

#[test]
fn what_is_kept_is_kept_and_what_goes_is_listed() {
    let mut paths = BTreeSet::new();
    for (_, history) in goldens() {
        for record in records(&redacted(&history)) {
            let mut all = Vec::new();
            places(&record, "", &mut all);
            let gone = all.iter().filter_map(|path| path.strip_suffix("/redacted"));
            let indexed = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
            paths.extend(gone.map(|path| {
                path.split('/')
                    .map(|name| if !name.is_empty() && indexed(name) { "*" } else { name })
                    .collect::<Vec<_>>()
                    .join("/")
            }));
        }
    }
    snapshot!("redacted_paths", paths.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn no_digest_of_the_original_is_kept_but_the_head_that_the_closing_line_names() {
    let is_hash = |word: &&str| word.len() == 64 && Digest::from_hex(word).is_some_and(|digest| digest != Digest::ZERO);
    for (name, history) in goldens() {
        let export = text(redacted(&history));
        let history = text(history);
        let head = history.rsplit('"').nth(1).unwrap().to_owned();
        for digest in history.split('"').filter(is_hash).filter(|digest| *digest != head) {
            assert!(!export.contains(digest), "{name}: {digest}");
        }
        assert_eq!(export.matches(&head).count(), 1, "{name}");
    }
}

#[test]
fn a_redacted_export_verifies_and_names_what_it_was_made_of() {
    for (name, history) in goldens() {
        let summary = replay(&*history, Policy::Stop).unwrap();
        let expected = Origin { run: summary.run, records: summary.records, head: summary.head };
        assert_eq!(verify(&*redacted(&history)), Ok(expected), "{name}");
        assert_eq!(redacted(&history), redacted(&history), "{name}");
    }
}

#[test]
fn every_changed_byte_of_an_export_is_found() {
    let export = redacted(&small_success());
    for place in 0..export.len() {
        for change in [export[place] ^ 1, b'"', 0xFF] {
            if change != export[place] {
                let mut damaged = export.clone();
                damaged[place] = change;
                assert!(verify(&*damaged).is_err(), "byte {place} became {change:#x}");
            }
        }
    }
}

#[test]
fn every_cut_and_every_missing_repeated_or_added_line_is_found() {
    let export = redacted(&small_success());
    for cut in 0..export.len() {
        let fault = verify(&export[..cut]).expect_err("it is cut");
        assert!(matches!(fault.code, FaultCode::Unclosed | FaultCode::Empty), "cut at {cut}: {fault}");
    }
    let lines: Vec<&[u8]> = export.split_inclusive(|byte| *byte == b'\n').collect();
    for index in 0..lines.len() {
        let without: Vec<_> = [&lines[..index], &lines[index + 1..]].concat();
        assert!(verify(&*without.concat()).is_err(), "without line {index}");
        let twice: Vec<_> = [&lines[..=index], &lines[index..]].concat();
        assert!(verify(&*twice.concat()).is_err(), "line {index} twice");
    }
}

#[test]
fn an_export_that_was_chained_anew_over_bare_text_is_found() {
    let mut export = records(&redacted(&small_success()));
    export[0]["input"]["spec"]["task"] = json!("why?");
    let (mut forged, mut prev) = (String::new(), Digest::ZERO);
    for line in &export {
        let (line, hash) = chained("portcullis.redaction.record.1", line, prev);
        forged.push_str(&line);
        prev = hash;
    }
    let fault = verify(forged.as_bytes()).expect_err("the task stands there");
    assert_eq!((fault.code, fault.line), (FaultCode::MalformedRecord, 1), "{fault}");
}

#[test]
fn a_redacted_export_never_passes_for_a_history() {
    for (name, history) in goldens() {
        let export = redacted(&history);
        let fault = replay(&*export, Policy::Stop).expect_err("it is redacted");
        assert_eq!((fault.code, fault.line), (FaultCode::Redacted, 1), "{name}: {fault}");
        for (index, line) in export.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
            let seen: Result<_, Fault> = Chain::new().take(Line { bytes: line, offset: 0, number: 1 });
            assert_eq!(seen.expect_err("it is redacted").code, FaultCode::Redacted, "{name}, line {index}");
        }
        assert!(verify(&*history).is_err(), "{name}: a history is no redacted export");
    }
}

#[test]
fn equal_values_are_equal_in_one_export_and_in_no_other() {
    let task = |history: &[u8]| records(&redacted(history))[0]["input"]["spec"]["task"].clone();
    let export = records(&redacted(&small_success()));
    let asked = &export[2]["input"]["content"]["calls"][0]["name"];
    assert_eq!(asked, &export[0]["input"]["spec"]["tools"][0]["name"]);
    let mut other = records(&small_success());
    other[0]["input"]["nonce"] = json!("another");
    assert_ne!(task(&small_success()), task(&rechained(&other)));
    // The rest of the first record is part of the key too, so that a nonce which can be guessed is not all of it.
    let mut other = records(&small_success());
    other[0]["input"]["spec"]["instructions"] = json!("another");
    assert_ne!(task(&small_success()), task(&rechained(&other)));
}

#[test]
fn a_history_that_is_damaged_or_starts_no_run_is_not_redacted() {
    let history = text(small_success()).replacen("2 s", "3 s", 1);
    let (mut lines, mut redactor) = (Lines::new(history.as_bytes()), Redactor::new());
    let fault = loop {
        let Next::Line(line) = lines.next_line().unwrap() else { panic!("nobody saw it") };
        if let Err(fault) = redactor.redact(line) {
            break fault;
        }
    };
    assert_eq!(fault.code, FaultCode::WrongHash);
    assert!(Redactor::new().close().is_empty());
    let mut records = records(&small_success());
    let mut second = records.remove(1);
    second["seq"] = json!(0);
    let history = rechained(&[second]);
    let mut lines = Lines::new(&*history);
    let Next::Line(line) = lines.next_line().unwrap() else { panic!("a line") };
    assert_eq!(Redactor::new().redact(line).expect_err("no run").code, FaultCode::MalformedRecord);
}
