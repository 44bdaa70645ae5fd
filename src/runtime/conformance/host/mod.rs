//! What every host must do: the edge that shows a release to its reader (SPEC 3, 11).
//!
//! The suite plays whole runs: one that succeeds after a repair, one that falls back, one that fails, one that
//! somebody cancels, one whose last commit the store refuses, one that waits for a person. Your function gets a
//! [`Stage`]: it builds the runtime as you do, runs the spec, and shows on the [`Screen`] whatever its reader
//! would see. Models, tools and judge are the suite's; the store is yours.
//!
//! | module | what |
//! |---|---|
//! | `scene` | what happens in each run |
//! | `stage` | what a host gets, and the screen |
//! | `watched` | the store, which refuses when it is told to, and remembers the receipt |
//! | `seen` | what was shown, stored and acknowledged, and whether that is right |

mod scene;
mod seen;
mod stage;
mod watched;

use std::sync::Arc;

pub use scene::Scene;
pub use stage::{Played, Screen, Stage};

use super::{Breach, Wrong, within};
use crate::runtime::store::{Store, StoreError};
use crate::vocabulary::wire::words;
use seen::Seen;

words! {
    /// A rule that a host must keep.
    pub enum Rule {
        /// The host comes back from every run, without a panic.
        ComesBack = "comes_back",
        /// Nothing that was not verified is shown, in no form.
        NothingUnverified = "nothing_unverified",
        /// A release is shown as what it is: a fallback as a fallback, and once.
        ShownAsItIs = "shown_as_it_is",
        /// A success shows its conclusion, a fallback every fact.
        ShownWhole = "shown_whole",
        /// Where nothing was released nothing is shown as a release: a refused commit, a run that waits.
        NothingUnreleased = "nothing_unreleased",
        /// A release is acknowledged only once it was shown.
        ShownFirst = "shown_first",
        /// A release that was shown is acknowledged, once.
        AcknowledgedOnce = "acknowledged_once",
        /// The histories of these runs are fail-closed.
        FailClosed = "fail_closed",
    }
}

/// Checks a host against every rule. `open` begins another session on your store; `host` serves one run.
///
/// # Errors
/// Every rule that is broken, with what happened first.
pub async fn host<O, H>(open: O, host: H) -> Result<(), Vec<Breach<Rule>>>
where
    O: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
    H: AsyncFn(Stage),
{
    let mut breaches: Vec<Breach<Rule>> = Vec::new();
    for scene in Scene::ALL {
        for (rule, reason) in play(*scene, &open, &host).await {
            if !breaches.iter().any(|breach| breach.rule == rule) {
                breaches.push(Breach { rule, reason: format!("in the scene {scene}: {reason}") });
            }
        }
    }
    breaches.sort_by_key(|breach| breach.rule);
    if breaches.is_empty() { Ok(()) } else { Err(breaches) }
}

/// Plays one scene.
async fn play<O, H>(scene: Scene, open: &O, host: &H) -> Vec<(Rule, String)>
where
    O: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
    H: AsyncFn(Stage),
{
    let (stage, other) = match (open().await, open().await) {
        (Ok(store), Ok(other)) => (Stage::new(scene, store), other),
        (Err(error), _) | (_, Err(error)) => return vec![(Rule::ComesBack, format!("the store: {error}"))],
    };
    let watched = stage.watched();
    let served = async {
        let cancels = async {
            stage.cancels(&other).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = host(stage.clone()) => {}
            () = cancels => {}
        }
    };
    let served = within("the host", served).await;
    let mut broken = Vec::new();
    if let Err(Wrong(reason)) = served {
        broken.push((Rule::ComesBack, reason));
    }
    match watched.history(&other).await {
        Ok(history) => broken.extend(Seen { scene, log: stage.screen().log(), history }.breaches()),
        Err(Wrong(reason)) => broken.push((Rule::ComesBack, reason)),
    }
    broken
}
