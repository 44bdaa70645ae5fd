//! The store in one SQLite file.
//!
//! The file is its user's alone and is never opened through a link. Beside it SQLite keeps its log (`-wal`,
//! `-shm`), and sessions show in a folder (`-owners`) that they live. `docs/store.md` says what is in it.
//!
//! Everything that is written goes through one thread, which makes what has come meanwhile durable in one
//! transaction. An append is answered when it is on the disk.

mod cells;
mod chain;
mod connection;
mod fault;
mod heads;
mod layout;
mod ledger;
mod listing;
mod owners;
mod place;
mod reading;
mod writer;

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use self::connection::{Absent, Readers};
use self::fault::Trouble;
use self::owners::{Roll, Session};
use self::place::Place;
use self::reading::History;
use self::writer::Writer;
use crate::runtime::store::{
    Append, Beginning, Claim, Filter, Lease, Listed, MediumFault, Posted, RequestId, Store, StoreError, Stored,
};
use crate::vocabulary::ids::RunId;

/// A store in one SQLite file, opened by one session. Dropping it waits until all that was appended is durable
/// and moved into the file.
pub struct SqliteStore {
    // Dropped in this order: the readers and the writer before the session that they work for.
    readers: Arc<Readers>,
    session: Option<Writing>,
}

/// What a session has that writes.
struct Writing {
    writer: Writer,
    session: Arc<Session>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SqliteStore").field("path", &self.readers.place().path()).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a store that is there.
    ///
    /// # Errors
    /// `Missing` when it is not; nothing is created. Else the medium's fault.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::begin(path.as_ref(), Absent::Refuse)
    }

    /// Opens a store, and makes it when there is none.
    ///
    /// # Errors
    /// `Missing` when there is no folder to make it in, else the medium's fault.
    pub fn create_or_open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::begin(path.as_ref(), Absent::Create)
    }

    /// Opens a store that is there, for reading only: whatever would write is refused as `ReadOnly`.
    ///
    /// # Errors
    /// `Missing` when it is not there, else the medium's fault.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let readers = Readers::alone(Place::of(path.as_ref())?)?;
        Ok(Self { readers: Arc::new(readers), session: None })
    }

    fn begin(path: &Path, absent: Absent) -> Result<Self, StoreError> {
        let place = Place::of(path)?;
        let connection = connection::writing(&place, absent)?;
        let session = Arc::new(Session::begin(&place)?);
        let writer = Writer::start(place.clone(), connection, Arc::from(session.name()))?;
        Ok(Self { readers: Arc::new(Readers::new(place)), session: Some(Writing { writer, session }) })
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.session.as_ref().map(|session| &session.writer).ok_or_else(|| {
            let reason = "the store was opened for reading only; open it for writing".to_owned();
            self.readers.place().medium(MediumFault::ReadOnly, reason)
        })
    }

    /// Does a piece of reading where it may block.
    async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Readers, Option<&Session>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        let session = self.session.as_ref().map(|writing| Arc::clone(&writing.session));
        let read = move || work(&readers, session.as_deref());
        // Outside a runtime there is nobody else to be held up.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return read() };
        runtime.spawn_blocking(read).await.unwrap_or_else(|error| {
            let reason = format!("reading was cut short: {error}");
            Err(self.readers.place().medium(MediumFault::Unavailable, reason))
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // Only the last connection to go can clear the log away, and that should be the writer's.
        self.readers.close();
    }
}

fn roll(readers: &Readers, session: Option<&Session>) -> Roll {
    Roll::call(readers.place(), session.map(Session::name))
}

impl Store for SqliteStore {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        Box::pin(async move {
            let bytes = beginning.lines.len() + beginning.origin.as_ref().map_or(0, Vec::len);
            self.writer()?.submit(bytes, move |ledger| ledger.create(&beginning)).await
        })
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        Box::pin(async move { self.writer()?.submit(append.lines.len(), move |ledger| ledger.append(&append)).await })
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        let run = run.clone();
        Box::pin(async move { self.writer()?.submit(0, move |ledger| ledger.claim(&run, claim)).await })
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        Box::pin(async move { self.writer()?.submit(0, move |ledger| ledger.release(&lease)).await })
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        let run = run.clone();
        Box::pin(self.reading(move |readers, _| {
            let connection = readers.connect()?;
            let found = heads::end(&connection, &run).and_then(|end| {
                let end = end.ok_or(Trouble::Refused(StoreError::UnknownRun { run }))?;
                chain::positions(&connection, end, 0)
            });
            let positions = found.map_err(|trouble| readers.place().explain(trouble))?;
            let history = History::new(connection, readers.place().clone(), positions);
            Ok(Box::new(history) as Box<dyn BufRead + Send>)
        }))
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        let run = run.clone();
        Box::pin(self.reading(move |readers, session| {
            readers.with(|connection| listing::find(connection, &run, &mut roll(readers, session)))
        }))
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        Box::pin(self.reading(move |readers, session| {
            readers.with(|connection| listing::list(connection, filter, &mut roll(readers, session)))
        }))
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        let run = run.clone();
        Box::pin(self.reading(move |readers, _| {
            let found = readers.with(|connection| listing::origin(connection, &run))?;
            found.ok_or(StoreError::UnknownRun { run })
        }))
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        let run = run.clone();
        Box::pin(async move { self.writer()?.submit(request.len(), move |ledger| ledger.post(&run, &request)).await })
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        Box::pin(self.reading(|readers, session| match session {
            Some(session) => readers.with(|connection| listing::posted(connection, session.name())),
            None => Ok(Vec::new()),
        }))
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        Box::pin(
            async move { self.writer()?.submit(answer.len(), move |ledger| ledger.answer(request, &answer)).await },
        )
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let writer = self.writer()?;
            let there =
                self.reading(move |readers, _| readers.with(|found| listing::is_answered(found, request))).await?;
            if !there {
                return Ok(None);
            }
            writer.submit(0, move |ledger| ledger.take_answer(request)).await
        })
    }
}
