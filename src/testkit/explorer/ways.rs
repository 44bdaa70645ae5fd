//! How each state was reached first. A way is kept as places and choices, and walked again when it is asked for.

use crate::engine::Engine;
use crate::testkit::alphabet::{Report, answers};
use crate::testkit::world::World;

/// The state before, and which of its answers led on.
#[derive(Debug, Clone, Copy)]
struct Stage {
    before: u32,
    choice: u32,
}

/// Every state's way, the states in the order in which they were found. The first one has none.
#[derive(Debug, Default)]
pub(super) struct Ways(Vec<Stage>);

impl Ways {
    /// A state that was reached from `before`; its place.
    pub(super) fn add(&mut self, before: u32, choice: usize) -> u32 {
        self.0.push(Stage { before, choice: u32::try_from(choice).unwrap_or(u32::MAX) });
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// How many states were found.
    pub(super) fn places(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The reports that lead to a place: a shortest way, since places are found breadth first.
    pub(super) fn to(&self, place: u32, world: &World) -> Vec<Report> {
        let mut choices = Vec::new();
        let mut here = place;
        while let Some(stage) = here.checked_sub(1).and_then(|index| self.0.get(index as usize)) {
            choices.push(stage.choice);
            here = stage.before;
        }
        let (mut engine, mut reports) = (Engine::new(), Vec::new());
        for choice in choices.into_iter().rev() {
            let Some(report) = answers(&engine, world).into_iter().nth(choice as usize) else { break };
            if engine.step(report.at_ms, report.input.clone()).is_err() {
                break;
            }
            reports.push(report);
        }
        reports
    }
}
