//! Somebody who watches a run closely: the command line's timeline. Privileged, so nobody outside can be one.

use crate::engine::{Engine, Step};
use crate::vocabulary::refusal::Refusal;

/// Watches what a driver does.
pub(crate) trait Witness: Send + Sync + 'static {
    /// A step was taken, and its record is durable.
    fn stepped(&self, engine: &Engine, step: &Step);

    /// A report was refused: it came too late or does not fit.
    fn refused(&self, at_ms: u64, report: &'static str, refusal: &Refusal);

    /// The process died.
    fn lost(&self, at_ms: u64);
}
