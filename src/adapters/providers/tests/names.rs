use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::adapters::providers::names::{call_id, given};
use crate::vocabulary::ids::ToolCallId;

#[test]
fn a_plain_name_stays_as_it_is() {
    for name in ["look", "files__read", "_x", "a-b", &"n".repeat(64)] {
        assert_eq!(given(name), name);
    }
}

#[test]
fn other_names_become_names_that_providers_take() {
    assert_eq!(given("files.read"), "files_read");
    assert_eq!(given("7zip"), "_7zip");
    assert_eq!(given("-x"), "_-x");
    assert_eq!(given(""), "_");
    assert_eq!(given("søk"), "s_k");
}

#[test]
fn long_names_that_begin_alike_stay_apart() {
    let names: BTreeSet<String> = (0..100).map(|end| given(&format!("{}{end}", "n".repeat(90)))).collect();
    assert_eq!(names.len(), 100);
}

#[test]
fn calls_have_ids_of_nine_letters_and_digits() {
    let ids: BTreeSet<String> =
        (1..=64).flat_map(|round| (0..1_024).map(move |index| call_id(ToolCallId { round, index }))).collect();
    assert_eq!(ids.len(), 64 * 1_024);
    assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
    assert_eq!(call_id(ToolCallId { round: 1, index: 35 }), "t0000100z");
    // A run that long has longer ones, and they still fit every other provider.
    assert!(call_id(ToolCallId { round: u32::MAX, index: u32::MAX }).len() <= 64);
}

proptest! {
    #[test]
    fn any_name_becomes_one_that_every_provider_takes(name in ".{0,200}") {
        let given = given(&name);
        prop_assert!((1..=64).contains(&given.len()));
        prop_assert!(given.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
        prop_assert!(!given.starts_with(|first: char| first.is_ascii_digit() || first == '-'));
    }
}
