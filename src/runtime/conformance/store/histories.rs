//! What is appended, and what is read back.

use std::sync::Arc;

use futures_util::future::join_all;

use super::super::{Checked, same};
use super::ground::{Ground, append, beginning, reads, refused};
use crate::runtime::store::{Append, Claim, Lease, RequestId, Store, StoreError};

impl<F> Ground<F>
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    pub(super) async fn exact_bytes(&self) -> Checked {
        let session = self.session().await?;
        let lease = session.create(beginning(&self.run()?, &["0", "1 \u{e9}\u{0}"])).await?;
        session.append(append(&lease, 2, &["2"])).await?;
        session.append(append(&lease, 3, &["3", "", "5\r"])).await?;
        let stored = ["0", "1 \u{e9}\u{0}", "2", "3", "", "5\r"];
        reads(&session, &lease.run, &stored).await?;
        let other = self.session().await?;
        reads(&other, &lease.run, &stored).await?;
        drop(session);
        reads(&other, &lease.run, &stored).await
    }

    pub(super) async fn acknowledged(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let lease = self.begun(&session).await?;
        session.append(append(&lease, 1, &["second"])).await?;
        session.append(append(&lease, 2, &["third"])).await?;
        drop(session);
        reads(&other, &lease.run, &["first", "second", "third"]).await?;
        let session = self.session().await?;
        let lease = self.begun(&session).await?;
        drop(session);
        reads(&other, &lease.run, &["first"]).await
    }

    pub(super) async fn any_length(&self) -> Checked {
        let session = self.session().await?;
        let long = "x".repeat((1 << 20) - 1);
        let lease = session.create(beginning(&self.run()?, &[""])).await?;
        session.append(append(&lease, 1, &[&long, "", &long])).await?;
        reads(&session, &lease.run, &["", &long, "", &long]).await
    }

    pub(super) async fn interleaved(&self) -> Checked {
        let (one, other) = (self.session().await?, self.session().await?);
        let mut leases = Vec::new();
        for number in 0..20 {
            let session = if number % 2 == 0 { &one } else { &other };
            leases.push((session, self.begun(session).await?));
        }
        let texts = (0..20_u64).map(|round| format!("record {round}")).collect::<Vec<_>>();
        for (round, text) in (1..).zip(&texts) {
            let appends = leases.iter().map(|(session, lease)| {
                let own = format!("{text} of {}", lease.run);
                session.append(append(lease, round, &[&own]))
            });
            for appended in join_all(appends).await {
                appended?;
            }
        }
        for (session, lease) in &leases {
            let own = texts.iter().map(|text| format!("{text} of {}", lease.run)).collect::<Vec<_>>();
            let all = std::iter::once("first").chain(own.iter().map(String::as_str)).collect::<Vec<_>>();
            reads(session, &lease.run, &all).await?;
        }
        Ok(())
    }

    pub(super) async fn malformed(&self) -> Checked {
        let session = self.session().await?;
        let lease = self.begun(&session).await?;
        let whole = append(&lease, 1, &["second"]);
        let cases: [(&str, &[u8], u64); 5] = [
            ("nothing", b"", 0),
            ("nothing, said to be one", b"", 1),
            ("a line without its end", b"a\nb", 2),
            ("more lines than were said", b"a\nb\n", 1),
            ("fewer lines than were said", b"a\n", 2),
        ];
        for (what, lines, records) in cases {
            let malformed = StoreError::Malformed { run: lease.run.clone(), records };
            let appended = session.append(Append { lines: lines.to_vec(), records, ..whole.clone() }).await;
            refused(&format!("an append of {what}"), appended, &malformed)?;
            let mut begun = beginning(&self.run()?, &[]);
            (begun.lines, begun.records) = (lines.to_vec(), records);
            let run = begun.run.clone();
            let malformed = StoreError::Malformed { run: run.clone(), records };
            refused(&format!("a beginning of {what}"), session.create(begun).await, &malformed)?;
            same(&format!("a run that began with {what}"), session.find(&run).await?, None)?;
        }
        reads(&session, &lease.run, &["first"]).await
    }

    pub(super) async fn repeated(&self) -> Checked {
        let session = self.session().await?;
        let lease = self.begun(&session).await?;
        for _ in 0..3 {
            session.append(append(&lease, 1, &["second", "third"])).await?;
        }
        session.append(append(&lease, 3, &["fourth"])).await?;
        let before = session.find(&lease.run).await?;
        session.append(append(&lease, 1, &["second", "third"])).await?;
        session.append(append(&lease, 2, &["third"])).await?;
        same("a run after a repetition", session.find(&lease.run).await?, before)?;
        reads(&session, &lease.run, &["first", "second", "third", "fourth"]).await
    }

    pub(super) async fn overlapping(&self) -> Checked {
        let session = self.session().await?;
        let lease = self.begun(&session).await?;
        session.append(append(&lease, 1, &["second"])).await?;
        session.append(append(&lease, 1, &["second", "third", "fourth"])).await?;
        session.append(append(&lease, 4, &["fifth"])).await?;
        reads(&session, &lease.run, &["first", "second", "third", "fourth", "fifth"]).await
    }

    pub(super) async fn conflict(&self) -> Checked {
        let session = self.session().await?;
        let lease = self.begun(&session).await?;
        session.append(append(&lease, 1, &["second", "third"])).await?;
        let before = session.find(&lease.run).await?;
        let cases: [(u64, &[&str], u64); 5] = [
            (0, &["another"], 0),
            (1, &["another"], 1),
            (2, &["thirds"], 2),
            (1, &["second", "another", "fourth"], 2),
            (2, &["thir", "d"], 2),
        ];
        for (seq, records, place) in cases {
            let conflict = StoreError::Conflict { run: lease.run.clone(), seq: place };
            let appended = session.append(append(&lease, seq, records)).await;
            refused(&format!("{records:?} at {seq}"), appended, &conflict)?;
        }
        same("a run after conflicts", session.find(&lease.run).await?, before)?;
        reads(&session, &lease.run, &["first", "second", "third"]).await
    }

    pub(super) async fn gap(&self) -> Checked {
        let session = self.session().await?;
        let lease = self.begun(&session).await?;
        for seq in [2, 3, u64::MAX] {
            let gap = StoreError::Gap { run: lease.run.clone(), records: 1, seq };
            refused(&format!("a record at {seq} behind 1"), session.append(append(&lease, seq, &["x"])).await, &gap)?;
        }
        session.append(append(&lease, 1, &["second"])).await?;
        reads(&session, &lease.run, &["first", "second"]).await
    }

    pub(super) async fn created_once(&self) -> Checked {
        let (session, other) = (self.session().await?, self.session().await?);
        let lease = self.begun(&session).await?;
        let exists = StoreError::RunExists { run: lease.run.clone() };
        let begin = |records: &[&str]| beginning(&lease.run, records);
        refused("another beginning", session.create(begin(&["another"])).await, &exists)?;
        refused("a longer beginning", session.create(begin(&["first", "second"])).await, &exists)?;
        refused("a beginning by another session", other.create(begin(&["first"])).await, &exists)?;
        session.release(lease.clone()).await?;
        refused("a beginning after the run was given back", session.create(begin(&["first"])).await, &exists)?;
        session.claim(&lease.run, Claim::Free).await?;
        refused("a beginning under a later claim", session.create(begin(&["first"])).await, &exists)?;
        reads(&session, &lease.run, &["first"]).await
    }

    pub(super) async fn created_again(&self) -> Checked {
        let session = self.session().await?;
        let run = self.run()?;
        let lease = session.create(beginning(&run, &["first", "second"])).await?;
        same("the lease of a new run", lease.clone(), Lease { run: run.clone(), epoch: 1 })?;
        let again = session.create(beginning(&run, &["first", "second"])).await?;
        same("the lease of the same beginning again", again, lease)?;
        reads(&session, &run, &["first", "second"]).await
    }

    pub(super) async fn create_race(&self) -> Checked {
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(self.session().await?);
        }
        for _ in 0..10 {
            let run = self.run()?;
            let created = sessions.iter().map(|session| session.create(beginning(&run, &["first"])));
            let created = join_all(created).await;
            same("sessions that began the run", created.iter().filter(|created| created.is_ok()).count(), 1)?;
            for lost in created.into_iter().filter(Result::is_err) {
                refused("the others", lost, &StoreError::RunExists { run: run.clone() })?;
            }
            for session in &sessions {
                reads(session, &run, &["first"]).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn origin(&self) -> Checked {
        let session = self.session().await?;
        let origins = [None, Some(Vec::new()), Some(vec![0, 255, 10, 13]), Some(vec![7; 100_000])];
        for origin in origins {
            let mut begun = beginning(&self.run()?, &["first"]);
            begun.origin.clone_from(&origin);
            let lease = session.create(begun).await?;
            session.append(append(&lease, 1, &["second"])).await?;
            same("an origin", session.origin(&lease.run).await?, origin)?;
            reads(&session, &lease.run, &["first", "second"]).await?;
        }
        Ok(())
    }

    pub(super) async fn unknown(&self) -> Checked {
        let session = self.session().await?;
        let lease = Lease { run: self.run()?, epoch: 1 };
        let run = &lease.run;
        let unknown = StoreError::UnknownRun { run: run.clone() };
        refused("an append", session.append(append(&lease, 0, &["x"])).await, &unknown)?;
        refused("a claim", session.claim(run, Claim::Free).await, &unknown)?;
        refused("a take-over", session.claim(run, Claim::TakeOver).await, &unknown)?;
        refused("a reading", session.read(run).await.map(|_| ()), &unknown)?;
        refused("an origin", session.origin(run).await, &unknown)?;
        refused("a request", session.post(run, vec![1]).await, &unknown)?;
        same("a run that was asked for", session.find(run).await?, None)?;
        same("an answer to no request", session.answered(RequestId(i64::MAX)).await?, None)
    }
}
