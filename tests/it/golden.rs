//! Golden histories of every version of record and behaviour: they replay for ever, under the bare core and
//! under all features alike (SPEC 13). Nothing rewrites them; a change that would is a new version.

use std::fs;

use portcullis::history::{Policy, replay};

use crate::support::project;

#[test]
fn golden_histories_of_version_1_replay_byte_for_byte() {
    let mut rows = std::collections::BTreeSet::new();
    let mut histories = 0;
    for entry in fs::read_dir(project("tests/golden/v1")).expect("there are golden histories") {
        let path = entry.expect("the folder can be listed").path();
        let bytes = fs::read(&path).expect("a history can be read");
        let summary = replay(&bytes[..], Policy::Stop).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        assert_eq!(summary.divergences, Vec::new(), "{}", path.display());
        let ending = summary.ending.unwrap_or_else(|| panic!("{} is open", path.display()));
        rows.insert(ending.row);
        histories += 1;
    }
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), (1..=20).collect::<Vec<u8>>());
    assert!(histories >= 33, "{histories} golden histories");
}
