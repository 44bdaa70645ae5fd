//! Where the store's file is: found without following a link, created for its user alone, named in every fault.

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::fault::{self, Trouble};
use crate::runtime::store::{MediumFault, StoreError};

/// The path of a store, with its folder resolved.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    folder: PathBuf,
    /// As it was given: what people know it by.
    given: String,
}

/// What stands in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A file without a byte in it.
    EmptyFile(Identity),
    /// A file.
    File(Identity),
}

/// Which file it is, by whatever name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Place {
    /// Resolves the folder, so that only the file itself could still be a link.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let given = path.display().to_string();
        let fault = |fault, reason: String| StoreError::Medium { fault, place: given.clone(), reason };
        let name = path
            .file_name()
            .ok_or_else(|| fault(MediumFault::Foreign, "this names a folder, not a file".to_owned()))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let folder = fs::canonicalize(parent).map_err(|error| {
            let shown = parent.display();
            if error.kind() == io::ErrorKind::NotFound {
                fault(MediumFault::Missing, format!("the folder {shown} does not exist; create it first"))
            } else {
                fault(MediumFault::Unavailable, format!("the folder {shown} cannot be reached: {error}"))
            }
        })?;
        Ok(Self { path: folder.join(name), folder, given })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A path beside the file: its name with that ending.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    }

    /// What stands here. A link is not followed, and what is no plain file is refused.
    pub(super) fn look(&self) -> Result<Found, StoreError> {
        let metadata = match fs::symlink_metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(self.medium(MediumFault::Unavailable, error.to_string())),
        };
        let kind = metadata.file_type();
        if kind.is_symlink() {
            let reason = "this is a link, and a store is not opened through one; give the path it points to";
            return Err(self.medium(MediumFault::Foreign, reason.to_owned()));
        }
        if !kind.is_file() {
            let what = if kind.is_dir() { "a folder" } else { "no plain file" };
            return Err(self.medium(MediumFault::Foreign, format!("this is {what}; give the path of a file in it")));
        }
        let identity = identity(&metadata);
        Ok(if metadata.len() == 0 { Found::EmptyFile(identity) } else { Found::File(identity) })
    }

    /// Creates the file, empty, and its user's alone from the first moment. Somebody else may have been faster:
    /// then theirs is taken.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        let log = self.beside("-wal");
        if fs::symlink_metadata(&log).is_ok_and(|log| log.len() > 0) {
            let reason = format!(
                "the store is gone but its log {} is there, with records in it; put the store back, or move the log away",
                log.display()
            );
            return Err(self.medium(MediumFault::Corrupt, reason));
        }
        match private().write(true).create_new(true).open(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The store error behind trouble with the file.
    pub(super) fn explain(&self, trouble: Trouble) -> StoreError {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Damaged(what) => self.medium(MediumFault::Corrupt, format!("{what}; restore it from a backup")),
            Trouble::Sqlite(error) => {
                let (fault, way_out) = fault::meaning(&error);
                self.medium(fault, format!("{error}; {way_out}"))
            }
        }
    }

    /// The same for what only SQLite says.
    pub(super) fn sqlite(&self, error: rusqlite::Error) -> StoreError {
        self.explain(Trouble::Sqlite(error))
    }

    /// The store error behind a failed call to the file system.
    pub(super) fn failed(&self, error: &io::Error) -> StoreError {
        #[allow(clippy::wildcard_enum_match_arm)] // a foreign enum that grows
        let (fault, way_out) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                (MediumFault::Full, "make room")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                (MediumFault::ReadOnly, "allow writing to the file and its folder, or use a copy")
            }
            _ => (MediumFault::Unavailable, "check the folder and the disk"),
        };
        self.medium(fault, format!("{error}; {way_out}"))
    }

    /// A fault of this file.
    pub(super) fn medium(&self, fault: MediumFault, reason: String) -> StoreError {
        StoreError::Medium { fault, place: self.given.clone(), reason }
    }

    /// Whether files can be made in the folder: without that, SQLite cannot open what it could read, and does
    /// not say why.
    pub(super) fn folder_takes_files(&self) -> io::Result<()> {
        let probe = self.folder.join(format!(".portcullis-probe-{}", uuid::Uuid::new_v4().simple()));
        private().write(true).create_new(true).open(&probe)?;
        fs::remove_file(&probe)
    }
}

/// Options under which what is created is its user's alone.
pub(super) fn private() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Which file these are the metadata of.
#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity { device: metadata.dev(), inode: metadata.ino() }
}

/// Which file these are the metadata of: not known here.
#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Identity {
    Identity {}
}
