//! Sessions, runs and records to check with.

use std::fmt::Debug;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Checked, Wrong};
use crate::runtime::store::{Append, Beginning, Lease, Standing, Store, StoreError};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

impl From<StoreError> for Wrong {
    fn from(error: StoreError) -> Self {
        Self(format!("an unexpected error: {error}"))
    }
}

/// Where the checks are made.
pub(super) struct Ground<F> {
    open: F,
    /// Sets these runs apart from those of every other time.
    prefix: String,
    runs: AtomicU64,
}

impl<F> Ground<F>
where
    F: AsyncFn() -> Result<Arc<dyn Store>, StoreError>,
{
    pub(super) fn new(open: F) -> Self {
        Self { open, prefix: uuid::Uuid::new_v4().simple().to_string(), runs: AtomicU64::new(0) }
    }

    /// One more session.
    pub(super) async fn session(&self) -> Result<Arc<dyn Store>, Wrong> {
        Ok((self.open)().await?)
    }

    /// A run that is not there yet. Later names sort before earlier ones, so that order by name shows.
    pub(super) fn run(&self) -> Result<RunId, Wrong> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{:04}", self.prefix, 9999 - number);
        name.parse().map_err(|malformed| Wrong(format!("{malformed}")))
    }

    /// A run that this session has just begun, with one record.
    pub(super) async fn begun(&self, session: &Arc<dyn Store>) -> Result<Lease, Wrong> {
        Ok(session.create(beginning(&self.run()?, &["first"])).await?)
    }
}

/// The bytes of these records.
pub(super) fn lines(records: &[&str]) -> Vec<u8> {
    records.iter().flat_map(|record| [record.as_bytes(), b"\n"].concat()).collect()
}

/// The hash that stands for a history that ends like this. Stores do not look.
pub(super) fn head(records: &[&str]) -> Digest {
    Digest::of("portcullis.conformance", &[records.last().unwrap_or(&"").as_bytes()])
}

/// The beginning of a running history.
pub(super) fn beginning(run: &RunId, records: &[&str]) -> Beginning {
    Beginning {
        run: run.clone(),
        started_ms: 1_700_000_000_000,
        lines: lines(records),
        records: records.len() as u64,
        head: head(records),
        standing: Standing::Running,
        origin: None,
    }
}

/// Records of a running history.
pub(super) fn append(lease: &Lease, seq: u64, records: &[&str]) -> Append {
    Append {
        lease: lease.clone(),
        seq,
        lines: lines(records),
        records: records.len() as u64,
        head: head(records),
        standing: Standing::Running,
    }
}

/// The bytes of a history.
pub(super) async fn read(session: &Arc<dyn Store>, run: &RunId) -> Result<Vec<u8>, Wrong> {
    let mut bytes = Vec::new();
    let mut history = session.read(run).await?;
    history.read_to_end(&mut bytes).map_err(|error| Wrong(format!("a history could not be read: {error}")))?;
    Ok(bytes)
}

/// Checks that a history is this.
pub(super) async fn reads(session: &Arc<dyn Store>, run: &RunId, records: &[&str]) -> Checked {
    let (found, expected) = (read(session, run).await?, lines(records));
    if found == expected {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(200).collect::<String>();
    Err(Wrong(format!("read {:?} where {:?} was stored", text(&found), text(&expected))))
}

/// Checks that something is refused just like this.
pub(super) fn refused<T: Debug>(what: &str, found: Result<T, StoreError>, expected: &StoreError) -> Checked {
    match found {
        Err(error) if error == *expected => Ok(()),
        other => Err(Wrong(format!("{what}: {other:?} where {expected:?} was expected"))),
    }
}
