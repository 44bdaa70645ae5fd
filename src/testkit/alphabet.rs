//! A finite alphabet of reports: the answers to what a state has outstanding, and reports that it must
//! refuse. Both follow from the engine's own view of what is outstanding, so they fit every state.

mod answers;
mod foreign;

use serde::Serialize;

use crate::vocabulary::input::Input;

pub use answers::{Acceptable, acceptable, answers};
pub use foreign::foreign;

/// A report and when it comes, as `portcullis simulate` reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// When, in milliseconds from the run's start.
    pub at_ms: u64,
    /// What.
    pub input: Input,
}
