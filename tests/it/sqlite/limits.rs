//! A medium without room, and one that somebody else holds.

use std::process::Command;

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{MediumFault, Store};
use rusqlite::Connection;

use super::child::{hears, told};
use super::{Scratch, append, beginning, fault, history, run, wait};

#[test]
fn a_full_medium_is_full_and_what_was_acknowledged_is_there() {
    let folder = Scratch::new("full");
    for blocks in [1_000, 8_000] {
        let path = folder.path().join(format!("{blocks}.db"));
        let told = told(&std::env::current_exe().unwrap(), "fill", &path);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
        shell.arg(told.get_program()).args(told.get_args());
        shell.envs(told.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = shell.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let said = hears(&mut child, "acknowledged");
        assert!(child.wait().unwrap().success());
        let (acknowledged, found) = said.split_once(' ').unwrap();
        assert_eq!(found, "full");

        let store = SqliteStore::open(&path).unwrap();
        let acknowledged: u64 = acknowledged.parse().unwrap();
        assert!(acknowledged > 10, "{acknowledged}");
        let history = history(&store, "a").unwrap();
        assert_eq!(history.lines().count() as u64, acknowledged);
        for (seq, line) in history.lines().enumerate() {
            assert!(line.starts_with(&format!("record {seq}")), "{line}");
        }
        let lease = wait(store.claim(&run("a"), portcullis::runtime::store::Claim::Free)).unwrap();
        wait(store.append(append(&lease, acknowledged, "goes on"))).unwrap();
    }
}

#[test]
fn a_store_that_another_holds_for_too_long_is_locked_and_goes_on_afterwards() {
    let folder = Scratch::new("locked");
    let path = folder.path().join("runs.db");
    let store = SqliteStore::create_or_open(&path).unwrap();
    let lease = wait(store.create(beginning("a"))).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fault(wait(store.append(append(&lease, 1, "record 1")))), MediumFault::Locked);
    assert_eq!(history(&store, "a").unwrap(), "record 0\n", "a reader waits for nobody");
    other.execute_batch("ROLLBACK").unwrap();
    wait(store.append(append(&lease, 1, "record 1"))).unwrap();
    assert_eq!(history(&store, "a").unwrap(), "record 0\nrecord 1\n");
}
