//! Recorded conversations of other agents: read, accounted for, and played (SPEC 14.1).

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use portcullis::adapters::recording::Recording;
use portcullis::adapters::scenario::{Opening, Real, Scenario, Setting, Stage};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::adapters::transcripts::chat::{self, Shape};
use portcullis::adapters::transcripts::{Format, NoteKind, Position, Reply, Transcript, TranscriptError, recognise};
use portcullis::history::{Policy, replay};
use portcullis::runtime::store::Store;
use portcullis::runtime::{Outcome, VirtualClock};
use serde::Deserialize;
use tokio::runtime::Runtime;

/// Turns of one recording that are played: each is a run of its own.
const TURNS_MAX: usize = 2;

/// What must hold:
///
/// - Any bytes are a transcript or an error, and an error names a place in them.
/// - Of a list of messages each one is somewhere: a turn, a reply, a result, the instructions, or a note that says
///   that it was left out.
/// - Every turn runs through the engine to a legal ending, never to a success (nothing of it was verified), and its
///   history replays. Row 17 is the ending of a recording that lacks an answer, and it names the question; a format
///   that says how a turn ended may also say that the model failed.
pub fn check(bytes: &[u8]) {
    let recognised = recognise(bytes);
    match Transcript::read(bytes) {
        Ok(transcript) => {
            assert_eq!(recognised, Some(transcript.format));
            assert!(!transcript.turns.is_empty());
            if chat::recognise(bytes) == Some(Shape::List) {
                check_account(bytes, &transcript);
            }
            let says_how_it_ended = transcript.format != Format::ChatCompletions;
            let recording = Recording::new(transcript);
            recording.scenarios().take(TURNS_MAX).for_each(|scenario| check_run(scenario, says_how_it_ended));
        }
        Err(error) => check_error(bytes, recognised, &error),
    }
}

fn check_error(bytes: &[u8], recognised: Option<Format>, error: &TranscriptError) {
    match error {
        TranscriptError::NotUtf8 { at }
        | TranscriptError::Malformed { at, .. }
        | TranscriptError::Unreadable { at, .. } => check_place(bytes, *at),
        TranscriptError::Unrecognised => assert_eq!(recognised, None),
        TranscriptError::NoTurn { format } => assert_eq!(recognised, Some(*format)),
        other => panic!("{other}"),
    }
}

fn check_place(bytes: &[u8], at: Position) {
    assert!(at.offset <= bytes.len(), "{at}");
    let before = &bytes[..at.offset];
    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    assert_eq!(at.column, at.offset - begin + 1);
    assert_eq!(at.line, before.iter().filter(|byte| **byte == b'\n').count() + 1);
}

/// Who speaks: all that has to be known of a message to count it.
#[derive(Deserialize)]
struct Message {
    role: String,
}

/// No message is dropped without a note.
fn check_account(bytes: &[u8], transcript: &Transcript) {
    let messages: Vec<Message> = serde_json::from_slice(bytes).expect("it is a list of messages");
    let replies: Vec<&Reply> =
        transcript.opening.iter().chain(transcript.turns.iter().flat_map(|turn| &turn.replies)).collect();
    let spoken: BTreeSet<usize> = replies.iter().map(|reply| reply.at).collect();
    let results = replies.iter().flat_map(|reply| &reply.calls).filter(|call| call.result.is_some()).count();
    let instructions = messages.iter().filter(|message| matches!(&*message.role, "system" | "developer")).count();
    let left_out = transcript.notes.iter().filter(|note| {
        matches!(note.kind, NoteKind::WithdrawnPrompt | NoteKind::UnknownRole { .. } | NoteKind::OrphanResult)
    });
    let accounted = transcript.turns.len() + spoken.len() + results + instructions + left_out.count();
    assert_eq!(accounted, messages.len(), "{:?}", transcript.notes);
}

thread_local! {
    static EVENTS: Runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
}

fn check_run(scenario: Scenario, says_how_it_ended: bool) {
    let (outcome, questions, history) = EVENTS.with(|events| events.block_on(played(scenario)));
    let Outcome::Ended(ended) = outcome else { panic!("no recording awaits a person") };
    super::check_ending(&ended.ending);
    assert_ne!(ended.ending.row, 1, "nobody verified it");
    if !says_how_it_ended {
        assert_eq!(questions.is_empty(), ended.ending.row != 17, "{questions:?} in row {}", ended.ending.row);
    }
    let summary = replay(&*history, Policy::ReportAll).expect("what was just written is whole");
    assert_eq!((summary.divergences, summary.ending.as_ref()), (Vec::new(), Some(&ended.ending)));
}

/// Plays one turn to its end, in memory and in virtual time.
async fn played(scenario: Scenario) -> (Outcome, Vec<String>, Vec<u8>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = Arc::new(VirtualClock::starting_at(1_000));
    let setting =
        Setting { store: Arc::clone(&store), clock, audience: None, takes_over: false, real: Real::default() };
    let run: portcullis::vocabulary::ids::RunId = "recorded".parse().expect("an id");
    let mut stage = Stage::begin(scenario, Opening::timeless(run.clone()), &setting).await.expect("a recording starts");
    let outcome = stage.curtain().await.expect("nothing fails in memory");
    let mut history = Vec::new();
    store.read(&run).await.expect("it was stored").read_to_end(&mut history).expect("it is in memory");
    (outcome, stage.questions(), history)
}
