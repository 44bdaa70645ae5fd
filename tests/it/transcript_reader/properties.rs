//! What holds for every list of messages and for every mutation of its bytes.

use portcullis::adapters::transcripts::{NoteKind, Reply, Transcript, TranscriptError, recognise};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

/// One recorded message. Ids come from a pool of three, so they repeat within and across groups.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    User(String),
    Assistant(Option<String>, Vec<(String, Option<u8>)>),
    Legacy(String),
    Result(String, Option<u8>),
    System(String),
}

fn id(id: u8) -> String {
    format!("call_{id}")
}

fn message(sent: &Sent) -> serde_json::Value {
    match sent {
        Sent::User(text) => json!({"role":"user","content":text}),
        Sent::Assistant(text, calls) => {
            let calls: Vec<_> = calls
                .iter()
                .map(|(name, call)| json!({"id":call.map(id),"function":{"name":name,"arguments":"{}"}}))
                .collect();
            json!({"role":"assistant","content":text,"tool_calls":calls})
        }
        Sent::Legacy(name) => {
            json!({"role":"assistant","content":null,"function_call":{"name":name,"arguments":"{\"final_answer\":\"x\"}"}})
        }
        Sent::Result(text, call) => {
            json!({"role":"tool","content":text,"tool_call_id":call.map(id)})
        }
        Sent::System(text) => json!({"role":"system","content":text}),
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["look", "hear", "Finish", "submit"].prop_map(String::from)
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z \\\\\"\n\u{e9}]{0,8}",
        1 => Just("Error: no".to_owned()),
        1 => Just(r#"{"error":"no","response":""}"#.to_owned()),
    ]
}

fn some_id() -> impl Strategy<Value = Option<u8>> {
    proptest::option::weighted(0.8, 0..3_u8)
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        3 => words().prop_map(Sent::User),
        4 => (proptest::option::of(words()), vec((name(), some_id()), 0..4))
            .prop_map(|(text, calls)| Sent::Assistant(text, calls)),
        1 => name().prop_map(Sent::Legacy),
        5 => (words(), some_id()).prop_map(|(text, call)| Sent::Result(text, call)),
        1 => words().prop_map(Sent::System),
    ]
}

pub(crate) fn conversation() -> impl Strategy<Value = Vec<Sent>> {
    vec(sent(), 0..20).prop_map(|mut sent| {
        sent.insert(0, Sent::User("start".to_owned()));
        sent
    })
}

pub(crate) fn document(sent: &[Sent], shape: u8) -> String {
    let list: Vec<_> = sent.iter().map(message).collect();
    let value = match shape % 4 {
        0 => json!(list),
        1 => json!({"messages":list}),
        2 => json!({"task_id":1,"traj":list}),
        _ => {
            json!({"answer_generation":{"query":"q","train_messages":[list[..list.len().min(2)], list]}})
        }
    };
    value.to_string()
}

fn replies(transcript: &Transcript) -> impl Iterator<Item = &Reply> {
    transcript.opening.iter().chain(transcript.turns.iter().flat_map(|turn| &turn.replies))
}

fn noted(transcript: &Transcript, wanted: fn(&NoteKind) -> bool) -> usize {
    transcript.notes.iter().filter(|note| wanted(&note.kind)).count()
}

proptest! {
    #![proptest_config(crate::support::remembered("proptest-regressions/transcript_reader.txt"))]

    #[test]
    fn every_message_is_kept_or_noted(sent in conversation()) {
        let transcript = Transcript::read(document(&sent, 0).as_bytes())?;
        let count = |wanted: fn(&Sent) -> usize| sent.iter().map(wanted).sum::<usize>();
        prop_assert_eq!(transcript.turns.len(), count(|sent| usize::from(matches!(sent, Sent::User(_)))));

        let spoken: std::collections::BTreeSet<_> = replies(&transcript).map(|reply| reply.at).collect();
        let assistants = count(|sent| usize::from(matches!(sent, Sent::Assistant(..) | Sent::Legacy(_))));
        prop_assert_eq!(spoken.len(), assistants);

        let calls = replies(&transcript).map(|reply| reply.calls.len()).sum::<usize>();
        let answers = noted(&transcript, |kind| matches!(kind, NoteKind::TerminalAnswer { .. }));
        let recorded = count(|sent| match sent {
            Sent::Assistant(_, calls) => calls.len(),
            Sent::Legacy(_) => 1,
            Sent::User(_) | Sent::Result(..) | Sent::System(_) => 0,
        });
        prop_assert_eq!(calls + answers, recorded);

        let paired = replies(&transcript).flat_map(|reply| &reply.calls).filter(|call| call.result.is_some()).count();
        let orphans = noted(&transcript, |kind| matches!(kind, NoteKind::OrphanResult));
        prop_assert_eq!(paired + orphans, count(|sent| usize::from(matches!(sent, Sent::Result(..)))));
        let open = noted(&transcript, |kind| matches!(kind, NoteKind::CallWithoutResult { .. }));
        prop_assert_eq!(paired + open, calls);
    }

    #[test]
    fn the_shape_changes_nothing_of_the_conversation(sent in conversation(), shape in 1..4_u8) {
        let list = Transcript::read(document(&sent, 0).as_bytes())?;
        let wrapped = Transcript::read(document(&sent, shape).as_bytes())?;
        prop_assert_eq!(wrapped.turns, list.turns);
        prop_assert_eq!(wrapped.notes, list.notes);
    }

    #[test]
    fn results_in_any_order_find_their_calls_by_unique_ids(
        order in Just((0..5_usize).collect::<Vec<_>>()).prop_shuffle(),
        recorded in 0..6_usize,
    ) {
        let calls = (0..5).map(|call| ("look".to_owned(), Some(call))).collect();
        let mut sent = vec![Sent::User("q".to_owned()), Sent::Assistant(None, calls)];
        let results = order.iter().take(recorded);
        sent.extend(results.map(|call| Sent::Result(format!("result {call}"), u8::try_from(*call).ok())));
        let transcript = Transcript::read(document(&sent, 0).as_bytes())?;
        for (index, call) in transcript.turns[0].replies[0].calls.iter().enumerate() {
            let expected = order[..recorded.min(5)].contains(&index).then(|| format!("result {index}"));
            prop_assert_eq!(call.result.as_ref().map(|result| result.text.clone()), expected);
        }
    }

    #[test]
    fn one_id_for_all_calls_pairs_every_result_with_the_call_before_it(groups in vec(1..4_usize, 1..6)) {
        let mut sent = vec![Sent::User("q".to_owned())];
        let mut expected = Vec::new();
        for (group, size) in groups.into_iter().enumerate() {
            sent.push(Sent::Assistant(None, vec![("look".to_owned(), Some(0)); size]));
            for index in 0..size {
                expected.push(format!("{group} {index}"));
                sent.push(Sent::Result(format!("{group} {index}"), Some(0)));
            }
        }
        let transcript = Transcript::read(document(&sent, 0).as_bytes())?;
        let paired: Vec<_> = replies(&transcript)
            .flat_map(|reply| &reply.calls)
            .map(|call| call.result.as_ref().map(|result| result.text.clone()).unwrap_or_default())
            .collect();
        prop_assert_eq!(paired, expected);
    }

    #[test]
    fn reading_mutated_bytes_ends_in_a_transcript_or_in_an_error_within_the_document(
        sent in conversation(),
        shape in 0..4_u8,
        edits in vec((any::<prop::sample::Index>(), 0..4_u8, edit_bytes()), 1..6),
    ) {
        let mut bytes = document(&sent, shape).into_bytes();
        for (place, kind, inserted) in edits {
            edit(&mut bytes, place, kind, &inserted);
        }
        let recognised = recognise(&bytes);
        match Transcript::read(&bytes) {
            Ok(transcript) => {
                prop_assert_eq!(recognised, Some(transcript.format));
                prop_assert!(!transcript.turns.is_empty());
            }
            Err(
                TranscriptError::NotUtf8 { at }
                | TranscriptError::Malformed { at, .. }
                | TranscriptError::Unreadable { at, .. },
            ) => {
                prop_assert!(at.offset <= bytes.len());
                let before = &bytes[..at.offset];
                let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
                prop_assert_eq!(at.column, at.offset - line_start + 1);
                prop_assert_eq!(at.line, before.iter().filter(|byte| **byte == b'\n').count() + 1);
            }
            Err(TranscriptError::Unrecognised) => prop_assert_eq!(recognised, None),
            Err(TranscriptError::NoTurn { format }) => prop_assert_eq!(recognised, Some(format)),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn reading_any_bytes_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        let _ = (recognise(&bytes), Transcript::read(&bytes));
    }
}

fn edit_bytes() -> impl Strategy<Value = Vec<u8>> {
    let tokens =
        ["null", "[", "]", "{", "}", ",", ":", "\"", "\\", "\n", "7", "{}", "[]", "\"role\":\"tool\",", "\\ud800"];
    prop_oneof![
        3 => prop::sample::select(tokens.map(|token| token.as_bytes().to_vec()).to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ]
}

/// Cuts, replaces, inserts or removes at a place.
fn edit(bytes: &mut Vec<u8>, place: prop::sample::Index, kind: u8, inserted: &[u8]) {
    let at = place.index(bytes.len() + 1);
    let end = (at + inserted.len()).min(bytes.len());
    match kind {
        0 => bytes.truncate(at),
        1 => drop(bytes.splice(at..end, inserted.iter().copied())),
        2 => drop(bytes.splice(at..at, inserted.iter().copied())),
        _ => drop(bytes.drain(at..end)),
    }
}
