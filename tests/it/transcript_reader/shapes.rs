//! Each shape in a document of our own, and what becomes of it.

use portcullis::adapters::transcripts::chat::{Shape, recognise};
use portcullis::adapters::transcripts::{Format, ReadOptions, Said, Transcript, TranscriptError};

fn read(document: &str) -> Transcript {
    Transcript::read(document.as_bytes()).expect(document)
}

fn notes(transcript: &Transcript) -> Vec<String> {
    transcript.notes.iter().map(ToString::to_string).collect()
}

const TALK: &str = r#"[
  {"role":"system","content":"Be brief."},
  {"role":"user","content":"How warm is it?"},
  {"role":"assistant","content":null,"tool_calls":[
    {"id":"c1","type":"function","function":{"name":"thermometer","arguments":"{\"at\": \"roof\"}"}}]},
  {"role":"tool","tool_call_id":"c1","name":"thermometer","content":"21 degrees"},
  {"role":"assistant","content":"21 degrees."},
  {"role":"user","content":"Thanks."},
  {"role":"assistant","content":"Any time."}
]"#;

#[test]
fn the_same_messages_read_alike_in_every_shape() {
    let list = read(TALK);
    assert_eq!(list.format, Format::ChatCompletions);
    assert_eq!(list.notes, []);
    let wrapped = [
        (format!(r#"{{"model":"m","messages":{TALK}}}"#), Shape::Messages),
        (format!(r#"{{"reward":0.0,"traj":{TALK},"trial":1}}"#), Shape::TauBench),
        (format!(r#"{{"win":true,"answer_generation":{{"train_messages":[{TALK}]}}}}"#), Shape::ToolBench),
    ];
    for (document, shape) in wrapped {
        assert_eq!(recognise(document.as_bytes()), Some(shape));
        let transcript = read(&document);
        assert_eq!((&transcript.system, &transcript.turns), (&list.system, &list.turns));
    }
}

#[test]
fn a_turn_starts_at_a_user_message_and_ends_before_the_next() {
    let transcript = read(TALK);
    assert_eq!(transcript.system.as_deref(), Some("Be brief."));
    let [first, second] = transcript.turns.as_slice() else { panic!("two user messages are two turns") };
    assert_eq!((first.at, first.task.as_str()), (1, "How warm is it?"));
    assert_eq!((second.at, second.task.as_str()), (5, "Thanks."));
    let call = &first.replies[0].calls[0];
    assert_eq!(call.name, "thermometer");
    assert_eq!(call.arguments, r#"{"at": "roof"}"#, "the arguments stay as recorded");
    assert_eq!(call.provider_id.as_deref(), Some("c1"));
    assert_eq!(call.result.as_ref().map(|result| (result.text.as_str(), result.is_error)), Some(("21 degrees", false)));
    assert_eq!(first.replies[1].text.as_deref(), Some("21 degrees."));
    assert_eq!(first.replies.iter().map(|reply| reply.at).collect::<Vec<_>>(), [2, 4]);
}

#[test]
fn what_came_before_a_turn_is_the_opening_and_the_earlier_turns() {
    let transcript = read(
        r#"[{"role":"assistant","content":"Hello, ask me."},
            {"role":"user","content":"a"},{"role":"assistant","content":"b"},
            {"role":"user","content":"c"},{"role":"assistant","content":"d"}]"#,
    );
    let said = |turn| -> Vec<String> {
        transcript
            .prior(turn)
            .map(|said| match said {
                Said::User(text) => format!("user {text}"),
                Said::Assistant(reply) => {
                    format!("assistant {}", reply.text.as_deref().unwrap_or("-"))
                }
            })
            .collect()
    };
    assert_eq!(said(0), ["assistant Hello, ask me."]);
    assert_eq!(said(1), ["assistant Hello, ask me.", "user a", "assistant b"]);
}

#[test]
fn a_legacy_function_call_pairs_with_the_function_message_after_it() {
    let transcript = read(
        r#"[{"role":"user","content":"q"},
            {"role":"assistant","content":null,"function_call":{"name":"look","arguments":"{}"}},
            {"role":"function","name":"look","content":"{\"error\": \"broken\", \"response\": \"\"}"},
            {"role":"assistant","content":"done"}]"#,
    );
    let call = &transcript.turns[0].replies[0].calls[0];
    assert_eq!(call.provider_id, None);
    assert!(call.result.as_ref().is_some_and(|result| result.is_error));
    assert_eq!(transcript.notes, []);
}

#[test]
fn content_may_be_a_list_of_parts_joined_by_line_breaks() {
    let transcript = read(
        r#"[{"role":"developer","content":[{"type":"text","text":"one"},"two"]},
            {"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"x"}}]},
            {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#,
    );
    assert_eq!(transcript.system.as_deref(), Some("one\ntwo"));
    assert_eq!(transcript.turns[0].task, "see");
    assert_eq!(transcript.turns[0].replies[0].text.as_deref(), Some("a\nb"));
    assert_eq!(notes(&transcript), ["message 1: content part 1 holds no text, left out"]);
}

#[test]
fn several_leading_instructions_are_one_text_with_blank_lines() {
    let transcript = read(
        r#"[{"role":"system","content":"one"},{"role":"developer","content":"two"},
            {"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#,
    );
    assert_eq!(transcript.system.as_deref(), Some("one\n\ntwo"));
}

fn tree_search(samples: &[&str]) -> Transcript {
    let samples = samples.join(",");
    read(&format!(r#"{{"answer_generation":{{"query":"q","train_messages":[{samples}]}}}}"#))
}

const ASKED: &str = r#"{"role":"user","content":"q"}"#;
const CALLED: &str = r#"{"role":"assistant","content":null,"function_call":{"name":"look","arguments":"{}"}}"#;
const GOT: &str = r#"{"role":"function","name":"look","content":"seen"}"#;
const RETRY: &str = r#"{"role":"user","content":"try again","valid":false}"#;
const GAVE: &str = r#"{"role":"assistant","content":null,"function_call":{"name":"Finish","arguments":"{\"return_type\":\"give_answer\",\"final_answer\":\"it is so\"}"}}"#;

#[test]
fn of_growing_samples_the_longest_is_the_conversation() {
    let begun = format!("[{ASKED},{CALLED}]");
    let whole = format!("[{ASKED},{CALLED},{GOT},{GAVE}]");
    for order in [[begun.as_str(), &whole], [&whole, &begun]] {
        let transcript = tree_search(&order);
        assert_eq!(transcript.turns[0].replies.len(), 2);
        assert_eq!(transcript.turns[0].replies[1].text.as_deref(), Some("it is so"));
        assert_eq!(notes(&transcript), [r#"message 3: the call of "Finish" was read as the answer"#]);
    }
}

#[test]
fn of_equally_long_samples_the_last_is_taken_and_the_other_is_named() {
    let one = format!(r#"[{ASKED},{{"role":"assistant","content":"one"}}]"#);
    let two = format!(r#"[{ASKED},{{"role":"assistant","content":"two"}}]"#);
    let transcript = tree_search(&[&one, &two]);
    assert_eq!(transcript.turns[0].replies[0].text.as_deref(), Some("two"));
    assert_eq!(notes(&transcript), ["sample 0 is not part of the chosen chain, left out"]);
}

#[test]
fn a_withdrawn_prompt_neither_starts_a_turn_nor_makes_a_sample_longer_or_different() {
    let padded = format!("[{ASKED},{RETRY},{RETRY},{RETRY},{CALLED}]");
    let whole = format!("[{ASKED},{CALLED},{GOT},{GAVE}]");
    let transcript = tree_search(&[&padded, &whole]);
    assert_eq!((transcript.turns.len(), transcript.turns[0].replies.len()), (1, 2));
    assert_eq!(
        notes(&transcript)[..3],
        [1, 2, 3].map(|index| format!("message {index} of sample 0, a withdrawn prompt, left out"))
    );

    let kept = format!("[{ASKED},{CALLED},{GOT},{RETRY},{GAVE}]");
    let transcript = tree_search(&[&kept]);
    assert_eq!((transcript.turns.len(), transcript.turns[0].replies.len()), (1, 2));
    assert_eq!(notes(&transcript)[0], "message 3: a withdrawn prompt of the recording loop, left out");
}

#[test]
fn a_tree_search_without_a_chain_is_its_query_alone() {
    for answer in [r#"{"query":"q"}"#, r#"{"query":"q","train_messages":[]}"#, r#"{"query":"q","train_messages":[[]]}"#]
    {
        let transcript = read(&format!(r#"{{"answer_generation":{answer}}}"#));
        assert_eq!((transcript.turns[0].task.as_str(), transcript.turns[0].replies.len()), ("q", 0));
        let expected =
            ["the file kept no message chain, only its query", "message 0: nothing answers this user message"];
        assert_eq!(notes(&transcript), expected);
    }
}

#[test]
fn the_more_specific_shape_wins_and_a_scenario_is_none() {
    let empty = r#""messages":[],"traj":[]"#;
    let cases = [
        (format!(r#"{{{empty},"answer_generation":{{}}}}"#), Some(Shape::ToolBench)),
        (format!("{{{empty}}}"), Some(Shape::TauBench)),
        (r#"{"messages":[]}"#.to_owned(), Some(Shape::Messages)),
        (r#"{"traj":"text","messages":[]}"#.to_owned(), Some(Shape::Messages)),
        (r#"{"answer_generation":"text"}"#.to_owned(), None),
        (format!(r#"{{{empty},"spec":{{}}}}"#), None),
        (r#"{"messages":[{"id":1}]}"#.to_owned(), None),
        (r#"{"messages":[{"role":7}]}"#.to_owned(), None),
        (r#"[{"id":1,"source":"user"}]"#.to_owned(), None),
        (r#"[["user","q"]]"#.to_owned(), None),
        ("[]".to_owned(), None),
        ("{}".to_owned(), None),
        ("7".to_owned(), None),
        (r#"[{"role":"user"}"#.to_owned(), None),
    ];
    for (document, expected) in cases {
        assert_eq!(recognise(document.as_bytes()), expected, "{document}");
    }
}

#[test]
fn a_terminal_call_beside_others_answers_after_them() {
    let transcript = read(
        r#"[{"role":"user","content":"q"},
            {"role":"assistant","content":"looking","tool_calls":[
              {"id":"a","function":{"name":"look","arguments":"{}"}},
              {"id":"b","function":{"name":"submit","arguments":"{\"answer\":\"so\"}"}}]},
            {"role":"tool","tool_call_id":"a","content":"seen"}]"#,
    );
    let [looked, answered] = transcript.turns[0].replies.as_slice() else { panic!("the answer is a reply of its own") };
    assert_eq!((looked.text.as_deref(), looked.calls.len(), looked.at), (Some("looking"), 1, 1));
    assert_eq!((answered.text.as_deref(), answered.calls.len(), answered.at), (Some("so"), 0, 1));
}

#[test]
fn a_terminal_call_with_a_result_or_before_the_end_is_an_ordinary_call() {
    let finish = r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"submit","arguments":"{}"}}]}"#;
    let after = [r#"{"role":"tool","tool_call_id":"a","content":"ok"}"#, r#"{"role":"assistant","content":"more"}"#];
    for next in after {
        let transcript = read(&format!(r#"[{ASKED},{finish},{next}]"#));
        assert_eq!(transcript.turns[0].replies[0].calls.len(), 1, "{next}");
    }
}

#[test]
fn which_tools_are_terminal_is_an_option() {
    let document = format!(
        r#"[{ASKED},{{"role":"assistant","tool_calls":[{{"function":{{"name":"done","arguments":"fine"}}}}]}}]"#
    );
    assert_eq!(read(&document).turns[0].replies[0].calls.len(), 1);
    let options = ReadOptions { terminal_tools: vec!["done".to_owned()], ..ReadOptions::default() };
    let transcript = Transcript::read_with(document.as_bytes(), &options).expect("readable");
    assert_eq!(transcript.turns[0].replies[0].text.as_deref(), Some("fine"));
}

#[test]
fn the_size_limit_admits_exactly_its_bytes() {
    let limit = |bytes_max| ReadOptions { bytes_max, ..ReadOptions::default() };
    assert!(Transcript::read_with(TALK.as_bytes(), &limit(TALK.len())).is_ok());
    assert_eq!(
        Transcript::read_with(TALK.as_bytes(), &limit(TALK.len() - 1)),
        Err(TranscriptError::TooLarge { bytes: TALK.len(), bytes_max: TALK.len() - 1 })
    );
}
