//! Which program a command is. It is found before anything is started, with this process's own `PATH`, so that
//! people can be shown it and a server's environment cannot choose another.

use std::path::{Path, PathBuf};

/// Folders that an error names at most.
const FOLDERS_SHOWN_MAX: usize = 20;

/// The program of a command, by its whole path. One with a `/` is a path, from this process's folder on. The error
/// says where was looked.
pub(crate) fn program(command: &str) -> Result<PathBuf, String> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    found(command, std::env::split_paths(&places))
}

fn found(command: &str, folders: impl Iterator<Item = PathBuf>) -> Result<PathBuf, String> {
    if command.is_empty() {
        return Err("the command is empty".to_owned());
    }
    if command.contains(std::path::is_separator) {
        let place = whole(Path::new(command))?;
        return runnable(&place).ok_or_else(|| format!("there is no program at {}", place.display()));
    }
    let mut looked = Vec::new();
    // An empty folder means the one of this process, which is nobody's choice.
    for folder in folders.filter(|folder| !folder.as_os_str().is_empty()) {
        let folder = whole(&folder)?;
        if let Some(program) = runnable(&folder.join(command)) {
            return Ok(program);
        }
        looked.push(folder.display().to_string());
    }
    let more = looked.len().saturating_sub(FOLDERS_SHOWN_MAX);
    looked.truncate(FOLDERS_SHOWN_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(format!("there is no program {command:?} in the folders of PATH: {}{more}", looked.join(", ")))
}

fn whole(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{} is no place: {error}", path.display()))
}

/// The file, if it can be started. Some systems know programs by their ending.
fn runnable(path: &Path) -> Option<PathBuf> {
    if is_runnable(path) {
        return Some(path.to_owned());
    }
    let ending = std::env::consts::EXE_EXTENSION;
    if ending.is_empty() {
        return None;
    }
    Some(path.with_added_extension(ending)).filter(|path| is_runnable(path))
}

#[cfg(unix)]
fn is_runnable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_runnable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder_with(name: &str, mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn the_first_folder_with_a_program_of_that_name_has_it() {
        let (text, first, second) = (folder_with("p", 0o600), folder_with("p", 0o700), folder_with("p", 0o700));
        let folders = [PathBuf::new(), text.path().into(), first.path().into(), second.path().into()];
        assert_eq!(found("p", folders.into_iter()), Ok(first.path().join("p")));
    }

    #[test]
    fn a_program_that_is_not_there_was_looked_for_somewhere() {
        let folder = folder_with("p", 0o700);
        let refused = found("q", std::iter::once(folder.path().into())).unwrap_err();
        assert!(refused.contains(&folder.path().display().to_string()) && refused.contains("\"q\""), "{refused}");
        let many = (0..30).map(|n| PathBuf::from(format!("/nowhere/{n}")));
        assert!(found("q", many).unwrap_err().ends_with("/nowhere/19 and 10 more"));
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        let folder = folder_with("p", 0o700);
        let path = folder.path().join("p");
        assert_eq!(found(path.to_str().unwrap(), std::iter::empty()), Ok(path));
        assert!(found("./nothing/here", std::iter::empty()).unwrap_err().contains("nothing/here"));
        assert!(found("", std::iter::empty()).is_err());
    }
}
