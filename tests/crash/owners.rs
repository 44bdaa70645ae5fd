//! Two processes and one store: an owner that sleeps and wakes, a race for a lost run, and what strangers say
//! to a run that somebody else drives.

use rustix::process::Signal;

use crate::book::Pages;
use crate::case::{Case, Process, kill_at, stop_at, was_killed};
use crate::child::{MAY_ANSWER, MAY_MEDDLE, MAY_RECOVER};
use crate::claims::{History, hold};
use crate::suite::{Test, each};
use crate::wire::{Errand, Meddling, Said};

pub(crate) const TESTS: &[Test] = &[
    (
        "owners::a_sleeping_owner_that_lost_its_run_does_nothing_more_to_it",
        a_sleeping_owner_that_lost_its_run_does_nothing_more_to_it,
    ),
    (
        "owners::an_effect_that_wakes_too_late_is_the_other_sides_to_refuse",
        an_effect_that_wakes_too_late_is_the_other_sides_to_refuse,
    ),
    ("owners::of_two_that_recover_a_lost_run_one_drives_it", of_two_that_recover_a_lost_run_one_drives_it),
    ("owners::a_stranger_cancels_a_run_through_the_store", a_stranger_cancels_a_run_through_the_store),
    ("owners::a_stranger_is_told_what_the_owner_refuses", a_stranger_is_told_what_the_owner_refuses),
    ("owners::what_a_dead_owner_did_not_hear_the_next_one_does", what_a_dead_owner_did_not_hear_the_next_one_does),
];

/// Starts an owner that stops itself there, and waits until it has.
fn asleep(case: &Case, name: &str, nth: u32) -> Process {
    let owner = case.spawn(Errand::Drive, stop_at(name, nth));
    owner.stops();
    owner
}

fn trouble_of(pages: &Pages, process: u32) -> Vec<String> {
    let trouble = |said: &Said| match said {
        Said::Trouble { what, .. } => Some(what.clone()),
        _ => None,
    };
    pages.by(process).filter_map(trouble).collect()
}

/// Takes the run from its sleeping owner, sees it through, and wakes the owner.
fn taken_over(case: &Case, owner: Process) {
    let looking = case.spawn(Errand::Attach, None);
    let looker = looking.number;
    assert!(looking.end().success());
    let trouble = trouble_of(&case.book.read(), looker);
    assert!(matches!(&*trouble, [one] if one.contains("Driven")), "a sleeping owner lives: {trouble:?}");
    let next = case.spawn(Errand::TakeOver, None);
    assert!(next.end().success());
    let (before, number) = (case.book.read().said.len(), owner.number);
    owner.signal(Signal::CONT);
    assert!(owner.end().success());
    let pages = case.book.read();
    let since: Vec<&Said> = pages.said[before..].iter().filter(|(by, _)| *by == number).map(|(_, said)| said).collect();
    let did = since.iter().filter(|said| {
        matches!(said, Said::Offer { .. } | Said::Durable { .. } | Said::Ended { .. } | Said::Driving { .. })
    });
    assert_eq!(did.count(), 0, "the old owner goes on: {since:?}");
    let trouble = trouble_of(&pages, number);
    assert!(matches!(&*trouble, [one] if one.contains("Fenced")), "{trouble:?}; {since:?}");
}

fn a_sleeping_owner_that_lost_its_run_does_nothing_more_to_it() {
    // `append.after` 2 is a durable dispatch whose tools were not entered.
    let sleeps = [
        ("looks", "append.before", 2),
        ("looks", "append.after", 2),
        ("looks", "append.after", 3),
        ("looks", "tool.after", 1),
        ("looks", "model.before", 2),
        ("looks", "model.after", 3),
        ("looks", "judge.before", 1),
        ("looks", "delivered.before", 1),
        ("effects", "tool.done", 1),
        ("effects", "tool.done", 3),
        ("effects", "append.before", 5),
        ("waves", "tool.done", 1),
        ("observes", "tool.done", 1),
        ("ends", "append.before", 4),
        ("people", "gate.before", 1),
        ("people", "tool.after", 1),
        ("troubles", "tool.before", 1),
    ];
    each(&sleeps, |(script, name, nth)| {
        let case = Case::new(&[script]);
        let owner = asleep(&case, name, *nth);
        taken_over(&case, owner);
        hold(&case);
        assert!(case.book.read().late.is_empty(), "{script} {name} {nth}: {:?}", case.book.read().late);
    });
}

/// The store can fence records, not the world: a call whose dispatch is durable may begin when its owner wakes. A
/// person who says that it did not happen strikes it off on the other side, by its operation id.
fn an_effect_that_wakes_too_late_is_the_other_sides_to_refuse() {
    for (script, name, nth, late) in [
        ("effects", "tool.before", 1, "pay"),
        ("waves", "tool.before", 1, "pay_alone"),
        ("effects", "append.after", 2, "pay"),
    ] {
        let case = Case::new(&[script]);
        let owner = asleep(&case, name, nth);
        taken_over(&case, owner);
        let rows = hold(&case);
        assert_eq!(rows.into_values().collect::<Vec<_>>(), [1]);
        let pages = case.book.read();
        let tools: Vec<&str> = pages.late.iter().map(|(_, entry)| entry.tool.as_str()).collect();
        assert_eq!(tools, [late], "{script} {name} {nth}");
        let paid = pages.ledger.iter().filter(|(_, entry)| entry.tool == late).count();
        assert_eq!(paid, 1, "{script} {name} {nth}");
    }
}

fn of_two_that_recover_a_lost_run_one_drives_it() {
    let rounds: Vec<u32> = (1..=12).collect();
    each(&rounds, |nth| {
        let case = Case::new(&["looks"]);
        let lost = case.spawn(Errand::Drive, kill_at("append.after", 1 + nth % 6));
        assert!(was_killed(lost.end()));
        // Whoever drives it stops before its run can end, so that the other one finds it driven.
        let both = [(); 2].map(|()| case.spawn(Errand::Recover, stop_at("append.before", 1)));
        case.book.until("both are ready", |pages| {
            both.iter().all(|one| pages.by(one.number).any(|said| matches!(said, Said::Ready { .. })))
        });
        case.book.open(MAY_RECOVER);
        let numbers = [both[0].number, both[1].number];
        let stopped = |pages: &Pages, number| pages.by(number).any(|said| matches!(said, Said::Fused { .. }));
        case.book.until("one has left and one is stopped", |pages| {
            let over = numbers.map(|number| pages.is_over(number));
            let stopped = numbers.map(|number| stopped(pages, number));
            (over[0] && stopped[1]) || (over[1] && stopped[0])
        });
        let [first, second] = both;
        let (winner, loser) = if stopped(&case.book.read(), first.number) { (first, second) } else { (second, first) };
        let number = loser.number;
        assert!(loser.end().success());
        let pages = case.book.read();
        let drove = pages.by(number).any(|said| matches!(said, Said::Driving { .. } | Said::Trouble { .. }));
        assert!(!drove, "{:?}", pages.by(number).collect::<Vec<_>>());
        drop(pages);
        winner.stops();
        winner.signal(Signal::CONT);
        assert!(winner.end().success());
        assert_eq!(hold(&case).into_values().collect::<Vec<_>>(), [1]);
        let history = History::read(&case, &case.runs[0].run);
        assert_eq!(history.inputs("run_recovered").count(), 1);
    });
}

/// An owner that drives a call which does not return, and a stranger who came while the run was waiting.
fn a_stranger_comes(case: &Case, what: Meddling) -> (Process, Process) {
    let owner = case.spawn(Errand::DriveAndWait, None);
    let is_ready = |process: u32| move |pages: &Pages| pages.by(process).any(|said| matches!(said, Said::Ready { .. }));
    case.book.until("the owner waits for a person", is_ready(owner.number));
    let stranger = case.spawn(Errand::Meddle(what), None);
    case.book.until("the stranger has seen the run", is_ready(stranger.number));
    case.book.open(MAY_ANSWER);
    case.book.until("the tool was entered", |pages| !pages.ledger.is_empty());
    (owner, stranger)
}

fn told(case: &Case, stranger: u32) -> String {
    let pages = case.book.read();
    let told = pages.by(stranger).find_map(|said| match said {
        Said::Told { answer, .. } => Some(answer.clone()),
        _ => None,
    });
    told.unwrap_or_else(|| panic!("the stranger heard nothing: {:?}", pages.by(stranger).collect::<Vec<_>>()))
}

fn a_stranger_cancels_a_run_through_the_store() {
    let case = Case::new(&["hangs"]);
    let (owner, stranger) = a_stranger_comes(&case, Meddling::Cancel);
    case.book.open(MAY_MEDDLE);
    let number = stranger.number;
    assert!(stranger.end().success() && owner.end().success());
    assert_eq!(told(&case, number), "accepted");
    assert_eq!(hold(&case).into_values().collect::<Vec<_>>(), [15]);
    let history = History::read(&case, &case.runs[0].run);
    let by: Vec<_> = history.inputs("cancel_requested").map(|input| input["by"].clone()).collect();
    assert_eq!(by, ["a stranger"]);
}

fn a_stranger_is_told_what_the_owner_refuses() {
    for what in [Meddling::Decide, Meddling::Reconcile] {
        let case = Case::new(&["hangs"]);
        let (owner, stranger) = a_stranger_comes(&case, what);
        case.book.open(MAY_MEDDLE);
        let number = stranger.number;
        assert!(stranger.end().success());
        let answer = told(&case, number);
        assert!(answer.contains("RefusedThere"), "{what:?}: {answer}");
        // The run goes on as if nothing had been said. Its owner dies, and it waits for a person again.
        owner.signal(Signal::KILL);
        assert!(was_killed(owner.end()));
        let history = History::read(&case, &case.runs[0].run);
        assert_eq!(history.inputs("decision_given").count(), 1);
        assert!(history.summary.ending.is_none());
    }
}

fn what_a_dead_owner_did_not_hear_the_next_one_does() {
    let case = Case::new(&["hangs"]);
    let (owner, stranger) = a_stranger_comes(&case, Meddling::Cancel);
    owner.signal(Signal::STOP);
    owner.stops();
    case.book.open(MAY_MEDDLE);
    let number = stranger.number;
    case.book.until("the request lies in the store", |pages| {
        pages.by(number).any(|said| matches!(said, Said::Point { name, .. } if name == "post.after"))
    });
    owner.signal(Signal::KILL);
    assert!(was_killed(owner.end()));
    assert!(stranger.end().success());
    assert_eq!(told(&case, number), "accepted");
    assert_eq!(hold(&case).into_values().collect::<Vec<_>>(), [15]);
}
