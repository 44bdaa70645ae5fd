//! Every store keeps every rule, and the suite names each rule that a store breaks.

use std::collections::BTreeMap;
use std::io::{BufRead, Cursor, Read};
use std::sync::{Arc, Mutex};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::conformance;
use portcullis::runtime::conformance::store::Rule;
use portcullis::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, Owner, Posted, RequestId, Standing, Store, StoreError, Stored,
    whole_lines,
};
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::ids::RunId;

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn the_store_in_memory_keeps_every_rule() {
    let store = MemoryStore::new();
    let checked = wait(conformance::store(async || Ok(Arc::new(store.session()) as Arc<dyn Store>)));
    assert_eq!(checked, Ok(()));
}

#[cfg(feature = "sqlite")]
#[test]
fn the_store_in_a_file_keeps_every_rule() {
    use portcullis::adapters::stores::sqlite::SqliteStore;
    let folder = crate::support::Scratch::new("stores");
    let path = folder.path().join("runs.db");
    let open = async || Ok(Arc::new(SqliteStore::create_or_open(&path)?) as Arc<dyn Store>);
    assert_eq!(wait(conformance::store(open)), Ok(()));
}

#[test]
fn a_store_that_breaks_a_rule_is_told_which() {
    for rule in Rule::ALL {
        let (store, shared) = (MemoryStore::new(), Arc::new(Mutex::new(Shared::default())));
        let open = async || {
            let (inner, unsaid) = (store.session(), Mutex::default());
            let broken = Broken { inner, rule: *rule, shared: Arc::clone(&shared), unsaid };
            Ok(Arc::new(broken) as Arc<dyn Store>)
        };
        let breaches = wait(conformance::store(open)).unwrap_err();
        assert!(breaches.iter().any(|breach| breach.rule == *rule), "{rule} is broken, but found were {breaches:#?}");
    }
}

/// What broken sessions share.
#[derive(Default)]
struct Shared {
    heads: BTreeMap<RunId, (u64, Digest, Standing)>,
    latest: BTreeMap<RunId, u64>,
    histories: BTreeMap<RunId, Vec<u8>>,
}

/// A store that breaks one rule, in a way that such stores are broken.
struct Broken {
    inner: MemoryStore,
    rule: Rule,
    shared: Arc<Mutex<Shared>>,
    /// Acknowledged, and written with the next one only.
    unsaid: Mutex<Option<Append>>,
}

impl Broken {
    fn breaks(&self, rule: Rule) -> bool {
        self.rule == rule
    }
}

impl Store for Broken {
    fn create(&self, mut beginning: Beginning) -> Stored<'_, Lease> {
        Box::pin(async move {
            let again = beginning.clone();
            let run = beginning.run.clone();
            if self.breaks(Rule::Malformed) && whole_lines(&run, &beginning.lines, beginning.records).is_err() {
                beginning.lines.push(b'\n');
                beginning.records = beginning.lines.iter().filter(|byte| **byte == b'\n').count() as u64;
            }
            if self.breaks(Rule::Origin) {
                beginning.origin = beginning.origin.filter(|origin| !origin.is_empty());
            }
            match self.inner.create(beginning).await {
                // Sees that there is a run, and not whose.
                Err(StoreError::RunExists { run }) if self.breaks(Rule::CreatedOnce) => Ok(Lease { run, epoch: 1 }),
                Err(StoreError::RunExists { run }) if self.breaks(Rule::CreateRace) => {
                    self.inner.claim(&run, Claim::TakeOver).await
                }
                Ok(_)
                    if self.breaks(Rule::CreatedAgain) && self.shared.lock().unwrap().histories.contains_key(&run) =>
                {
                    Err(StoreError::RunExists { run })
                }
                created => {
                    if self.breaks(Rule::CreatedAgain) {
                        self.shared.lock().unwrap().histories.insert(again.run, again.lines);
                    }
                    created
                }
            }
        })
    }

    fn append(&self, mut append: Append) -> Stored<'_, ()> {
        Box::pin(async move {
            if self.breaks(Rule::Acknowledged) {
                let earlier = self.unsaid.lock().unwrap().replace(append);
                return match earlier {
                    Some(earlier) => self.inner.append(earlier).await,
                    None => Ok(()),
                };
            }
            let found = self.inner.find(&append.lease.run).await?;
            let records = found.as_ref().map_or(0, |found| found.records);
            if self.breaks(Rule::Malformed) && append.records == 0 && append.lines.is_empty() {
                return Ok(());
            }
            if self.breaks(Rule::AnyLength) && append.lines.len() > 1 << 16 {
                append.lines = b"too long\n".repeat(usize::try_from(append.records).unwrap());
            }
            if self.breaks(Rule::Fenced) {
                append.lease.epoch = found.as_ref().map_or(1, |found| found.epoch);
            }
            if self.breaks(Rule::TakeOverRace)
                && let Some(found) = &found
                && append.lease.epoch + 3 >= found.epoch
                && found.epoch > 4
            {
                append.lease.epoch = found.epoch;
            }
            if self.breaks(Rule::Repeated) && append.seq < records {
                append.seq = records;
            }
            if self.breaks(Rule::Gap) && append.seq > records {
                append.seq = records;
            }
            let seq = append.seq;
            let run = append.lease.run.clone();
            let (lines, head) =
                (append.lines.clone(), (append.seq.saturating_add(append.records), append.head, append.standing));
            let appended = self.inner.append(append).await;
            if self.breaks(Rule::Conflict) && matches!(appended, Err(StoreError::Conflict { .. })) {
                return Ok(());
            }
            if self.breaks(Rule::Overlapping) && seq < records && head.0 > records {
                return Err(StoreError::Conflict { run, seq });
            }
            if appended.is_ok() && self.breaks(Rule::Interleaved) {
                let mut shared = self.shared.lock().unwrap();
                let text = String::from_utf8_lossy(&lines).into_owned();
                // One buffer for all: a line that another run has just written in its place is taken for one's own.
                if text.contains(" of ") && text.starts_with("record 7") {
                    shared.histories.insert(run.clone(), lines);
                }
            }
            if appended.is_ok() && self.breaks(Rule::Listed) {
                self.shared.lock().unwrap().heads.entry(run).or_insert(head);
            }
            appended
        })
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        let run = run.clone();
        Box::pin(async move {
            let found = self.inner.find(&run).await?;
            let free = match found.as_ref().map(|found| &found.owner) {
                Some(Owner::Nobody) => self.breaks(Rule::ClaimRace),
                Some(Owner::Living { .. }) => {
                    self.breaks(Rule::Owned)
                        || self.breaks(Rule::ClaimRace) && found.as_ref().is_some_and(|found| found.epoch > 1)
                }
                Some(Owner::Dead { .. }) | None => false,
            };
            if self.breaks(Rule::Unknown) && found.is_none() {
                return Ok(Lease { run, epoch: 1 });
            }
            if self.breaks(Rule::DeadOwner)
                && matches!(found.as_ref().map(|found| &found.owner), Some(Owner::Dead { .. }))
            {
                return Err(StoreError::Owned { run, by: "the dead".to_owned() });
            }
            let claim = if free { Claim::TakeOver } else { claim };
            let mut lease = self.inner.claim(&run, claim).await?;
            if self.breaks(Rule::EpochsGrow) {
                lease.epoch = 2;
            }
            Ok(lease)
        })
    }

    fn release(&self, mut lease: Lease) -> Stored<'_, ()> {
        Box::pin(async move {
            if self.breaks(Rule::Released)
                && let Some(found) = self.inner.find(&lease.run).await?
            {
                lease.epoch = found.epoch;
            }
            self.inner.release(lease).await
        })
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        let run = run.clone();
        Box::pin(async move {
            let mut history = self.inner.read(&run).await?;
            let mut bytes = Vec::new();
            history.read_to_end(&mut bytes).unwrap();
            if self.breaks(Rule::ExactBytes) {
                bytes = String::from_utf8_lossy(&bytes).replace('\r', "").into_bytes();
            }
            if self.breaks(Rule::Interleaved)
                && let Some((_, line)) = self.shared.lock().unwrap().histories.first_key_value()
            {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let mixed = text.split_inclusive('\n').map(|own| {
                    if own.starts_with("record 7 ") {
                        String::from_utf8_lossy(line).into_owned()
                    } else {
                        own.to_owned()
                    }
                });
                bytes = mixed.collect::<String>().into_bytes();
            }
            Ok(Box::new(Cursor::new(bytes)) as Box<dyn BufRead + Send>)
        })
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        let run = run.clone();
        Box::pin(async move {
            let mut found = self.inner.find(&run).await?;
            if let (Some(found), Some(head)) = (&mut found, self.shared.lock().unwrap().heads.get(&run)) {
                (found.records, found.head, found.standing) = *head;
            }
            Ok(found)
        })
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        Box::pin(async move {
            let all = self.inner.list(Filter::All).await?.into_iter();
            let mut listed = all
                .filter(|listed| match (filter, listed.standing) {
                    (Filter::Lost, Standing::Ended { .. }) if self.breaks(Rule::Lost) => false,
                    (Filter::Due { now_ms }, Standing::Awaiting { due_ms: Some(due_ms) }) if self.breaks(Rule::Due) => {
                        filter.takes(listed) && due_ms < now_ms
                    }
                    _ => filter.takes(listed),
                })
                .collect::<Vec<_>>();
            if self.breaks(Rule::ListedInOrder) {
                listed.sort_by(|one, other| one.run.cmp(&other.run));
            }
            Ok(listed)
        })
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.inner.origin(run)
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.inner.post(run, request)
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        Box::pin(async move {
            let mut posted = self.inner.posted().await?;
            if self.breaks(Rule::RequestsReachTheDriver) {
                posted.reverse();
            }
            Ok(posted)
        })
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        Box::pin(async move {
            if self.breaks(Rule::AnsweredOnce) {
                let latest = u64::from(*answer.first().unwrap_or(&0));
                let name: RunId = format!("request-{}", request.0).parse().unwrap();
                self.shared.lock().unwrap().latest.insert(name, latest);
            }
            self.inner.answer(request, answer).await
        })
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let answered = self.inner.answered(request).await?;
            let name: RunId = format!("request-{}", request.0).parse().unwrap_or_else(|_| "request-0".parse().unwrap());
            let latest = self.shared.lock().unwrap().latest.get(&name).copied();
            // The last answer, where the first should stay.
            Ok(answered.map(|answer| latest.map_or(answer, |latest| vec![u8::try_from(latest).unwrap()])))
        })
    }
}
