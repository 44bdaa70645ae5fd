//! Disks that are full, read-only, locked or gone: an error that names the file, nothing released, nothing lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use rustix::process::Signal;

use crate::book::Pages;
use crate::case::{Case, Folder, Process, stop_at};
use crate::claims::hold;
use crate::command::{code, example, limited, portcullis, stderr, stdout};
use crate::suite::{Test, each};
use crate::wire::{Errand, Said};

pub(crate) const TESTS: &[Test] = &[
    (
        "disk::a_command_that_finds_no_room_says_so_and_goes_on_later",
        a_command_that_finds_no_room_says_so_and_goes_on_later,
    ),
    ("disk::a_history_that_finds_no_room_leaves_nothing_behind", a_history_that_finds_no_room_leaves_nothing_behind),
    (
        "disk::a_runtime_that_finds_no_room_stops_and_goes_on_later",
        a_runtime_that_finds_no_room_stops_and_goes_on_later,
    ),
    (
        "disk::a_store_that_may_not_be_written_is_an_error_that_names_it",
        a_store_that_may_not_be_written_is_an_error_that_names_it,
    ),
    (
        "disk::a_store_that_somebody_holds_is_an_error_that_names_it",
        a_store_that_somebody_holds_is_an_error_that_names_it,
    ),
    ("disk::a_run_whose_store_is_held_stops_and_goes_on_later", a_run_whose_store_is_held_stops_and_goes_on_later),
    (
        "disk::a_run_whose_store_goes_away_stops_and_goes_on_when_it_is_back",
        a_run_whose_store_goes_away_stops_and_goes_on_when_it_is_back,
    ),
    ("disk::a_run_whose_store_is_deleted_makes_no_new_one", a_run_whose_store_is_deleted_makes_no_new_one),
];

/// What diagnosis.json releases.
const RELEASED: &str = "report-job holds 92 of the 100 connections";

/// File sizes in blocks of 512 bytes: from nothing to more than is needed.
fn sizes() -> Vec<u64> {
    (0..16).map(|step| step * 8).chain((16..64).map(|step| step * 16)).collect()
}

fn is_partial(folder: &Path) -> bool {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_string_lossy().ends_with(".partial"))
}

/// How many records the store has of the run; none when there is no store.
fn records(store: &str) -> Option<u64> {
    let output = portcullis(["runs", "--json", "--store", store]).output().unwrap();
    let text = stdout(&output);
    let listed: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
    listed["records"].as_u64()
}

fn a_command_that_finds_no_room_says_so_and_goes_on_later() {
    let counts = std::sync::Mutex::new((0, 0, 0));
    each(&sizes(), |blocks| {
        let folder = Folder::new("full");
        let (store, history) = (folder.join("s.db"), folder.join("h.jsonl"));
        let (store, history) = (store.to_str().unwrap(), history.to_str().unwrap());
        let scenario = example("diagnosis");
        let scenario = scenario.to_str().unwrap();
        let output = limited(*blocks, ["run", scenario, "--store", store, "--history", history]).output().unwrap();
        let (shown, remarked) = (stdout(&output), stderr(&output));
        assert!(!is_partial(folder.path()), "{blocks}: {remarked}");
        if code(&output) == Some(0) {
            counts.lock().unwrap().2 += 1;
            return;
        }
        assert_eq!(code(&output), Some(10), "{blocks}: {}: {shown}{remarked}", output.status);
        assert!(remarked.contains(store) || remarked.contains(history), "{blocks}: {remarked}");
        assert!(!shown.contains(RELEASED) && !shown.contains("\nrow "), "{blocks}: {shown}");
        let durable = records(store);
        let more = match durable {
            Some(1..) => {
                counts.lock().unwrap().1 += 1;
                portcullis(["resume", "diagnosis", "--store", store]).output().unwrap()
            }
            _ => {
                counts.lock().unwrap().0 += 1;
                portcullis(["run", scenario, "--store", store]).output().unwrap()
            }
        };
        assert_eq!(code(&more), Some(0), "{blocks}, {durable:?} records: {}{}", stdout(&more), stderr(&more));
        assert!(stdout(&more).contains(RELEASED), "{blocks}: {}", stdout(&more));
        let verified = portcullis(["verify", "--store", store]).output().unwrap();
        assert_eq!(code(&verified), Some(0), "{blocks}: {}{}", stdout(&verified), stderr(&verified));
    });
    let (before, during, enough) = counts.into_inner().unwrap();
    println!("    no run could begin {before} times, a run stopped half way {during} times, {enough} had room enough");
    assert!(before > 0 && during > 0 && enough > 0);
}

fn a_history_that_finds_no_room_leaves_nothing_behind() {
    for blocks in [0, 1, 8] {
        let folder = Folder::new("history");
        let history = folder.join("h.jsonl");
        let scenario = example("diagnosis");
        let arguments = ["run", scenario.to_str().unwrap(), "--no-store", "--history", history.to_str().unwrap()];
        let output = limited(blocks, arguments).output().unwrap();
        let (shown, remarked) = (stdout(&output), stderr(&output));
        assert_eq!(code(&output), Some(10), "{blocks}: {}: {remarked}", output.status);
        assert!(remarked.contains(history.to_str().unwrap()), "{blocks}: {remarked}");
        assert!(!shown.contains(RELEASED), "{blocks}: {shown}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{blocks}");
    }
}

fn troubles(pages: &Pages, process: u32) -> Vec<String> {
    let what = |said: &Said| match said {
        Said::Trouble { what, .. } => Some(what.clone()),
        _ => None,
    };
    pages.by(process).filter_map(what).collect()
}

fn a_runtime_that_finds_no_room_stops_and_goes_on_later() {
    let counts = std::sync::Mutex::new((0, 0));
    // Three runs at once write more than one.
    let larger = [1_500, 2_500, 4_000, 8_000, 16_000];
    let sizes: Vec<u64> = sizes().into_iter().step_by(2).chain(larger).collect();
    each(&sizes, |blocks| {
        let case = Case::new(&["effects", "waves", "people"]);
        let process = case.spawn_limited(Errand::Drive, *blocks);
        let number = process.number;
        let status = process.end();
        assert!(status.success(), "{blocks}: {status}");
        let trouble = troubles(&case.book.read(), number);
        for what in &trouble {
            assert!(what.contains("Full") && what.contains("store.db"), "{blocks}: {what}");
        }
        let mut counts = counts.lock().unwrap();
        if trouble.is_empty() {
            counts.1 += 1
        } else {
            counts.0 += 1
        }
        drop(counts);
        case.finish();
        hold(&case);
    });
    let (full, enough) = counts.into_inner().unwrap();
    println!("    {full} times no room, {enough} times enough");
    assert!(full > 0 && enough > 0);
}

/// A command as somebody whom permissions stop; root is nobody for that while.
fn unprivileged(mut command: Command) -> Command {
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn a_store_that_may_not_be_written_is_an_error_that_names_it() {
    let binary = Path::new(env!("CARGO_BIN_EXE_portcullis"));
    let mut reaches = unprivileged(Command::new(binary));
    if !reaches.arg("--help").output().is_ok_and(|output| output.status.success()) {
        println!("    skipped: the binary is out of reach for anybody but root");
        return;
    }
    let scenario = fs::read(example("diagnosis")).unwrap();
    for (folder_mode, file_mode) in [(0o777, 0o444), (0o555, 0o666), (0o555, 0o444)] {
        let folder = Folder::new("read-only");
        let (store, file) = (folder.join("s.db"), folder.join("diagnosis.json"));
        fs::write(&file, &scenario).unwrap();
        let (store_name, file_name) = (store.to_str().unwrap(), file.to_str().unwrap());
        let made = portcullis(["run", file_name, "--store", store_name]).output().unwrap();
        assert_eq!(code(&made), Some(0), "{}", stderr(&made));
        let before = fs::read(&store).unwrap();
        set_mode(&store, file_mode);
        set_mode(folder.path(), folder_mode);
        let output = unprivileged(portcullis(["run", file_name, "--store", store_name])).output().unwrap();
        set_mode(folder.path(), 0o700);
        let (shown, remarked) = (stdout(&output), stderr(&output));
        assert_eq!(code(&output), Some(10), "{folder_mode:o} {file_mode:o}: {shown}{remarked}");
        assert!(remarked.contains(store_name), "{remarked}");
        assert!(shown.is_empty(), "{shown}");
        assert_eq!(fs::read(&store).unwrap(), before);
    }
}

fn held(store: &Path) -> Connection {
    let holder = Connection::open(store).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    holder
}

fn a_store_that_somebody_holds_is_an_error_that_names_it() {
    let folder = Folder::new("held");
    let (store, scenario) = (folder.join("s.db"), example("diagnosis"));
    let (store_name, scenario) = (store.to_str().unwrap(), scenario.to_str().unwrap());
    let made = portcullis(["run", scenario, "--store", store_name]).output().unwrap();
    assert_eq!(code(&made), Some(0), "{}", stderr(&made));
    let holder = held(&store);
    let output = portcullis(["run", scenario, "--store", store_name]).output().unwrap();
    holder.execute_batch("ROLLBACK").unwrap();
    let (shown, remarked) = (stdout(&output), stderr(&output));
    assert_eq!(code(&output), Some(10), "{shown}{remarked}");
    assert!(remarked.contains(store_name) && remarked.contains("locked"), "{remarked}");
    assert!(!shown.contains(RELEASED), "{shown}");
    let again = portcullis(["run", scenario, "--store", store_name]).output().unwrap();
    assert_eq!(code(&again), Some(0), "{}", stderr(&again));
}

/// A process that is about to make its third append.
fn about_to_append(case: &Case) -> Process {
    let process = case.spawn(Errand::Drive, stop_at("append.before", 3));
    process.stops();
    process
}

/// Lets it go on, and makes sure that it stops at its append with that fault, and shows nobody anything.
fn stops_with(case: &Case, process: Process, fault: &str) {
    let number = process.number;
    process.signal(Signal::CONT);
    assert!(process.end().success());
    let pages = case.book.read();
    let trouble = troubles(&pages, number);
    assert!(matches!(&*trouble, [one] if one.contains("Commit") && one.contains(fault)), "{trouble:?}");
    assert!(trouble[0].contains("store.db"), "{trouble:?}");
    let shown = pages.by(number).filter(|said| matches!(said, Said::Offer { .. } | Said::Ended { .. })).count();
    assert_eq!(shown, 0);
}

fn a_run_whose_store_is_held_stops_and_goes_on_later() {
    let case = Case::new(&["effects"]);
    let process = about_to_append(&case);
    let holder = held(&case.store());
    stops_with(&case, process, "Locked");
    holder.execute_batch("ROLLBACK").unwrap();
    drop(holder);
    case.finish();
    hold(&case);
}

const FILES: [&str; 3] = ["store.db", "store.db-wal", "store.db-shm"];

fn a_run_whose_store_goes_away_stops_and_goes_on_when_it_is_back() {
    let case = Case::new(&["effects"]);
    let process = about_to_append(&case);
    let away = case.folder.join("away");
    fs::create_dir(&away).unwrap();
    let there = |name: &&&str| case.folder.join(name).exists();
    let moved: Vec<&str> = FILES.iter().filter(there).copied().collect();
    assert!(moved.contains(&"store.db") && moved.contains(&"store.db-wal"));
    for name in &moved {
        fs::rename(case.folder.join(name), away.join(name)).unwrap();
    }
    stops_with(&case, process, "Missing");
    for name in &moved {
        fs::rename(away.join(name), case.folder.join(name)).unwrap();
    }
    case.finish();
    hold(&case);
}

fn a_run_whose_store_is_deleted_makes_no_new_one() {
    let case = Case::new(&["effects"]);
    let process = about_to_append(&case);
    for name in FILES {
        fs::remove_file(case.folder.join(name)).unwrap();
    }
    stops_with(&case, process, "Missing");
    assert!(!case.store().exists());
}
