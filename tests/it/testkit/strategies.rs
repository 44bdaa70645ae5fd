//! Strategies draw what they say: everything is met, what must be accepted is, and what must be refused is.

use std::cell::RefCell;
use std::collections::BTreeSet;

use portcullis::assert_fail_closed;
use portcullis::engine::Engine;
use portcullis::history::{Policy, replay};
use portcullis::testkit::invariants::check;
use portcullis::testkit::strategies::{
    Kind, Mix, Walk, ended_history, environment, history, hostile_wire, input, moves, open_history, refused_spec, spec,
    wire, world,
};
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::refusal::RefusalKind;
use proptest::prelude::*;

use crate::play::started;
use crate::properties::runner;

#[test]
fn every_type_of_report_is_drawn_and_reads_back_as_it_was() {
    let met = RefCell::new(BTreeSet::new());
    let outcome = runner(600).run(&input(), |input| {
        met.borrow_mut().insert(input.tag());
        let text = serde_json::to_string(&input).unwrap();
        prop_assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(met.into_inner(), Input::TAGS.iter().copied().collect());
}

#[test]
fn wire_forms_are_read_and_hostile_ones_are_not() {
    let read = runner(200).run(&wire(), |text| {
        prop_assert!(serde_json::from_str::<Input>(&text).is_ok(), "{text}");
        Ok(())
    });
    read.unwrap();
    let hostile = runner(400).run(&hostile_wire(), |text| {
        prop_assert!(serde_json::from_str::<Input>(&text).is_err(), "{text}");
        Ok(())
    });
    hostile.unwrap();
}

#[test]
fn a_drawn_spec_begins_a_run_in_a_drawn_environment_and_a_refused_one_does_not() {
    let begun = runner(100).run(&(spec(), environment()), |(spec, environment)| {
        let mut engine = Engine::new();
        prop_assert!(engine.step(0, started("drawn", spec)).is_ok());
        let environment = Box::new(environment);
        let resolved = engine.step(0, Input::EnvironmentResolved { environment });
        prop_assert!(resolved.is_ok());
        prop_assert_eq!(engine.ending(), None);
        Ok(())
    });
    begun.unwrap();
    let refused = runner(100).run(&refused_spec(), |spec| {
        let refused = Engine::new().step(0, started("drawn", spec)).map_err(|refusal| refusal.kind);
        prop_assert_eq!(refused.err(), Some(RefusalKind::Malformed));
        Ok(())
    });
    refused.unwrap();
}

#[test]
fn plausible_moves_reach_deep_states_and_hostile_ones_are_refused_now_and_then() {
    let (deep, refused) = (RefCell::new(0), RefCell::new(0));
    let plausible = runner(24).run(&(world(), moves(Mix::PLAUSIBLE, 150..160)), |(world, moves)| {
        let walk = Walk::through(world, &moves);
        *deep.borrow_mut() += usize::from(walk.history().lines().count() >= 60);
        Ok(())
    });
    plausible.unwrap();
    assert!(deep.into_inner() >= 8, "long runs are rare");
    let hostile = runner(24).run(&(world(), moves(Mix::HOSTILE, 60..70)), |(world, moves)| {
        let mut walk = Walk::new(world);
        for next in moves {
            let taken = walk.make(next);
            *refused.borrow_mut() += u32::from(matches!(taken, Some(Err(_))));
            prop_assert!(next.kind != Kind::Foreign || !matches!(taken, Some(Ok(_))), "{next:?} is accepted");
        }
        Ok(())
    });
    hostile.unwrap();
    assert!(refused.into_inner() >= 400, "refusals are rare");
}

#[test]
fn drawn_histories_are_fail_closed_open_or_ended() {
    let kinds = RefCell::new((0, 0));
    let any = runner(20).run(&history(), |history| {
        assert_fail_closed!(history);
        let ended = replay(history.as_bytes(), Policy::Stop).unwrap().ending.is_some();
        let mut kinds = kinds.borrow_mut();
        *(if ended { &mut kinds.0 } else { &mut kinds.1 }) += 1;
        Ok(())
    });
    any.unwrap();
    assert!(kinds.borrow().0 > 0 && kinds.borrow().1 > 0, "{kinds:?}");
    let ended = runner(20).run(&ended_history(), |history| {
        prop_assert!(replay(history.as_bytes(), Policy::Stop).unwrap().ending.is_some());
        Ok(())
    });
    ended.unwrap();
    let open = runner(20).run(&open_history(), |history| {
        prop_assert_eq!(replay(history.as_bytes(), Policy::Stop).unwrap().ending, None);
        prop_assert_eq!(check(&history), Ok(()));
        Ok(())
    });
    open.unwrap();
}

/// A failing case shrinks to the few records that it takes to fail.
#[test]
fn a_failing_history_shrinks_to_a_short_one() {
    let failed = runner(200).run(&history(), |history| {
        prop_assert!(!history.contains("\"type\":\"call_closed\""), "a call was closed");
        Ok(())
    });
    let Err(proptest::test_runner::TestError::Fail(_, shortest)) = failed else { panic!("nothing failed: {failed:?}") };
    assert!(shortest.lines().count() <= 6, "{} records", shortest.lines().count());
}
