//! What is known of runs without reading their histories.

use std::sync::Arc;

use super::super::{Checked, Wrong, same};
use super::ground::{Ground, append, beginning, head};
use crate::runtime::store::{Append, Claim, Filter, Lease, Owner, Standing, Store, StoreError};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::outcome::ReleaseOutcome;

const DUE_MS: u64 = 1_700_000_000_500;

fn ended(delivered: bool) -> Standing {
    Standing::Ended { row: 1, outcome: ReleaseOutcome::Success, delivered }
}

/// Whatever may be said of a run.
fn standings() -> Vec<Standing> {
    let mut standings = vec![
        Standing::Running,
        Standing::Awaiting { due_ms: None },
        Standing::Awaiting { due_ms: Some(0) },
        Standing::Awaiting { due_ms: Some(DUE_MS) },
    ];
    for (row, outcome) in (1..=20).zip(ReleaseOutcome::ALL.iter().cycle()) {
        standings.push(Standing::Ended { row, outcome: *outcome, delivered: row % 3 == 0 });
    }
    standings
}

impl<F> Ground<F>
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    pub(super) async fn listed(&self) -> Checked {
        let session = self.session().await?;
        for standing in standings() {
            let mut begun = beginning(&self.run()?, &["first", "second"]);
            (begun.standing, begun.started_ms) = (standing, 1_234_567_890_123);
            let lease = session.create(begun).await?;
            let found = session.find(&lease.run).await?.ok_or_else(|| Wrong("a new run is not found".to_owned()))?;
            same("the run", &found.run, &lease.run)?;
            same("its beginning", found.started_ms, 1_234_567_890_123)?;
            same("its records", (found.records, found.head), (2, head(&["second"])))?;
            same("its standing", found.standing, standing)?;
            same("its epoch", found.epoch, 1)?;
        }
        let lease = self.begun(&session).await?;
        for (seq, standing) in (1..).zip(standings()) {
            let record = format!("record {seq}");
            session.append(Append { standing, ..append(&lease, seq, &[&record]) }).await?;
            let found = session.find(&lease.run).await?.ok_or_else(|| Wrong("a run is not found".to_owned()))?;
            same("records after an append", (found.records, found.head), (seq + 1, head(&[&record])))?;
            same("a standing after an append", found.standing, standing)?;
        }
        let taken = session.claim(&lease.run, Claim::TakeOver).await?;
        let found = session.find(&lease.run).await?;
        same("an epoch after a claim", found.map(|found| found.epoch), Some(taken.epoch))
    }

    pub(super) async fn listed_in_order(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let mut created = Vec::new();
        for number in 0..6 {
            let session = if number % 2 == 0 { &session } else { &other };
            created.push(self.begun(session).await?);
        }
        for lease in created.iter().rev() {
            session.append(append(lease, 1, &["second"])).await?;
        }
        let runs = created.iter().map(|lease| lease.run.clone()).collect::<Vec<_>>();
        same("all runs", among(&other, Filter::All, &runs).await?, runs.clone())?;
        for run in &runs {
            let found = other.find(run).await?;
            let listed = other.list(Filter::All).await?.into_iter().find(|listed| listed.run == *run);
            same("a run that is found and listed", listed, found)?;
        }
        drop(session);
        let of_the_dead = runs.iter().step_by(2).cloned().collect::<Vec<_>>();
        same("lost runs", among(&other, Filter::Lost, &runs).await?, of_the_dead)
    }

    pub(super) async fn lost(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let cases = [
            (Standing::Running, true),
            (ended(false), true),
            (ended(true), false),
            (Standing::Awaiting { due_ms: None }, false),
            (Standing::Awaiting { due_ms: Some(0) }, false),
        ];
        let mut given_back = Vec::new();
        let mut driven = Vec::new();
        for (standing, needs_a_driver) in cases {
            let free = self.standing(&session, standing).await?;
            session.release(free.clone()).await?;
            let found = session.find(&free.run).await?;
            same("the owner of a run that was given back", found.map(|found| found.owner), Some(Owner::Nobody))?;
            given_back.push((free.run, needs_a_driver));
            driven.push((self.standing(&session, standing).await?.run, needs_a_driver));
        }
        lost("runs without a driver", &other, &given_back).await?;
        let living = driven.iter().map(|(run, _)| (run.clone(), false)).collect::<Vec<_>>();
        lost("runs of a living session", &other, &living).await?;
        lost("a session's own runs", &session, &living).await?;
        drop(session);
        lost("runs of a dead session", &other, &driven).await
    }

    pub(super) async fn due(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let timer = Standing::Awaiting { due_ms: Some(DUE_MS) };
        let mut runs = Vec::new();
        for standing in [timer, Standing::Awaiting { due_ms: None }, Standing::Running, ended(false)] {
            let lease = self.standing(&session, standing).await?;
            session.release(lease.clone()).await?;
            runs.push(lease.run);
        }
        let driven = self.standing(&session, timer).await?;
        runs.push(driven.run.clone());
        let first = runs.iter().take(1).cloned().collect::<Vec<_>>();
        for (now_ms, expected) in
            [(0, Vec::new()), (DUE_MS - 1, Vec::new()), (DUE_MS, first.clone()), (DUE_MS + 1, first.clone())]
        {
            same(&format!("runs due at {now_ms}"), among(&other, Filter::Due { now_ms }, &runs).await?, expected)?;
        }
        drop(session);
        let both = first.into_iter().chain([driven.run]).collect::<Vec<_>>();
        let due = among(&other, Filter::Due { now_ms: u64::MAX }, &runs).await?;
        same("runs due once their session is dead", due, both)
    }

    /// A run that stands like this since its second record.
    async fn standing(&self, session: &Arc<dyn Store>, standing: Standing) -> Result<Lease, Wrong> {
        let lease = self.begun(session).await?;
        session.append(Append { standing, ..append(&lease, 1, &["second"]) }).await?;
        Ok(lease)
    }
}

/// Which of these runs pass.
async fn among(session: &Arc<dyn Store>, filter: Filter, runs: &[RunId]) -> Result<Vec<RunId>, Wrong> {
    let listed = session.list(filter).await?.into_iter().map(|listed| listed.run);
    Ok(listed.filter(|run| runs.contains(run)).collect())
}

async fn lost(what: &str, session: &Arc<dyn Store>, cases: &[(RunId, bool)]) -> Checked {
    let runs = cases.iter().map(|(run, _)| run.clone()).collect::<Vec<_>>();
    let expected = cases.iter().filter(|(_, lost)| *lost).map(|(run, _)| run.clone()).collect::<Vec<_>>();
    same(what, among(session, Filter::Lost, &runs).await?, expected)
}
