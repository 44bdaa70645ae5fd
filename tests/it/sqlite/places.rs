//! Where the file is, whose it is, and what else may stand there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Claim, MediumFault, RequestId, Store, StoreError};
use rusqlite::Connection;

use super::child::{hears, told};
use super::{Scratch, append, beginning, fault, history, names, run, small, wait};

fn opened(path: &Path) -> [Result<SqliteStore, StoreError>; 3] {
    [SqliteStore::open(path), SqliteStore::create_or_open(path), SqliteStore::open_read_only(path)]
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_store_is_marked_and_kept_with_a_log() {
    let folder = Scratch::new("marked");
    let connection = Connection::open(small(&folder)).unwrap();
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(pragma("application_id"), 0x5043_4C53);
    assert_eq!(pragma("user_version"), 1);
    assert_eq!(pragma("page_size"), 8192);
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn everything_of_a_store_is_its_users_alone() {
    let folder = Scratch::new("private");
    let path = folder.path().join("runs.db");
    let store = SqliteStore::create_or_open(&path).unwrap();
    wait(store.create(beginning("a"))).unwrap();
    assert_eq!(names(folder.path()), ["runs.db", "runs.db-owners", "runs.db-shm", "runs.db-wal"]);
    for name in ["runs.db", "runs.db-shm", "runs.db-wal"] {
        assert_eq!(mode(&folder.path().join(name)), 0o600, "{name}");
    }
    let owners = folder.path().join("runs.db-owners");
    assert_eq!(mode(&owners), 0o700);
    assert_eq!(mode(&owners.join(&names(&owners)[0])), 0o600);
}

#[test]
fn a_store_that_is_closed_is_one_file() {
    let folder = Scratch::new("closed");
    small(&folder);
    assert_eq!(names(folder.path()), ["runs.db"]);
}

#[test]
fn opening_creates_nothing_where_there_is_no_store() {
    let folder = Scratch::new("absent");
    let path = folder.path().join("runs.db");
    assert_eq!(fault(SqliteStore::open(&path)), MediumFault::Missing);
    assert_eq!(fault(SqliteStore::open_read_only(&path)), MediumFault::Missing);
    for outcome in opened(&folder.path().join("nowhere/runs.db")) {
        assert_eq!(fault(outcome), MediumFault::Missing);
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn an_empty_file_is_no_store_until_one_is_made_in_it() {
    let folder = Scratch::new("empty-file");
    let path = folder.path().join("runs.db");
    fs::write(&path, "").unwrap();
    assert_eq!(fault(SqliteStore::open(&path)), MediumFault::Missing);
    assert_eq!(fault(SqliteStore::open_read_only(&path)), MediumFault::Missing);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    let store = SqliteStore::create_or_open(&path).unwrap();
    wait(store.create(beginning("a"))).unwrap();
    assert_eq!(history(&store, "a").unwrap(), "record 0\n");
}

#[test]
fn a_store_is_not_opened_through_a_link() {
    let folder = Scratch::new("links");
    let path = small(&folder);
    let (link, dangling) = (folder.path().join("link.db"), folder.path().join("dangling.db"));
    symlink(&path, &link).unwrap();
    symlink(folder.path().join("target.db"), &dangling).unwrap();
    for outcome in opened(&link).into_iter().chain(opened(&dangling)) {
        assert_eq!(fault(outcome), MediumFault::Foreign);
    }
    assert_eq!(names(folder.path()), ["dangling.db", "link.db", "runs.db"]);
}

#[test]
fn a_store_in_a_folder_that_is_reached_through_a_link_is_the_same_store() {
    let folder = Scratch::new("linked-folder");
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, folder.path().join("link")).unwrap();
    let one = SqliteStore::create_or_open(real.join("runs.db")).unwrap();
    let other = SqliteStore::create_or_open(folder.path().join("link/runs.db")).unwrap();
    wait(one.create(beginning("a"))).unwrap();
    assert!(matches!(wait(other.claim(&run("a"), Claim::Free)), Err(StoreError::Owned { .. })));
}

#[test]
fn a_folder_in_the_files_place_is_refused() {
    let folder = Scratch::new("folder");
    for outcome in opened(folder.path()) {
        assert_eq!(fault(outcome), MediumFault::Foreign);
    }
    for outcome in opened(Path::new("/")) {
        assert_eq!(fault(outcome), MediumFault::Foreign);
    }
}

#[test]
fn a_log_without_its_store_is_not_overwritten() {
    let folder = Scratch::new("orphaned-log");
    let path = folder.path().join("runs.db");
    fs::write(folder.path().join("runs.db-wal"), "records").unwrap();
    assert_eq!(fault(SqliteStore::create_or_open(&path)), MediumFault::Corrupt);
    assert_eq!(fs::read(folder.path().join("runs.db-wal")).unwrap(), b"records");
}

#[test]
fn a_store_that_is_opened_for_reading_is_read_and_not_written() {
    let folder = Scratch::new("reading");
    let path = small(&folder);
    let store = SqliteStore::open_read_only(&path).unwrap();
    assert_eq!(history(&store, "a").unwrap().lines().count(), 5);
    let listed = wait(store.find(&run("a"))).unwrap().unwrap();
    let lease = portcullis::runtime::store::Lease { run: run("a"), epoch: listed.epoch };
    assert_eq!(fault(wait(store.create(beginning("b")))), MediumFault::ReadOnly);
    assert_eq!(fault(wait(store.append(append(&lease, 5, "x")))), MediumFault::ReadOnly);
    assert_eq!(fault(wait(store.claim(&run("a"), Claim::TakeOver))), MediumFault::ReadOnly);
    assert_eq!(fault(wait(store.release(lease))), MediumFault::ReadOnly);
    assert_eq!(fault(wait(store.post(&run("a"), vec![]))), MediumFault::ReadOnly);
    assert_eq!(fault(wait(store.answer(RequestId(1), vec![]))), MediumFault::ReadOnly);
    assert_eq!(fault(wait(store.answered(RequestId(1)))), MediumFault::ReadOnly);
    assert_eq!(wait(store.posted()), Ok(vec![]));
}

/// Opens a store as a user who is not its owner and has no privileges, whoever runs the test.
fn found_by_another(folder: &Scratch, path: &Path) -> String {
    use std::os::unix::process::CommandExt;
    let program = folder.path().join("program");
    if !program.exists() {
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = told(&program, "look", path);
    if fs::metadata(path).unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    let mut child = command.spawn().unwrap();
    let found = hears(&mut child, "found");
    child.wait().unwrap();
    found
}

#[test]
fn what_may_not_be_written_can_be_read_and_says_so() {
    let folder = Scratch::new("permissions");
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let path = place.join("runs.db");
    fs::rename(small(&folder), &path).unwrap();
    let permit = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    permit(folder.path(), 0o755);
    for (file, folder_mode, expected) in [
        (0o444, 0o777, "read_only / read_only / 5 records"),
        (0o666, 0o555, "read_only / read_only / 5 records"),
        (0o444, 0o555, "read_only / read_only / 5 records"),
        (0o000, 0o777, "unavailable / unavailable / unavailable"),
    ] {
        permit(&path, file);
        permit(&place, folder_mode);
        assert_eq!(found_by_another(&folder, &path), expected, "{file:o} in {folder_mode:o}");
        permit(&place, 0o755);
    }
}
