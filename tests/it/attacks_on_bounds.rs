//! Attacks on what is bounded: schemas, recoveries, links, late tags. Each names the rule that it runs against.

use portcullis::machines::release::Body;
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::GateOf;
use portcullis::vocabulary::input::{Decision, GateAnswer, Input, LiveTool, Reconciliation, Verdict};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::{JudgePolicy, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, ObservationCode, OnIndeterminate, Recovery, ToolError, ToolOutput};

use crate::play::{Play, act, call, content, environment, fact, gated, look, spec};

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// Decisions, "the tag is written first": a later tag is read with the same strictness.
#[test]
fn a_late_tag_does_not_loosen_numbers() {
    for n in ["1.0", "1e0", "10e-1"] {
        let first = format!(r#"{{"type":"backoff_elapsed","call":"m1","attempt":{n}}}"#);
        let late = format!(r#"{{"attempt":{n},"call":"m1","type":"backoff_elapsed"}}"#);
        let (first, late) =
            (serde_json::from_str::<Input>(&first).is_ok(), serde_json::from_str::<Input>(&late).is_ok());
        assert_eq!(first, late, "{n}");
    }
}

/// The same for depth: what is accepted with the tag first is accepted with the tag later.
#[test]
fn a_late_tag_does_not_tighten_depth() {
    for levels in [58, 60, 61, 62, 63, 64] {
        let deep = format!("{}true{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
        let env = format!(r#"{{"tools":[{{"name":"t","parameters":{deep}}}]}}"#);
        let first = format!(r#"{{"type":"environment_resolved","environment":{env}}}"#);
        let late = format!(r#"{{"environment":{env},"type":"environment_resolved"}}"#);
        let (first, late) =
            (serde_json::from_str::<Input>(&first).is_ok(), serde_json::from_str::<Input>(&late).is_ok());
        assert_eq!(first, late, "{levels}");
    }
}

fn exponential(n: usize, prefix: &str, pointer: &str) -> String {
    let mut defs: Vec<String> = (0..n)
        .map(|i| format!(r##""{prefix}{i}":{{"allOf":[{{"$ref":"{pointer}/{prefix}{0}"}},{{"$ref":"{pointer}/{prefix}{0}"}}]}}"##, i + 1))
        .collect();
    defs.push(format!(r#""{prefix}{n}":{{"type":"object"}}"#));
    defs.join(",")
}

/// Refused before anything is asked of it.
fn refused(schema: &str) {
    let tool = ToolSpec { parameters: json(schema), ..look() };
    assert_eq!(Play::resolved(spec(), environment(vec![tool])).row(), 18, "{schema}");
}

/// Decisions: a schema may unfold into 10,000 parts at most. A property that is named `definitions` is none.
#[test]
fn a_property_called_definitions_hides_no_explosion() {
    let defs = exponential(25, "a", "#/$defs");
    refused(&format!(
        r##"{{"type":"object","properties":{{"definitions":{{"$ref":"#/$defs/a0"}}}},"$defs":{{{defs}}}}}"##
    ));
}

/// A nested `$id` changes what `#/..` means.
#[test]
fn a_nested_id_hides_no_explosion() {
    let defs = exponential(25, "a", "#/$defs");
    refused(&format!(
        r##"{{"$defs":{{"a0":true,"inner":{{"$id":"http://e/inner","$ref":"#/$defs/a0","$defs":{{{defs}}}}}}},"$ref":"#/$defs/inner"}}"##
    ));
}

/// A pointer in a URI fragment is percent-decoded.
#[test]
fn a_percent_sign_hides_no_explosion() {
    let defs = exponential(25, "a", "#/$defs");
    refused(&format!(r##"{{"$defs":{{"%610":true,{defs}}},"$ref":"#/$defs/%610"}}"##));
}

/// Recursion behind a property called `definitions`.
#[test]
fn a_property_called_definitions_hides_no_recursion() {
    let schema = r##"{"type":"object","properties":{"definitions":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}"##;
    refused(schema);
}

/// 14.7: a link is never followed to write, be it named with a slash behind it.
#[cfg(all(feature = "cli", unix))]
#[test]
fn a_linked_folder_with_a_slash_is_not_written_through() {
    let base = std::env::temp_dir().join(format!("portcullis-attack2-dir-{}", std::process::id()));
    std::fs::create_dir_all(base.join("real")).unwrap();
    std::os::unix::fs::symlink("real", base.join("link")).unwrap();
    let file = base.join("m.json");
    std::fs::write(
        &file,
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#,
    )
    .unwrap();
    let out =
        crate::support::portcullis().arg("run").arg(&file).arg("--history").arg(base.join("link/")).output().unwrap();
    let written = std::fs::read_dir(base.join("real")).unwrap().count();
    std::fs::remove_dir_all(&base).unwrap();
    assert_eq!((written, out.status.code()), (0, Some(2)));
}

/// 1.4: a chain of references does not overflow the stack.
#[test]
fn a_long_chain_of_references_does_not_overflow_the_stack() {
    let n = 9_990;
    let mut defs: Vec<String> = (0..n).map(|i| format!(r##""{i}":{{"$ref":"#/$defs/{}"}}"##, i + 1)).collect();
    defs.push(format!(r#""{n}":true"#));
    let schema = format!(r##"{{"$ref":"#/$defs/0","$defs":{{{}}}}}"##, defs.join(","));
    let tool = ToolSpec { parameters: json(&schema), ..look() };
    let mut spec = spec();
    spec.limits.schema_bytes_max = 1 << 20;
    let play = Play::resolved(spec, environment(vec![tool]));
    assert_eq!(play.row(), 18);
}

/// 7.T2: values in `examples`, `default`, `const`, `enum` are no schemas.
#[test]
fn a_reference_inside_an_example_is_no_reference() {
    for part in [
        r##""examples":[{"$ref":"#/components/schemas/Pet"}]"##,
        r##""default":{"$ref":"other.json"}"##,
        r##""enum":[{"$ref":"x"},null]"##,
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"schema":{{{part}}}}}}}"#);
        let tool = ToolSpec { parameters: json(&schema), ..look() };
        let play = Play::resolved(spec(), environment(vec![tool]));
        assert!(play.is_open(), "{part}");
    }
}

/// 7.R9: only the proof says that nothing happened; a lost attempt before it is no proof.
#[test]
fn unavailable_after_a_lost_attempt_does_not_prove_that_nothing_happened() {
    let tool = ToolSpec { recovery: Some(Recovery::Idempotent), ..act() };
    let mut play = Play::resolved(spec(), environment(vec![tool]));
    play.asks(&[("act", "{}")]);
    play.dispatch();
    let tools = vec![LiveTool { name: "act".to_owned(), recovery: Recovery::Idempotent }];
    play.step(Input::RunRecovered { epoch: 1, tools });
    for attempt in 2..=3 {
        let error = ToolError::UnavailableBeforeDispatch { message: "no".to_owned() };
        play.step(Input::ToolFailed { call: call("t1.0"), attempt, error });
    }
    eprintln!("{:?}", play.observations());
    assert_ne!(play.codes(), [Some(ObservationCode::ToolUnavailable)]);
}

/// 7.C5..7.C10: recovered twice in every phase, then on to the end, with replay.
#[test]
fn recovery_twice_in_every_phase() {
    let mut spec = spec();
    spec.draft.repairs = 1;
    spec.release.evidence_repairs = 1;
    spec.deadline_pauses_while_awaiting = true;
    let tools = vec![look(), ToolSpec { confirm: true, concurrency: Concurrency::Serial, ..act() }];
    let mut epoch = 0;
    let mut play = Play::started(spec);
    let twice = |play: &mut Play, epoch: &mut u64| {
        for _ in 0..2 {
            *epoch += 1;
            let tools = vec![LiveTool { name: "look".to_owned(), recovery: Recovery::ReplaySafe }];
            play.at_ms += 1;
            let step = play.step(Input::RunRecovered { epoch: *epoch, tools });
            let mut seen = Vec::new();
            for effect in &step.effects {
                let shown = format!("{effect:?}");
                assert!(!seen.contains(&shown), "asked twice in one step: {shown}");
                seen.push(shown);
            }
            for open in play.engine.outstanding() {
                assert!(step.effects.contains(&open), "not asked again: {open:?}");
            }
            assert_eq!(play.engine.decider().violations(), Vec::new());
            play.check_history();
        }
    };
    twice(&mut play, &mut epoch);
    play.step(Input::EnvironmentResolved {
        environment: Box::new(gated(tools, &[("g", GateOf::Tool), ("r", GateOf::Release)])),
    });
    twice(&mut play, &mut epoch);
    play.asks(&[("look", "{}"), ("act", "{}"), ("act", "{}")]);
    twice(&mut play, &mut epoch);
    play.gate(GateAnswer::Allow);
    twice(&mut play, &mut epoch);
    play.gate(GateAnswer::Confirm { expires_ms: Some(1000) });
    play.gate(GateAnswer::Allow);
    twice(&mut play, &mut epoch);
    play.decide(Decision::Allow);
    twice(&mut play, &mut epoch);
    play.decide(Decision::Allow);
    twice(&mut play, &mut epoch);
    play.dispatch();
    twice(&mut play, &mut epoch);
    play.step(Input::ToolCompleted { call: call("t1.0"), attempt: 3, output: fact("a") });
    twice(&mut play, &mut epoch);
    play.dispatch();
    twice(&mut play, &mut epoch);
    play.step(Input::ToolReconciled { call: call("t1.1"), by: "x".into(), outcome: Reconciliation::Unknown });
    twice(&mut play, &mut epoch);
    play.decide(Decision::Allow);
    twice(&mut play, &mut epoch);
    play.dispatch();
    play.step(Input::ToolCompleted { call: call("t1.2"), attempt: 1, output: ToolOutput::text("b") });
    twice(&mut play, &mut epoch);
    play.fails(portcullis::vocabulary::llm::Error::Timeout { message: "x".into() });
    twice(&mut play, &mut epoch);
    play.at_ms += 10_000;
    let backoff = play.engine.outstanding().into_iter().find_map(|effect| match effect {
        Effect::StartTimer { of, .. } => Some(of),
        _ => None,
    });
    let (m, attempt) = backoff.as_deref().unwrap().split_once('/').unwrap();
    play.step(Input::BackoffElapsed { call: m.parse().unwrap(), attempt: attempt.parse().unwrap() });
    play.says("garbage");
    twice(&mut play, &mut epoch);
    play.says(r#"{"conclusion":{"statement":"x"},"citations":["f9"]}"#);
    twice(&mut play, &mut epoch);
    play.says(r#"{"conclusion":{"statement":"x"},"citations":["f1"]}"#);
    twice(&mut play, &mut epoch);
    play.step(play.judged(Verdict::Supported));
    twice(&mut play, &mut epoch);
    play.gate(GateAnswer::Allow);
    assert_eq!(play.row(), 1);
    twice(&mut play, &mut epoch);
    play.step(Input::ReleaseDelivered { receipt: "r".into() });
    play.check_history();
}

/// 10.4: text format never gives a success.
#[test]
fn text_format_never_succeeds() {
    for repairs in [0, 1, 2] {
        let mut spec = spec();
        spec.draft.format = portcullis::vocabulary::spec::DraftFormat::Text;
        spec.draft.repairs = repairs;
        spec.release.evidence_repairs = 2;
        spec.release.judge = JudgePolicy::Off;
        let mut play = Play::resolved(spec, environment(vec![look()]));
        play.looks(1, "a");
        for _ in 0..repairs {
            play.says(" ");
        }
        play.says("[f1] it is so");
        assert_eq!(play.row(), 2);
    }
}

/// 10.9, 11.6: draft repair, evidence repair with tools, then a good one.
#[test]
fn mixed_repairs() {
    let mut spec = spec();
    spec.draft.repairs = 2;
    spec.release.evidence_repairs = 2;
    spec.release.judge = JudgePolicy::Off;
    let mut play = Play::resolved(spec, gated(vec![look()], &[("r", GateOf::Release)]));
    play.looks(1, "a");
    play.says("x");
    play.asks(&[("look", "{}")]);
    play.says(r#"{"conclusion":{"statement":"x"},"citations":[]}"#);
    play.asks(&[("look", "{}"), ("nope", "{}")]);
    play.says(r#"{"conclusion":{"statement":"x"},"citations":["f1","f1"],"quotes":{"f1":"a"}}"#);
    play.gate(GateAnswer::Allow);
    assert_eq!(play.row(), 1);
    if let Some(Body::Success { citations, .. }) = play.engine.release().map(|release| release.body()) {
        assert_eq!(citations.len(), 1);
    }
}

#[test]
fn observe_and_end_in_recovery_of_a_wave() {
    let tools = vec![
        look(),
        ToolSpec { on_indeterminate: OnIndeterminate::Observe, ..act() },
        ToolSpec { name: "b".into(), concurrency: Concurrency::Serial, ..act() },
    ];
    let mut play = Play::resolved(spec(), environment(tools));
    play.asks(&[("look", "{}"), ("act", "{}"), ("act", "{}"), ("b", "{}")]);
    play.dispatch();
    play.returns("t1.0", fact("a"));
    play.recover(1);
    play.dispatch();
    play.recover(2);
    play.recover(3);
    play.step(Input::ToolReconciled {
        call: call("t1.3"),
        by: "x".into(),
        outcome: Reconciliation::Applied { output: ToolOutput::text("y") },
    });
    play.says(r#"{"conclusion":null,"citations":[]}"#);
    assert_eq!(play.row(), 5);
    let _ = content(None, &[]);
}
