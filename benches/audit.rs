//! Reading and auditing chat-completions lists, beside what `serde_json` needs to decode the same bytes.

#![allow(missing_docs, clippy::expect_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use portcullis::adapters::audit::Audit;
use portcullis::adapters::recording::Recording;
use portcullis::adapters::transcripts::{ReadOptions, read};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::spec::Settings;

/// A conversation of `turns` turns, each with two lookups and an answer: about 2.5 KB a turn.
fn conversation(turns: usize) -> String {
    let mut messages =
        vec![r#"{"role":"system","content":"You help with reservations. Look before you answer."}"#.to_owned()];
    for turn in 0..turns {
        messages.push(format!(r#"{{"role":"user","content":"What about reservation R{turn}?"}}"#));
        for look in 0..2 {
            let id = format!("call_{turn}_{look}");
            messages.push(format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"look_up","arguments":"{{\"reservation\":\"R{turn}\",\"part\":{look}}}"}}}}]}}"#
            ));
            let lines: String = (0..12)
                .map(|line| {
                    format!(
                        r#"{{\"flight\":\"HAT{turn}{line}\",\"price\":{},\"seats\":\"{line} left\"}},\n"#,
                        turn * 7 + line
                    )
                })
                .collect();
            messages.push(format!(r#"{{"role":"tool","tool_call_id":"{id}","name":"look_up","content":"[{lines}]"}}"#));
        }
        messages.push(format!(
            r#"{{"role":"assistant","content":"Reservation R{turn} is on HAT{turn}3 and HAT{turn}7."}}"#
        ));
    }
    format!("[{}]", messages.join(","))
}

fn audit(document: &[u8]) -> usize {
    let rules = Settings::none();
    let run: RunId = "run".parse().expect("an id");
    let mut findings = 0;
    for transcript in read(document, &ReadOptions::default()).expect("a recording") {
        let recording = Recording::new(transcript);
        let mut audit = Audit::new(&recording, &rules);
        while let Some(audited) = audit.turn(&run, |_, _| {}) {
            findings += audited.expect("it can be audited").findings.len();
        }
    }
    findings
}

fn lists(criterion: &mut Criterion) {
    for turns in [8, 64] {
        let document = conversation(turns);
        let mut group = criterion.benchmark_group(format!("chat-completions, {turns} turns"));
        group.throughput(Throughput::Bytes(document.len() as u64)).sample_size(20);
        group.bench_function("serde_json: decode to Value", |bench| {
            bench.iter(|| serde_json::from_str::<serde_json::Value>(&document).expect("JSON"));
        });
        group.bench_function("read", |bench| {
            bench.iter(|| read(document.as_bytes(), &ReadOptions::default()).expect("a recording"));
        });
        group.bench_function("read and audit", |bench| bench.iter(|| audit(document.as_bytes())));
        group.finish();
    }
}

criterion_group!(benches, lists);
criterion_main!(benches);
