//! What holds for every scenario, however the world behaves: the run comes to a legal end or names the
//! person it waits for, no invariant breaks on the way, and its history replays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portcullis::adapters::scenario::Scenario;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::engine::table::is_legal;
use portcullis::engine::{Ending, Engine, Step};
use portcullis::history::{Lines, Next, Replay, Replayed};
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::ids::ToolCallId;
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::outcome::RunStatus;
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::tool::ToolError;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// Tools of every kind that matters to the rules.
fn tools() -> Value {
    json!([
        {"name": "look", "evidence": true},
        {"name": "poll", "evidence": true, "repeatable": true, "concurrency": "serial", "timeout_ms": 500},
        {"name": "act", "confirm": true, "confirm_expires_ms": 20_000},
        {"name": "note", "recovery": "idempotent", "on_indeterminate": "observe", "attempts_max": 2},
        {"name": "last", "on_indeterminate": "end"},
    ])
}

fn one_of(values: Vec<Value>) -> impl Strategy<Value = Value> + Clone {
    prop::sample::select(values)
}

fn result() -> impl Strategy<Value = Value> {
    one_of(vec![
        json!({"content": "c", "facts": ["one"]}),
        json!({"content": "c", "facts": ["one"]}),
        json!({"content": "nothing"}),
        json!({"content": "c", "facts": ["two", {"statement": "three", "key": "k"}]}),
        json!({"content": "nothing"}),
        json!({"content": "late", "facts": ["late"], "after_ms": 70_000}),
        json!({"content": "c", "facts": [7]}),
        json!({"content": "c", "facts": ["one"], "commands": [
            {"type": "set", "scope": "run", "key": "seen", "value": ["one"]}, {"type": "schedule", "action": "tidy"}]}),
        json!({"error": "no"}),
        json!({"fails": "!execution"}),
        json!({"fails": "!unavailable_before_dispatch"}),
    ])
}

fn call() -> impl Strategy<Value = Value> {
    let tool =
        one_of(["look", "look", "poll", "poll", "poll", "act", "note", "last", "absent"].map(Value::from).to_vec());
    let arguments = one_of(vec![json!({}), json!({"n": 1}), json!({"n": 2}), json!({"n": 3}), json!("{")]);
    let decision = one_of(vec![
        Value::Null,
        json!("allow"),
        json!({"allow_with": {"n": 2}}),
        json!({"deny": "no"}),
        json!("silence"),
    ]);
    let reconciled =
        one_of(vec![Value::Null, json!("not_applied"), json!("unknown"), json!({"applied": {"content": "c"}})]);
    (tool, arguments, prop::option::weighted(0.98, result()), vec(result(), 0..3), decision, reconciled).prop_map(
        |(tool, arguments, result, retries, decision, reconciled)| {
            json!({"tool": tool, "arguments": arguments, "result": result, "retries": retries,
                "decision": decision, "reconciled": reconciled})
        },
    )
}

/// An answer without tool calls.
fn draft() -> impl Strategy<Value = Value> {
    let cites = |cited: Value| json!({"draft": {"conclusion": {"statement": "s"}, "citations": cited}});
    let usual = one_of(vec![cites(json!(["f1"])), cites(json!(["f1", "f2"]))]);
    let odd = one_of(vec![
        cites(json!([])),
        json!({"draft": {"conclusion": {"statement": "s"}, "citations": ["f1"], "quotes": {"f1": "nowhere"}}}),
        json!({"draft": {"conclusion": null, "citations": ["f1", "f9"]}}),
        json!({"text": "no json"}),
        json!({"text": "", "usage": {"input_tokens": 10, "output_tokens": 10}}),
        json!({"text": "cut", "finish": "length"}),
        json!({"text": "cut", "finish": "content_filter"}),
    ]);
    prop_oneof![2 => usual, 1 => odd]
}

/// An answer with tool calls, or none at all.
fn step() -> impl Strategy<Value = Value> {
    let error = one_of(
        ["!overloaded", "!rate_limited", "!usage_limit", "!invalid_request"]
            .map(|error| json!({"error": error}))
            .to_vec(),
    );
    let calls = vec(call(), 1..4).prop_map(|calls| json!({"calls": calls}));
    prop_oneof![12 => calls, 1 => error]
}

fn interruption() -> impl Strategy<Value = Value> {
    let effects = [
        "resolve_environment",
        "call_model",
        "ask_gate",
        "call_hook",
        "perform_action",
        "dispatch_tools",
        "invoke_tool",
        "await_decision",
        "reconcile_tool",
        "judge_semantics",
        "publish",
    ];
    let point = prop_oneof![
        4 => (one_of(effects.map(Value::from).to_vec()), 1..4u32).prop_map(|(before, nth)| json!({"before": before, "nth": nth})),
        1 => (0..20_000u64).prop_map(|at_ms| json!({"at_ms": at_ms})),
    ];
    let what = prop_oneof![
        6 => Just(("restart", json!({}))),
        1 => Just(("restart", json!({"tools": []}))),
        1 => Just(("cancel", json!("caller"))),
        1 => Just(("fault", json!("port"))),
    ];
    (point, what).prop_map(|(mut point, (what, how))| {
        point[what] = how;
        point
    })
}

fn script() -> impl Strategy<Value = Value> {
    let judge = one_of(vec![
        json!({"verdict": "supported"}),
        json!({"verdict": "supported"}),
        json!({"verdict": "contradicted"}),
        json!({"error": "!timeout"}),
    ]);
    let odd = [
        json!({"block": "b"}),
        json!({"set_result": "r"}),
        json!("confirm"),
        json!({"confirm_within_ms": 9}),
        json!("fail"),
    ];
    let gate = prop_oneof![3 => Just(json!("allow")), 1 => one_of(odd.to_vec())];
    let model = (vec(step(), 0..6), vec(draft(), 4)).prop_map(|(steps, drafts)| [steps, drafts].concat());
    let interruptions = prop_oneof![2 => Just(Vec::new()), 1 => vec(interruption(), 1..4)];
    let unresolved = prop_oneof![40 => Just(Value::Null), 1 => Just(json!("!routing"))];
    (unresolved, model, vec(judge, 3), vec(gate.clone(), 12), vec(gate, 3), interruptions, any::<bool>()).prop_map(
        |(unresolved, model, judge, tool, release, interruptions, read)| {
            json!({"unresolved": unresolved, "model": model, "judge": judge, "gates": {"tool-gate": tool, "release-gate": release},
                "interruptions": interruptions, "receipt": read.then_some("read")})
        },
    )
}

const POINTS: [&str; 6] =
    ["round_start", "before_inference", "after_inference", "after_tool", "round_end", "before_release"];

/// What a plugin answers: mostly nothing, and now and then what does not go together or is beyond its bound.
fn plugin_reply() -> impl Strategy<Value = Value> + Clone {
    let set = |scope: &str, key: &str, value: Value| json!({"type": "set", "scope": scope, "key": key, "value": value});
    let usual = [
        json!("nothing"),
        json!({}),
        json!({"context": "c", "after_ms": 700}),
        json!({"commands": [set("run", "seen", json!(["two"]))]}),
        json!({"commands": [{"type": "remove", "scope": "thread", "key": "suspect"}]}),
        json!({"commands": [{"type": "schedule", "action": "tidy", "payload": 1}], "context": "c"}),
    ];
    let odd = [
        json!("fail"),
        json!({"commands": [set("thread", "suspect", json!("s"))]}),
        json!({"commands": [set("run", "seen", json!("no list"))]}),
        json!({"commands": [set("run", "nowhere", json!(1))]}),
        json!({"commands": [{"type": "schedule", "action": "unheard-of"}]}),
    ];
    prop_oneof![12 => one_of(usual.to_vec()), 1 => one_of(odd.to_vec())]
}

/// Two plugins that hook every point, and what they answer.
fn plugins() -> impl Strategy<Value = (Value, Value)> {
    let mut points: Vec<&str> = POINTS.to_vec();
    points.push("run_end");
    let hooks: Vec<Value> = points
        .iter()
        .flat_map(|point| ["one", "two"].map(|plugin| json!({"plugin": plugin, "point": point})))
        .collect();
    let bound = json!({"hooks": points, "state_keys": {"ids": ["seen", "suspect"]}, "action_kinds": {"ids": ["tidy"]},
        "tools": {"ids": ["look"]}});
    let environment = json!({"hooks": hooks, "action_kinds": ["tidy"],
        "state_keys": [{"scope": "run", "key": "seen", "policy": "commutative"},
            {"scope": "thread", "key": "suspect", "policy": "exclusive"}],
        "capabilities": [{"plugin": "one", "bound": bound, "tools": ["look"]},
            {"plugin": "two", "bound": bound, "action_kinds": ["tidy"]}]});
    let ends = prop_oneof![30 => Just(json!({"always": true})), 1 => Just(json!("nothing"))];
    let list = (vec(plugin_reply(), 0..3), ends).prop_map(|(mut list, end)| {
        list.push(end);
        json!(list)
    });
    // Those who are asked in every round would otherwise schedule for ever.
    let tidies = vec(one_of(vec![json!({}), json!({"context": "tidy"})]), 0..3).prop_map(|mut list| {
        list.push(json!({"always": true}));
        json!(list)
    });
    let hooked = vec(list, POINTS.len() * 2).prop_map(|lists| {
        let of = |lists: &[Value]| json!(POINTS.into_iter().zip(lists).collect::<BTreeMap<_, _>>());
        json!({"one": of(&lists[..POINTS.len()]), "two": of(&lists[POINTS.len()..])})
    });
    (hooked, tidies).prop_map(move |(hooks, tidies)| (environment.clone(), json!({"hooks": hooks, "tidies": tidies})))
}

fn spec() -> impl Strategy<Value = Value> {
    let budgets = one_of(vec![
        json!({}),
        json!({"model_calls": 3, "final_call_reserve": 1}),
        json!({"tool_calls": 2}),
        json!({"total_tokens": 15}),
        json!({"tool_calls_by_tool": {"look": 1}}),
    ]);
    let release = one_of(vec![json!({}), json!({"judge": "off", "evidence_repairs": 2})]);
    let collection = one_of(vec![
        json!({}),
        json!({"saturation_after": 1}),
        json!({"assessment": "required", "violation_limit": 2}),
    ]);
    (budgets, release, collection, 0..2u32, any::<bool>()).prop_map(|(budgets, release, collection, repairs, pauses)| {
        json!({"task": "t", "model": {"name": "m"}, "fallbacks": [{"name": "n"}], "tools": tools(), "budgets": budgets,
            "release": release, "collection": collection, "draft": {"repairs": repairs}, "deadline_ms": 100_000,
            "deadline_pauses_while_awaiting": pauses})
    })
}

/// Writes `"!word"` out as an error of that type: its `type` must come first, which sorted keys would not do.
fn typed(text: String) -> String {
    let mut pieces = text.split("\"!");
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (word, rest) = piece.split_once('"').unwrap();
        written.push_str(&format!(r#"{{"type":"{word}","message":"m"}}{rest}"#));
    }
    written
}

fn scenario() -> impl Strategy<Value = String> {
    let gates = one_of(vec![
        json!([]),
        json!([{"id": "tool-gate", "of": "tool", "tools": ["look", "act"]}, {"id": "release-gate", "of": "release"}]),
    ]);
    let plugins = prop::option::weighted(0.3, plugins());
    (spec(), script(), gates, plugins).prop_map(|(spec, mut script, gates, plugins)| {
        let (mut environment, answers) = plugins.unwrap_or((json!({}), json!({})));
        environment["gates"] = gates;
        if let Some(hooks) = answers.get("hooks") {
            script["hooks"] = hooks.clone();
            script["actions"] = json!({"tidy": answers["tidies"]});
        }
        typed(json!({"spec": spec, "environment": environment, "script": script}).to_string())
    })
}

/// Plays a scenario to its halt and checks what holds for all of them; `None` when it awaits a person.
fn played(text: &str) -> Result<Option<Ending>, TestCaseError> {
    let fail = |reason: String| TestCaseError::fail(format!("{reason}\n{text}"));
    let read = Scenario::read(text.as_bytes()).map_err(|fault| fail(fault.to_string()))?;
    let stage = crate::stage::perform(read, Arc::new(MemoryStore::new()));
    let played = crate::stage::block_on(stage).map_err(|error| fail(error.to_string()))?;
    match &played.ending {
        Some(ending) => prop_assert!(is_legal(ending), "{:?}", ending),
        None => prop_assert!(!played.people.is_empty(), "the run is stuck"),
    }
    let mut replay = Replay::<Engine>::default();
    let mut lines = Lines::new(&*played.history);
    let (mut ended, mut steps) = (None, Vec::new());
    while let Next::Line(line) = lines.next_line().map_err(|fault| fail(fault.to_string()))? {
        let step = match replay.take(line).map_err(|fault| fail(fault.to_string()))? {
            Replayed::Reproduced(step) => step,
            Replayed::Diverged(divergence) => return Err(fail(format!("{divergence:?}"))),
        };
        let engine = replay.stepper();
        prop_assert_eq!(engine.decider().violations(), Vec::new());
        if let Some(ending) = engine.ending() {
            let first = ended.get_or_insert_with(|| ending.clone());
            prop_assert_eq!(&*first, ending, "step {} changed the ending", step.seq);
        }
        steps.push(step);
    }
    prop_assert_eq!(&ended, &played.ending);
    observed_once(replay.stepper(), ended.is_some())?;
    committed_or_rolled_back(&steps)?;
    within_budget(replay.stepper())?;
    entered_once(&steps)?;
    Ok(ended)
}

/// Every call that the model made has one closing observation: not none when the run has ended, never two.
fn observed_once(engine: &Engine, ended: bool) -> Result<(), TestCaseError> {
    let mut observations = BTreeMap::<ToolCallId, u32>::new();
    for message in engine.transcript() {
        match &**message {
            Message::Assistant { calls, .. } => observations.extend(calls.iter().map(|call| (call.call, 0))),
            Message::Observation(observation) => {
                let count = observations.get_mut(&observation.call);
                *count.ok_or_else(|| TestCaseError::fail("an observation without a call"))? += 1;
            }
            Message::Instructions { .. }
            | Message::Prior { .. }
            | Message::Task { .. }
            | Message::Imported { .. }
            | Message::Context { .. }
            | Message::Notice { .. } => {}
        }
    }
    prop_assert!(observations.values().all(|count| *count == 1 || (*count == 0 && !ended)), "{:?}", observations);
    Ok(())
}

/// What is staged is committed with its round or with a success, or it is rolled back: never both, and never
/// after a conflict or beyond a bound, which end the run.
fn committed_or_rolled_back(steps: &[Step]) -> Result<(), TestCaseError> {
    for step in steps {
        let has = |wanted: &str| step.signals.iter().any(|signal| signal.tag() == wanted);
        let (committed, rolled_back) = (has("state_committed"), has("state_rolled_back"));
        prop_assert!(!(committed && rolled_back), "step {}: {:?}", step.seq, step.signals);
        if has("state_conflicted") || has("bound_broken") {
            prop_assert!(has("run_ended") && !committed, "step {}: {:?}", step.seq, step.signals);
        }
        let succeeds = step.signals.contains(&Signal::RunEnded { state: RunStatus::Success });
        prop_assert!(!committed || has("batch_closed") || succeeds, "step {}: {:?}", step.seq, step.signals);
        prop_assert!(!rolled_back || has("run_ended"), "step {}: {:?}", step.seq, step.signals);
    }
    Ok(())
}

/// What was admitted never exceeds a limit.
fn within_budget(engine: &Engine) -> Result<(), TestCaseError> {
    let (Some(ledger), Some(spec)) = (engine.ledger(), engine.spec()) else { return Ok(()) };
    let within = |spent: u64, limit: Option<u64>| limit.is_none_or(|limit| spent <= limit);
    prop_assert!(within(ledger.model_calls, spec.budgets.model_calls));
    prop_assert!(within(ledger.tool_calls, spec.budgets.tool_calls));
    for (tool, limit) in &spec.budgets.tool_calls_by_tool {
        prop_assert!(within(ledger.tool_calls_by_tool.get(tool.as_str()).copied().unwrap_or(0), Some(*limit)));
    }
    Ok(())
}

/// A call of a tool that must not be replayed is entered again only after the proof that nothing happened.
fn entered_once(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut never_replayed = BTreeSet::new();
    let (mut entered, mut proven) = (BTreeMap::<ToolCallId, u32>::new(), BTreeMap::<ToolCallId, u32>::new());
    for step in steps {
        for message in &step.messages {
            if let Message::Assistant { calls, .. } = &**message {
                let held = calls.iter().filter(|call| matches!(call.request.name.as_str(), "act" | "last"));
                never_replayed.extend(held.map(|call| call.call));
            }
        }
        if let Input::ToolFailed { call, error: ToolError::UnavailableBeforeDispatch { .. }, .. } = &step.input {
            *proven.entry(*call).or_default() += 1;
        }
        for effect in &step.effects {
            if let Effect::InvokeTool { call, .. } = effect {
                *entered.entry(*call).or_default() += 1;
            }
        }
    }
    for call in never_replayed {
        let (entered, proven) = (entered.get(&call).copied().unwrap_or(0), proven.get(&call).copied().unwrap_or(0));
        prop_assert!(
            entered <= 1 + proven,
            "{} was entered {} times, {} of them proven harmless",
            call,
            entered,
            proven
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::support::remembered("proptest-regressions/any_scenario.txt"))]

    #[test]
    fn every_scenario_comes_to_a_legal_end_or_names_the_person_it_waits_for(text in scenario()) {
        played(&text)?;
    }
}

#[test]
fn such_scenarios_reach_every_row_and_wait_for_people() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<Option<u8>, u32>::new();
    for _ in 0..800 {
        let text = scenario().new_tree(&mut runner).unwrap().current();
        let row = played(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).map(|ending| ending.row);
        *seen.entry(row).or_default() += 1;
    }
    let wanted: Vec<_> = std::iter::once(None).chain((1..=20).map(Some)).collect();
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), wanted, "{seen:?}");
}
