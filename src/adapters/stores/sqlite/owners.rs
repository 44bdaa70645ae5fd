//! Which sessions live. Each holds an exclusive lock on a small file of its own in a folder beside the store.
//! The operating system gives the lock back when a process dies, however it dies, and keeps it while the
//! process is only stopped; so anybody sees at once who lives, without clocks or heartbeats.
//!
//! A name is never used twice: it ends in random digits, so a later process with the same number is another.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::place::{Place, identity, private};
use crate::runtime::store::{MediumFault, Owner, StoreError};

/// How often a session tries to get a file of its own. Only a sweep at the very same moment takes one away.
const TRIES: u32 = 100;

/// The living session of one open store.
#[derive(Debug)]
pub(super) struct Session {
    folder: PathBuf,
    name: String,
    /// Holds the lock.
    _file: File,
}

impl Session {
    /// Begins a session, and clears away what dead ones left.
    pub(super) fn begin(place: &Place) -> Result<Self, StoreError> {
        let folder = folder(place);
        for _ in 0..TRIES {
            let name = format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
            make_folder(&folder).map_err(|error| place.failed(&error))?;
            let held = hold(&folder.join(&name)).map_err(|error| place.failed(&error))?;
            if let Some(file) = held {
                sweep(&folder, &name);
                return Ok(Self { folder, name, _file: file });
            }
        }
        let reason = format!("no session could be registered in {}", folder.display());
        Err(place.medium(MediumFault::Unavailable, reason))
    }

    /// The session's name, as it stands in the store.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nobody needs the file once its owner is gone, and whoever finds it removes it.
        let _ = fs::remove_file(self.folder.join(&self.name));
        // Only an empty folder can be removed. Whoever was about to use it makes it again.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn folder(place: &Place) -> PathBuf {
    place.beside("-owners")
}

fn make_folder(folder: &Path) -> io::Result<()> {
    #[allow(unused_mut)]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    match fs::symlink_metadata(folder) {
        Ok(metadata) if !metadata.is_dir() => {
            Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is no folder", folder.display())))
        }
        // It may have been removed since: then the file in it cannot be made, and both are made again.
        _ => Ok(()),
    }
}

/// A new file, locked and still in its place. `None` when the folder or the file was swept away meanwhile.
fn hold(path: &Path) -> io::Result<Option<File>> {
    let file = match private().read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Between the two calls the file looks like a dead session's. Whoever sees it so may hold it for a moment,
    // and removes it before letting go: then another file, or none, has its name.
    file.lock()?;
    match fs::symlink_metadata(path) {
        Ok(there) if identity(&there) == identity(&file.metadata()?) => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the files of dead sessions. What cannot be removed is left to the next one.
fn sweep(folder: &Path, own: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name() != own {
            lives(&entry.path(), Sweep::Remove);
        }
    }
}

/// What is done about the file of a dead session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Remove,
    Leave,
}

/// Whether a session holds this file. In doubt it does: a run is rather not recovered than driven twice.
fn lives(path: &Path, sweep: Sweep) -> bool {
    let file = match OpenOptions::new().read(true).open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // Shared, so that two who look at the same moment do not take each other for its owner.
    match file.try_lock_shared() {
        Ok(()) => {
            if sweep == Sweep::Remove {
                // Removed while it is held, so that a session that is just beginning notices.
                let _ = fs::remove_file(path);
            }
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

/// The sessions of a store as somebody sees them who looks once: each is asked about once.
#[derive(Debug)]
pub(super) struct Roll {
    folder: PathBuf,
    known: BTreeMap<String, bool>,
}

impl Roll {
    /// The roll of a store, as seen by one of its sessions or by nobody.
    pub(super) fn call(place: &Place, own: Option<&str>) -> Self {
        let known = own.map(|own| (own.to_owned(), true)).into_iter().collect();
        Self { folder: folder(place), known }
    }

    /// Whether the session of that name lives.
    pub(super) fn lives(&mut self, name: &str) -> bool {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        // A name out of a damaged file must not lead out of the folder.
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let lives = plain && lives(&self.folder.join(name), Sweep::Leave);
        self.known.insert(name.to_owned(), lives);
        lives
    }

    /// Who drives a run whose owner is written down like this.
    pub(super) fn owner(&mut self, written: Option<&str>) -> Owner {
        match written {
            None => Owner::Nobody,
            Some(name) if self.lives(name) => Owner::Living { name: shown(name) },
            Some(name) => Owner::Dead { name: shown(name) },
        }
    }
}

/// A session's name for people.
pub(super) fn shown(name: &str) -> String {
    format!("process {}", name.split('-').next().unwrap_or(name))
}
