//! Golden histories of every version of record and behaviour: they replay for ever, under the bare core and
//! under all features alike (SPEC 13). Nothing rewrites them; a change that would is a new version.

use std::fs;

use portcullis::history::{Policy, replay};

use crate::support::project;

fn replayed(path: &std::path::Path) -> u8 {
    let bytes = fs::read(path).expect("a history can be read");
    let summary = replay(&bytes[..], Policy::Stop).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    assert_eq!(summary.divergences, Vec::new(), "{}", path.display());
    summary.ending.unwrap_or_else(|| panic!("{} is open", path.display())).row
}

/// Real models and real tools: what they did once can be seen for ever, and nothing is started for it.
#[test]
fn recorded_runs_of_real_models_and_tools_replay_byte_for_byte() {
    let mut rows = std::collections::BTreeMap::new();
    for entry in fs::read_dir(project("examples/recorded")).expect("there are recorded runs") {
        let path = entry.expect("the folder can be listed").path();
        rows.insert(path.file_name().unwrap().to_string_lossy().into_owned(), replayed(&path));
        let text = fs::read_to_string(&path).expect("a history is text");
        assert!(!text.contains("/home/") && !text.contains("/root/") && !text.contains("/tmp/"), "{}", path.display());
    }
    assert_eq!(rows.get("files.jsonl"), Some(&1), "{rows:?}");
    assert!(rows.contains_key("clock.jsonl"), "{rows:?}");
}

#[test]
fn golden_histories_of_version_1_replay_byte_for_byte() {
    let mut rows = std::collections::BTreeSet::new();
    let mut histories = 0;
    for entry in fs::read_dir(project("tests/golden/v1")).expect("there are golden histories") {
        let path = entry.expect("the folder can be listed").path();
        rows.insert(replayed(&path));
        histories += 1;
    }
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), (1..=20).collect::<Vec<u8>>());
    assert!(histories >= 33, "{histories} golden histories");
}
