//! The explorer: breadth first through every state that a world's reports can reach, refusals included. It
//! steps the real engine and keeps nothing that a step did not give it (SPEC 13.9).
//!
//! After each step it asks for broken invariants and judges the ending, once by the engine's own table and
//! once by the [reference](super::reference). Since it goes breadth first, the way to an offence is a
//! shortest one. A world that was explored to its end must be alive as well: from every state answers lead to
//! an ending, and no answers lead back to where they began (SPEC 13.I11).
//!
//! States that differ in nothing that a rule reads count as one; a sample of those is expanded twice, and must
//! come to the same states.

mod offence;
mod progress;
mod search;
mod twins;
mod ways;
mod worlds;

use std::collections::{BTreeMap, BTreeSet};

use super::alphabet::Report;
use super::coverage::{Answer, Coverage};
use super::world::World;
use crate::engine::table::Row;
use crate::engine::{Decider, Ending};

pub use offence::{Fault, Offence};
pub use worlds::{wide_worlds, worlds};

/// What an exploration has seen so far.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Different states, the one before the first input included.
    pub states: u64,
    /// Accepted reports: every one of them from every state.
    pub transitions: u64,
    /// Refused reports.
    pub refusals: u64,
    /// Signals, by type.
    pub signals: BTreeMap<&'static str, u64>,
    /// What was taken, machine by machine and report by report.
    pub coverage: Coverage,
}

impl Figures {
    /// Refused reports, by the kind of their refusal.
    #[must_use]
    pub fn refusals_by_kind(&self) -> BTreeMap<&'static str, u64> {
        let mut kinds = BTreeMap::new();
        for ((_, _, answer), times) in &self.coverage.reports {
            if let Answer::Refused(kind) = answer {
                *kinds.entry(kind.word()).or_default() += times;
            }
        }
        kinds
    }
}

/// How far one world was explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// Its name.
    pub world: &'static str,
    /// Different states.
    pub states: u64,
    /// Accepted reports.
    pub transitions: u64,
    /// Refused reports.
    pub refusals: u64,
    /// Whether every state was expanded. Only then is it known that every run ends.
    pub whole: bool,
}

/// An ending and a shortest way to it.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The ending.
    pub ending: Ending,
    /// Under which bounds.
    pub world: &'static str,
    /// The reports that lead to it, in order.
    pub reports: Vec<Report>,
}

/// What was explored.
#[derive(Debug, Clone, Default)]
pub struct Exploration {
    /// The figures, all worlds together.
    pub figures: Figures,
    /// Every distinct ending, as a tuple: the number of facts counts only as none or some.
    pub endings: Vec<Reached>,
    /// The worlds, in their order.
    pub worlds: Vec<Explored>,
}

impl Exploration {
    /// The rows that were reached, in order.
    #[must_use]
    pub fn rows(&self) -> BTreeSet<u8> {
        self.endings.iter().map(|reached| reached.ending.row).collect()
    }

    /// The first reached ending that `table` does not admit.
    #[must_use]
    pub fn outside<'a>(&'a self, table: &[Row]) -> Option<&'a Reached> {
        self.endings.iter().find(|reached| !table.iter().any(|row| row.admits(&reached.ending)))
    }
}

/// How far to go.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The longest way from `run_started`, in reports; a world's own budgets end it earlier.
    pub depth: u32,
}

impl Bounds {
    /// To the end: the worlds' budgets are the only bound.
    pub const NONE: Self = Self { depth: u32::MAX };
}

/// Explores `worlds` one after the other. `seen` is told of the figures now and then.
///
/// # Errors
/// The first offence: a broken invariant, an ending outside either table, a refusal that changed something,
/// an answer that was refused, or a report that should have been; a state from which answers lead to no ending,
/// or round in a circle; two states that count as one and have not one future.
pub fn explore(worlds: &[World], bounds: Bounds, mut seen: impl FnMut(&Figures)) -> Result<Exploration, Box<Offence>> {
    let mut exploration = Exploration::default();
    for world in worlds {
        search::search(world, Decider::identity, bounds, &mut exploration, &mut seen)?;
    }
    Ok(exploration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::Digest;

    fn world(name: &str) -> World {
        worlds().into_iter().find(|world| world.name == name).unwrap()
    }

    fn fault(world: &World, identity: search::Identity) -> Option<Fault> {
        let mut exploration = Exploration::default();
        search::search(world, identity, Bounds::NONE, &mut exploration, &mut |_| {}).err().map(|offence| offence.fault)
    }

    /// Takes all states of one phase for one.
    fn blind(decider: &Decider) -> Digest {
        Digest::of("blind", &[decider.run_state().label().as_bytes()])
    }

    #[test]
    fn states_that_count_as_one_and_go_on_otherwise_are_found() {
        assert_eq!(fault(&world("drafts"), blind), Some(Fault::UnlikeTwin));
        assert_eq!(fault(&world("drafts"), Decider::identity), None);
    }

    #[test]
    fn a_world_in_which_nobody_answers_has_no_way_out() {
        let mut deserted = world("drafts");
        deserted.menu.reconciliations.clear();
        assert_eq!(fault(&deserted, Decider::identity), Some(Fault::NoWayOut));
    }
}
