//! Who may append.

use std::sync::Arc;

use futures_util::future::join_all;

use super::super::{Checked, Wrong, same};
use super::ground::{Ground, append, reads, refused};
use crate::runtime::store::{Claim, Lease, Listed, Owner, Store, StoreError};

/// Who drives a run, as the store says.
async fn owner(session: &Arc<dyn Store>, lease: &Lease) -> Result<Owner, Wrong> {
    let found = session.find(&lease.run).await?;
    found.map(|listed: Listed| listed.owner).ok_or_else(|| Wrong(format!("run {} is not found", lease.run)))
}

fn fenced(lease: &Lease) -> StoreError {
    StoreError::Fenced { run: lease.run.clone(), held: lease.epoch }
}

/// Checks that a free claim meets a living owner.
async fn owned(what: &str, session: &Arc<dyn Store>, lease: &Lease) -> Checked {
    match session.claim(&lease.run, Claim::Free).await {
        Err(StoreError::Owned { run, by }) if run == lease.run && !by.is_empty() => Ok(()),
        other => Err(Wrong(format!("{what}: {other:?} where the run is owned"))),
    }
}

impl<F> Ground<F>
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    pub(super) async fn epochs_grow(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let mut lease = self.begun(&session).await?;
        same("the epoch of the session that created the run", lease.epoch, 1)?;
        for turn in 0..6 {
            let (claimant, claim) = match turn {
                0 | 3 => (&other, Claim::TakeOver),
                1 | 4 => (&session, Claim::TakeOver),
                _ => {
                    session.release(lease.clone()).await?;
                    (&session, Claim::Free)
                }
            };
            let next = claimant.claim(&lease.run, claim).await?;
            if next.epoch <= lease.epoch || next.run != lease.run {
                return Err(Wrong(format!("{next:?} was claimed after {lease:?}")));
            }
            lease = next;
        }
        Ok(())
    }

    pub(super) async fn fenced(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let first = self.begun(&session).await?;
        session.append(append(&first, 1, &["second"])).await?;
        let later = other.claim(&first.run, Claim::TakeOver).await?;
        let late = [("a late record", 2, "third"), ("a repetition", 1, "second"), ("another record", 1, "x")];
        for (what, seq, record) in late {
            refused(what, session.append(append(&first, seq, &[record])).await, &fenced(&first))?;
            refused(what, other.append(append(&first, seq, &[record])).await, &fenced(&first))?;
        }
        let unheard = Lease { epoch: later.epoch + 1, ..later.clone() };
        refused("an epoch that nobody has", other.append(append(&unheard, 2, &["x"])).await, &fenced(&unheard))?;
        other.append(append(&later, 2, &["third"])).await?;
        refused("a record behind", session.append(append(&first, 3, &["x"])).await, &fenced(&first))?;
        let again = session.claim(&first.run, Claim::TakeOver).await?;
        refused("the second, after a third", other.append(append(&later, 3, &["x"])).await, &fenced(&later))?;
        session.append(append(&again, 3, &["fourth"])).await?;
        reads(&other, &first.run, &["first", "second", "third", "fourth"]).await
    }

    pub(super) async fn owned(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let lease = self.begun(&session).await?;
        owned("a free claim by another session", &other, &lease).await?;
        owned("a free claim by the same session", &session, &lease).await?;
        session.append(append(&lease, 1, &["second"])).await?;
        let taken = other.claim(&lease.run, Claim::TakeOver).await?;
        owned("a free claim by the session that lost it", &session, &taken).await?;
        other.append(append(&taken, 2, &["third"])).await?;
        match owner(&session, &lease).await? {
            Owner::Living { name } if !name.is_empty() => Ok(()),
            other @ (Owner::Nobody | Owner::Living { .. } | Owner::Dead { .. }) => {
                Err(Wrong(format!("{other:?} drives a run that a living session took over")))
            }
        }
    }

    pub(super) async fn dead_owner(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let lease = self.begun(&session).await?;
        drop(session);
        match owner(&other, &lease).await? {
            Owner::Dead { name } if !name.is_empty() => {}
            found @ (Owner::Nobody | Owner::Living { .. } | Owner::Dead { .. }) => {
                return Err(Wrong(format!("{found:?} drives a run whose session was dropped")));
            }
        }
        let claimed = other.claim(&lease.run, Claim::Free).await?;
        refused("the dead session's lease", other.append(append(&lease, 1, &["x"])).await, &fenced(&lease))?;
        other.append(append(&claimed, 1, &["second"])).await?;
        reads(&other, &lease.run, &["first", "second"]).await
    }

    pub(super) async fn released(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let first = self.begun(&session).await?;
        session.release(first.clone()).await?;
        same("the owner of a run that was given back", owner(&other, &first).await?, Owner::Nobody)?;
        let second = other.claim(&first.run, Claim::Free).await?;
        session.release(first.clone()).await?;
        owned("a free claim after an old lease was given back", &session, &second).await?;
        other.append(append(&second, 1, &["second"])).await?;
        other.release(second.clone()).await?;
        other.release(second.clone()).await?;
        session.claim(&first.run, Claim::Free).await?;
        reads(&session, &first.run, &["first", "second"]).await
    }

    pub(super) async fn claim_race(&self) -> Checked {
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(self.session().await?);
        }
        let [first, ..] = sessions.as_slice() else { return Ok(()) };
        let lease = self.begun(first).await?;
        first.release(lease.clone()).await?;
        for _ in 0..10 {
            let claims = join_all(sessions.iter().map(|session| session.claim(&lease.run, Claim::Free))).await;
            let mut won = Vec::new();
            for claim in claims {
                match claim {
                    Ok(lease) => won.push(lease),
                    Err(StoreError::Owned { .. }) => {}
                    Err(error) => return Err(Wrong(format!("a lost race: {error}"))),
                }
            }
            same("sessions that got a free run", won.len(), 1)?;
            for lease in won {
                first.release(lease).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn take_over_race(&self) -> Checked {
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(self.session().await?);
        }
        let [first, ..] = sessions.as_slice() else { return Ok(()) };
        let lease = self.begun(first).await?;
        for round in 1..=10 {
            let claims = join_all(sessions.iter().map(|session| session.claim(&lease.run, Claim::TakeOver))).await;
            let leases = claims.into_iter().collect::<Result<Vec<_>, _>>()?;
            let mut epochs = leases.iter().map(|lease| lease.epoch).collect::<Vec<_>>();
            epochs.sort_unstable();
            epochs.dedup();
            same("different epochs", epochs.len(), leases.len())?;
            let record = format!("record {round}");
            let appends =
                sessions.iter().zip(&leases).map(|(session, lease)| session.append(append(lease, round, &[&record])));
            for (lease, appended) in leases.iter().zip(join_all(appends).await) {
                if Some(&lease.epoch) == epochs.last() {
                    appended?;
                } else {
                    refused("an append under an earlier epoch", appended, &fenced(lease))?;
                }
            }
        }
        Ok(())
    }
}
