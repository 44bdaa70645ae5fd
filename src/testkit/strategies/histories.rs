//! Whole histories, as a store gives them.

use proptest::prelude::{Just, Strategy};
use proptest::prop_oneof;

use super::moves::{Kind, Mix, Move, moves};
use super::walk::Walk;
use super::worlds::{small_world, world};

/// The most moves of a drawn history.
const MOVES_MAX: usize = 60;

/// A history, open or ended, one record or more.
pub fn history() -> impl Strategy<Value = String> {
    walked().prop_map(|walk| walk.history().to_owned())
}

/// A history whose run has ended; a receipt may follow.
pub fn ended_history() -> impl Strategy<Value = String> {
    walked().prop_map(|mut walk| {
        walk.finish();
        walk.history().to_owned()
    })
}

/// A history whose run has not ended.
pub fn open_history() -> impl Strategy<Value = String> {
    walked().prop_map(|walk| walk.open_part().to_owned())
}

/// A run that has begun.
fn walked() -> impl Strategy<Value = Walk> {
    let mix = prop_oneof![Just(Mix::SHORT), Just(Mix::PLAUSIBLE), Just(Mix::HOSTILE)];
    let moves = mix.prop_flat_map(|mix| moves(mix, 0..MOVES_MAX));
    let world = prop_oneof![1 => small_world(), 1 => world()];
    (world, moves).prop_map(|(world, moves)| {
        let first = Move { kind: Kind::Onward, pick: 0, late_ms: 0 };
        let all: Vec<Move> = std::iter::once(first).chain(moves).collect();
        Walk::through(world, &all)
    })
}
