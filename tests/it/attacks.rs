//! Attacks that once got through, or should not: each names the rule that it runs against.

use portcullis::engine::Engine;
use portcullis::machines::release::Body;
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::{Environment, GateOf, Hook, HookPoint};
use portcullis::vocabulary::ids::{Ask, Ticket};
use portcullis::vocabulary::input::{Decision, GateAnswer, Input, LiveTool, Reconciliation};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{self, FinishReason, Usage};
use portcullis::vocabulary::refusal::RefusalKind;
use portcullis::vocabulary::spec::{Assessment, JudgePolicy, Spec, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, ObservationCode, OnIndeterminate, Recovery, ToolError, ToolOutput};

use crate::play::{Play, act, call, content, environment, fact, gated, look, spec};

fn unjudged() -> Spec {
    let mut spec = spec();
    spec.release.judge = JudgePolicy::Off;
    spec
}

fn input(text: &str) -> Result<Input, serde_json::Error> {
    serde_json::from_str(text)
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// 10.1, 10.3: a draft is an object `{"conclusion", "citations", ..}` and its conclusion an object.
#[test]
fn a_draft_written_as_an_array_is_a_bad_draft() {
    for draft in [r#"[{"statement":"it is so"},["f1"]]"#, r#"{"conclusion":["it is so"],"citations":["f1"]}"#] {
        let mut play = Play::resolved(unjudged(), environment(vec![look()]));
        play.looks(1, "a");
        play.says(draft);
        assert_eq!(play.row(), 7, "{draft}");
    }
}

/// 4.W1, 4.W2: the wire form of an input and of what is in it is an object with its named fields.
#[test]
fn arrays_do_not_stand_for_objects_on_the_wire() {
    let answer = |content: &str, usage: &str| {
        format!(
            r#"{{"type":"model_responded","call":"m1","attempt":1,"content":{content},"finish":"stop","usage":{usage}}}"#
        )
    };
    assert!(input(&answer("{}", "{}")).is_ok());
    assert!(input(&answer(r#"["text"]"#, "{}")).is_err(), "content");
    assert!(input(&answer("{}", "[1,2]")).is_err(), "usage");
}

/// 3.P1: the budget at the gate comes before all the rest; 3.13 keeps what was observed.
#[test]
fn a_used_up_budget_comes_before_a_full_transcript() {
    let mut spec = spec();
    spec.budgets.model_calls = Some(1);
    spec.limits.transcript_bytes_max = 100;
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.looks(1, &"a".repeat(200));
    assert_eq!(play.row(), 13);
}

/// The same with the budget mark.
#[test]
fn a_marked_budget_comes_before_a_full_transcript() {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(1);
    spec.limits.transcript_bytes_max = 300;
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
    play.dispatch();
    play.returns("t1.0", fact(&"a".repeat(400)));
    assert_eq!(play.row(), 13);
}

/// 7.6 (and 7.R9): when a call with the same arguments has an unknown effect, entering another one awaits a
/// person. The second attempt of a twin is entered all the same.
#[test]
fn a_twin_is_not_entered_again_once_the_other_is_unknown() {
    let mut play = Play::resolved(spec(), environment(vec![act()]));
    play.asks(&[("act", "{}"), ("act", "{}")]);
    play.dispatch();
    play.step(Input::ToolFailed {
        call: call("t1.0"),
        attempt: 1,
        error: ToolError::Execution { message: "lost".to_owned() },
    });
    // The proof that nothing happened for t1.1; t1.0, with equal arguments, may have happened.
    let step = play.step(Input::ToolFailed {
        call: call("t1.1"),
        attempt: 1,
        error: ToolError::UnavailableBeforeDispatch { message: "not now".to_owned() },
    });
    let entered = step.effects.iter().any(|effect| matches!(effect, Effect::InvokeTool { .. }));
    assert!(!entered, "t1.1 was entered again without a person");
}

/// 7.8: the shortest expiry that was named holds, also when 7.6 asks the person a second time.
#[test]
fn a_call_that_is_held_again_keeps_the_expiry_that_a_gate_named() {
    let tool = ToolSpec { concurrency: Concurrency::Serial, ..act() };
    let mut play = Play::resolved(spec(), gated(vec![tool], &[("g", GateOf::Tool)]));
    play.asks(&[("act", "{}"), ("act", "{}")]);
    play.gate(GateAnswer::Confirm { expires_ms: Some(100) });
    play.gate(GateAnswer::Confirm { expires_ms: Some(100) });
    play.decide(Decision::Allow);
    play.decide(Decision::Allow);
    play.dispatch();
    let step = play.step(Input::ToolFailed {
        call: call("t1.0"),
        attempt: 1,
        error: ToolError::Execution { message: "lost".to_owned() },
    });
    let asked = step.effects.iter().any(|effect| matches!(effect, Effect::AwaitDecision { .. }));
    let timer = step.effects.iter().any(|effect| matches!(effect, Effect::StartTimer { .. }));
    assert!(asked, "held");
    assert!(timer, "the ticket never expires");
}

/// 7.4: the engine takes the field out before validation, scope, confirmation and dispatch; edited arguments
/// go through 7.3 again (7.8).
#[test]
fn edited_arguments_do_not_carry_the_assessment_to_the_tool() {
    let mut spec = spec();
    spec.collection.assessment = Assessment::Required;
    let tool = ToolSpec { confirm: true, ..look() };
    let mut play = Play::resolved(spec, environment(vec![tool]));
    play.asks(&[("look", r#"{"at":1}"#)]);
    let arguments = json(r#"{"at":2,"previous_observation":{"assessment":"informative"}}"#);
    play.decide(Decision::AllowWith { arguments });
    play.dispatch();
    let plan = play.engine.plan(call("t1.0")).unwrap();
    assert_eq!(plan.arguments.to_text(), r#"{"at":2}"#);
}

/// 7.5 for edited arguments: a scope that the batch has already answered.
#[test]
fn edited_arguments_meet_the_scopes_of_calls_that_the_batch_has_answered() {
    // `look` is never_replay here, so 7.6 can hold it between waves.
    let tool = ToolSpec {
        recovery: Some(Recovery::NeverReplay),
        concurrency: Concurrency::Serial,
        repeatable: false,
        ..look()
    };
    let mut play =
        Play::resolved(spec(), environment(vec![tool.clone(), ToolSpec { name: "other".to_owned(), ..tool }]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":1}"#)]);
    play.dispatch();
    play.returns("t1.0", fact("a"));
    assert_eq!(play.codes(), [None, Some(ObservationCode::DuplicateScope)]);
}

/// 12.3: nothing is left out in silence so that a run can start.
#[test]
fn an_environment_with_hooks_is_not_run_without_them() {
    let mut environment: Environment = environment(vec![look()]);
    environment.hooks = vec![Hook { plugin: "audit".to_owned(), point: HookPoint::BeforeRelease }];
    let play = Play::resolved(unjudged(), environment);
    let hooked = play.engine.outstanding().iter().any(|effect| matches!(effect, Effect::CallHook { .. }));
    assert!(hooked || !play.is_open(), "the hook was dropped and the run goes on");
}

/// 5.6: the size of a response is limited, ids of the provider included.
#[test]
fn the_providers_id_counts_towards_the_size_of_a_response() {
    let mut spec = spec();
    spec.limits.response_bytes_max = 64;
    let mut play = Play::resolved(spec, environment(vec![look()]));
    let mut big = content(None, &[("look", "{}")]);
    big.calls[0].provider_id = Some("x".repeat(1 << 20));
    let answer = play.answer(big, FinishReason::ToolCalls);
    assert_eq!(play.refused(answer), RefusalKind::Malformed);
}

/// 7.T9, 7.R3: a result above its size limit.
#[test]
fn facts_count_towards_the_size_of_a_result() {
    let tool = ToolSpec { result_bytes_max: 10, ..look() };
    let mut play = Play::resolved(spec(), environment(vec![tool]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    play.returns("t1.0", fact(&"a".repeat(60_000)));
    assert_eq!(play.codes(), [Some(ObservationCode::ResultTooLarge)]);
}

/// 5.6, `limits.line_bytes_max`: "a larger report is refused as malformed".
#[test]
fn a_report_over_the_line_limit_is_malformed() {
    let mut spec = spec();
    spec.limits.line_bytes_max = 4096;
    let tool = ToolSpec { result_bytes_max: 10, ..look() };
    let mut play = Play::resolved(spec, environment(vec![tool]));
    let (m, attempt) = play.model();
    let error = llm::Error::InvalidRequest { message: "m".repeat(1 << 20) };
    assert_eq!(play.refused(Input::ModelFailed { call: m, attempt, error, usage: None }), RefusalKind::Malformed);
}

/// 7.C10: the live tool must still declare the mode. Two declarations that contradict each other do not.
#[test]
fn contradicting_declarations_of_a_live_tool_are_not_believed() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    let tools =
        [Recovery::NeverReplay, Recovery::ReplaySafe].map(|recovery| LiveTool { name: "look".to_owned(), recovery });
    let step = play.step(Input::RunRecovered { epoch: 1, tools: tools.to_vec() });
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::InvokeTool { .. })));
}

/// 3.U4: unreleased text cannot be had through a default trace.
#[test]
fn debug_does_not_show_unreleased_text() {
    let secret = "UNRELEASED-SENTENCE";
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "a");
    let draft = format!(r#"{{"conclusion":{{"statement":"{secret}"}},"citations":["f1"]}}"#);
    let step = play.says(&draft);
    let effects = format!("{:?}", step.effects);
    assert!(!effects.contains(secret), "effects");
    assert!(!play.engine.decider().state_json().contains(secret), "state");
    assert!(!format!("{:?}", play.engine).contains(secret), "Debug of Engine");
}

/// 3.U4, the step.
#[test]
fn debug_of_a_step_does_not_show_unreleased_text() {
    let secret = "UNRELEASED-SENTENCE";
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "a");
    let draft = format!(r#"{{"conclusion":{{"statement":"{secret}"}},"citations":["f1"]}}"#);
    let step = play.says(&draft);
    assert!(!format!("{step:?}").contains(secret), "Debug of Step");
}

/// 3.U4: the answer to a report that cannot be read.
#[cfg(feature = "cli")]
#[test]
fn simulate_does_not_repeat_the_models_text() {
    let secret = "UNRELEASED-SENTENCE";
    let file = std::env::temp_dir().join(format!("portcullis-attack-secret-{}.jsonl", std::process::id()));
    let line = format!(
        r#"{{"at_ms":0,"input":{{"type":"model_responded","call":"m1","attempt":1,"content":"{secret}","finish":"stop","usage":{{}}}}}}"#
    );
    std::fs::write(&file, line).unwrap();
    let out = crate::support::portcullis().arg("simulate").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("malformed") && !said.contains(secret), "{said}");
}

/// 11.5: a quote stands in the fact: what is released as a quote too.
#[test]
fn a_released_quote_stands_in_its_fact() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.looks(1, "p99 is 2 s");
    play.says(r#"{"conclusion":{"statement":"it is so"},"citations":["f1"],"quotes":{"f1":"\n\n  p99   "}}"#);
    // The quote does not stand in the fact as it is written, so a repair is asked for.
    assert!(play.is_open());
    play.says(r#"{"conclusion":{"statement":"it is so"},"citations":["f1"],"quotes":{"f1":"p99"}}"#);
    let release = play.engine.release().unwrap();
    if let Body::Success { citations, .. } = release.body() {
        for citation in citations {
            let quote = citation.quote.clone().unwrap_or_default();
            assert!(citation.fact.statement.contains(&quote), "{quote:?} does not stand in the fact");
        }
    }
}

/// 7.T14, 7.3: a description from outside is not trusted; checking arguments must not explode.
#[test]
fn an_exponential_schema_does_not_hang_triage() {
    // 2^27 here, so that the test ends; 60 definitions fit into `schema_bytes_max` as well.
    let n = 27;
    let mut defs: Vec<String> = (0..n)
        .map(|i| format!(r##""a{i}":{{"allOf":[{{"$ref":"#/$defs/a{0}"}},{{"$ref":"#/$defs/a{0}"}}]}}"##, i + 1))
        .collect();
    defs.push(format!(r#""a{n}":{{"type":"object"}}"#));
    let schema = format!(r##"{{"$defs":{{{}}},"$ref":"#/$defs/a0"}}"##, defs.join(","));
    let tool = ToolSpec { parameters: json(&schema), ..look() };
    let play = Play::resolved(spec(), environment(vec![tool]));
    assert_eq!(play.row(), 18, "such a schema is refused before anything is asked of it");
}

/// 7.P6, 7.8: nothing is dispatched while a ticket is open.
#[test]
fn nothing_is_dispatched_while_a_ticket_is_open() {
    let mut play = Play::resolved(spec(), environment(vec![look(), ToolSpec { confirm: true, ..act() }]));
    let step = play.asks(&[("look", "{}"), ("act", "{}")]);
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::DispatchTools { .. })));
    let old = play.ticket();
    assert_eq!(
        play.refused(Input::DecisionGiven {
            ticket: Ticket("t1.1-0".into()),
            by: "x".into(),
            decision: Decision::Allow
        }),
        RefusalKind::Stale
    );
    play.decide(Decision::AllowWith { arguments: json(r#"{"x":1}"#) });
    assert_eq!(
        play.refused(Input::DecisionGiven { ticket: old, by: "a person".into(), decision: Decision::Allow }),
        RefusalKind::Conflict
    );
    play.dispatch();
}

/// 7.C11 `end`: what a call of the batch is charged for attempts that were never made (6.5).
#[test]
fn a_recovery_that_ends_the_run_counts_no_attempt_that_was_not_made() {
    let ends = ToolSpec { on_indeterminate: OnIndeterminate::End, ..act() };
    let mut play = Play::resolved(spec(), environment(vec![look(), ends]));
    play.asks(&[("look", "{}"), ("act", "{}")]);
    play.dispatch();
    let before = play.engine.ledger().unwrap().tool_attempts;
    let tools = vec![LiveTool { name: "look".to_owned(), recovery: Recovery::ReplaySafe }];
    let step = play.step(Input::RunRecovered { epoch: 1, tools });
    assert_eq!(play.row(), 19);
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::InvokeTool { .. })));
    assert_eq!(play.engine.ledger().unwrap().tool_attempts, before);
}

/// 4.D2: the usage of a displaced report.
#[test]
fn a_displaced_report_is_charged_once_and_only_if_acceptable() {
    let usage = Usage { input_tokens: Some(5), output_tokens: Some(7) };
    for (attempt, tokens) in [(1, 5), (2, 0)] {
        let mut play = Play::resolved(spec(), environment(vec![]));
        play.at_ms = 600_000;
        let (m, _) = play.model();
        let report = Input::ModelResponded {
            call: m,
            attempt,
            content: content(Some("x"), &[]),
            finish: FinishReason::Stop,
            usage,
        };
        play.step(report);
        assert_eq!(play.row(), 16);
        assert_eq!(play.engine.ledger().unwrap().input_tokens, tokens);
    }
}

/// 7.C13: 5 recoveries pass, the 6th ends; waiting for a person is not counted.
#[test]
fn the_crash_budget() {
    let mut play = Play::resolved(spec(), environment(vec![act()]));
    for epoch in 1..=5 {
        play.recover(epoch);
        assert!(play.is_open());
    }
    play.recover(6);
    assert_eq!(play.row(), 19);
    let mut play =
        Play::resolved(spec(), environment(vec![ToolSpec { confirm: true, confirm_expires_ms: Some(9), ..act() }]));
    play.asks(&[("act", "{}")]);
    for epoch in 1..=20 {
        play.recover(epoch);
        assert!(play.is_open());
    }
}

/// 7.8 with the pause of the deadline: what was waited is added once.
#[test]
fn the_paused_deadline_moves_by_what_was_waited() {
    let mut spec = spec();
    spec.deadline_ms = Some(1_000);
    spec.deadline_pauses_while_awaiting = true;
    let mut play = Play::resolved(spec, environment(vec![ToolSpec { confirm: true, ..act() }]));
    play.at_ms = 100;
    play.asks(&[("act", "{}"), ("act", "{}")]);
    play.at_ms = 5_000;
    play.decide(Decision::Allow);
    play.at_ms = 10_000;
    play.recover(1);
    play.decide(Decision::Allow);
    assert_eq!(play.engine.decider().clock().unwrap().deadline_ms(), Some(10_900));
    play.at_ms = 10_899;
    play.dispatch();
    play.at_ms = 10_900;
    play.step(Input::ToolCompleted { call: call("t1.0"), attempt: 1, output: ToolOutput::text("x") });
    assert_eq!(play.row(), 16);
}

/// Reconciliation `unknown`, then a later twin is held; `applied` settles it.
#[test]
fn twins_after_reconciliation() {
    let mut play = Play::resolved(spec(), environment(vec![act()]));
    play.asks(&[("act", "{}")]);
    play.dispatch();
    play.recover(1);
    play.step(Input::ToolReconciled { call: call("t1.0"), by: "x".into(), outcome: Reconciliation::Unknown });
    play.asks(&[("act", r#"{ }"#)]);
    play.ticket();
    play.decide(Decision::Allow);
    play.dispatch();
    play.recover(2);
    play.step(Input::ToolReconciled {
        call: call("t2.0"),
        by: "x".into(),
        outcome: Reconciliation::Applied { output: ToolOutput::text("y") },
    });
    play.asks(&[("act", "{}")]);
    play.ticket();
    let _ = (Ask(1), Engine::new());
}

/// 1.4: the core does not panic, whatever is reported. (In a release build the sum wraps: the cost is wrong.)
#[test]
fn the_cost_of_an_attempt_does_not_overflow() {
    use portcullis::vocabulary::spec::Price;
    let mut spec = spec();
    let price = Price { input_micros_per_million: u64::MAX, output_micros_per_million: u64::MAX };
    spec.budgets.prices = [("model".to_owned(), price)].into();
    spec.budgets.cost_micros = Some(u64::MAX);
    let mut play = Play::resolved(spec, environment(vec![]));
    let usage = Usage { input_tokens: Some(u64::MAX), output_tokens: Some(u64::MAX) };
    let (call, attempt) = play.model();
    play.step(Input::ModelResponded {
        call,
        attempt,
        content: content(Some("x"), &[]),
        finish: FinishReason::Stop,
        usage,
    });
    assert_eq!(play.engine.ledger().unwrap().cost_micros, u64::MAX);
}

/// 4.D1: `expected` names what would be accepted: a takeover of an ended run whose release has no receipt.
#[test]
fn an_ended_run_expects_the_takeover_that_it_accepts() {
    let mut play = Play::resolved(spec(), environment(vec![]));
    play.step(crate::play::cancel());
    let expected = play.engine.expected();
    play.recover(1);
    assert!(expected.contains(&"run_recovered"), "{expected:?}");
}

/// 10.1: a conclusion's statement is not empty; a zero-width space is nothing that a reader could see.
#[test]
fn a_statement_that_nobody_can_see_is_empty() {
    let mut play = Play::resolved(unjudged(), environment(vec![look()]));
    play.looks(1, "a");
    play.says(r#"{"conclusion":{"statement":"\u200b"},"citations":["f1"]}"#);
    assert_eq!(play.row(), 7);
}

/// 5.3: record 0 is checked for secrets by value.
#[test]
fn secrets_by_value_are_refused_in_other_shapes_too() {
    let mut passed = Vec::new();
    for parameters in [
        r#"{"headers":{"Authorization":["Bearer sk-1"]}}"#,
        r#"{"api_key":{"value":"sk-1"}}"#,
        r#"{"auth_token":"sk-1"}"#,
        r#"{"aws_secret_access_key":"sk-1"}"#,
    ] {
        let mut spec = spec();
        spec.model.parameters = json(parameters);
        if spec.check().is_ok() {
            passed.push(parameters);
        }
    }
    let mut with_url = spec();
    with_url.model.base_url = Some("https://user:hunter2@host/v1".to_owned());
    if with_url.check().is_ok() {
        passed.push("base_url");
    }
    assert!(passed.is_empty(), "{passed:#?}");
}

/// 3.U4 on the command line: the name that a model gives to a call is the model's text.
#[cfg(feature = "cli")]
#[test]
fn the_timeline_does_not_show_what_the_model_wrote_as_a_tools_name() {
    let file = std::env::temp_dir().join(format!("portcullis-attack-{}.json", std::process::id()));
    let text = "the unreleased diagnosis of John Doe is X";
    std::fs::write(
        &file,
        format!(
            r#"{{"spec":{{"task":"t","model":{{"name":"m"}}}},"script":{{"model":[{{"calls":[{{"tool":"{text}","arguments":{{}}}}]}},{{"text":"x"}}]}}}}"#
        ),
    )
    .unwrap();
    let out = crate::support::portcullis().arg("run").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(!String::from_utf8_lossy(&out.stdout).contains(text));
}

/// 14.X: the exit code tells of the run and of the history, also when nobody reads standard output.
#[cfg(feature = "cli")]
#[test]
fn a_reader_that_went_away_does_not_turn_failure_into_success() {
    use std::process::Stdio;
    let exit = |arguments: &[&str]| {
        let mut child = crate::support::portcullis()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    let cancelled = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/row-15-cancelled.json");
    assert_eq!(exit(&["run", cancelled]), Some(5));
    assert_eq!(exit(&["replay", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]), Some(7));
}

/// 13.4: a cut is never silently fine, also behind a terminal record: what the torn line held is not known.
#[cfg(feature = "cli")]
#[test]
fn a_terminal_history_with_a_torn_tail_is_said_to_be_cut() {
    let file = std::env::temp_dir().join(format!("portcullis-attack-{}.jsonl", std::process::id()));
    let mut bytes = crate::support::small_success();
    bytes.push(0);
    std::fs::write(&file, bytes).unwrap();
    let replay = |json: &[&str]| crate::support::portcullis().arg("replay").args(json).arg(&file).output().unwrap();
    let (told, shown) = (replay(&[]), replay(&["--json"]));
    std::fs::remove_file(&file).unwrap();
    assert_eq!((told.status.code(), shown.status.code()), (Some(9), Some(9)));
    assert!(String::from_utf8_lossy(&told.stdout).contains("the last line is cut (1 bytes"));
    assert!(String::from_utf8_lossy(&shown.stdout).contains(r#""cut":{"offset":"#));
}

/// 14.7: a link is never followed to write, be it the folder that is named.
#[cfg(all(feature = "cli", unix))]
#[test]
fn a_linked_folder_is_not_written_through() {
    let base = std::env::temp_dir().join(format!("portcullis-attack-dir-{}", std::process::id()));
    std::fs::create_dir_all(base.join("real")).unwrap();
    std::os::unix::fs::symlink("real", base.join("link")).unwrap();
    let file = base.join("m.json");
    std::fs::write(
        &file,
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#,
    )
    .unwrap();
    let out =
        crate::support::portcullis().arg("run").arg(&file).arg("--history").arg(base.join("link")).output().unwrap();
    let written = std::fs::read_dir(base.join("real")).unwrap().count();
    std::fs::remove_dir_all(&base).unwrap();
    assert_eq!((written, out.status.code()), (0, Some(2)));
}

fn deep(levels: usize) -> Json {
    (0..levels).fold(Json::Bool(true), |inner, _| Json::Object([("not".to_owned(), inner)].into()))
}

/// 1.4, 4.W4, 13.5: JSON that an embedder built in memory and that is too deep is refused; it never becomes a
/// record that cannot be read.
#[test]
fn an_environment_that_is_too_deep_does_not_make_a_broken_record() {
    let tool = ToolSpec { parameters: deep(70), ..look() };
    let mut play = Play::started(spec());
    let _ = play
        .engine
        .step(0, Input::EnvironmentResolved { environment: Box::new(environment(vec![tool.clone()])) })
        .map(|step| {
            let mut recorder = portcullis::history::Recorder::new();
            let line = String::from_utf8_lossy(recorder.record(&play.engine, &step)).into_owned();
            assert!(
                serde_json::from_str::<serde_json::Value>(&line).is_ok(),
                "{}",
                line.chars().take(300).collect::<String>()
            );
        });
}

/// The same for the spec.
#[test]
fn a_spec_that_is_too_deep_does_not_make_a_broken_record() {
    let mut spec = spec();
    spec.prior_state = [("k".to_owned(), deep(70))].into();
    let mut engine = Engine::new();
    let _ = engine.step(0, crate::play::started("deep", spec)).map(|step| {
        let mut recorder = portcullis::history::Recorder::new();
        let line = String::from_utf8_lossy(recorder.record(&engine, &step)).into_owned();
        assert!(
            serde_json::from_str::<serde_json::Value>(&line).is_ok(),
            "{}",
            line.chars().take(300).collect::<String>()
        );
    });
}
