//! What an embedder's own parts must do, as checks that name the rule that is broken (SPEC 6, 7, 11, 13).
//!
//! Each suite is an async function that takes what opens your part, and gives back every rule that it breaks, with
//! what happened. A suite ends in bounded time, whatever the part does. Ports are opened against an [`Upstream`]
//! that the suite scripts; you connect it to your port, in the process or over a loopback connection.
//!
//! | suite | checks | against |
//! |---|---|---|
//! | [`store`](store()) | a [`Store`](super::store::Store) | several sessions on the same data |
//! | [`model`](model()) | a [`Model`](super::ports::Model) | an upstream that answers, fails, breaks off, stalls |
//! | [`tools`](tools()) | [`Tools`](super::ports::Tools) | the same, and one that is away |
//! | [`judge`](judge()) | a [`Judge`](super::ports::Judge) | the same |
//! | [`host`](host()) | the edge that shows a release to its reader | scripted runs of every kind |

mod bounded;
pub mod host;
pub mod judge;
pub mod model;
pub mod store;
pub mod tools;
mod upstream;

pub use host::host;
pub use judge::judge;
pub use model::model;
pub use store::store;
pub use tools::tools;
pub use upstream::{Turn, Upstream};

use std::fmt::{Debug, Display};

use bounded::{PATIENCE, within};

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {reason}")]
pub struct Breach<R: Debug + Display> {
    /// The rule.
    pub rule: R,
    /// What happened.
    pub reason: String,
}

/// What a check finds.
type Checked = Result<(), Wrong>;

/// What went otherwise than the rule says.
struct Wrong(String);

/// Checks every rule by itself. What panics, or does not come back, breaks the rule that was being checked.
async fn each<R>(rules: &[R], check: impl AsyncFn(R) -> Checked) -> Result<(), Vec<Breach<R>>>
where
    R: Copy + Debug + Display,
{
    let mut breaches = Vec::new();
    for rule in rules {
        if let Err(Wrong(reason)) = bounded::checked(check(*rule)).await {
            breaches.push(Breach { rule: *rule, reason });
        }
    }
    if breaches.is_empty() { Ok(()) } else { Err(breaches) }
}

/// Checks that something is what it should be.
fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Checked {
    if found == expected { Ok(()) } else { Err(Wrong(format!("{what}: {found:?} where {expected:?} was expected"))) }
}
