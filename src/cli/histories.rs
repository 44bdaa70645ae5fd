//! Where `run` writes histories: beside the place and then renamed, private to the user, never through a
//! link, never over a history that is there (SPEC 14.7, 14.8).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::exit::{Exit, Problem};
use crate::vocabulary::ids::RunId;

/// The places of the histories of one command.
#[derive(Debug)]
pub(crate) struct Histories {
    out: PathBuf,
    folder: bool,
    force: bool,
}

impl Histories {
    /// Prepares `out` for the histories of `runs`: a file for one run, a folder for several. Nothing runs
    /// before every place was found free.
    pub(crate) fn prepare(out: &Path, runs: &[RunId], force: bool) -> Result<Self, Problem> {
        let folder = runs.len() > 1;
        if !folder && out.is_dir() {
            return Err(Problem::usage(format!("{}: is a folder; FILE holds one run, so name a file", out.display())));
        }
        if folder {
            make_folder(out)?;
        }
        let histories = Self { out: out.to_owned(), folder, force };
        for run in runs {
            histories.check(&histories.place(run))?;
        }
        Ok(histories)
    }

    /// Opens one file that is no history, under the same rules.
    pub(crate) fn beside(out: &Path) -> Result<HistoryFile, Problem> {
        if out.is_dir() {
            return Err(Problem::usage(format!("{}: is a folder; name a file in it", out.display())));
        }
        if fs::symlink_metadata(out).is_ok_and(|found| found.is_file()) {
            return Err(Problem::usage(format!("{}: is there already; name another place", out.display())));
        }
        Self { out: out.to_owned(), folder: false, force: false }.check(out)?;
        let unwritten = |error: io::Error| Problem::new(Exit::Persistence, format!("{}: {error}", out.display()));
        HistoryFile::create(out.to_owned(), false).map_err(unwritten)
    }

    fn place(&self, run: &RunId) -> PathBuf {
        if self.folder { self.out.join(format!("{run}.jsonl")) } else { self.out.clone() }
    }

    fn check(&self, place: &Path) -> Result<(), Problem> {
        match fs::symlink_metadata(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Problem::unreadable(Exit::Usage, place, &error)),
            Ok(found) if found.is_symlink() => Err(Problem::usage(format!(
                "{}: is a link, and histories are never written through one",
                place.display()
            ))),
            Ok(found) if !found.is_file() => Err(Problem::usage(format!("{}: is no file", place.display()))),
            Ok(_) if self.force && !is_history(place) => {
                Err(Problem::usage(format!("{}: is no history, and --force replaces nothing else", place.display())))
            }
            Ok(_) if self.force => Ok(()),
            Ok(_) => Err(Problem::usage(format!(
                "{}: is there already; name another place, or replace it with --force",
                place.display()
            ))),
        }
    }

    /// Opens the history of `run`, beside its place.
    pub(crate) fn open(&self, run: &RunId) -> Result<HistoryFile, Problem> {
        let place = self.place(run);
        HistoryFile::create(place.clone(), self.force).map_err(|error| not_stored(&place, &error))
    }
}

/// Whether a file is a history by its first bytes, or empty.
fn is_history(place: &Path) -> bool {
    const BEGIN: &[u8] = br#"{"v":"#;
    let mut begin = Vec::new();
    let read = File::open(place).and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    read.is_ok() && (begin.is_empty() || begin == BEGIN)
}

/// The error of a history that could not be written.
pub(crate) fn not_stored(place: &Path, error: &io::Error) -> Problem {
    let message = crate::vocabulary::outcome::FailureCode::RunPersistenceFailed.safe_message();
    Problem::new(Exit::Persistence, format!("{}: {error}. {message}", place.display()))
}

fn make_folder(out: &Path) -> Result<(), Problem> {
    // Without a trailing separator, which would look through a link.
    let out: &Path = &out.components().collect::<PathBuf>();
    if out.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        let reason = "is a link, and histories are never written through one: name the folder itself";
        return Err(Problem::new(Exit::Usage, format!("{}: {reason}", out.display())));
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(out) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && out.is_dir() => Ok(()),
        Err(error) => Err(Problem::new(
            Exit::Usage,
            format!("{}: FILE holds several runs, so this must be a folder: {error}", out.display()),
        )),
    }
}

/// A history while it is written. Dropped without [`HistoryFile::keep`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    force: bool,
    kept: bool,
}

impl HistoryFile {
    /// A file that takes the place of the one that is there: of a link the place too, never what it leads to.
    pub(super) fn instead_of(place: &Path) -> io::Result<Self> {
        Self::create(place.to_owned(), true)
    }

    /// Lets others read it as well.
    pub(super) fn permit(&self, permissions: fs::Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    fn create(place: PathBuf, force: bool) -> io::Result<Self> {
        let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let beside = place.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        let mut options = OpenOptions::new();
        // `create_new` follows no link.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&beside)?;
        Ok(Self { file, beside, place, force, kept: false })
    }

    /// Its place.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Makes it durable and moves it to its place. A file that came there meanwhile is not replaced.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.force {
            fs::rename(&self.beside, &self.place)?;
        } else {
            self.link()?;
        }
        self.kept = true;
        Ok(())
    }
}

impl HistoryFile {
    /// A link does not replace what is there. Where there are no links, a look must do.
    fn link(&self) -> io::Result<()> {
        match fs::hard_link(&self.beside, &self.place) {
            Ok(()) => fs::remove_file(&self.beside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) if fs::symlink_metadata(&self.place).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(&self.beside, &self.place),
        }
    }
}

impl Write for HistoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for HistoryFile {
    fn drop(&mut self) {
        if !self.kept {
            // There is nobody left to tell, and a partial file harms nobody.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_came_there_meanwhile_is_not_replaced_and_nothing_is_left_beside() {
        let folder = std::env::temp_dir().join(format!("portcullis-meanwhile-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let place = folder.join("h.jsonl");
        let mut history = HistoryFile::create(place.clone(), false).unwrap();
        history.write_all(b"ours\n").unwrap();
        fs::write(&place, "theirs\n").unwrap();
        let error = history.keep().unwrap_err();
        let (kept, files) = (fs::read_to_string(&place).unwrap(), fs::read_dir(&folder).unwrap().count());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((kept.as_str(), files), ("theirs\n", 1));
    }
}
