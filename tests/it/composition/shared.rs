//! Shared state, against a model that keeps every write of a batch and folds them anew each time.

use std::cell::Cell;
use std::collections::BTreeMap;

use portcullis::machines::shared::{Place, Shared, Write};
use portcullis::vocabulary::environment::{MergePolicy, StateScope};
use portcullis::vocabulary::json::Json;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::runner;

/// A write: the value that is set, or the removal.
type Written = Option<Json>;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn number() -> impl Strategy<Value = Json> {
    let extreme = select(vec!["18446744073709551615", "-9223372036854775808", "9223372036854775807", "-1", "0", "1"]);
    prop_oneof![(-5..5i64).prop_map(Json::from), extreme.prop_map(json)]
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![number(), select(vec!["null", "true", "1.0", "0.5", r#""x""#, r#""y""#]).prop_map(json)]
}

fn list() -> impl Strategy<Value = Json> {
    let item = prop_oneof![scalar(), vec(scalar(), 0..2).prop_map(Json::Array)];
    vec(item, 0..4).prop_map(Json::Array)
}

fn object(value: impl Strategy<Value = Json>) -> impl Strategy<Value = Json> {
    proptest::collection::btree_map(select(vec!["a", "b", "c", "d"]), value, 0..3)
        .prop_map(|members| Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

fn any_value() -> impl Strategy<Value = Json> {
    prop_oneof![2 => number(), 1 => scalar(), 2 => list(), 3 => object(number()), 2 => object(list())]
}

fn write() -> impl Strategy<Value = Written> {
    prop_oneof![1 => Just(None), 5 => any_value().prop_map(Some)]
}

/// Values that go together, as a rule: all of them numbers, all lists, all objects.
fn alike() -> impl Strategy<Value = Vec<Json>> {
    prop_oneof![
        vec(number(), 0..6),
        vec(list(), 0..6),
        vec(object(number()), 0..6),
        vec(object(object(list())), 0..6),
        vec(any_value(), 0..4),
    ]
}

/// The sets of a batch since its last removal, and whether what was committed still counts.
fn since_removal(writes: &[Written]) -> (Vec<&Json>, bool) {
    let start = writes.iter().rposition(Option::is_none).map_or(0, |place| place + 1);
    (writes[start..].iter().flatten().collect(), start == 0)
}

/// What a batch makes of one key: the value, or a conflict.
fn folded(policy: MergePolicy, held: Option<&Json>, writes: &[Written]) -> Result<Option<Json>, ()> {
    let sets: Vec<&Json> = writes.iter().flatten().collect();
    let (last, held_counts) = since_removal(writes);
    let base = held.filter(|_| held_counts);
    match policy {
        MergePolicy::Exclusive => {
            if sets.len() > 1 {
                return Err(());
            }
            Ok(last.first().copied().or(base).cloned())
        }
        MergePolicy::Disjoint => {
            let objects: Vec<_> = sets.iter().filter_map(|set| set.as_object()).collect();
            let names: Vec<&String> = objects.iter().flat_map(|members| members.keys()).collect();
            let distinct = names.iter().all(|name| names.iter().filter(|other| other == &name).count() == 1);
            let whole = sets.len() - objects.len();
            if !distinct || whole > 1 || (whole == 1 && !objects.is_empty()) {
                return Err(());
            }
            let Some(first) = last.first() else { return Ok(base.cloned()) };
            if first.as_object().is_none() {
                return Ok(Some((*first).clone()));
            }
            let parts = base.into_iter().chain(last).filter_map(Json::as_object);
            Ok(Some(Json::Object(parts.flatten().map(|(name, value)| (name.clone(), value.clone())).collect())))
        }
        MergePolicy::Commutative => {
            let mut result = Ok(held.cloned());
            for (place, segment) in writes.split(Option::is_none).enumerate() {
                let sets: Vec<&Json> = segment.iter().flatten().collect();
                let base = held.filter(|_| place == 0);
                result = if sets.is_empty() {
                    Ok(base.cloned())
                } else {
                    Ok(Some(sum(base.into_iter().chain(sets).collect())?))
                };
            }
            result
        }
    }
}

/// The sum of values in no order: never of two at a time.
fn sum(values: Vec<&Json>) -> Result<Json, ()> {
    let all = |values: &[&Json], kind: fn(&Json) -> bool| values.iter().all(|value| kind(value));
    if all(&values, |value| value.as_integer().is_some()) {
        let exact = |value: &&Json| value.to_text().parse::<i128>().unwrap();
        let (up, down): (Vec<i128>, Vec<i128>) = values.iter().map(exact).partition(|number| *number > 0);
        let (up, down) = (up.iter().sum::<i128>(), down.iter().sum::<i128>());
        let fits = up <= i128::from(u64::MAX) && down >= i128::from(i64::MIN);
        return if fits { Ok(json(&(up + down).to_string())) } else { Err(()) };
    }
    if all(&values, |value| value.as_array().is_some()) {
        let mut items: Vec<&Json> = values.iter().flat_map(|value| value.as_array().unwrap()).collect();
        items.sort_by_key(|item| (item.canonical(), (*item).clone()));
        items.dedup_by_key(|item| item.canonical());
        return Ok(Json::Array(items.into_iter().cloned().collect()));
    }
    if all(&values, |value| value.as_object().is_some()) {
        let mut members: BTreeMap<&String, Vec<&Json>> = BTreeMap::new();
        for (name, value) in values.iter().flat_map(|value| value.as_object().unwrap()) {
            members.entry(name).or_default().push(value);
        }
        let summed = members.into_iter().map(|(name, values)| Ok((name.clone(), sum(values)?)));
        return Ok(Json::Object(summed.collect::<Result<_, ()>>()?));
    }
    if all(&values, |value| value.as_array().is_none() && value.as_object().is_none())
        && values.iter().all(|value| *value == values[0])
    {
        return Ok(values[0].clone());
    }
    Err(())
}

#[derive(Debug, Clone)]
enum Happening {
    Write(usize, Written),
    Commit,
    RollBack,
}

/// Keys whose policies differ, and one name in both scopes.
fn keys() -> Vec<(Place, MergePolicy)> {
    let place = |scope, key: &str| (scope, key.to_owned());
    vec![
        (place(StateScope::Run, "k"), MergePolicy::Exclusive),
        (place(StateScope::Thread, "k"), MergePolicy::Disjoint),
        (place(StateScope::Run, "sum"), MergePolicy::Commutative),
        (place(StateScope::Thread, "sum"), MergePolicy::Commutative),
    ]
}

#[test]
fn folding_is_what_the_model_makes_of_the_whole_batch() {
    let happening = prop_oneof![
        10 => (0..4usize, write()).prop_map(|(key, write)| Happening::Write(key, write)),
        2 => Just(Happening::Commit),
        1 => Just(Happening::RollBack),
    ];
    let (staged, conflicts) = (Cell::new(0), Cell::new(0));
    runner(1_500)
        .run(&(any_value(), vec(happening, 0..24)), |(prior, happenings)| {
            let keys = keys();
            let mut shared = Shared::new(&[("k".to_owned(), prior.clone())].into());
            let mut held: BTreeMap<Place, Json> = [(keys[1].0.clone(), prior)].into();
            let mut batch: [Vec<Written>; 4] = Default::default();
            for happening in happenings {
                let count = batch.iter().map(Vec::len).sum::<usize>() as u32;
                match happening {
                    Happening::Write(key, written) => {
                        let (place, policy) = &keys[key];
                        let write = written.as_ref().map_or(Write::Remove, Write::Set);
                        let outcome = shared.stage("p", *policy, place, write);
                        batch[key].push(written);
                        let expected = folded(*policy, held.get(place), &batch[key]);
                        prop_assert_eq!(outcome.is_err(), expected.is_err(), "{:?} {:?}", policy, batch[key]);
                        if expected.is_err() {
                            batch[key].pop();
                            conflicts.set(conflicts.get() + 1);
                        }
                        staged.set(staged.get() + 1);
                    }
                    Happening::Commit => {
                        for ((place, policy), writes) in keys.iter().zip(&mut batch) {
                            match folded(*policy, held.get(place), writes).unwrap() {
                                Some(value) => held.insert(place.clone(), value),
                                None => held.remove(place),
                            };
                            writes.clear();
                        }
                        prop_assert_eq!(shared.commit(), count);
                    }
                    Happening::RollBack => {
                        batch.iter_mut().for_each(Vec::clear);
                        prop_assert_eq!(shared.roll_back(), count);
                    }
                }
                prop_assert_eq!(&**shared.committed(), &held);
                let values = keys
                    .iter()
                    .zip(&batch)
                    .map(|((place, policy), writes)| (place, folded(*policy, held.get(place), writes).unwrap()));
                let bytes = |(place, value): (&Place, Option<Json>)| {
                    value.map_or(0, |value| (place.1.len() + value.to_text().len()) as u64)
                };
                prop_assert_eq!(shared.bytes(), values.map(bytes).sum::<u64>());
            }
            Ok(())
        })
        .unwrap();
    assert!(conflicts.get() > 500 && staged.get() - conflicts.get() > 5_000, "{staged:?} {conflicts:?}");
}

/// The outcome of one batch of sets: the value, or that the run would fail.
fn outcome(policy: MergePolicy, held: Option<&Json>, sets: &[Json]) -> Result<Option<Json>, ()> {
    let place = (StateScope::Thread, "k".to_owned());
    let prior = held.map(|value| ("k".to_owned(), value.clone()));
    let mut shared = Shared::new(&prior.into_iter().collect());
    for (number, value) in sets.iter().enumerate() {
        shared.stage(&format!("p{number}"), policy, &place, Write::Set(value)).map_err(|_| ())?;
    }
    shared.commit();
    Ok(shared.committed().get(&place).cloned())
}

#[test]
fn no_order_of_disjoint_or_commutative_sets_changes_the_outcome() {
    let policy = select(vec![MergePolicy::Disjoint, MergePolicy::Commutative]);
    let sets = alike().prop_flat_map(|sets| (Just(sets.clone()), Just(sets).prop_shuffle()));
    let held = proptest::option::of(any_value());
    let agreed = Cell::new(0);
    runner(3_000)
        .run(&(policy, held, sets), |(policy, held, (one, other))| {
            let found = outcome(policy, held.as_ref(), &one);
            if one.len() > 1 && found.is_ok() {
                agreed.set(agreed.get() + 1);
            }
            prop_assert_eq!(found, outcome(policy, held.as_ref(), &other), "{:?} {:?}", one, other);
            Ok(())
        })
        .unwrap();
    assert!(agreed.get() > 300, "{agreed:?}");
}

#[test]
fn two_sets_of_an_exclusive_key_are_found_in_every_interleaving() {
    let exclusive = vec(prop_oneof![1 => Just(None), 1 => any_value().prop_map(Some)], 0..5);
    let others = vec((1..4usize, Just(None::<Json>)), 0..4);
    let mixed = (exclusive, others).prop_flat_map(|(exclusive, others)| {
        let all: Vec<(usize, Written)> = exclusive.into_iter().map(|write| (0, write)).chain(others).collect();
        Just(all).prop_shuffle()
    });
    runner(1_500)
        .run(&mixed, |writes| {
            let keys = keys();
            let mut shared = Shared::new(&BTreeMap::new());
            let stage = |(number, (key, write)): (usize, &(usize, Written))| {
                let (place, policy) = &keys[*key];
                let write = write.as_ref().map_or(Write::Remove, Write::Set);
                shared.stage(&format!("p{number}"), *policy, place, write)
            };
            let refused: Vec<String> =
                writes.iter().enumerate().map(stage).filter_map(|staged| Some(staged.err()?.earlier)).collect();
            let setters: Vec<usize> =
                (0..writes.len()).filter(|n| writes[*n].0 == 0 && writes[*n].1.is_some()).collect();
            prop_assert_eq!(refused.len(), setters.len().saturating_sub(1));
            let first = setters.first().map(|number| format!("p{number}"));
            prop_assert!(refused.iter().all(|earlier| Some(earlier) == first.as_ref()));
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_remove_resets_nothing_and_the_next_batch_does() {
    let place = (StateScope::Run, "k".to_owned());
    let mut shared = Shared::new(&BTreeMap::new());
    let one = json("1");
    shared.stage("a", MergePolicy::Exclusive, &place, Write::Set(&one)).unwrap();
    shared.stage("b", MergePolicy::Exclusive, &place, Write::Remove).unwrap();
    let conflict = shared.stage("c", MergePolicy::Exclusive, &place, Write::Set(&one)).unwrap_err();
    assert_eq!(conflict.earlier, "a");
    shared.commit();
    assert!(shared.committed().is_empty());
    shared.stage("c", MergePolicy::Exclusive, &place, Write::Set(&one)).unwrap();
}

#[test]
fn one_key_in_two_scopes_is_two() {
    let mut shared = Shared::new(&BTreeMap::new());
    let values = [json("1"), json("2")];
    for (scope, value) in StateScope::ALL.iter().zip(&values) {
        shared.stage("a", MergePolicy::Exclusive, &(*scope, "k".to_owned()), Write::Set(value)).unwrap();
    }
    shared.commit();
    let found: Vec<Json> = shared.committed().values().cloned().collect();
    assert_eq!(found, values);
}

/// The sums would fit in one order and not in the other; so they fit in none.
#[test]
fn a_sum_that_leaves_the_numbers_in_one_order_leaves_them_in_every_order() {
    let sets = ["18446744073709551615", "1", "-1"].map(json);
    let held = json("0");
    assert_eq!(outcome(MergePolicy::Commutative, Some(&held), &sets), Err(()));
    let [most, up, down] = sets;
    assert_eq!(outcome(MergePolicy::Commutative, Some(&held), &[most.clone(), down.clone(), up]), Err(()));
    assert_eq!(outcome(MergePolicy::Commutative, Some(&most), &[down]), Ok(Some(json("18446744073709551614"))));
}

/// An object without members is a set too.
#[test]
fn an_empty_object_beside_a_whole_value_is_a_conflict_in_both_orders() {
    let (empty, whole) = (json("{}"), json("5"));
    assert_eq!(outcome(MergePolicy::Disjoint, None, &[empty.clone(), whole.clone()]), Err(()));
    assert_eq!(outcome(MergePolicy::Disjoint, None, &[whole, empty.clone()]), Err(()));
    assert_eq!(outcome(MergePolicy::Disjoint, None, &[empty.clone(), empty.clone()]), Ok(Some(empty)));
}

/// 1 and 1.0 are one item, spelt in one way.
#[test]
fn two_spellings_of_one_item_become_the_same_one_in_both_orders() {
    let (whole, fraction) = (json("[1]"), json("[1.0]"));
    let expected = Ok(Some(whole.clone()));
    assert_eq!(outcome(MergePolicy::Commutative, None, &[whole.clone(), fraction.clone()]), expected);
    assert_eq!(outcome(MergePolicy::Commutative, None, &[fraction, whole]), expected);
}

/// The examples of the page for plugin authors.
#[test]
fn the_page_on_plugins_shows_what_each_policy_does() {
    let page = std::fs::read_to_string(crate::support::project("docs/composition.md")).unwrap();
    let mut read = 0;
    for policy in MergePolicy::ALL {
        let examples = page.lines().filter_map(|line| line.strip_prefix(&format!("| `{policy}` | ")));
        for line in examples.filter(|line| line.matches(" | ").count() == 2) {
            let cells: Vec<&str> = line.trim_end_matches(" |").split(" | ").collect();
            let [held, sets, then] = cells[..] else { panic!("{line}") };
            let values = |cell: &str| -> Vec<Json> { cell.trim_matches('`').split("`, `").map(json).collect() };
            let held = (held != "nothing").then(|| values(held).remove(0));
            let expected = if then == "conflict" { Err(()) } else { Ok(Some(values(then).remove(0))) };
            assert_eq!(outcome(*policy, held.as_ref(), &values(sets)), expected, "{line}");
            read += 1;
        }
    }
    assert_eq!(read, 8);
}
