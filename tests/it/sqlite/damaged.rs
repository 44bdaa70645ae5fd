//! Files that are no store, or no longer.

use std::fs;
use std::path::Path;

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Claim, MediumFault, Store, StoreError};
use rusqlite::Connection;

use super::{Scratch, append, beginning, fault, history, run, small, wait};

fn opened(path: &Path) -> [Result<SqliteStore, StoreError>; 3] {
    [SqliteStore::open(path), SqliteStore::create_or_open(path), SqliteStore::open_read_only(path)]
}

fn refused(path: &Path, expected: MediumFault) {
    let before = fs::read(path).unwrap();
    for outcome in opened(path) {
        assert_eq!(fault(outcome), expected, "{}", path.display());
    }
    assert_eq!(fs::read(path).unwrap(), before, "{} was touched", path.display());
}

#[test]
fn a_file_of_something_else_is_foreign() {
    let folder = Scratch::new("foreign");
    for (name, bytes) in [("text", b"hello".repeat(1_000)), ("short", b"x".to_vec()), ("zeros", vec![0; 20_000])] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        refused(&path, MediumFault::Foreign);
    }
}

#[test]
fn another_programs_database_is_foreign() {
    let folder = Scratch::new("other-database");
    for (name, sql) in [
        ("tables", "CREATE TABLE records (line BLOB)"),
        ("mark", "PRAGMA application_id = 7"),
        ("version", "PRAGMA user_version = 1"),
        ("bare", "CREATE TABLE t (x); DROP TABLE t"),
    ] {
        let path = folder.path().join(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        refused(&path, MediumFault::Foreign);
    }
}

#[test]
fn a_store_of_a_later_version_is_not_touched() {
    let folder = Scratch::new("later");
    let path = small(&folder);
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    refused(&path, MediumFault::UnknownVersion);
}

#[test]
fn a_store_without_its_tables_is_corrupt() {
    let folder = Scratch::new("tables");
    let path = small(&folder);
    Connection::open(&path).unwrap().execute_batch("DROP TABLE heads").unwrap();
    refused(&path, MediumFault::Corrupt);
}

#[test]
fn a_store_that_lost_pages_is_refused() {
    let folder = Scratch::new("truncated");
    let whole = fs::read(small(&folder)).unwrap();
    let path = folder.path().join("cut.db");
    // A last page that is there in part is not told apart from a whole one: the records' hashes tell.
    let pages = [1, 15, 16, 50, 99, 100, 511, 512, 4096, 8191, 8192, 8193, 16_384, 40_000, whole.len() - 8192];
    for length in pages {
        fs::write(&path, &whole[..length]).unwrap();
        for outcome in opened(&path) {
            let found = fault(outcome);
            assert!(matches!(found, MediumFault::Corrupt | MediumFault::Foreign), "{length} bytes: {found}");
        }
    }
}

#[test]
fn a_history_with_a_record_missing_is_corrupt_and_not_short() {
    for (name, damage) in [
        ("missing", "DELETE FROM records WHERE seq = 2"),
        ("last", "DELETE FROM records WHERE seq = 4"),
        ("renumbered", "UPDATE records SET seq = 7 WHERE seq = 1"),
        ("strange", "UPDATE records SET run = 9 WHERE seq = 3"),
        ("circle", "UPDATE records SET before = 5 WHERE seq = 3"),
        ("fewer", "UPDATE heads SET last = 3"),
    ] {
        let folder = Scratch::new(name);
        let path = small(&folder);
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(fault(history(&store, "a")), MediumFault::Corrupt, "{name}");
    }
}

#[test]
fn values_that_are_never_written_are_corrupt() {
    for (name, damage) in [
        ("standing", "UPDATE runs SET standing = 'odd'"),
        ("outcome", "UPDATE runs SET standing = 'ended', outcome = 'odd'"),
        ("no outcome", "UPDATE runs SET standing = 'ended'"),
        ("hash", "UPDATE heads SET head = x'00'"),
        ("count", "UPDATE heads SET records = -1"),
        ("id", "UPDATE runs SET id = '../x'"),
    ] {
        let folder = Scratch::new(name);
        let path = small(&folder);
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(fault(wait(store.list(Default::default()))), MediumFault::Corrupt, "{name}");
    }
}

#[test]
fn a_number_that_nothing_can_follow_is_corrupt_and_no_record_is_put_before_it() {
    for (name, damage) in [
        ("position", "UPDATE records SET position = 9223372036854775807 WHERE seq = 4"),
        ("epoch", "UPDATE runs SET epoch = 9223372036854775807"),
        ("place", "UPDATE heads SET records = 9223372036854775807"),
    ] {
        let folder = Scratch::new(&format!("used-up-{name}"));
        let path = small(&folder);
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let rows = || -> i64 {
            let count = "SELECT count(*) FROM records";
            Connection::open(&path).unwrap().query_row(count, [], |row| row.get(0)).unwrap()
        };
        let store = SqliteStore::open(&path).unwrap();
        let outcome = match wait(store.claim(&run("a"), Claim::Free)) {
            Ok(lease) => wait(store.append(append(&lease, i64::MAX as u64, "after it"))),
            Err(error) => Err(error),
        };
        assert_eq!(fault(outcome), MediumFault::Corrupt, "{name}");
        assert_eq!(rows(), 5, "{name}");
    }
}

#[test]
fn an_owner_that_names_a_path_is_not_followed() {
    let folder = Scratch::new("owner-path");
    let path = small(&folder);
    let decoy = folder.path().join("decoy");
    fs::write(&decoy, "").unwrap();
    Connection::open(&path).unwrap().execute_batch("UPDATE runs SET owner = '../decoy'").unwrap();
    let store = SqliteStore::open(&path).unwrap();
    wait(store.claim(&run("a"), Claim::Free)).unwrap();
    assert!(decoy.exists());
}

#[test]
fn a_file_that_is_deleted_or_replaced_while_it_is_open_takes_no_more_records() {
    let folder = Scratch::new("deleted");
    let path = folder.path().join("runs.db");
    let store = SqliteStore::create_or_open(&path).unwrap();
    let lease = wait(store.create(beginning("a"))).unwrap();
    fs::rename(&path, folder.path().join("away.db")).unwrap();
    assert_eq!(fault(wait(store.append(append(&lease, 1, "record 1")))), MediumFault::Missing);
    fs::write(&path, "something else").unwrap();
    assert_eq!(fault(wait(store.append(append(&lease, 1, "record 1")))), MediumFault::Missing);
    fs::rename(folder.path().join("away.db"), &path).unwrap();
    wait(store.append(append(&lease, 1, "record 1"))).unwrap();
    assert_eq!(history(&store, "a").unwrap(), "record 0\nrecord 1\n");
}
