//! A process's session of the simulated store. The medium keeps every promise of the port; what lies between it
//! and the process does not.

use std::io::{BufRead, Cursor, Read};
use std::sync::Arc;

use portcullis::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, MediumFault, Posted, RequestId, Standing, Store, StoreError,
    Stored, each_line,
};
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::ids::RunId;

use crate::bugs::Bug;
use crate::faults::Fault;
use crate::process::Process;

/// A session.
pub(crate) struct SimulatedStore<M> {
    process: Arc<Process>,
    medium: Arc<M>,
    /// Whether the records are held against the rules: not when the suite for stores writes things of its own.
    observed: bool,
}

impl<M: Store> SimulatedStore<M> {
    pub(crate) fn new(process: &Arc<Process>, medium: M) -> Self {
        Self { process: Arc::clone(process), medium: Arc::new(medium), observed: true }
    }

    pub(crate) fn unobserved(process: &Arc<Process>, medium: M) -> Self {
        Self { observed: false, ..Self::new(process, medium) }
    }

    fn goes_wrong(&self, fault: Fault, at: impl std::fmt::Display) -> bool {
        self.process.world.goes_wrong(fault, at)
    }

    fn away(&self, what: &str) -> StoreError {
        let (place, reason) = ("the simulated store".to_owned(), format!("{what}: it is away"));
        StoreError::Medium { fault: MediumFault::Unavailable, place, reason }
    }

    /// A call that changes no history.
    async fn asked(&self, what: &str) -> Result<(), StoreError> {
        self.process.act(format!("store {what}")).await;
        let number = self.process.world.lock().action();
        if self.goes_wrong(Fault::StoreAway, number) { Err(self.away(what)) } else { Ok(()) }
    }

    /// Before records reach the medium. `true` when the power goes while they are written.
    async fn before(&self, place: &str) -> Result<bool, StoreError> {
        self.process.act(format!("append {place}")).await;
        let place = format!("{place} by p{} {}", self.process.number, self.process.world.lock().action());
        if self.goes_wrong(Fault::SlowDisk, &place) {
            let wait_ms = self.process.world.number("slow_ms", &place, 1, 3_000);
            self.process.pass(wait_ms).await;
        }
        if self.goes_wrong(Fault::RefusedCommit, &place) {
            return Err(self.away("refused"));
        }
        Ok(self.goes_wrong(Fault::TornLine, &place) && self.process.world.lock().may_be_cut())
    }

    /// After records have reached the medium, on the way back.
    async fn after(&self, place: &str) -> Result<(), StoreError> {
        let named = format!("{place} by p{} {}", self.process.number, self.process.world.lock().action());
        if self.goes_wrong(Fault::LostAcknowledgement, &named) {
            return Err(self.away("the acknowledgement is lost"));
        }
        if self.goes_wrong(Fault::NoAcknowledgement, &named) {
            self.process.world.until_healed().await;
        }
        self.process.act(format!("stored {place}")).await;
        Ok(())
    }

    /// The power goes while these records are written: a part of them stays.
    async fn torn(&self, append: Append) {
        let lines: Vec<&[u8]> = each_line(&append.lines).collect();
        let mut whole = 0;
        if lines.len() > 1 && self.goes_wrong(Fault::TornBatch, append.seq) {
            whole = 1;
            let line = std::str::from_utf8(lines[0]).unwrap();
            let head = line.rsplit_once("\"hash\":\"").unwrap().1;
            let head = Digest::from_hex(&head[..64]).unwrap();
            let standing = Standing::Running;
            let part = Append { lines: lines[0].to_vec(), records: 1, head, standing, ..append.clone() };
            if self.medium.append(part.clone()).await.is_ok() {
                self.observe(&part);
            }
        }
        let torn = lines[whole];
        let bytes = self.process.world.number("torn_bytes", append.seq, 1, torn.len() as u64 - 1);
        let tail = torn[..usize::try_from(bytes).unwrap()].to_vec();
        self.process.world.lock().tails.insert(append.lease.run, tail);
        self.process.world.go_dark();
        self.process.awake().await;
    }

    fn observe(&self, append: &Append) {
        if self.observed {
            let (process, append) = (self.process.number, append.clone());
            self.process.world.lock().tails.remove(&append.lease.run);
            self.process.world.observe(|seen| seen.stored(process, &append));
        }
    }

    /// A claim is known to the world: whoever held the run before is fenced from here on.
    fn observe_claim(&self, lease: &Lease) {
        if self.observed {
            let held_up = self.process.world.lock().decisions.held_up();
            self.process.world.observe(|seen| seen.claimed(self.process.number, lease, held_up));
        }
    }

    /// Its driver is about to know that the records are durable.
    fn observe_acknowledged(&self, append: &Append) {
        let now_ms = self.process.world.now_ms();
        self.process.world.observe(|seen| seen.acknowledged(self.process.number, append, now_ms));
    }

    /// The run was given back. One that waits for a person is woken by whoever gave it back.
    fn observe_release(&self, lease: &Lease) {
        if self.observed {
            let in_the_world = |due_ms| self.process.in_the_world(due_ms);
            let process = self.process.number;
            self.process.world.observe(|seen| seen.given_back(process, lease, in_the_world));
        }
    }

    /// As a cache does that is written back in its own time.
    fn store_later(&self, append: Append) {
        let (process, medium) = (Arc::clone(&self.process), Arc::clone(&self.medium));
        tokio::spawn(async move {
            process.pass(1).await;
            if medium.append(append.clone()).await.is_ok() {
                let number = process.number;
                process.world.observe(|seen| seen.stored(number, &append));
            }
        });
    }

    async fn appended(&self, mut append: Append) -> Result<(), StoreError> {
        let place = format!("{}#{}", append.lease.run, append.seq);
        if self.before(&place).await? {
            self.torn(append).await;
            return Ok(());
        }
        let held = append.clone();
        match self.process.world.bug {
            Some(Bug::ForgetsFencing) => {
                append.lease.epoch = self.process.world.lock().observed.epoch(&append.lease.run)
            }
            Some(Bug::LosesARecord) if append.seq == 4 => {
                self.observe_acknowledged(&append);
                return Ok(());
            }
            Some(Bug::AcknowledgesBeforeItStores) => {
                self.store_later(append);
                return Ok(());
            }
            _ => {}
        }
        self.medium.append(append.clone()).await?;
        self.observe(&held);
        self.after(&place).await?;
        self.observe_acknowledged(&append);
        Ok(())
    }
}

impl<M: Store> Store for SimulatedStore<M> {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        Box::pin(async move {
            let place = format!("{}#0", beginning.run);
            if self.before(&place).await? {
                self.process.world.go_dark();
                self.process.awake().await;
            }
            let (lines, records, head) = (beginning.lines.clone(), beginning.records, beginning.head);
            let standing = beginning.standing;
            let lease = self.medium.create(beginning).await?;
            self.observe_claim(&lease);
            self.observe(&Append { lease: lease.clone(), seq: 0, lines, records, head, standing });
            self.after(&place).await?;
            Ok(lease)
        })
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        Box::pin(self.appended(append))
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        let run = run.clone();
        Box::pin(async move {
            self.asked("claim").await?;
            let lease = self.medium.claim(&run, claim).await?;
            self.observe_claim(&lease);
            Ok(lease)
        })
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        Box::pin(async move {
            self.process.act("store release").await;
            let named = format!("{}@{}", lease.run, lease.epoch);
            if self.goes_wrong(Fault::NotGivenBack, named) {
                return Err(self.away("release"));
            }
            self.medium.release(lease.clone()).await?;
            self.observe_release(&lease);
            Ok(())
        })
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        let run = run.clone();
        Box::pin(async move {
            self.asked("read").await?;
            let mut bytes = Vec::new();
            self.medium.read(&run).await?.read_to_end(&mut bytes).unwrap();
            if self.observed {
                self.process.world.observe(|seen| seen.read(&run, &bytes));
            }
            bytes.extend(self.process.world.lock().tails.get(&run).into_iter().flatten());
            Ok(Box::new(Cursor::new(bytes)) as Box<dyn BufRead + Send>)
        })
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        let run = run.clone();
        Box::pin(async move {
            self.asked("find").await?;
            self.medium.find(&run).await
        })
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        Box::pin(async move {
            self.asked("list").await?;
            self.medium.list(filter).await
        })
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.medium.origin(run)
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        let run = run.clone();
        Box::pin(async move {
            self.asked("post").await?;
            self.medium.post(&run, request).await
        })
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        Box::pin(async move {
            // Asked ten times a second: no action of its own, or nothing else would ever be interrupted.
            self.process.awake().await;
            self.medium.posted().await
        })
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        Box::pin(async move {
            self.asked("answer").await?;
            self.medium.answer(request, answer).await
        })
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            self.process.awake().await;
            self.medium.answered(request).await
        })
    }
}
