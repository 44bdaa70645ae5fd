//! Reading takes any bytes without a panic, and never takes for an answer what was cut or damaged into none.

use std::ops::ControlFlow;

use proptest::prelude::*;
use reqwest::header::HeaderMap;

use crate::adapters::providers::dialect::{self, Framing, Gathering, Reply};
use crate::adapters::providers::failure;
use crate::adapters::providers::stream::Pieces;
use crate::vocabulary::llm::{self, Code};
use crate::vocabulary::spec::Api;

const ANSWERS: [&str; 9] = [
    r#"{"choices":[{"finish_reason":"tool_calls","message":{"content":"x","refusal":null,"reasoning_content":"r","tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
    r#"{"error":{"code":429,"type":"t","message":"m","metadata":{"flagged_input":"x"},"details":[{"reason":"r","retryDelay":"1s"}]}}"#,
    r#"{"stop_reason":"tool_use","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"n","input":{"x":[1,2]}}],"usage":{"input_tokens":1}}"#,
    r#"{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"x","thoughtSignature":"s"},{"functionCall":{"name":"n","args":{}}}]}}],"usageMetadata":{"promptTokenCount":1}}"#,
    r#"{"message":{"content":"x","tool_calls":[{"function":{"name":"n","arguments":{}}}]},"done":true,"done_reason":"stop"}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":"{"}}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":4294967295,"function":{"arguments":"{"}},{"id":"x"}]}}]}"#,
    "[DONE]",
];

/// Answers, damaged in a few bytes, or anything at all.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (0..ANSWERS.len(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4))
        .prop_map(|(answer, damage)| {
            let mut bytes = ANSWERS[answer].as_bytes().to_vec();
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        });
    let cut = (0..ANSWERS.len(), any::<prop::sample::Index>())
        .prop_map(|(answer, end)| ANSWERS[answer].as_bytes()[..end.index(ANSWERS[answer].len())].to_vec());
    prop_oneof![3 => damaged, 2 => cut, 1 => prop::collection::vec(any::<u8>(), 0..400)]
}

/// Streams of such pieces, in either framing.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let separator = prop_oneof![Just("\n\ndata: "), Just("\n"), Just("\r\n\r\ndata:"), Just("\n: \n"), Just("\n\n")];
    prop::collection::vec((separator, bytes()), 0..8).prop_map(|pieces| {
        pieces.into_iter().flat_map(|(before, piece)| [before.as_bytes().to_vec(), piece].concat()).collect()
    })
}

fn gathered(api: Api, bytes: &[u8], size: usize) -> Result<Reply, llm::Error> {
    let (framing, mut gathering): (Framing, Box<dyn Gathering>) = dialect::of(api).stream();
    let mut pieces = Pieces::new(framing);
    for part in bytes.chunks(size) {
        if let ControlFlow::Break(()) = pieces.push(part, gathering.as_mut())? {
            return gathering.end();
        }
    }
    pieces.finish(gathering.as_mut())?;
    gathering.end()
}

fn told(answer: Result<Reply, llm::Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?} {error}", error.code()),
    }
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused(bytes in bytes()) {
        for api in Api::ALL {
            let _ = dialect::of(*api).read(&bytes);
            let _ = dialect::of(*api).used(&bytes);
        }
    }

    #[test]
    fn any_stream_is_gathered_the_same_wherever_it_is_cut(bytes in stream(), size in 1_usize..50) {
        for api in Api::ALL {
            prop_assert_eq!(told(gathered(*api, &bytes, size)), told(gathered(*api, &bytes, 1 << 20)));
        }
    }

    #[test]
    fn any_error_body_leaves_the_status_or_a_word_to_decide(bytes in bytes(), status in 400_u16..600) {
        let failed = failure::of_status(status, &HeaderMap::new(), &bytes);
        prop_assert!(!failed.message().chars().any(char::is_control));
        let nothing = failure::of_status(status, &HeaderMap::new(), b"");
        let flagged = failed.code() == Code::ContentFiltered;
        prop_assert!(flagged || failed.code() == nothing.code());
    }
}

#[test]
fn half_an_answer_is_no_answer() {
    for api in Api::ALL {
        for answer in ANSWERS {
            for end in 0..answer.len() {
                assert!(dialect::of(*api).read(&answer.as_bytes()[..end]).is_err(), "{api} {}", &answer[..end]);
            }
        }
    }
}
