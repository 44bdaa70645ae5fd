//! What holds for any bytes, and for any damage to a document of any format.

use portcullis::adapters::transcripts::{Format, ReadOptions, TranscriptError, read, recognise};
use proptest::collection::vec;
use proptest::prelude::*;

/// A small whole document of every format.
const DOCUMENTS: [(Format, &str); 8] = [
    (
        Format::ChatCompletions,
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"r\"}]\n{\"messages\":[{\"role\":\"user\",\"content\":\"again\"}]}\n",
    ),
    (
        Format::Otlp,
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"t","spanId":"1","parentSpanId":"0","startTimeUnixNano":"5","status":{"code":2,"message":"m"},"events":[{"name":"exception","attributes":[{"key":"exception.type","value":{"stringValue":"TimeoutError"}}]}],"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"q\"}]}]"}},{"key":"gen_ai.output.messages","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"assistant"}}]}}]}}}]},{"traceId":"t","spanId":"0","name":"run","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"invoke_agent"}}]}]}]}]}"#,
    ),
    (
        Format::Atif,
        r#"{"schema_version":"ATIF-v1.4","steps":[{"source":"user","message":"q"},{"source":"system","message":"Tool result for a","observation":{"content":"r","result":{"success":false}}},{"source":"agent","message":"m","tool_calls":[{"tool_call_id":"a","function_name":"f","arguments":{}}],"observation":{"results":[{"source_call_id":"b","content":"x"}]}}],"extra":{"success":true}}"#,
    ),
    (
        Format::Temporal,
        r#"{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED","xAttributes":{"input":{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"InEi"}]}}},{"eventId":"2","eventType":10,"xAttributes":{"activityType":{"name":"invoke_model_activity"},"input":{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"eyJpbnB1dCI6InEifQ=="}]}}},{"eventId":"3","eventType":"ActivityTaskFailed","xAttributes":{"scheduledEventId":"2","failure":{"message":"m"}}},{"eventId":"4","eventType":21,"xAttributes":{}}]}"#,
    ),
    (
        Format::OpenHands,
        r#"{"history":[{"source":"user","action":"message","args":{"content":"q"}},{"source":"agent","action":"finish","args":{"thought":"t"},"tool_call_metadata":{"tool_call_id":"a","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"c","tool_calls":[{"id":"a","function":{"name":"finish","arguments":"{\"message\":\"m\"}"}}]}}]}}},{"source":"agent","observation":"run","content":"o","tool_call_metadata":{"tool_call_id":"a"},"success":false}],"error":"maximum iteration"}"#,
    ),
    (
        Format::SweAgent,
        r#"{"history":[{"role":"user","content":"q","agent":"m"},{"role":"assistant","content":"c","thought":"t","action":"ls","agent":"m"},{"role":"user","content":"o","agent":"m"},{"role":"assistant","content":"c","tool_calls":[{"id":"a","function":{"name":"submit","arguments":"{}"}}],"agent":"m"}],"info":{"exit_status":"submitted","submission":"s"}}"#,
    ),
    (
        Format::ClaudeCode,
        "{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"1\",\"message\":{\"content\":\"q\"}}\n{\"type\":\"assistant\",\"sessionId\":\"s\",\"uuid\":\"2\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}]}}\n{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"3\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"r\"}]}}\n",
    ),
    (
        Format::React,
        "Question: q\nThought 1: t\nAction 1: Search[x]\nObservation 1: o\nThought 2: u\nAction 2: Finish[a]\nObservation 2: right\n",
    ),
];

/// Reads, and checks what has to hold of whatever comes out.
fn check(bytes: &[u8]) {
    let recognised = recognise(bytes);
    match read(bytes, &ReadOptions::default()) {
        Ok(transcripts) => {
            assert!(!transcripts.is_empty());
            for transcript in transcripts {
                assert_eq!(recognised, Some(transcript.format));
                assert!(!transcript.turns.is_empty());
                assert!(transcript.notes.windows(2).all(|two| two[0].at <= two[1].at || two[1].at.is_some()));
            }
        }
        Err(
            TranscriptError::NotUtf8 { at }
            | TranscriptError::Malformed { at, .. }
            | TranscriptError::Unreadable { at, .. },
        ) => {
            assert!(at.offset <= bytes.len());
            let before = &bytes[..at.offset];
            let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            assert_eq!(at.column, at.offset - line_start + 1);
            assert_eq!(at.line, before.iter().filter(|byte| **byte == b'\n').count() + 1);
        }
        Err(TranscriptError::Unrecognised) => assert_eq!(recognised, None),
        Err(TranscriptError::NoTurn { format }) => assert_eq!(recognised, Some(format)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_document_here_is_of_its_format() {
    for (format, document) in DOCUMENTS {
        assert_eq!(recognise(document.as_bytes()), Some(format));
        assert!(read(document.as_bytes(), &ReadOptions::default()).is_ok(), "{format}");
    }
}

#[test]
fn every_truncation_is_a_transcript_or_an_error_with_its_place() {
    for (_, document) in DOCUMENTS {
        (0..=document.len()).for_each(|end| check(&document.as_bytes()[..end]));
    }
}

#[test]
fn every_byte_that_is_replaced_is_survived() {
    for (_, document) in DOCUMENTS {
        for place in 0..document.len() {
            for other in [b'"', b'{', b'[', b'}', b'0', b'\n', b'\\', 0xff] {
                let mut bytes = document.as_bytes().to_vec();
                bytes[place] = other;
                check(&bytes);
            }
        }
    }
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let tokens = ["null", "[", "]", "{}", "[]", ",", ":", "\"\"", "\\ud800", "\n", "7", "true", "\"id\":", "-1e400"];
    prop_oneof![
        3 => prop::sample::select(tokens.map(|token| token.as_bytes().to_vec()).to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_mutation_is_a_transcript_or_an_error_with_its_place(
        which in 0..DOCUMENTS.len(),
        edits in vec((any::<prop::sample::Index>(), 0..6_usize, pieces()), 1..5),
    ) {
        let mut bytes = DOCUMENTS[which].1.as_bytes().to_vec();
        for (place, removed, inserted) in edits {
            let at = place.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, inserted);
        }
        check(&bytes);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes);
        for format in Format::ALL {
            let _ = read(&bytes, &ReadOptions { format: Some(*format), ..ReadOptions::default() });
        }
    }

    #[test]
    fn a_document_under_another_formats_name_is_survived(which in 0..DOCUMENTS.len(), format in 0..Format::ALL.len()) {
        let options = ReadOptions { format: Some(Format::ALL[format]), ..ReadOptions::default() };
        let _ = read(DOCUMENTS[which].1.as_bytes(), &options);
    }
}
