//! A history to be read: a file, or a run of the store (SPEC 14).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::exit::{Exit, Problem, note};
use super::origin::Origin;
use super::place::{Place, refused, wait};
use crate::adapters::stores::sqlite::SqliteStore;
use crate::history::{Fault, FaultCode};
use crate::runtime::store::{Listed, MediumFault, Store, StoreError};
use crate::vocabulary::ids::RunId;

/// A history and what it is called.
pub(crate) struct Source {
    /// Its name for people: a path, or a run.
    pub(crate) name: String,
    /// What the store knows of it; `None` for a file.
    pub(crate) listed: Option<Listed>,
    /// Its lines.
    pub(crate) lines: Box<dyn BufRead + Send>,
    /// What can carry it on.
    pub(crate) carrier: Carrier,
}

/// What can carry a run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The script that lies beside it.
    Script,
    /// The scenario of its real parts, which has to be named.
    Scenario,
    /// The program that has its model and tools.
    Elsewhere,
}

impl Carrier {
    /// What is beside a run in the store.
    fn beside(kept: Option<&[u8]>) -> Self {
        let Some(kept) = kept else { return Self::Elsewhere };
        let scenario = Origin::read(Some(kept)).and_then(|origin| origin.scenario());
        match scenario {
            Ok(Some(scenario)) if !scenario.real.is_empty() => Self::Scenario,
            Ok(Some(_) | None) | Err(_) => Self::Script,
        }
    }

    /// The option that names it, with a space before it.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Scenario => " --with FILE",
            Self::Script | Self::Elsewhere => "",
        }
    }
}

impl Source {
    /// The file that is there, else the run of the store. `run` says that it is a run in any case.
    pub(crate) fn named(name: &str, run: bool, place: &Place) -> Result<Self, Problem> {
        let path = Path::new(name);
        let id = name.parse::<RunId>();
        if !run && path.symlink_metadata().is_ok() {
            let twice = id.ok().filter(|id| stored(place, id));
            if let Some(id) = twice {
                note!("portcullis: {id} is a file and a run of the store: the file is taken; --run takes the run");
            }
            return Self::file(path);
        }
        match id {
            Ok(id) => Self::of(&place.read()?, &id),
            Err(error) => Err(Problem::usage(format!("there is no file {name:?}, and as a run: {error}"))),
        }
    }

    /// A file.
    pub(crate) fn file(path: &Path) -> Result<Self, Problem> {
        let unreadable = |error| Problem::unreadable(Exit::Corrupt, path, &error);
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Problem::usage(format!("{}: is a folder; name a file in it", path.display())));
        }
        let lines = Box::new(BufReader::with_capacity(1 << 16, file));
        Ok(Self { name: path.display().to_string(), listed: None, lines, carrier: Carrier::Elsewhere })
    }

    /// A run of the store.
    pub(crate) fn of(store: &SqliteStore, run: &RunId) -> Result<Self, Problem> {
        let listed = wait(store.find(run))?.ok_or_else(|| refused(&StoreError::UnknownRun { run: run.clone() }))?;
        let lines = history(store, run)?.map_err(|reason| Problem::new(Exit::Corrupt, format!("{run}: {reason}")))?;
        let carrier = Carrier::beside(wait(store.origin(run))?.as_deref());
        Ok(Self { name: run.to_string(), listed: Some(listed), lines, carrier })
    }
}

/// The history of a run, or why it is damaged. A medium that fails in another way is a problem of its own.
pub(crate) fn history(store: &SqliteStore, run: &RunId) -> Result<Result<Box<dyn BufRead + Send>, String>, Problem> {
    let read = wait(async {
        match store.read(run).await {
            Ok(lines) => Ok(Ok(lines)),
            Err(error @ StoreError::Medium { fault: MediumFault::Corrupt, .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    })?;
    Ok(read)
}

/// Whether the store has the run. A store that cannot be read has none.
fn stored(place: &Place, run: &RunId) -> bool {
    SqliteStore::open_read_only(place.path()).is_ok_and(|store| matches!(wait(store.find(run)), Ok(Some(_))))
}

/// The problem of a damaged history.
pub(crate) fn damaged(name: &str, fault: &Fault) -> Problem {
    let way_out = match fault.code {
        FaultCode::Redacted => format!("{name}: is a redacted export: {}", fault.reason),
        FaultCode::Empty
        | FaultCode::LineTooLong
        | FaultCode::InvalidUtf8
        | FaultCode::MalformedRecord
        | FaultCode::UnknownVersion
        | FaultCode::Gap
        | FaultCode::Fork
        | FaultCode::WrongRun
        | FaultCode::WrongPrev
        | FaultCode::WrongHash
        | FaultCode::Unclosed
        | FaultCode::Unreadable => format!("{name}: corrupt: {fault}"),
    };
    Problem::new(Exit::Corrupt, way_out)
}
