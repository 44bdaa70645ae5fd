//! What a step, a run and a replay cost. Ratios are taken within one run, since machines differ.
//!
//! `cargo bench --bench engine`

#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use portcullis::engine::{Engine, Step};
use portcullis::history::{Policy, Recorder, replay};
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::ids::{ModelCallId, ToolCallId};
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::llm::{Content, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::ToolOutput;

mod typed;

fn spec() -> Spec {
    let mut spec = Spec::new("Why is checkout slow?", "a-model");
    spec.tools = vec![ToolSpec::evidence("metrics"), ToolSpec::evidence("logs")];
    spec.budgets.model_calls = None;
    spec.budgets.tool_calls = None;
    spec.deadline_ms = Some(1 << 50);
    spec.limits.transcript_bytes_max = 1 << 40;
    spec
}

fn begin(spec: Spec) -> Vec<Input> {
    let environment = Environment { tools: spec.tools.clone(), ..Environment::default() };
    let started = Input::RunStarted {
        run_id: "bench".parse().expect("a run id"),
        spec: Box::new(spec),
        nonce: "nonce".to_owned(),
        wall_time: "2026-01-01T00:00:00Z".to_owned(),
        forked_from: None,
    };
    vec![started, Input::EnvironmentResolved { environment: Box::new(environment) }]
}

/// The three reports of one round: the model asks for a tool, the dispatch is durable, the tool returns.
fn round(number: u32) -> [Input; 3] {
    let request = ToolRequest {
        name: "metrics".to_owned(),
        arguments: format!("{{\"query\":\"p99 latency of checkout\",\"window\":{number}}}"),
        provider_id: Some(format!("call_{number}")),
    };
    let call = ToolCallId { round: number, index: 0 };
    let found =
        Statement { statement: format!("p99 of checkout in window {number} is {} ms", 900 + number), key: None };
    [
        Input::ModelResponded {
            call: ModelCallId(number),
            attempt: 1,
            content: Content {
                text: Some("Let me look at the latency.".to_owned()),
                calls: vec![request],
                opaque: None,
            },
            finish: FinishReason::ToolCalls,
            usage: Usage { input_tokens: Some(1200), output_tokens: Some(40) },
        },
        Input::ToolsDispatched { calls: vec![call] },
        Input::ToolCompleted { call, attempt: 1, output: ToolOutput::facts("window read", [found]) },
    ]
}

fn inputs(rounds: u32) -> Vec<Input> {
    let mut inputs = begin(spec());
    inputs.extend((1..=rounds).flat_map(round));
    inputs
}

fn stepped(inputs: &[Input]) -> (Engine, u64) {
    let mut engine = Engine::new();
    let mut at_ms = 0;
    for input in inputs {
        engine.step(at_ms, input.clone()).expect("the script fits");
        at_ms += 10;
    }
    (engine, at_ms)
}

fn history(rounds: u32) -> Vec<u8> {
    let (mut engine, mut recorder) = (Engine::new(), Recorder::new());
    let mut history = Vec::new();
    for (input, at_ms) in inputs(rounds).into_iter().zip((0..).step_by(10)) {
        let step = engine.step(at_ms, input).expect("the script fits");
        history.extend_from_slice(recorder.record(&engine, &step));
    }
    history
}

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    let kinds = ["model_responded", "tools_dispatched", "tool_completed"];
    for (place, kind) in kinds.into_iter().enumerate() {
        let mut before = begin(spec());
        before.extend((1..=5).flat_map(round));
        before.extend(round(6).into_iter().take(place));
        let next = round(6)[place].clone();
        let (engine, at_ms) = stepped(&before);
        group.bench_function(kind, |bencher| {
            bencher.iter_batched(
                || (engine.clone(), next.clone()),
                |(mut engine, input)| -> (Engine, Step) {
                    let step = engine.step(at_ms, input).expect("it fits");
                    (engine, step)
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn runs(criterion: &mut Criterion) {
    let script: Vec<Input> = inputs(13).into_iter().take(40).collect();
    criterion.bench_function("run/40_inputs", |bencher| {
        bencher.iter_batched(|| script.clone(), |script| stepped(&script), BatchSize::SmallInput);
    });
    criterion.bench_function("run/40_inputs_recorded", |bencher| {
        bencher.iter(|| {
            let (mut engine, mut recorder) = (Engine::new(), Recorder::new());
            let mut bytes = 0;
            for (input, at_ms) in script.iter().zip((0..).step_by(10)) {
                let step = engine.step(at_ms, input.clone()).expect("the script fits");
                bytes += recorder.record(&engine, &step).len();
            }
            bytes
        });
    });
}

fn replays(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10);
    for rounds in [3_333, 33_333] {
        let history = history(rounds);
        let records = history.iter().filter(|byte| **byte == b'\n').count();
        group.throughput(Throughput::Bytes(history.len() as u64));
        group.bench_function(format!("{records}_records"), |bencher| {
            bencher.iter(|| {
                let summary = replay(&history[..], Policy::Stop).expect("it is whole");
                assert!(summary.divergences.is_empty());
                black_box(summary.records)
            });
        });
        group.bench_function(format!("{records}_records_typed_decoding"), |bencher| {
            bencher.iter(|| {
                for line in history.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    black_box(serde_json::from_slice::<typed::Record>(line).expect("a record"));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, steps, runs, replays);
criterion_main!(benches);
