//! Recordings that nobody here wrote. Skipped, with a printed reason, where they are absent.

use std::path::{Path, PathBuf};

use crate::shared;
use portcullis::adapters::transcripts::Transcript;
use portcullis::adapters::transcripts::chat::{Shape, recognise};

/// File, shape, turns, replies, calls, errors, and the notes as they are printed.
type Row = (&'static str, Shape, [usize; 4], &'static [&'static str]);

const ROWS: [Row; 17] = [
    (
        "tau-bench-airline-00-0.json",
        Shape::TauBench,
        [8, 15, 8, 1],
        &["message 23: the result is empty", "message 31: nothing answers this user message"],
    ),
    ("tau-bench-airline-01-0.json", Shape::TauBench, [6, 5, 0, 0], &["message 11: nothing answers this user message"]),
    (
        "tau-bench-airline-02-1.json",
        Shape::TauBench,
        [4, 30, 27, 0],
        &[
            "message 11: the result is empty",
            "message 25: the result is empty",
            "message 60: the recording stops before an answer",
        ],
    ),
    (
        "tau-bench-airline-03-0.json",
        Shape::TauBench,
        [11, 30, 20, 5],
        &[
            "message 31: the result is empty",
            "message 47: the result is empty",
            "message 61: nothing answers this user message",
        ],
    ),
    (
        "tau-bench-airline-09-2.json",
        Shape::TauBench,
        [8, 30, 23, 5],
        &[
            "message 19: the result is empty",
            "message 47: the result is empty",
            "message 51: the result is empty",
            "message 55: the result is empty",
            "message 59: the result is empty",
            "message 60: the recording stops before an answer",
        ],
    ),
    (
        "tau-bench-airline-13-0.json",
        Shape::TauBench,
        [15, 28, 14, 6],
        &["message 21: the result is empty", "message 57: nothing answers this user message"],
    ),
    ("tau-bench-airline-13-1.json", Shape::TauBench, [9, 13, 5, 1], &["message 27: nothing answers this user message"]),
    ("tau-bench-airline-15-1.json", Shape::TauBench, [7, 13, 7, 2], &["message 27: nothing answers this user message"]),
    (
        "tau-bench-airline-18-0.json",
        Shape::TauBench,
        [5, 7, 3, 0],
        &["message 14: the recording stops before an answer"],
    ),
    (
        "tau-bench-airline-23-1.json",
        Shape::TauBench,
        [13, 23, 11, 4],
        &["message 17: the result is empty", "message 47: nothing answers this user message"],
    ),
    (
        "tau-bench-airline-33-0.json",
        Shape::TauBench,
        [8, 30, 23, 0],
        &["message 45: the result is empty", "message 60: the recording stops before an answer"],
    ),
    (
        "tau-bench-airline-46-3.json",
        Shape::TauBench,
        [13, 30, 18, 3],
        &[
            "message 41: the result is empty",
            "message 49: the result is empty",
            "message 55: the result is empty",
            "message 61: nothing answers this user message",
        ],
    ),
    (
        "toolbench-G1_answer-10_ChatGPT_DFS_woFilter_w2.json",
        Shape::ToolBench,
        [1, 3, 2, 0],
        &[r#"message 6: the call of "Finish" was read as the answer"#],
    ),
    (
        "toolbench-G1_answer-69_ChatGPT_DFS_woFilter_w2.json",
        Shape::ToolBench,
        [1, 0, 0, 0],
        &["the file kept no message chain, only its query", "message 0: nothing answers this user message"],
    ),
    (
        "toolbench-G2_answer-10_ChatGPT_DFS_woFilter_w2.json",
        Shape::ToolBench,
        [1, 4, 3, 1],
        &[r#"message 8: the call of "Finish" was read as the answer"#],
    ),
    (
        "toolbench-G2_answer-127_ChatGPT_DFS_woFilter_w2.json",
        Shape::ToolBench,
        [1, 3, 2, 0],
        &[
            "message 4: a withdrawn prompt of the recording loop, left out",
            r#"message 7: the call of "Finish" was read as the answer"#,
            "message 7: text beside the terminal call, left out",
        ],
    ),
    (
        "toolbench-G3_answer-3_ChatGPT_DFS_woFilter_w2.json",
        Shape::ToolBench,
        [1, 4, 3, 0],
        &[
            "message 4 of sample 1, a withdrawn prompt, left out",
            "message 6: a withdrawn prompt of the recording loop, left out",
            r#"message 9: the call of "Finish" was read as the answer"#,
        ],
    ),
];

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            files.extend(files_under(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_recording_reads_as_the_table_says() {
    let Some(data) = shared::data() else { return };
    let folder = data.join("openai-messages");
    assert_eq!(files_under(&folder).len(), ROWS.len(), "a recording has no row");
    for (file, shape, counts, notes) in ROWS {
        let bytes = std::fs::read(folder.join(file)).expect(file);
        assert_eq!(recognise(&bytes), Some(shape), "{file}");
        let transcript = Transcript::read(&bytes).expect(file);
        let replies: Vec<_> = transcript.turns.iter().flat_map(|turn| &turn.replies).collect();
        let calls: Vec<_> = replies.iter().flat_map(|reply| &reply.calls).collect();
        let results = calls.iter().filter_map(|call| call.result.as_ref());
        let errors = results.filter(|result| result.is_error).count();
        let seen = [transcript.turns.len(), replies.len(), calls.len(), errors];
        assert_eq!(seen, counts, "{file}: turns, replies, calls, errors");
        let said: Vec<_> = transcript.notes.iter().map(ToString::to_string).collect();
        assert_eq!(said, notes, "{file}");
        assert!(transcript.system.is_some() || said.iter().any(|note| note.contains("no message chain")), "{file}");
    }
}

#[test]
fn in_tau_bench_every_call_has_the_result_that_follows_it_though_ids_repeat() {
    let Some(data) = shared::data() else { return };
    let mut repeated = 0;
    for (file, shape, ..) in ROWS {
        if shape != Shape::TauBench {
            continue;
        }
        let bytes = std::fs::read(data.join("openai-messages").join(file)).expect(file);
        let value: serde_json::Value = serde_json::from_slice(&bytes).expect(file);
        let transcript = Transcript::read(&bytes).expect(file);
        let mut ids = std::collections::BTreeSet::new();
        for reply in transcript.turns.iter().flat_map(|turn| &turn.replies) {
            for (index, call) in reply.calls.iter().enumerate() {
                let recorded = &value["traj"][reply.at + 1 + index]["content"];
                let paired = call.result.as_ref().map(|result| result.text.as_str());
                assert_eq!(paired, recorded.as_str(), "{file}, message {}", reply.at);
                repeated += usize::from(!ids.insert(call.provider_id.clone()));
            }
        }
    }
    assert_eq!(repeated, 20, "calls whose id an earlier call of the file already had");
}

#[test]
fn the_recorded_endings_of_a_tree_search_are_its_drafts() {
    let Some(data) = shared::data() else { return };
    let draft = |file: &str| {
        let bytes = std::fs::read(data.join("openai-messages").join(file)).expect(file);
        let turn = Transcript::read(&bytes).expect(file).turns.remove(0);
        turn.replies.last().cloned().map(|reply| (reply.text, reply.calls.len()))
    };
    let answered = draft("toolbench-G3_answer-3_ChatGPT_DFS_woFilter_w2.json").expect("a reply");
    assert!(answered.0.is_some_and(|text| text.starts_with("Based on") && !text.contains('{')));
    assert_eq!(draft("toolbench-G2_answer-10_ChatGPT_DFS_woFilter_w2.json"), Some((None, 0)), "it gave up");
    assert_eq!(draft("toolbench-G1_answer-69_ChatGPT_DFS_woFilter_w2.json"), None, "no chain was kept");
}

#[test]
fn recordings_in_other_formats_are_not_taken_for_transcripts() {
    let Some(data) = shared::data() else { return };
    let others: Vec<_> =
        files_under(&data).into_iter().filter(|path| !path.starts_with(data.join("openai-messages"))).collect();
    assert!(others.len() > 20, "the other formats are gone");
    for path in others {
        let bytes = std::fs::read(&path).expect("a readable file");
        assert_eq!(recognise(&bytes), None, "{}", path.display());
    }
}
