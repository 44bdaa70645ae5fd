//! Histories of ours, exported to the formats of others and read back.

use std::collections::BTreeSet;
use std::path::Path;

use portcullis::adapters::exporters::{Answer, Conversation, ExportFormat, Said};
use portcullis::adapters::transcripts::{Claim, Format, ReadOptions, Reply, Transcript, TranscriptError, read};
use portcullis::engine::Engine;
use portcullis::history::{Lines, Next, Replay, Replayed};
use serde_json::Value;

/// The golden histories, by name.
fn histories() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    let listed = std::fs::read_dir(folder).expect("the golden histories");
    let paths = listed.map(|entry| entry.expect("a readable entry").path());
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| {
            let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a readable file"))
        })
        .collect();
    found.sort();
    assert!(found.len() > 20, "the golden histories are gone");
    found
}

/// What was said in a history, after each of its records.
fn prefixes(history: &[u8]) -> Vec<Conversation> {
    let (mut lines, mut replay) = (Lines::new(history), Replay::<Engine>::default());
    let mut conversation = Conversation::default();
    let mut found = Vec::new();
    while let Next::Line(line) = lines.next_line().expect("whole") {
        match replay.take(line).expect("whole") {
            Replayed::Reproduced(step) => conversation.take(&step, replay.stepper()),
            Replayed::Diverged(divergence) => panic!("{divergence:?}"),
        }
        found.push(conversation.clone());
    }
    found
}

fn exported(format: ExportFormat, conversation: &Conversation) -> String {
    format.write(conversation).expect("a document")
}

/// A reply: text, and each call as name, arguments, result and whether that is an error.
type Told = (Option<String>, Vec<(String, Value, Option<(String, bool)>)>);

fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The turns as they should come back: each task, and the replies to it.
fn expected(conversation: &Conversation) -> Vec<(String, Vec<Told>)> {
    let mut turns: Vec<(String, Vec<Told>)> = Vec::new();
    let hear = |turns: &mut Vec<(String, Vec<Told>)>, said: &Said| match said {
        Said::User(text) => turns.push((text.clone(), Vec::new())),
        Said::Assistant(text) => {
            turns.last_mut().into_iter().for_each(|turn| turn.1.push((Some(text.clone()), Vec::new())))
        }
        Said::System(_) => {}
    };
    for exchange in &conversation.exchanges {
        exchange.told.iter().for_each(|said| hear(&mut turns, said));
        if let Answer::Replied { text, calls, .. } = &exchange.answer {
            let calls = calls.iter().map(|called| {
                let outcome = called.outcome.as_ref().map(|outcome| (outcome.text.clone(), outcome.is_error()));
                (called.name.clone(), arguments(&called.arguments), outcome)
            });
            let text = text.clone().filter(|text| !text.is_empty());
            turns.last_mut().expect("a task").1.push((text, calls.collect()));
        }
    }
    conversation.unasked.iter().for_each(|said| hear(&mut turns, said));
    turns
}

/// The turns as they came back. Not every format says of a result that it is an error.
fn came_back(transcript: &Transcript, errors: bool) -> Vec<(String, Vec<Told>)> {
    let told = |reply: &Reply| -> Told {
        let calls = reply.calls.iter().map(|call| {
            let result = call.result.as_ref().map(|result| (result.text.clone(), errors && result.is_error));
            (call.name.clone(), arguments(&call.arguments), result)
        });
        (reply.text.clone(), calls.collect())
    };
    transcript.turns.iter().map(|turn| (turn.task.clone(), turn.replies.iter().map(told).collect())).collect()
}

#[test]
fn what_is_exported_comes_back_as_the_same_turns_replies_calls_and_results() {
    let mut calls = 0;
    for (name, history) in histories() {
        let conversation = prefixes(&history).pop().expect("a record");
        for format in ExportFormat::ALL {
            if *format == ExportFormat::Otlp && conversation.exchanges.is_empty() {
                continue;
            }
            let document = exported(*format, &conversation);
            let transcripts = read(document.as_bytes(), &ReadOptions::default());
            let transcripts = transcripts.unwrap_or_else(|error| panic!("{name} as {format}: {error}"));
            assert_eq!((transcripts.len(), transcripts[0].format.word()), (1, format.word()), "{name}");
            let errors = *format != ExportFormat::ChatCompletions;
            let mut expected = expected(&conversation);
            for called in expected.iter_mut().flat_map(|turn| &mut turn.1).flat_map(|reply| &mut reply.1) {
                calls += 1;
                // What is no object cannot stand in every format as it is.
                if *format == ExportFormat::Atif && !called.1.is_object() {
                    called.1 = serde_json::json!({"text":called.1.as_str().map_or_else(|| called.1.to_string(), str::to_owned)});
                }
                if *format == ExportFormat::ChatCompletions && called.2.is_none() {
                    called.2 = Some(("no result: the history ends before it".to_owned(), false));
                }
                if let Some((_, is_error)) = &mut called.2 {
                    *is_error &= errors;
                }
            }
            assert_eq!(came_back(&transcripts[0], errors), expected, "{name} as {format}");
        }
    }
    assert!(calls > 50, "the golden histories call tools");
}

#[test]
fn how_it_ended_comes_back_as_a_claim() {
    let claim = |name: &str, format: ExportFormat| {
        let (_, history) = histories().into_iter().find(|(found, _)| found == name).expect(name);
        let document = exported(format, &prefixes(&history).pop().expect("a record"));
        let mut transcripts = read(document.as_bytes(), &ReadOptions::default()).expect(name);
        transcripts.remove(0).turns.pop().expect("a turn").claim
    };
    assert_eq!(claim("row-15-cancelled", ExportFormat::Otlp), Claim::Cancelled);
    assert_eq!(claim("row-01-repaired-and-supported", ExportFormat::Atif), Claim::Success);
    match claim("row-17-model-overloaded", ExportFormat::Otlp) {
        Claim::ModelFailed { error } => assert_eq!(error.code().word(), "overloaded"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(claim("row-16-deadline", ExportFormat::Otlp), Claim::Failed { .. }));
}

#[test]
fn in_messages_every_call_has_exactly_one_result_after_it_at_every_prefix() {
    for (name, history) in histories() {
        for conversation in prefixes(&history) {
            let document: Value =
                serde_json::from_str(&exported(ExportFormat::ChatCompletions, &conversation)).expect("JSON");
            let mut open: BTreeSet<String> = BTreeSet::new();
            let mut seen: BTreeSet<String> = BTreeSet::new();
            for message in document["messages"].as_array().expect("a list") {
                if message["role"] == "tool" {
                    let id = message["tool_call_id"].as_str().expect("an id");
                    assert!(open.remove(id), "{name}: {id} has no call, or two results");
                    continue;
                }
                assert!(open.is_empty(), "{name}: {open:?} have no result");
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let id = call["id"].as_str().expect("an id").to_owned();
                    assert!(seen.insert(id.clone()) && open.insert(id), "{name}: an id twice");
                }
            }
            assert!(open.is_empty(), "{name}: {open:?} have no result");
        }
    }
}

#[test]
fn spans_have_ids_of_their_own_that_a_second_export_gives_again() {
    for (name, history) in histories() {
        let conversation = prefixes(&history).pop().expect("a record");
        let document = exported(ExportFormat::Otlp, &conversation);
        assert_eq!(document, exported(ExportFormat::Otlp, &conversation), "{name}");
        let value: Value = serde_json::from_str(&document).expect("JSON");
        let spans = value["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone();
        let ids: BTreeSet<_> = spans.iter().map(|span| span["spanId"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(ids.len(), spans.len(), "{name}");
        for span in &spans {
            assert_eq!(span["traceId"].as_str().map(str::len), Some(32), "{name}");
            assert_eq!(span["spanId"].as_str().map(str::len), Some(16), "{name}");
            let nanos =
                |key: &str| span[key].as_str().and_then(|nanos| nanos.parse::<u64>().ok()).expect("nanoseconds");
            assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"), "{name}");
        }
    }
}

#[test]
fn a_run_that_never_asked_a_model_has_a_task_and_no_requests() {
    let (_, history) =
        histories().into_iter().find(|(name, _)| name == "row-18-no-route").expect("the run without a route");
    let conversation = prefixes(&history).pop().expect("a record");
    let document = exported(ExportFormat::ChatCompletions, &conversation);
    let read_back = read(document.as_bytes(), &ReadOptions::default()).expect("a task");
    assert_eq!(read_back[0].turns[0].replies, []);
    let spans = exported(ExportFormat::Otlp, &conversation);
    let refused = read(spans.as_bytes(), &ReadOptions::default()).expect_err("nobody was asked");
    assert_eq!(refused, TranscriptError::NoTurn { format: Format::Otlp });
}
