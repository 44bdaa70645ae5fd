//! Who lives, as other processes see it.

use std::fs;
use std::process::{Child, Command};

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Claim, Filter, Owner, Store, StoreError};

use super::child::{hears, told};
use super::{Scratch, names, run, wait};

fn driver(path: &std::path::Path) -> Child {
    let mut child = told(&std::env::current_exe().unwrap(), "drive", path).spawn().unwrap();
    hears(&mut child, "driving");
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn owner(store: &SqliteStore) -> Owner {
    wait(store.find(&run("driven"))).unwrap().unwrap().owner
}

#[test]
fn a_stopped_process_lives_and_a_killed_one_is_dead() {
    let folder = Scratch::new("killed");
    let path = folder.path().join("runs.db");
    let mut child = driver(&path);
    let name = format!("process {}", child.id());
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(owner(&store), Owner::Living { name: name.clone() });
    signal(&child, "-STOP");
    assert_eq!(owner(&store), Owner::Living { name: name.clone() });
    let claimed = wait(store.claim(&run("driven"), Claim::Free));
    assert_eq!(claimed, Err(StoreError::Owned { run: run("driven"), by: name.clone() }));
    assert!(wait(store.list(Filter::Lost)).unwrap().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(owner(&store), Owner::Dead { name });
    assert_eq!(wait(store.list(Filter::Lost)).unwrap().len(), 1);
    assert_eq!(wait(store.claim(&run("driven"), Claim::Free)).unwrap().epoch, 2);
}

#[test]
fn what_dead_sessions_left_is_swept_and_living_ones_are_left_alone() {
    let folder = Scratch::new("swept");
    let path = folder.path().join("runs.db");
    let owners = folder.path().join("runs.db-owners");
    let mut child = driver(&path);
    child.kill().unwrap();
    child.wait().unwrap();
    let dead = names(&owners);
    assert_eq!(dead.len(), 1);
    let one = SqliteStore::open(&path).unwrap();
    let first = names(&owners);
    assert!(first.len() == 1 && first != dead, "{first:?} after {dead:?}");
    let other = SqliteStore::open(&path).unwrap();
    assert_eq!(names(&owners).len(), 2);
    assert!(matches!(owner(&other), Owner::Dead { .. }));
    drop(one);
    assert_eq!(names(&owners).len(), 1);
    drop(other);
    assert!(!owners.exists());
}

#[test]
fn sessions_that_begin_and_end_at_the_same_time_do_not_sweep_each_other_away() {
    let folder = Scratch::new("sweeping");
    let path = folder.path().join("runs.db");
    drop(SqliteStore::create_or_open(&path).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..25 {
                    let store = SqliteStore::open(path).unwrap();
                    let name = format!("run-{thread}-{round}");
                    wait(store.create(super::beginning(&name))).unwrap();
                    let listed = wait(SqliteStore::open_read_only(path).unwrap().find(&run(&name))).unwrap().unwrap();
                    assert!(matches!(listed.owner, Owner::Living { .. }), "{listed:?}");
                }
            });
        }
    });
    let store = SqliteStore::open(&path).unwrap();
    let listed = wait(store.list(Filter::All)).unwrap();
    assert_eq!(listed.len(), 100);
    assert!(listed.iter().all(|listed| matches!(listed.owner, Owner::Dead { .. })));
}

#[test]
fn a_link_in_the_place_of_the_owners_folder_is_refused() {
    let folder = Scratch::new("owners-link");
    let path = super::small(&folder);
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), folder.path().join("runs.db-owners")).unwrap();
    super::fault(SqliteStore::open(&path));
    assert!(names(&folder.path().join("elsewhere")).is_empty());
}
