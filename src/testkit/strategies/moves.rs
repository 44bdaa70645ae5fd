//! Moves: which report comes next, said before the state is known.

use std::fmt;

use proptest::collection::{SizeRange, vec};
use proptest::prelude::{Just, Strategy, any};
use proptest::strategy::Union;

/// One move. In each state it picks one report of its kind, if there is any.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Which kind.
    pub kind: Kind,
    /// Which of them: counted round and round.
    pub pick: u32,
    /// How much later than it could come, in milliseconds.
    pub late_ms: u64,
}

impl fmt::Debug for Move {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}({}) +{} ms", self.kind, self.pick, self.late_ms)
    }
}

/// A kind of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An answer to something outstanding that lets the run go on.
    Onward,
    /// A model's draft, where one is awaited.
    Draft,
    /// A takeover or a repair of the history, which change little.
    Aside,
    /// Any answer, those that end the run among them.
    Any,
    /// A report that must be refused here: for nobody, repeated, changed, early, malformed.
    Foreign,
    /// A report that an earlier state took or could have taken: repeated, late or out of order.
    Stale,
}

/// How often each kind is drawn, as weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Answers that go on. 1 or more: moves shrink towards them.
    pub onward: u32,
    /// Drafts.
    pub draft: u32,
    /// Takeovers and repairs.
    pub aside: u32,
    /// Any answers.
    pub any: u32,
    /// Reports that must be refused.
    pub foreign: u32,
    /// Reports of earlier states.
    pub stale: u32,
}

impl Mix {
    /// Goes on for long: answers to what is outstanding, hardly anything that ends the run.
    pub const PLAUSIBLE: Self = Self { onward: 200, draft: 3, aside: 12, any: 1, foreign: 0, stale: 0 };
    /// The same among reports that fit nothing, come twice, early, late or out of order.
    pub const HOSTILE: Self = Self { onward: 100, draft: 6, aside: 12, any: 2, foreign: 90, stale: 60 };
    /// Ends soon, and in many ways.
    pub const SHORT: Self = Self { onward: 200, draft: 60, aside: 36, any: 6, foreign: 0, stale: 0 };
}

/// So many moves of that mix.
pub fn moves(mix: Mix, count: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Move>> {
    let weights = [
        (mix.onward.max(1), Kind::Onward),
        (mix.draft, Kind::Draft),
        (mix.aside, Kind::Aside),
        (mix.any, Kind::Any),
        (mix.foreign, Kind::Foreign),
        (mix.stale, Kind::Stale),
    ];
    let drawn = weights.into_iter().filter(|(weight, _)| *weight > 0).map(|(weight, kind)| (weight, Just(kind)));
    let kind = Union::new_weighted(drawn.collect());
    let late = proptest::prop_oneof![8 => Just(0u64), 1 => 1..40u64];
    let one = (kind, any::<u32>(), late).prop_map(|(kind, pick, late_ms)| Move { kind, pick, late_ms });
    vec(one, count)
}
