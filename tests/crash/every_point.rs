//! Every point of every script: a process dies there, and others carry on until the run has ended.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::case::{Case, kill_at, was_killed};
use crate::claims::{History, hold};
use crate::suite::{Test, each};
use crate::wire::{Act, At, Errand, Fuse, Said};
use crate::world::SCRIPTS;

pub(crate) const TESTS: &[Test] = &[
    ("every_point::an_undisturbed_run_does_each_thing_once", an_undisturbed_run_does_each_thing_once),
    ("every_point::a_process_may_die_at_every_point", a_process_may_die_at_every_point),
    ("every_point::the_process_that_recovers_may_die_too", the_process_that_recovers_may_die_too),
    ("every_point::six_crashes_in_a_row_end_in_row_19", six_crashes_in_a_row_end_in_row_19),
    ("every_point::a_report_in_between_gives_the_crash_budget_back", a_report_in_between_gives_the_crash_budget_back),
    ("every_point::a_release_is_offered_until_its_receipt_is_stored", a_release_is_offered_until_its_receipt_is_stored),
];

/// The scripts that come to an end without anybody's doing.
fn scripts() -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().map(|script| script.name).filter(|name| *name != "hangs")
}

/// The points that a run of this script passes when nothing happens to it.
fn points(script: &str) -> Vec<(String, u32)> {
    let case = Case::new(&[script]);
    case.finish();
    let rows = hold(&case);
    assert_eq!(rows.values().copied().collect::<Vec<_>>(), [1], "{script}");
    let pages = case.book.read();
    let passed = pages.said.iter().filter_map(|(_, said)| match said {
        Said::Point { name, nth } => Some((name.clone(), *nth)),
        _ => None,
    });
    passed.collect()
}

fn every_point() -> Vec<(&'static str, String, u32)> {
    let of = |script| points(script).into_iter().map(move |(name, nth)| (script, name, nth));
    scripts().flat_map(of).collect()
}

fn an_undisturbed_run_does_each_thing_once() {
    for script in scripts() {
        let case = Case::new(&[script]);
        case.finish();
        hold(&case);
        let pages = case.book.read();
        let mut entries = BTreeMap::<_, u32>::new();
        pages.ledger.iter().for_each(|(_, entry)| *entries.entry((&entry.tool, &entry.arguments)).or_default() += 1);
        assert!(!entries.is_empty() && entries.values().all(|count| *count == 1), "{script}: {entries:?}");
        drop(pages);
        // Nothing is left to do, and nothing is offered again.
        let before = case.book.read().said.len();
        case.finish();
        let pages = case.book.read();
        let more = pages.said[before..].iter().filter(|(_, said)| !matches!(said, Said::Hello { .. }));
        assert_eq!(more.count(), 0, "{script}: {:?}", &pages.said[before..]);
    }
}

/// Lets the next process die there, and makes sure that it did.
fn die(case: &Case, name: &str, nth: u32) {
    let process = case.spawn(Errand::Drive, kill_at(name, nth));
    let number = process.number;
    let status = process.end();
    let pages = case.book.read();
    let last = pages.by(number).last();
    let there = Said::Fused { name: name.to_owned(), nth };
    assert!(was_killed(status) && last == Some(&there), "{name} {nth} was not hit: {status}, {last:?}");
}

fn a_process_may_die_at_every_point() {
    let points = every_point();
    let names: BTreeMap<&str, usize> = points.iter().fold(BTreeMap::new(), |mut names, (_, name, _)| {
        *names.entry(name).or_default() += 1;
        names
    });
    println!("    {} points: {names:?}", points.len());
    let ends = Mutex::new(BTreeMap::<u8, u32>::new());
    each(&points, |(script, name, nth)| {
        let case = Case::new(&[script]);
        die(&case, name, *nth);
        case.finish();
        for row in hold(&case).into_values() {
            *ends.lock().unwrap().entry(row).or_default() += 1;
        }
    });
    let ends = ends.into_inner().unwrap();
    println!("    endings by row: {ends:?}");
    // Both must have come, or the script that ends by a lost call has proved nothing.
    assert!(ends.contains_key(&1) && ends.contains_key(&19), "{ends:?}");
}

/// The second process dies as well: at a point that is another one for each first death.
fn the_process_that_recovers_may_die_too() {
    let points = every_point();
    let deaths = Mutex::new((0, 0));
    let numbered: Vec<_> = points.iter().zip(0_u32..).filter(|(_, nth)| nth % 2 == 0).collect();
    each(&numbered, |((script, name, nth), number)| {
        let case = Case::new(&[script]);
        die(&case, name, *nth);
        for step in 0..3 {
            let at = At::Any { nth: 1 + (number * 7 + step * 5) % 23 };
            let status = case.spawn(Errand::Drive, Some(Fuse { at, act: Act::Kill })).end();
            let mut deaths = deaths.lock().unwrap();
            if was_killed(status) { deaths.0 += 1 } else { deaths.1 += 1 }
        }
        case.finish();
        hold(&case);
    });
    let (died, lived) = deaths.into_inner().unwrap();
    println!("    {died} further deaths, {lived} processes came to the end first");
    assert!(died > lived, "{died} died, {lived} lived");
}

fn six_crashes_in_a_row_end_in_row_19() {
    for (script, name) in
        [("looks", "model.before"), ("looks", "tool.before"), ("people", "gate.before"), ("looks", "judge.before")]
    {
        let case = Case::new(&[script]);
        for _ in 0..6 {
            die(&case, name, 1);
        }
        case.finish();
        let rows = hold(&case);
        let history = History::read(&case, &case.runs[0].run);
        let recoveries = history.inputs("run_recovered").count();
        // A call that may only be tried three times is a person's matter before that.
        let expected = if name == "tool.before" { 1 } else { 19 };
        assert_eq!(rows.into_values().collect::<Vec<_>>(), [expected], "{name}, {recoveries} recoveries");
    }
}

fn a_report_in_between_gives_the_crash_budget_back() {
    let case = Case::new(&["looks"]);
    for _ in 0..5 {
        die(&case, "model.before", 1);
    }
    // The answer of the first request is stored; the next request is the second of that process.
    die(&case, "model.before", 2);
    for _ in 0..4 {
        die(&case, "model.before", 1);
    }
    case.finish();
    assert_eq!(hold(&case).into_values().collect::<Vec<_>>(), [1]);
}

fn a_release_is_offered_until_its_receipt_is_stored() {
    let case = Case::new(&["looks"]);
    for _ in 0..8 {
        die(&case, "delivered.before", 1);
    }
    case.finish();
    assert_eq!(hold(&case).into_values().collect::<Vec<_>>(), [1]);
    let pages = case.book.read();
    let offers = pages.said.iter().filter(|(_, said)| matches!(said, Said::Offer { .. })).count();
    assert_eq!(offers, 9);
}
