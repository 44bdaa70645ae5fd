//! Recordings that nobody here wrote, against what was made of them by eye. Skipped, with a printed reason,
//! where they are absent. `UPDATE_RECORDED=1` writes the table anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use portcullis::adapters::transcripts::{Claim, Format, NoteKind, ReadOptions, Transcript, Turn, read, recognise};

use crate::shared;

/// For every file its format, for every conversation its counts, its last turn's claim and its notes.
const TABLE: &str = include_str!("recorded.txt");

const FOLDERS: [(&str, Format); 7] = [
    ("atif", Format::Atif),
    ("claude-code", Format::ClaudeCode),
    ("openhands", Format::OpenHands),
    ("otlp", Format::Otlp),
    ("react-text", Format::React),
    ("swe-agent", Format::SweAgent),
    ("temporal", Format::Temporal),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder).expect("a readable folder");
    let mut files: Vec<_> = listed.map(|entry| entry.expect("a readable entry").path()).collect();
    files.sort();
    files
}

fn transcripts(path: &Path) -> Vec<Transcript> {
    let bytes = std::fs::read(path).expect("a readable file");
    read(&bytes, &ReadOptions::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One transcript as the table writes it.
fn row(transcript: &Transcript) -> String {
    let replies: Vec<_> = transcript.turns.iter().flat_map(|turn| &turn.replies).collect();
    let calls: Vec<_> = replies.iter().flat_map(|reply| &reply.calls).collect();
    let results: Vec<_> = calls.iter().filter_map(|call| call.result.as_ref()).collect();
    let errors = results.iter().filter(|result| result.is_error).count();
    let answers = transcript.turns.iter().filter(|turn| answer(turn).is_some()).count();
    let claim = match &transcript.turns.last().expect("a turn").claim {
        Claim::Unsaid => "unsaid".to_owned(),
        Claim::Success => "success".to_owned(),
        Claim::Cancelled => "cancelled".to_owned(),
        Claim::LimitReached { .. } => "limit".to_owned(),
        Claim::ModelFailed { error } => format!("model failed ({})", error.code()),
        Claim::Failed { .. } => "failed".to_owned(),
        other => panic!("a claim without a word: {other:?}"),
    };
    let mut row = format!(
        "  turns {} replies {} calls {} results {} errors {errors} answers {answers} claim {claim}\n",
        transcript.turns.len(),
        replies.len(),
        calls.len(),
        results.len(),
    );
    for note in &transcript.notes {
        writeln!(row, "    {note}").expect("a string takes it");
    }
    row
}

fn answer(turn: &Turn) -> Option<&str> {
    turn.replies.last().filter(|reply| reply.calls.is_empty()).and_then(|reply| reply.text.as_deref())
}

#[test]
fn every_recording_reads_as_the_table_says() {
    let Some(data) = shared::data() else { return };
    let mut seen = String::new();
    for (folder, format) in FOLDERS {
        for path in files(&data.join(folder)) {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).expect("a readable file");
            assert_eq!(recognise(&bytes), Some(format), "{name}");
            writeln!(seen, "{folder}/{name}").expect("a string takes it");
            transcripts(&path).iter().map(row).for_each(|row| seen.push_str(&row));
        }
    }
    if std::env::var_os("UPDATE_RECORDED").is_some() {
        std::fs::write("tests/imports/recorded.txt", &seen).expect("the table can be written");
        return;
    }
    for (line, (seen, expected)) in seen.lines().zip(TABLE.lines()).enumerate() {
        assert_eq!(seen, expected, "line {} of the table", line + 1);
    }
    assert_eq!(seen.lines().count(), TABLE.lines().count(), "the table is longer or shorter");
}

#[test]
fn a_run_that_was_halted_has_six_replies_and_no_answer_and_every_other_has_one() {
    let Some(data) = shared::data() else { return };
    for path in files(&data.join("react-text")) {
        let turn = transcripts(&path).remove(0).turns.remove(0);
        if path.to_string_lossy().contains("halted") {
            assert_eq!((turn.replies.len(), answer(&turn)), (6, None), "{}", path.display());
        } else {
            assert!(answer(&turn).is_some(), "{}", path.display());
        }
    }
}

#[test]
fn the_trajectory_whose_write_failed_claims_success() {
    let Some(data) = shared::data() else { return };
    let turn = transcripts(&data.join("atif/regex-log.trajectory.json")).remove(0).turns.remove(0);
    let calls: Vec<_> = turn.replies.iter().flat_map(|reply| &reply.calls).collect();
    let failed = calls.iter().find(|call| call.name == "Write").and_then(|call| call.result.as_ref());
    assert!(failed.is_some_and(|result| result.is_error && result.text.starts_with("EACCES")));
    assert_eq!(turn.claim, Claim::Success);
}

#[test]
fn of_the_workflows_one_was_cancelled_and_one_left_an_activity_unstarted() {
    let Some(data) = shared::data() else { return };
    let read: Vec<_> = files(&data.join("temporal")).iter().flat_map(|path| transcripts(path)).collect();
    let cancelled = read.iter().filter(|read| read.turns.iter().any(|turn| turn.claim == Claim::Cancelled));
    assert_eq!(cancelled.count(), 1);
    let unstarted = read.iter().flat_map(|read| &read.notes);
    let unstarted: Vec<_> =
        unstarted.filter(|note| matches!(note.kind, NoteKind::NeverStarted { .. })).map(|note| note.at).collect();
    assert_eq!(unstarted, [Some(17)], "by its event's id");
}

#[test]
fn seven_runs_of_tau_bench_use_an_id_for_different_calls() {
    let Some(data) = shared::data() else { return };
    let mut repeating = Vec::new();
    for path in files(&data.join("openai-messages")) {
        let mut calls = std::collections::BTreeMap::new();
        let read = transcripts(&path);
        let replies = read.iter().flat_map(|read| &read.turns).flat_map(|turn| &turn.replies);
        for call in replies.flat_map(|reply| &reply.calls) {
            let different = calls.entry(call.provider_id.clone()).or_insert_with(std::collections::BTreeSet::new);
            different.insert((call.name.clone(), call.arguments.clone()));
        }
        if calls.iter().any(|(id, different)| id.is_some() && different.len() > 1) {
            repeating.push(path.file_stem().expect("a file").to_string_lossy().into_owned());
        }
    }
    assert_eq!(
        repeating,
        ["00-0", "02-1", "03-0", "09-2", "13-0", "33-0", "46-3"].map(|run| format!("tau-bench-airline-{run}"))
    );
}
