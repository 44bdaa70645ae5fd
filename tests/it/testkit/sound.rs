//! Histories that are as they should be pass: the golden ones, the recorded ones, and every prefix of one.

use std::fs;

use portcullis::assert_fail_closed;
use portcullis::testkit::invariants::{Invariant, check};

use crate::audit;
use crate::support::project;

#[test]
fn golden_and_recorded_histories_are_fail_closed() {
    let mut checked = 0;
    for folder in ["tests/golden/v1", "examples/recorded"] {
        for entry in fs::read_dir(project(folder)).expect("there are histories") {
            let path = entry.expect("the folder can be listed").path();
            let bytes = fs::read(&path).expect("a history can be read");
            assert_fail_closed!(bytes, "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 35, "{checked}");
}

#[test]
fn every_prefix_of_a_history_is_fail_closed_and_a_cut_line_is_set_aside() {
    let history = audit::success();
    for (end, _) in history.match_indices('\n') {
        assert_fail_closed!(&history[..=end]);
        assert_fail_closed!(&history.as_bytes()[..history.len().min(end + 20)]);
    }
}

#[test]
fn each_invariant_holds_alone() {
    for history in [audit::success(), audit::fallback(), audit::interrupted()] {
        for invariant in Invariant::ALL {
            assert_eq!(invariant.holds(&history), Ok(()), "{invariant}");
        }
        assert_eq!(check(&history), Ok(()));
    }
}
