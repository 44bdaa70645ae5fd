//! What is left for whoever drives a run.

use std::sync::Arc;

use super::super::{Checked, Wrong, same};
use super::ground::Ground;
use crate::runtime::store::{Claim, Posted, RequestId, Store, StoreError};
use crate::vocabulary::ids::RunId;

/// The requests for these runs that a session sees.
async fn posted(session: &Arc<dyn Store>, runs: &[&RunId]) -> Result<Vec<RequestId>, Wrong> {
    let posted = session.posted().await?.into_iter();
    Ok(posted.filter(|posted| runs.contains(&&posted.run)).map(|posted| posted.id).collect())
}

impl<F> Ground<F>
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    pub(super) async fn requests_reach_the_driver(&self) -> Checked {
        let (driver, asker) = (self.session().await?, self.session().await?);
        let (one, two) = (self.begun(&driver).await?, self.begun(&driver).await?);
        let runs = [&one.run, &two.run];
        same("requests before any was posted", posted(&driver, &runs).await?, Vec::new())?;
        let first = asker.post(&two.run, vec![0, 255]).await?;
        let second = asker.post(&one.run, Vec::new()).await?;
        let third = driver.post(&two.run, vec![3]).await?;
        same("requests, oldest first", posted(&driver, &runs).await?, vec![first, second, third])?;
        let expected = Posted { id: first, run: two.run.clone(), request: vec![0, 255] };
        let found = driver.posted().await?.into_iter().find(|posted| posted.id == first);
        same("a request", found, Some(expected))?;
        same("requests that another session sees", posted(&asker, &runs).await?, Vec::new())?;
        let taken = asker.claim(&two.run, Claim::TakeOver).await?;
        same("requests after a take-over", posted(&driver, &runs).await?, vec![second])?;
        same("requests of the new driver", posted(&asker, &runs).await?, vec![first, third])?;
        asker.release(taken).await?;
        same("requests for a run that was given back", posted(&asker, &runs).await?, Vec::new())?;
        drop(driver);
        asker.claim(&one.run, Claim::Free).await?;
        same("requests that outlived their driver", posted(&asker, &runs).await?, vec![second])
    }

    pub(super) async fn answered_once(&self) -> Checked {
        let (driver, asker) = (self.session().await?, self.session().await?);
        let lease = self.begun(&driver).await?;
        let runs = [&lease.run];
        let first = asker.post(&lease.run, vec![1]).await?;
        let second = asker.post(&lease.run, vec![2]).await?;
        same("an answer that nobody gave", asker.answered(first).await?, None)?;
        driver.answer(first, vec![10]).await?;
        driver.answer(first, vec![11]).await?;
        same("requests that still wait", posted(&driver, &runs).await?, vec![second])?;
        same("an answer to another request", asker.answered(second).await?, None)?;
        same("the first answer", asker.answered(first).await?, Some(vec![10]))?;
        same("an answer that was fetched", asker.answered(first).await?, None)?;
        driver.answer(first, vec![12]).await?;
        same("an answer to a request that is forgotten", asker.answered(first).await?, None)?;
        driver.answer(second, Vec::new()).await?;
        same("an empty answer", asker.answered(second).await?, Some(Vec::new()))?;
        let third = asker.post(&lease.run, vec![3]).await?;
        if third <= second {
            return Err(Wrong(format!("{third:?} was posted after {second:?}")));
        }
        same("requests that wait at last", posted(&driver, &runs).await?, vec![third])
    }
}
