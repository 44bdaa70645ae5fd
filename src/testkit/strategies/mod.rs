//! Strategies for proptest: specs and environments, reports as they come over the wire, sequences of reports, and
//! whole histories. Everything shrinks towards a short run that simply goes on.
//!
//! A sequence is a [world](crate::testkit::world), which says what may be answered, and [`Move`]s, each of which
//! picks a report once the state is known. So a sequence stays meaningful when moves before are left out.
//!
//! | module | draws |
//! |---|---|
//! | `specs` | [`spec`], [`refused_spec`], [`environment`] |
//! | `worlds` | [`world`], [`small_world`] |
//! | `inputs` | [`input`], [`wire`], [`hostile_wire`] |
//! | `moves` | [`moves`]: plausible ones, which reach deep states, and hostile ones |
//! | `walk` | [`Walk`]: a run that is driven by moves |
//! | `histories` | [`history`], [`ended_history`], [`open_history`] |
//!
//! Seeds are proptest's: a `TestRunner` with a fixed generator draws the same cases every time.

mod histories;
mod inputs;
mod moves;
mod specs;
mod walk;
mod worlds;

pub use histories::{ended_history, history, open_history};
pub use inputs::{hostile_wire, input, wire};
pub use moves::{Kind, Mix, Move, moves};
pub use specs::{environment, refused_spec, spec};
pub use walk::Walk;
pub use worlds::{UNVERIFIED, small_world, world};
