//! What holds for files of lines, and the limits.

use portcullis::adapters::transcripts::{Format, ReadOptions, TranscriptError, read, recognise};

use crate::support::{all, notes, one, told};

const TALK: &str = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#;

#[test]
fn conversations_of_messages_may_stand_one_a_line() {
    let object = format!(r#"{{"messages":{TALK}}}"#);
    let read = all(Format::ChatCompletions, &format!("{TALK}\n{{\"id\":1}}\n\n{object}\r\n[{{\"role\":\n"));
    assert_eq!(read.iter().flat_map(told).collect::<Vec<_>>(), ["q: a", "q: a"]);
    assert_eq!(
        notes(&read[0]),
        [
            "line 2, column 1 (byte 67): skipped: $: no list of messages",
            "line 5, column 9 (byte 166): skipped: not JSON: EOF while parsing a value",
        ]
    );
    assert_eq!(notes(&read[1]), Vec::<String>::new());
}

#[test]
fn the_format_of_a_file_whose_first_line_is_damaged_is_told_by_the_next_ones() {
    let object = format!(r#"{{"messages":{TALK}}}"#);
    assert_eq!(told(&one(Format::ChatCompletions, &format!("{{\"cut\n{object}\n"))), ["q: a"]);
    assert_eq!(recognise(format!("{{\"cut\n\n{TALK}").as_bytes()), Some(Format::ChatCompletions));
    let late = format!("{}{object}\n", "{}\n".repeat(40));
    assert_eq!(recognise(late.as_bytes()), None, "only the first lines are asked");
}

#[test]
fn a_damaged_document_that_is_no_file_of_lines_is_an_error_with_its_place() {
    let cut = TALK.split_at(50).0;
    let error = read(cut.as_bytes(), &ReadOptions::default()).expect_err("cut");
    assert!(matches!(&error, TranscriptError::Malformed { at, .. } if at.offset == 49), "{error:?}");
}

#[test]
fn a_format_that_is_named_is_not_guessed() {
    let options = |format| ReadOptions { format: Some(format), ..ReadOptions::default() };
    let text = b"Question: q";
    assert_eq!(recognise(text), None);
    assert_eq!(read(text, &options(Format::React)).expect("named")[0].turns[0].task, "q");
    for format in Format::ALL {
        if !matches!(format, Format::React) {
            let error = read(text, &options(*format)).expect_err("no JSON");
            assert!(!error.to_string().is_empty(), "{format}");
        }
    }
}

#[test]
fn the_limit_of_entries_admits_exactly_that_many() {
    let limit = |entries_max| ReadOptions { entries_max, ..ReadOptions::default() };
    assert!(read(TALK.as_bytes(), &limit(2)).is_ok());
    let error = read(TALK.as_bytes(), &limit(1)).expect_err("too many");
    assert_eq!(error, TranscriptError::TooMany { format: Format::ChatCompletions, entries: 2, entries_max: 1 });
    assert_eq!(error.to_string(), "2 messages, the limit is 1; split the recording, or raise the limit");
}

#[test]
fn a_conversation_without_a_user_message_is_told_of() {
    let silent = r#"[{"role":"assistant","content":"hello"}]"#;
    let read = one(Format::ChatCompletions, &format!("{TALK}\n{silent}\n"));
    assert_eq!(notes(&read), ["message 0: a conversation of its own without a user message, 1 entries left out"]);
}

#[test]
fn depth_costs_no_stack_in_any_format() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let value = format!("{}{}", r#"{"arrayValue":{"values":["#.repeat(20_000), "]}}".repeat(20_000));
    let documents = [
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"attributes":[{{"key":"gen_ai.input.messages","value":{value}}},{{"key":"gen_ai.operation.name","value":{{"stringValue":"chat"}}}}]}}]}}]}}]}}"#
        ),
        format!(r#"{{"schema_version":"ATIF-v1","steps":[{{"source":"user","message":{deep}}}]}}"#),
        format!(r#"{{"events":[{{"eventId":1,"eventType":1,"a":{deep}}}]}}"#),
        format!(r#"[{{"source":"user","action":"message","args":{{"content":{deep}}}}}]"#),
        format!(r#"{{"history":[{{"role":"user","agent":"m","content":{deep}}}]}}"#),
        format!(r#"{{"type":"user","sessionId":"s","message":{{"content":{deep}}}}}"#),
    ];
    for document in documents {
        assert!(recognise(document.as_bytes()).is_some());
        let _ = read(document.as_bytes(), &ReadOptions::default());
    }
}

/// A format's document of that many entries.
fn long(format: Format, entries: usize) -> String {
    let each = |entry: &dyn Fn(usize) -> String, with: &str| (0..entries).map(entry).collect::<Vec<_>>().join(with);
    match format {
        Format::ChatCompletions => each(&|_| TALK.to_owned(), "\n"),
        Format::Otlp => {
            let spans = each(
                &|index| {
                    format!(
                        r#"{{"traceId":"t","spanId":"{index}","parentSpanId":"{}","startTimeUnixNano":{index},"attributes":[{{"key":"gen_ai.operation.name","value":{{"stringValue":"chat"}}}},{{"key":"gen_ai.input.messages","value":{{"stringValue":"[{{\"role\":\"user\",\"content\":\"q{index}\"}}]"}}}},{{"key":"gen_ai.output.messages","value":{{"stringValue":"[{{\"role\":\"assistant\",\"content\":\"a\"}}]"}}}}]}}"#,
                        index + 1
                    )
                },
                ",",
            );
            format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
        }
        Format::Atif => {
            let steps = each(
                &|_| {
                    r#"{"source":"user","message":"q"},{"source":"system","message":"Tool result for x","observation":{"content":"r"}}"#.to_owned()
                },
                ",",
            );
            format!(r#"{{"steps":[{steps}]}}"#)
        }
        Format::Temporal => {
            let events = each(
                &|index| {
                    format!(
                        r#"{{"eventId":{index},"eventType":26,"xAttributes":{{"input":{{"payloads":[{{"data":"InEi"}}]}}}}}}"#
                    )
                },
                ",",
            );
            format!(r#"{{"events":[{events}]}}"#)
        }
        Format::OpenHands => format!(
            "[{}]",
            each(
                &|index| format!(
                    r#"{{"id":{index},"source":"agent","action":"run","args":{{}}}},{{"source":"user","action":"message","args":{{"content":"q"}}}}"#
                ),
                ","
            )
        ),
        Format::SweAgent => {
            format!(r#"{{"history":[{}]}}"#, each(&|_| r#"{"role":"user","content":"q","agent":"m"}"#.to_owned(), ","))
        }
        Format::ClaudeCode => each(
            &|index| {
                format!(
                    "{{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"{index}\",\"isSidechain\":true,\"message\":{{\"content\":\"q\"}}}}\nbad"
                )
            },
            "\n",
        ),
        Format::React => {
            format!("Question: q\n{}", each(&|_| "Thought 1: t\nAction 1: f[x]\nObservation 1: o".to_owned(), "\n"))
        }
    }
}

#[test]
fn time_grows_with_the_document_and_not_with_its_square() {
    let spent = |format, entries| {
        let document = long(format, entries);
        let begun = std::time::Instant::now();
        let read = all(format, &document);
        assert!(read.iter().map(|read| read.turns.len()).sum::<usize>() >= 1, "{format}");
        begun.elapsed()
    };
    for format in Format::ALL {
        let (quarter, whole) = (spent(*format, 2_500), spent(*format, 10_000));
        println!("{format}: 2,500 entries in {quarter:?}, 10,000 in {whole:?}");
        // Four times as much; sixteen times were its square. The rest is for a machine with other work.
        assert!(whole < quarter * 8 + std::time::Duration::from_secs(2), "{format}: {quarter:?}, {whole:?}");
    }
}
