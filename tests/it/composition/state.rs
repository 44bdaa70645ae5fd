//! State keys with a type.

use std::collections::BTreeMap;

use portcullis::composition::StateKey;
use portcullis::machines::shared::{Place, Shared, Write};
use portcullis::vocabulary::environment::{MergePolicy, StateKeySpec, StateScope};
use portcullis::vocabulary::input::StagedCommand;
use portcullis::vocabulary::json::Json;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::runner;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Notes {
    count: u32,
    by: BTreeMap<String, i64>,
    last: Option<String>,
}

const NOTES: StateKey<Notes> = StateKey::new(StateScope::Thread, "acme.notes", MergePolicy::Exclusive);
const COUNT: StateKey<u64> = StateKey::new(StateScope::Run, "acme.count", MergePolicy::Commutative);
const RATE: StateKey<f64> = StateKey::new(StateScope::Run, "acme.rate", MergePolicy::Exclusive);
const BIG: StateKey<u128> = StateKey::new(StateScope::Run, "acme.big", MergePolicy::Exclusive);

type State = BTreeMap<Place, Json>;

fn holding(scope: StateScope, key: &str, value: &str) -> State {
    [((scope, key.to_owned()), Json::parse(value).unwrap())].into()
}

/// What the state is after one batch of these commands.
fn committed(commands: &[StagedCommand], policy: MergePolicy) -> State {
    let mut shared = Shared::new(&BTreeMap::new());
    for command in commands {
        let (place, write) = match command {
            StagedCommand::Set { scope, key, value } => ((*scope, key.clone()), Write::Set(value)),
            StagedCommand::Remove { scope, key } => ((*scope, key.clone()), Write::Remove),
            StagedCommand::Schedule { .. } => panic!("{command:?}"),
        };
        shared.stage("acme", policy, &place, write).unwrap();
    }
    shared.commit();
    (**shared.committed()).clone()
}

#[test]
fn what_is_set_is_read_again() {
    let notes =
        (any::<u32>(), proptest::collection::btree_map("\\PC{0,4}", any::<i64>(), 0..4), any::<Option<String>>())
            .prop_map(|(count, by, last)| Notes { count, by, last });
    runner(500)
        .run(&(notes, any::<u64>(), -1e300..1e300f64), |(notes, count, rate)| {
            let state = committed(&[NOTES.set(&notes).unwrap()], MergePolicy::Exclusive);
            prop_assert_eq!(NOTES.read(&state), Ok(notes.clone()));
            let state = committed(&[COUNT.set(&count).unwrap()], MergePolicy::Commutative);
            prop_assert_eq!(COUNT.read(&state), Ok(count));
            let state = committed(&[RATE.set(&rate).unwrap()], MergePolicy::Exclusive);
            prop_assert_eq!(RATE.read(&state), Ok(rate));
            let state = committed(&[NOTES.set(&notes).unwrap(), NOTES.remove()], MergePolicy::Exclusive);
            prop_assert_eq!(NOTES.read(&state), Ok(Notes::default()));
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_key_declares_itself() {
    let expected =
        StateKeySpec { scope: StateScope::Thread, key: "acme.notes".to_owned(), policy: MergePolicy::Exclusive };
    assert_eq!(NOTES.spec(), expected);
    let (scope, key) = (StateScope::Run, "acme.count".to_owned());
    assert_eq!(COUNT.remove(), StagedCommand::Remove { scope, key: key.clone() });
    assert_eq!(COUNT.set(&3).unwrap(), StagedCommand::Set { scope, key, value: Json::from(3u32) });
}

#[test]
fn an_absent_key_is_the_default_and_another_scope_is_absent() {
    assert_eq!(COUNT.read(&State::new()), Ok(0));
    assert_eq!(COUNT.read(&holding(StateScope::Thread, "acme.count", "7")), Ok(0));
    assert_eq!(COUNT.read(&holding(StateScope::Run, "acme.count", "7")), Ok(7));
}

#[test]
fn a_wrong_shape_is_an_error_that_names_the_key_and_what_was_expected() {
    for value in ["null", r#""7""#, "-1", "1.5", "[]", "{}", "false"] {
        let error = COUNT.read(&holding(StateScope::Run, "acme.count", value)).unwrap_err();
        assert_eq!((error.scope, error.key, error.expected), (StateScope::Run, "acme.count", "u64"));
        let message = error.to_string();
        for part in ["run", "acme.count", "u64"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(!message.contains("line 1"), "{message}");
    }
    let error = NOTES.read(&holding(StateScope::Thread, "acme.notes", r#"{"count":1,"last":null}"#)).unwrap_err();
    assert!(error.reason.contains("missing field `by`"), "{error}");
}

#[test]
fn what_could_not_be_read_again_is_not_set() {
    for rate in [f64::NAN, f64::INFINITY] {
        let error = RATE.set(&rate).unwrap_err();
        assert_eq!((error.key, error.expected), ("acme.rate", "f64"));
    }
    assert!(BIG.set(&u128::from(u64::MAX)).is_ok());
    assert!(BIG.set(&(u128::from(u64::MAX) + 1)).is_err());
    const TUPLES: StateKey<BTreeMap<(u8, u8), u8>> = StateKey::new(StateScope::Run, "t", MergePolicy::Exclusive);
    assert!(TUPLES.set(&[((1, 2), 3)].into()).is_err());
}

#[test]
fn parts_of_a_commutative_key_add_up() {
    let state = committed(&[COUNT.set(&2).unwrap(), COUNT.set(&3).unwrap()], MergePolicy::Commutative);
    assert_eq!(COUNT.read(&state), Ok(5));
}
