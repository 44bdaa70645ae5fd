//! Specs and environments.

use proptest::option::of;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;

use crate::vocabulary::environment::{Environment, Gate, GateOf};
use crate::vocabulary::spec::{Assessment, JudgePolicy, ModelSpec, Spec, ToolSpec};
use crate::vocabulary::tool::{Concurrency, OnIndeterminate, Recovery};

/// A spec that a run can be started with: budgets wide enough for long runs, every rule of it drawn, a deadline
/// far away.
pub fn spec() -> impl Strategy<Value = Spec> {
    let budgets = (30..80u64, of(20..200u64), 0..3u64, any::<bool>());
    let rules = (of(1..6u32), any::<bool>(), 2..7u32, any::<bool>());
    let repairs = (0..3u32, 0..3u32, any::<bool>());
    (budgets, rules, repairs, 0..3u32).prop_map(|(budgets, rules, repairs, retries)| {
        let mut spec = Spec::new("find out", "model");
        let (model_calls, tool_calls, reserve, tokens) = budgets;
        spec.budgets.model_calls = Some(model_calls);
        spec.budgets.tool_calls = tool_calls;
        spec.budgets.final_call_reserve = reserve;
        spec.budgets.total_tokens = tokens.then_some(15 * model_calls / 2);
        spec.budgets.tool_calls_by_tool = [("pay".to_owned(), 3)].into();
        let (saturation_after, assessed, violation_limit, paused) = rules;
        spec.collection.saturation_after = saturation_after;
        spec.collection.assessment = if assessed { Assessment::Required } else { Assessment::Off };
        spec.collection.violation_limit = violation_limit;
        spec.deadline_ms = Some(10_000_000);
        spec.deadline_pauses_while_awaiting = paused;
        let (draft_repairs, evidence_repairs, judged) = repairs;
        spec.draft.repairs = draft_repairs;
        spec.release.evidence_repairs = evidence_repairs;
        spec.release.judge = if judged { JudgePolicy::On } else { JudgePolicy::Off };
        spec.retry.retries_max = retries;
        spec.fallbacks = vec![ModelSpec::new("other")];
        spec
    })
}

/// A spec that no run can be started with, because of one fault.
pub fn refused_spec() -> impl Strategy<Value = Spec> {
    let faults = prop_oneof![
        Just((|spec: &mut Spec| (spec.budgets.model_calls, spec.deadline_ms) = (None, None)) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.model.name.clear()) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.collection.saturation_after = Some(0)) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.collection.violation_limit = 1_001) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.draft.repairs = 101) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.release.evidence_repairs = 101) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.tools = vec![ToolSpec::new("look"), ToolSpec::new("look")]) as fn(&mut Spec)),
        Just((|spec: &mut Spec| spec.tools = vec![ToolSpec::new("no name")]) as fn(&mut Spec)),
    ];
    (spec(), faults).prop_map(|(mut spec, fault)| {
        fault(&mut spec);
        spec
    })
}

/// An environment that resolution may find: `look` and `poll` look, `act` and `pay` do something that costs, and
/// the outcome of `note` may stay unknown. With or without gates.
pub fn environment() -> impl Strategy<Value = Environment> {
    (any::<bool>(), any::<bool>(), of(20..80u64), 1..4u32).prop_map(|(gated, serial, expires, attempts_max)| {
        let concurrency = if serial { Concurrency::Serial } else { Concurrency::Parallel };
        let tools = vec![
            ToolSpec::evidence("look"),
            ToolSpec { repeatable: true, ..ToolSpec::evidence("poll") },
            ToolSpec { concurrency, confirm_expires_ms: expires, ..ToolSpec::new("act") },
            ToolSpec { recovery: Some(Recovery::Idempotent), ..ToolSpec::new("pay") },
            ToolSpec { on_indeterminate: OnIndeterminate::Observe, ..ToolSpec::new("note") },
        ];
        let timed = |tool| ToolSpec { timeout_ms: Some(100), attempts_max, ..tool };
        let tools = tools.into_iter().map(timed).collect();
        Environment { tools, gates: if gated { gates() } else { Vec::new() }, ..Environment::default() }
    })
}

fn gates() -> Vec<Gate> {
    let gate = |id: &str, of| Gate { id: id.to_owned(), of, tools: vec!["act".to_owned()] };
    vec![gate("door", GateOf::Tool), gate("hatch", GateOf::Tool), gate("portcullis", GateOf::Release)]
}
