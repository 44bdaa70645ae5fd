//! Floor 1, rules: one machine a file, its transition table first. Each machine is small, knows nothing of
//! the others, and speaks to them through signals that the engine carries.

pub mod batch;
pub mod capabilities;
pub mod clock;
pub mod collection;
pub mod consultation;
mod drawing;
pub mod inference;
pub mod ledger;
pub mod nested;
pub mod release;
pub mod run;
pub(crate) mod schema;
pub mod shared;
mod table;
pub mod toolbox;

pub use table::{Chart, Taken, Transition};
pub(crate) use table::{Label, Machine, labels, machine, offer, transitions};

/// The tables of every machine, in the order in which a run meets them.
pub const CHARTS: &[Chart] = &[
    run::CHART,
    inference::CHART,
    batch::call::CHART,
    nested::CHART,
    collection::CHART,
    consultation::CHART,
    release::CHART,
];
