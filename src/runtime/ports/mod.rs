//! The ports: what an embedder implements, and nothing else of the runtime calls the world.
//!
//! A port reports, it does not decide: it never retries, and it says what happened by type. A port that panics
//! is caught here, and only here (SPEC 1): a tool's panic is [`ToolError::Execution`], a gate's or a judge's is
//! their failure, and any other is an unknown failure of the run.
//!
//! Every port is asked inside the run's own task, all calls of a run side by side. A call that is not wanted
//! any more is dropped: a cancelled run drops them all at once. Work that blocks a thread belongs on
//! `tokio::task::spawn_blocking`.
//!
//! [`ToolError::Execution`]: crate::vocabulary::tool::ToolError::Execution

mod asking;
mod gates;
mod judge;
mod model;
mod nested;
mod snapshot;
mod tools;
mod toolset;
mod world;

pub use gates::{GateAbout, GateFailure, GateQuestion, Gates};
pub use judge::{Judge, JudgeQuestion, Judgement};
pub use model::{Model, ModelAnswer, ModelCall, ModelFailure};
pub use nested::{Admitted, Denied, Nested, TooLate};
pub use snapshot::Snapshot;
pub use tools::{Invocation, Tools};
pub use toolset::Toolset;

pub(crate) use asking::Advisers;
pub(crate) use gates::AnyGates;
pub(crate) use judge::AnyJudge;
pub(crate) use model::AnyModel;
pub(crate) use nested::{Line, Reply, Wanted, Wish, Wished};
pub(crate) use tools::AnyTools;
pub(crate) use toolset::typed;
#[cfg(feature = "testkit")]
pub(crate) use world::invocation;
pub(crate) use world::{Ports, call_model, invoke_tool, judge_semantics};

use world::cited;

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// Waits for code of the embedder. The error is what it said when it panicked.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| told(panic.as_ref()))
}

/// What a panic said, short enough for any remark.
pub(crate) fn told(panic: &(dyn Any + Send)) -> String {
    const CHARACTERS_MAX: usize = 200;
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("something that is no text").chars().take(CHARACTERS_MAX).collect()
}
