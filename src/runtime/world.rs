//! What performs effects: the ports, or a script in their place. The driver knows nothing else of the world.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::ports::Line;
use crate::engine::{Engine, Request};
use crate::vocabulary::input::{Input, LiveTool};

/// Performs effects and reports what came of them.
pub(crate) trait World: Send + Sync + 'static {
    /// Begins to perform an effect. Dropping the report gives it up. A tool that is entered asks over `line` for
    /// calls of its own.
    fn perform(&self, engine: &Engine, effect: &Request, line: &Line) -> Performed;

    /// What the tools declare now.
    fn live(&self, engine: &Engine) -> BoxFuture<'static, Vec<LiveTool>>;

    /// The world of one more run, where each run has its own; `None` where all share this one.
    fn for_a_run(&self) -> Option<Arc<dyn World>> {
        None
    }

    /// What comes between a stored record and this effect of it. Only a script interrupts.
    fn before(&self, _effect: &Request) -> Vec<Interruption> {
        Vec::new()
    }

    /// Whether work that is not wanted any more is given up. If not, it goes on, and its report is refused.
    fn gives_up(&self) -> bool {
        true
    }

    /// Whether something may come between the record that wants a wave dispatched and its dispatch. If not, both
    /// are made durable at once.
    fn interrupts_dispatch(&self) -> bool {
        false
    }

    /// When else something comes in between: moments in milliseconds since the run started.
    fn moments(&self) -> Vec<Moment> {
        Vec::new()
    }

    /// Such a moment has come.
    fn strike(&self, _moment: Moment) -> Option<Interruption> {
        None
    }
}

/// What became of an effect.
pub(crate) enum Performed {
    /// It is under way, and reports.
    Reports(BoxFuture<'static, Input>),
    /// It is under way, and nobody waits for what comes of it.
    Tells(BoxFuture<'static, ()>),
    /// It was handed on; who answers it comes from outside, or nobody does.
    HandedOn,
    /// It was handed on to somebody who will not answer: the run waits for its timers.
    Unheard,
}

/// A moment at which something comes in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Its name.
    pub(crate) index: usize,
    /// Milliseconds since the run started.
    pub(crate) at_ms: u64,
}

/// What comes in between.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// A report from outside.
    Report(Input),
    /// The process dies.
    Death,
}
