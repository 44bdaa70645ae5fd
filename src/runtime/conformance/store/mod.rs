//! What every store must do, as checks that name the rule that is broken (SPEC 11, 13).
//!
//! [`store`] (as `conformance::store`) takes what opens one more session on the same data. A session must die when its last handle is
//! dropped. Runs are named anew each time, so the data may hold others, but nobody else should drive runs in it
//! meanwhile.
//!
//! | module | what |
//! |---|---|
//! | `ground` | sessions, runs and records to check with |
//! | `histories` | what is appended, and what is read back |
//! | `claims` | who may append |
//! | `lists` | what is known without reading |
//! | `requests` | what is left for whoever drives a run |

mod claims;
mod ground;
mod histories;
mod lists;
mod requests;

use std::sync::Arc;

use self::ground::Ground;
use super::{Breach, Checked};
use crate::runtime::store::{Store, StoreError};
use crate::vocabulary::wire::words;

words! {
    /// A rule that a store must keep.
    pub enum Rule {
        /// What was acknowledged is read back byte by byte and in order, by other sessions too.
        ExactBytes = "exact_bytes",
        /// What was acknowledged stays, though the session dies at once and says nothing more.
        Acknowledged = "acknowledged",
        /// Long records are as good as short ones: one of a mebibyte, and one of a single byte.
        AnyLength = "any_length",
        /// Histories that grow at the same time do not mix.
        Interleaved = "interleaved",
        /// What is no whole line, or nothing, is refused and leaves no trace.
        Malformed = "malformed",
        /// The same records at the same place again are the old receipt, and are stored once.
        Repeated = "repeated",
        /// Of records that are there in part, the rest is stored.
        Overlapping = "overlapping",
        /// Other records in a place that is taken are a conflict there, and leave no trace.
        Conflict = "conflict",
        /// Records behind the end, with some missing, are a gap and leave no trace.
        Gap = "gap",
        /// A run is begun once.
        CreatedOnce = "created_once",
        /// The same beginning again, under the claim that it made, is the same lease.
        CreatedAgain = "created_again",
        /// When several begin one run at the same time, one does.
        CreateRace = "create_race",
        /// Origins are kept as they are.
        Origin = "origin",
        /// A run that does not exist is unknown to every call.
        Unknown = "unknown",
        /// Each claim has a larger epoch than the one before.
        EpochsGrow = "epochs_grow",
        /// An earlier claim's appends are refused, repetitions too.
        Fenced = "fenced",
        /// A run that a living session drives is claimed by take-over only, by that session too.
        Owned = "owned",
        /// A dead session's run is free.
        DeadOwner = "dead_owner",
        /// A run that was given back is free; giving back an old lease does nothing.
        Released = "released",
        /// When several claim a free run at the same time, one gets it.
        ClaimRace = "claim_race",
        /// When several take a run over at the same time, each epoch is given once and the largest one appends.
        TakeOverRace = "take_over_race",
        /// What is listed of a run is what was last stored of it.
        Listed = "listed",
        /// Runs are listed in the order in which they were created.
        ListedInOrder = "listed_in_order",
        /// Lost runs are those that need a driver and have none.
        Lost = "lost",
        /// Due runs are those that await, without a driver, and whose timer has come.
        Due = "due",
        /// Requests reach the session that drives the run, oldest first, and no other.
        RequestsReachTheDriver = "requests_reach_the_driver",
        /// An answered request is no longer posted, its first answer stays, and is fetched once.
        AnsweredOnce = "answered_once",
    }
}

/// Checks a store against every rule. `open` begins another session on the same data.
///
/// # Errors
/// Every rule that is broken, with what happened.
pub async fn store<F>(open: F) -> Result<(), Vec<Breach<Rule>>>
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    let ground = Ground::new(open);
    super::each(Rule::ALL, async |rule| check(&ground, rule).await).await
}

async fn check<F>(ground: &Ground<F>, rule: Rule) -> Checked
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    match rule {
        Rule::ExactBytes => ground.exact_bytes().await,
        Rule::Acknowledged => ground.acknowledged().await,
        Rule::AnyLength => ground.any_length().await,
        Rule::Interleaved => ground.interleaved().await,
        Rule::Malformed => ground.malformed().await,
        Rule::Repeated => ground.repeated().await,
        Rule::Overlapping => ground.overlapping().await,
        Rule::Conflict => ground.conflict().await,
        Rule::Gap => ground.gap().await,
        Rule::CreatedOnce => ground.created_once().await,
        Rule::CreatedAgain => ground.created_again().await,
        Rule::CreateRace => ground.create_race().await,
        Rule::Origin => ground.origin().await,
        Rule::Unknown => ground.unknown().await,
        Rule::EpochsGrow => ground.epochs_grow().await,
        Rule::Fenced => ground.fenced().await,
        Rule::Owned => ground.owned().await,
        Rule::DeadOwner => ground.dead_owner().await,
        Rule::Released => ground.released().await,
        Rule::ClaimRace => ground.claim_race().await,
        Rule::TakeOverRace => ground.take_over_race().await,
        Rule::Listed => ground.listed().await,
        Rule::ListedInOrder => ground.listed_in_order().await,
        Rule::Lost => ground.lost().await,
        Rule::Due => ground.due().await,
        Rule::RequestsReachTheDriver => ground.requests_reach_the_driver().await,
        Rule::AnsweredOnce => ground.answered_once().await,
    }
}
