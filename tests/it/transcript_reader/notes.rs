//! Each note, provoked by the smallest list that deserves it.

use portcullis::adapters::transcripts::{NoteKind, Transcript};

const ASKED: &str = r#"{"role":"user","content":"q"}"#;
const ANSWERED: &str = r#"{"role":"assistant","content":"a"}"#;
const CALLED: &str = r#"{"role":"assistant","tool_calls":[{"id":"i","function":{"name":"look","arguments":"{}"}}]}"#;
const GOT: &str = r#"{"role":"tool","tool_call_id":"i","name":"look","content":"seen"}"#;

/// The notes of a message list, each with its message's index.
fn notes(messages: &[&str]) -> Vec<(Option<usize>, NoteKind)> {
    let document = format!("[{}]", messages.join(","));
    let transcript = Transcript::read(document.as_bytes()).expect(&document);
    transcript.notes.into_iter().map(|note| (note.at, note.kind)).collect()
}

#[test]
fn an_ordinary_turn_has_no_notes() {
    assert_eq!(notes(&[ASKED, CALLED, GOT, ANSWERED]), []);
}

#[test]
fn what_is_left_out_of_the_list_is_noted() {
    let late = r#"{"role":"system","content":"new rule"}"#;
    assert_eq!(notes(&[ASKED, late, ANSWERED]), [(Some(1), NoteKind::LateInstructions)]);
    let critic = r#"{"role":"critic","content":"bad"}"#;
    let unknown = NoteKind::UnknownRole { role: "critic".to_owned() };
    assert_eq!(notes(&[ASKED, critic, ANSWERED]), [(Some(1), unknown)]);
    let withdrawn = r#"{"role":"user","content":"again","valid":false}"#;
    assert_eq!(notes(&[ASKED, withdrawn, ANSWERED]), [(Some(1), NoteKind::WithdrawnPrompt)]);
}

#[test]
fn empty_and_odd_messages_are_noted() {
    let silent = r#"{"role":"user","content":null}"#;
    assert_eq!(notes(&[silent, ANSWERED]), [(Some(0), NoteKind::EmptyTask)]);
    let empty = r#"{"role":"assistant","content":" "}"#;
    assert_eq!(notes(&[ASKED, empty]), [(Some(1), NoteKind::EmptyReply)]);
    let refused = r#"{"role":"assistant","content":null,"refusal":"no"}"#;
    assert_eq!(notes(&[ASKED, refused]), [(Some(1), NoteKind::Refusal), (Some(1), NoteKind::EmptyReply)]);
    let object = r#"{"role":"tool","tool_call_id":"i","content":{"degrees":21}}"#;
    assert_eq!(notes(&[ASKED, CALLED, object, ANSWERED]), [(Some(2), NoteKind::ContentNotText)]);
}

#[test]
fn a_result_recorded_as_an_object_is_its_json_text() {
    let document = format!(r#"[{ASKED},{CALLED},{{"role":"tool","content":{{"error": "hot"}}}}]"#);
    let transcript = Transcript::read(document.as_bytes()).expect("readable");
    let result = transcript.turns[0].replies[0].calls[0].result.clone().expect("paired");
    assert_eq!((result.text.as_str(), result.is_error), (r#"{"error": "hot"}"#, true));
}

#[test]
fn odd_calls_are_noted() {
    let both = CALLED.replacen('{', r#"{"function_call":{"name":"old","arguments":"{}"},"#, 1);
    assert_eq!(notes(&[ASKED, &both, GOT, ANSWERED]), [(Some(1), NoteKind::BothCallForms)]);
    for arguments in [r#","arguments":{"a":1}"#, r#","arguments":null"#, ""] {
        let odd = CALLED.replace(r#","arguments":"{}""#, arguments);
        let expected = NoteKind::ArgumentsNotText { call: 0 };
        assert_eq!(notes(&[ASKED, &odd, GOT, ANSWERED]), [(Some(1), expected)], "{arguments}");
    }
}

#[test]
fn results_and_calls_without_a_partner_are_noted() {
    let orphan = (Some(1), NoteKind::OrphanResult);
    assert_eq!(notes(&[ASKED, GOT, ANSWERED]), [orphan]);
    assert_eq!(notes(&[ASKED, CALLED, GOT, GOT, ANSWERED]), [(Some(3), NoteKind::OrphanResult)]);
    let unanswered = (Some(1), NoteKind::CallWithoutResult { call: 0 });
    assert_eq!(notes(&[ASKED, CALLED, ANSWERED]), [unanswered]);
}

#[test]
fn a_pair_that_disagrees_in_id_or_name_is_noted() {
    let other_id = GOT.replace(r#""i""#, r#""j""#);
    assert_eq!(notes(&[ASKED, CALLED, &other_id, ANSWERED]), [(Some(2), NoteKind::IdDiffers)]);
    let other_name = GOT.replace("look", "hear");
    assert_eq!(notes(&[ASKED, CALLED, &other_name, ANSWERED]), [(Some(2), NoteKind::NameDiffers)]);
    let silent = GOT.replace("seen", "");
    assert_eq!(notes(&[ASKED, CALLED, &silent, ANSWERED]), [(Some(2), NoteKind::EmptyResult)]);
}

#[test]
fn how_a_turn_ends_is_noted_unless_it_ends_in_one_answer() {
    assert_eq!(notes(&[ASKED]), [(Some(0), NoteKind::TurnWithoutReply)]);
    assert_eq!(notes(&[ASKED, CALLED, GOT]), [(Some(1), NoteKind::TurnWithoutAnswer)]);
    assert_eq!(notes(&[ASKED, ANSWERED, ANSWERED]), [(Some(2), NoteKind::ReplyAfterAnswer)]);
}

#[test]
fn a_terminal_answer_and_the_commentary_it_replaces_are_noted() {
    let finish = r#"{"role":"assistant","content":"so","function_call":{"name":"Finish","arguments":"{}"}}"#;
    let expected =
        [(Some(1), NoteKind::TerminalAnswer { tool: "Finish".to_owned() }), (Some(1), NoteKind::CommentaryReplaced)];
    assert_eq!(notes(&[ASKED, finish]), expected);
}
