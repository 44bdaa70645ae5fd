//! Nothing that is checked may hold a suite up.

use std::future::Future;
use std::time::Duration;

use super::{Checked, Wrong};
use crate::runtime::ports::caught;

/// How long anything may take that takes no time upstream. On a runtime whose time is paused this passes at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long one rule may take.
const RULE: Duration = Duration::from_secs(120);

/// Waits, but not for ever, for code of the embedder.
pub(super) async fn within<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Wrong> {
    match tokio::time::timeout(PATIENCE, caught(work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(panic)) => Err(Wrong(format!("{what} panicked: {panic}"))),
        Err(_) => Err(Wrong(format!("{what}: nothing came back within {} s", PATIENCE.as_secs()))),
    }
}

/// One rule's whole check.
pub(super) async fn checked(check: impl Future<Output = Checked>) -> Checked {
    match tokio::time::timeout(RULE, caught(check)).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(panic)) => Err(Wrong(format!("it panicked: {panic}"))),
        Err(_) => Err(Wrong(format!("the check was not over within {} s", RULE.as_secs()))),
    }
}
