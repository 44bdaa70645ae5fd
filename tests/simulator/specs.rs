//! The spec of a run and its tools, drawn from the seed.

use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::{
    Assessment, DraftFormat, JudgePolicy, ModelSpec, PluginSpec, Price, Spec, ToolSpec,
};
use portcullis::vocabulary::tool::{Concurrency, OnIndeterminate, Recovery};

use crate::world::World;

/// What a run is asked to do, and what it may spend on it.
pub(crate) fn spec(world: &World, run: &str) -> Spec {
    let pick = |what: &str, weights: &[u64]| world.choose(what, run, weights);
    let mut spec = Spec::new(run, "simulated");
    spec.deadline_ms = [Some(60_000), Some(5_000), Some(20_000), None][pick("deadline", &[3, 1, 1, 1])];
    spec.deadline_pauses_while_awaiting = pick("pauses", &[2, 1]) == 1;
    spec.budgets.model_calls = [Some(8), Some(0), Some(1), Some(2), Some(4)][pick("model_calls", &[12, 1, 1, 2, 2])];
    spec.budgets.tool_calls = [Some(16), Some(0), Some(2), Some(4)][pick("tool_calls", &[8, 1, 2, 2])];
    spec.budgets.final_call_reserve = [0, 1][pick("reserve", &[3, 1])];
    spec.budgets.total_tokens = [None, Some(700)][pick("total_tokens", &[4, 1])];
    if pick("one_look", &[4, 1]) == 1 {
        spec.budgets.tool_calls_by_tool = [("look".to_owned(), 1), ("probe".to_owned(), 0)].into();
    }
    if pick("price", &[4, 1]) == 1 {
        let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 2_000_000 };
        spec.budgets.prices = [("simulated".to_owned(), price)].into();
        spec.budgets.cost_micros = Some(900);
    }
    if pick("fallback", &[2, 1]) == 1 {
        spec.fallbacks = vec![ModelSpec::new("second")];
    }
    spec.retry.retries_max = [1, 0, 3][pick("retries", &[2, 1, 1])];
    spec.retry.base_ms = [50, 2_000][pick("backoff", &[3, 1])];
    spec.retry.overloaded_base_ms = spec.retry.base_ms;
    spec.collection.saturation_after = [Some(2), Some(1), None][pick("saturation", &[2, 2, 1])];
    spec.collection.assessment = [Assessment::Off, Assessment::Required][pick("assessment", &[3, 1])];
    spec.collection.violation_limit = [3, 1][pick("violations", &[2, 1])];
    spec.draft.repairs = [1, 0, 2][pick("draft_repairs", &[2, 2, 1])];
    spec.draft.format = [DraftFormat::Json, DraftFormat::Text][pick("format", &[9, 1])];
    spec.release.evidence_repairs = [1, 0, 2][pick("evidence_repairs", &[2, 1, 1])];
    spec.release.judge = [JudgePolicy::On, JudgePolicy::Off][pick("judge", &[4, 1])];
    spec.limits.response_bytes_max = 4_096;
    if pick("plugin", &[1, 1]) == 1 {
        spec.plugins = vec![PluginSpec { id: "watcher".to_owned(), config: Json::Null }];
    }
    spec
}

/// The tools of every run: one of each recovery mode, and what else a tool may be.
pub(crate) fn tools(world: &World, run: &str) -> Vec<ToolSpec> {
    let tool = |name: &str, recovery| {
        let at = format!("{run} {name}");
        use OnIndeterminate::{Await, End, Observe};
        ToolSpec {
            recovery: Some(recovery),
            parameters: Json::parse(r#"{"type":"object","properties":{"of":{"type":"string"}},"required":["of"]}"#)
                .unwrap(),
            concurrency: [Concurrency::Parallel, Concurrency::Serial][world.choose("serial", &at, &[3, 1])],
            timeout_ms: [Some(3_000), Some(300), None][world.choose("timeout", &at, &[3, 1, 1])],
            attempts_max: [3, 1][world.choose("attempts", &at, &[3, 1])],
            on_indeterminate: [Await, Observe, End][world.choose("indeterminate", &at, &[3, 2, 1])],
            result_bytes_max: 2_048,
            ..ToolSpec::new(name)
        }
    };
    let expires_ms = [None, Some(4_000)][world.choose("expires", run, &[1, 1])];
    vec![
        ToolSpec { evidence: true, ..tool("look", Recovery::ReplaySafe) },
        ToolSpec { evidence: true, repeatable: true, ..tool("probe", Recovery::ReplaySafe) },
        tool("pay", Recovery::NeverReplay),
        tool("put", Recovery::Idempotent),
        tool("job", Recovery::DurableRequest),
        ToolSpec { confirm: true, confirm_expires_ms: expires_ms, ..tool("order", Recovery::NeverReplay) },
        tool("mail", Recovery::NeverReplay),
        tool("wipe", Recovery::NeverReplay),
        tool("delegate", Recovery::ReplaySafe),
    ]
}
