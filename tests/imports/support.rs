//! Documents of our own, and what is read from them.

use portcullis::adapters::transcripts::{Format, ReadOptions, Reply, Transcript, TranscriptError, read};

/// Every conversation of a document, which is of that format by its shape.
pub(crate) fn all(format: Format, document: &str) -> Vec<Transcript> {
    let transcripts = read(document.as_bytes(), &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(transcripts.iter().all(|transcript| transcript.format == format), "it was told as another format");
    transcripts
}

/// The one conversation of a document.
pub(crate) fn one(format: Format, document: &str) -> Transcript {
    let mut transcripts = all(format, document);
    assert_eq!(transcripts.len(), 1, "{transcripts:#?}");
    transcripts.remove(0)
}

/// Why a document is not read.
pub(crate) fn refused(document: &str) -> TranscriptError {
    read(document.as_bytes(), &ReadOptions::default()).expect_err("not readable")
}

/// The notes, as they are printed.
pub(crate) fn notes(transcript: &Transcript) -> Vec<String> {
    transcript.notes.iter().map(ToString::to_string).collect()
}

/// A conversation in one line a turn: task, then each reply as `text|name(arguments)=result`, errors as `!`.
pub(crate) fn told(transcript: &Transcript) -> Vec<String> {
    let turn = |turn: &portcullis::adapters::transcripts::Turn| {
        let replies: Vec<_> = turn.replies.iter().map(reply).collect();
        format!("{}: {}", turn.task, replies.join("; "))
    };
    transcript.turns.iter().map(turn).collect()
}

fn reply(reply: &Reply) -> String {
    let mut parts = Vec::from_iter(reply.text.clone());
    for call in &reply.calls {
        let result = match &call.result {
            Some(result) => format!("{}{}", if result.is_error { "!" } else { "=" }, result.text),
            None => "?".to_owned(),
        };
        parts.push(format!("{}({}){result}", call.name, call.arguments));
    }
    parts.join("|")
}
