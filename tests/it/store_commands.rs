//! The commands that read the store, as processes, against real files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;

use crate::support::{project, small_success};

/// A folder of the test's own, in which commands run; removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("portcullis-commands-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> &Self {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(arguments).current_dir(&self.0).env_remove("PORTCULLIS_STORE");
        command
    }

    /// Runs it, and says everything when the exit code is another.
    fn expect(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        (out, err)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            // SQLite's own, beside an open store.
            .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm") && !name.ends_with("-owners"))
            .collect();
        names.sort();
        names
    }

    /// The store of the folder, through SQLite alone.
    fn raw(&self, statements: &str) {
        let connection = Connection::open(self.path("portcullis.db")).unwrap();
        connection.execute_batch(statements).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn golden(name: &str) -> PathBuf {
    project("tests/golden/v1").join(format!("{name}.jsonl"))
}

fn goldens() -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(project("tests/golden/v1")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn run_of(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The first records of a history.
fn first(path: &Path, records: usize) -> Vec<u8> {
    fs::read(path).unwrap().split_inclusive(|byte| *byte == b'\n').take(records).collect::<Vec<_>>().concat()
}

/// A store with these histories.
fn stocked(name: &str, histories: &[PathBuf]) -> Folder {
    let folder = Folder::new(name);
    let paths: Vec<&str> = histories.iter().map(|path| path.to_str().unwrap()).collect();
    folder.expect(0, &[&["import"], &paths[..]].concat());
    folder
}

/// A store with a run that waits for a person to decide.
fn asking(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("asking.jsonl", &first(&golden("people-1-edited-arguments"), 3));
    folder.expect(0, &["import", "asking.jsonl"]);
    folder
}

const ASKING: &str = "people-1-edited-arguments";
const TICKET: &str = "t1.0-eb9198b5f0f92823";

const READING: &[&[&str]] = &[
    &["runs"],
    &["runs", "--json"],
    &["show", "small"],
    &["export", "small"],
    &["export", "small", "--redact"],
    &["anchor"],
    &["anchor", "small"],
    &["verify"],
];

#[test]
fn reading_makes_no_store_and_says_how_to_get_one() {
    let folder = Folder::new("nothing");
    for arguments in READING {
        let (out, err) = folder.expect(2, arguments);
        assert_eq!(out, "", "{arguments:?}");
        assert!(err.contains("portcullis.db: there is no store") && err.contains("--store"), "{arguments:?}: {err}");
        assert!(err.contains("portcullis run FILE"), "{arguments:?}: {err}");
        folder.expect(2, &[arguments, &["--store", "no-folder/s.db"][..]].concat());
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn what_is_no_store_is_said_with_10_and_left_alone() {
    let folder = Folder::new("foreign");
    folder.file("text", b"this is a text, and long enough not to be taken for the head of a database at all, at all\n");
    folder.file("empty", b"");
    fs::create_dir(folder.path("folder")).unwrap();
    let other = Connection::open(folder.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE mine (it INTEGER); INSERT INTO mine VALUES (1)").unwrap();
    drop(other);
    let before: Vec<Vec<u8>> = ["text", "other.db"].iter().map(|name| fs::read(folder.path(name)).unwrap()).collect();
    for arguments in READING {
        for (place, word) in [("text", "foreign"), ("folder", "foreign"), ("other.db", "foreign")] {
            let (out, err) = folder.expect(10, &[arguments, &["--store", place][..]].concat());
            assert_eq!(out, "", "{arguments:?} of {place}");
            assert!(err.contains(place) && err.contains(word), "{arguments:?} of {place}: {err}");
        }
        folder.expect(2, &[arguments, &["--store", "empty"][..]].concat());
    }
    let after: Vec<Vec<u8>> = ["text", "other.db"].iter().map(|name| fs::read(folder.path(name)).unwrap()).collect();
    assert_eq!(before, after);
    assert_eq!(folder.names(), ["empty", "folder", "other.db", "text"]);
}

#[test]
fn a_run_is_exported_in_the_formats_of_others_from_the_store_and_from_its_file() {
    let folder = stocked("formats", &[golden("diagnosis")]);
    let file = golden("diagnosis");
    let file = file.to_str().unwrap();
    for format in ["otlp", "atif", "chat-completions"] {
        let stored = folder.run(&["export", "diagnosis", "--format", format]).stdout;
        assert!(serde_json::from_slice::<serde_json::Value>(&stored).is_ok_and(|document| document.is_object()));
        assert_eq!(folder.run(&["export", file, "--format", format]).stdout, stored, "{format}");
        let out = format!("{format}.json");
        let (said, _) = folder.expect(0, &["export", "diagnosis", "--format", format, "--out", &out, "--json"]);
        assert!(said.contains(&format!("\"format\":\"{format}\",\"bytes\":{}", stored.len())), "{said}");
        assert_eq!(fs::read(folder.path(&out)).unwrap(), stored, "{format}");
    }
    folder.expect(2, &["export", "diagnosis", "--format", "csv"]);
    folder.expect(2, &["export", "diagnosis", "--format", "otlp", "--redact"]);
    folder.file("cut.jsonl", &fs::read(file).unwrap()[..4_000]);
    let (_, err) = folder.expect(0, &["export", "cut.jsonl", "--format", "atif"]);
    assert!(err.contains("the last line is cut at byte"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_store_behind_a_link_is_not_opened() {
    let folder = stocked("link", &[golden("diagnosis")]);
    std::os::unix::fs::symlink(folder.path("portcullis.db"), folder.path("link.db")).unwrap();
    let (_, err) = folder.expect(10, &["runs", "--store", "link.db"]);
    assert!(err.contains("link"), "{err}");
}

#[test]
fn a_corrupt_store_is_said_with_10() {
    let folder = stocked("corrupt", &[golden("diagnosis")]);
    let mut bytes = fs::read(folder.path("portcullis.db")).unwrap();
    bytes[4096..].fill(0xA5);
    fs::write(folder.path("portcullis.db"), bytes).unwrap();
    for arguments in [&["runs"][..], &["anchor"], &["verify"]] {
        let (_, err) = folder.expect(10, arguments);
        assert!(err.contains("corrupt"), "{arguments:?}: {err}");
    }
}

#[test]
fn a_store_of_a_later_version_is_not_guessed_at() {
    let folder = stocked("later", &[golden("diagnosis")]);
    folder.raw("PRAGMA user_version = 99");
    let (_, err) = folder.expect(10, &["runs"]);
    assert!(err.contains("99"), "{err}");
}

#[test]
fn the_option_wins_over_the_variable_and_the_variable_over_the_usual_place() {
    let folder = Folder::new("place");
    folder.file("a.jsonl", &small_success());
    let with = |variable: &str, arguments: &[&str]| {
        folder.command(arguments).env("PORTCULLIS_STORE", variable).output().unwrap()
    };
    assert!(with("named.db", &["import", "a.jsonl"]).status.success());
    assert_eq!(folder.names(), ["a.jsonl", "named.db"]);
    assert!(text(&with("named.db", &["runs"]).stdout).contains("small"));
    assert_eq!(with("named.db", &["runs", "--store", "other.db"]).status.code(), Some(2));
    // An empty variable names nothing.
    assert!(text(&with("", &["runs"]).stderr).contains("portcullis.db: there is no store"));
}

#[test]
fn every_golden_history_comes_out_as_it_went_in() {
    let folder = stocked("round", &goldens());
    for path in goldens() {
        let (bytes, run) = (fs::read(&path).unwrap(), run_of(&path));
        assert_eq!(folder.run(&["export", &run]).stdout, bytes, "{run}");
        let out = format!("{run}.out");
        let (said, err) = folder.expect(0, &["export", &run, "--out", &out]);
        assert_eq!((said.as_str(), err.contains(&format!("{} bytes", bytes.len()))), ("", true), "{run}: {err}");
        assert_eq!(fs::read(folder.path(&out)).unwrap(), bytes, "{run}");
        let (said, _) = folder.expect(2, &["export", &run, "--out", &out]);
        assert_eq!(said, "", "what is there is not replaced");
        assert!(folder.run(&["replay", &out]).status.success(), "{run}");
    }
    let (said, _) = folder.expect(0, &["verify"]);
    assert_eq!(said.lines().filter(|line| line.contains(": reproduced, ")).count(), goldens().len());
}

#[cfg(unix)]
#[test]
fn what_is_written_is_its_users_alone_and_goes_through_no_link() {
    use std::os::unix::fs::PermissionsExt;
    let folder = stocked("private", &[golden("diagnosis")]);
    folder.file("target", b"theirs");
    std::os::unix::fs::symlink(folder.path("target"), folder.path("link")).unwrap();
    for command in [&["export", "diagnosis"][..], &["export", "diagnosis", "--redact"], &["anchor"]] {
        folder.expect(0, &[command, &["--out", "new"][..]].concat());
        assert_eq!(fs::metadata(folder.path("new")).unwrap().permissions().mode() & 0o777, 0o600, "{command:?}");
        fs::remove_file(folder.path("new")).unwrap();
        folder.expect(2, &[command, &["--out", "link"][..]].concat());
        folder.expect(2, &[command, &["--out", "."][..]].concat());
    }
    assert_eq!(fs::read(folder.path("target")).unwrap(), b"theirs");
    assert_eq!(folder.names(), ["link", "portcullis.db", "target"]);
}

#[test]
fn runs_are_listed_in_the_order_in_which_they_came_and_filtered_by_how_they_stand() {
    let folder = asking("runs");
    let row_3 = golden("row-03-claims-without-looking");
    let row_15 = golden("row-15-cancelled");
    folder.file("open.jsonl", &first(&golden("diagnosis"), 5));
    folder.expect(0, &["import", row_3.to_str().unwrap(), row_15.to_str().unwrap(), "open.jsonl"]);
    let listed = |more: &[&str]| -> Vec<String> {
        let (out, _) = folder.expect(0, &[&["runs", "--json"], more].concat());
        let run =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["run"].as_str().unwrap().to_owned();
        out.lines().map(run).collect()
    };
    let [row_3, row_15] = [run_of(&row_3), run_of(&row_15)];
    assert_eq!(listed(&[]), [ASKING, &row_3, &row_15, "diagnosis"]);
    assert_eq!(listed(&["--awaiting"]), [ASKING]);
    assert_eq!(listed(&["--open"]), [ASKING, "diagnosis"]);
    assert_eq!(listed(&["--ending", "3"]), [row_3.as_str()]);
    assert_eq!(listed(&["--ending", "cancelled", "--awaiting"]), [ASKING, &row_15]);
    assert_eq!(listed(&["--ending", "1"]), [""; 0]);
    let (table, _) = folder.expect(0, &["runs"]);
    assert!(table.lines().all(|line| !line.contains('\u{1b}')), "{table}");
    assert!(table.lines().nth(2).unwrap().contains("row 3, failed"), "{table}");
    let (_, err) = folder.expect(2, &["runs", "--ending", "21"]);
    assert!(err.contains("1 to 20") && err.contains("fallback"), "{err}");
    let (out, err) = folder.expect(0, &["runs", "--ending", "20"]);
    assert_eq!((out.as_str(), err.contains("4 runs")), ("", true), "{err}");
}

#[test]
fn show_steps_through_a_run_and_ends_with_its_ending() {
    let folder = stocked("show", &[golden("diagnosis")]);
    let (of_run, _) = folder.expect(0, &["show", "diagnosis"]);
    let (of_file, _) = folder.expect(0, &["show", golden("diagnosis").to_str().unwrap()]);
    assert_eq!(of_run, of_file);
    assert!(of_run.contains("the release is delivered") && of_run.contains("row 1, success"), "{of_run}");
    assert!(!of_run.contains("report-job"), "what was written is not shown:\n{of_run}");
    let (lines, _) = folder.expect(0, &["show", "diagnosis", "--json"]);
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 13);
    assert_eq!(lines[0]["input"], "run_started");
    assert_eq!(lines[11]["seq"], 11);
    assert_eq!(
        (&lines[12]["row"], &lines[12]["delivered"], &lines[12]["records"]),
        (&1.into(), &true.into(), &12.into())
    );
}

#[test]
fn show_says_what_is_waited_for_and_what_to_type() {
    let folder = asking("waits");
    let (out, _) = folder.expect(8, &["show", ASKING]);
    assert!(out.contains("open: the run awaits a person"), "{out}");
    assert!(out.contains("it waits; only the program that has its model and tools"), "{out}");
    assert!(!out.contains("portcullis decide"), "an import has no script to go on with:\n{out}");
    let scripted = project("examples/people-3-awaiting.json");
    folder.expect(8, &["run", scripted.to_str().unwrap()]);
    let (out, _) = folder.expect(8, &["show", "people-3-awaiting", "--store", "./portcullis.db"]);
    let decide = out.lines().find(|line| line.contains("portcullis decide people-3-awaiting t1.0-")).unwrap();
    assert!(decide.ends_with("allow|deny --store ./portcullis.db"), "{out}");
    let (out, _) = folder.expect(8, &["show", "asking.jsonl"]);
    assert!(out.contains("portcullis import asking.jsonl") && !out.contains("portcullis decide"), "{out}");
    let (out, _) = folder.expect(8, &["show", ASKING, "--json"]);
    assert!(
        out.contains(&format!(
            r#""awaiting":[{{"type":"decision","ticket":"{TICKET}","call":"t1.0","tool":"restart_service"}}]"#
        )),
        "{out}"
    );
}

#[test]
fn show_says_that_work_was_under_way() {
    let folder = Folder::new("under-way");
    folder.file("open.jsonl", &first(&golden("diagnosis"), 5));
    folder.expect(0, &["import", "open.jsonl"]);
    let (out, _) = folder.expect(9, &["show", "diagnosis"]);
    assert!(out.contains("its work was under way; only the program"), "{out}");
    let history = fs::read(golden("diagnosis")).unwrap();
    folder.file("undelivered.jsonl", &first(&golden("diagnosis"), 11));
    folder.expect(0, &["import", "undelivered.jsonl", "--store", "2.db"]);
    let (out, _) = folder.expect(0, &["show", "diagnosis", "--store", "2.db"]);
    assert!(out.contains("no receipt yet; only the program that has its model and tools"), "{out}");
    folder.file("torn.jsonl", &history[..history.len() - 30]);
    let (out, _) = folder.expect(9, &["show", "torn.jsonl"]);
    assert!(out.contains("the last line is cut"), "{out}");
}

#[test]
fn what_a_person_decides_on_is_printed_exactly_and_nothing_else() {
    let folder = asking("subject");
    let expected = format!(
        r#"{{"arguments":{{"grace_s":0,"service":"checkout"}},"call":"t1.0","run":"{ASKING}","ticket":"{TICKET}","tool":"restart_service"}}"#
    );
    for arguments in [["--ticket", TICKET], ["--call", "t1.0"]] {
        let (out, err) = folder.expect(0, &[&["show", ASKING], &arguments[..]].concat());
        assert_eq!(out, format!("{expected}\n"));
        assert!(err.contains("privileged"), "{err}");
    }
    let (out, err) = folder.expect(2, &["show", ASKING, "--ticket", "t9.0-0"]);
    assert_eq!((out.as_str(), err.contains(TICKET)), ("", true), "{err}");
    folder.expect(2, &["show", ASKING, "--call", "nonsense"]);
    folder.file("crashed.jsonl", &first(&golden("crash-2-reconciled"), 6));
    let output = folder.run(&["show", "crashed.jsonl"]);
    let shown = text(&output.stdout);
    if shown.contains("what did") {
        folder.expect(0, &["show", "crashed.jsonl", "--call", "t1.0"]);
    }
}

#[test]
fn a_file_is_taken_before_a_run_of_its_name_and_it_is_said() {
    let folder = stocked("both", &[golden("diagnosis")]);
    folder.file("diagnosis", &small_success());
    let (out, err) = folder.expect(0, &["show", "diagnosis"]);
    assert!(out.contains("run small starts") && err.contains("the file is taken"), "{err}");
    let (out, err) = folder.expect(0, &["show", "diagnosis", "--run"]);
    assert!(out.contains("run diagnosis starts") && err.is_empty(), "{err}");
    fs::create_dir(folder.path("row-x")).unwrap();
    folder.expect(2, &["show", "row-x"]);
    let (_, err) = folder.expect(2, &["show", "nobody"]);
    assert!(err.contains("no run nobody") && err.contains("portcullis runs"), "{err}");
    let (_, err) = folder.expect(2, &["show", "no such/file"]);
    assert!(err.contains("no such/file"), "{err}");
}

#[test]
fn what_is_damaged_cut_or_redacted_is_not_imported_and_makes_no_store() {
    let folder = Folder::new("refused");
    let whole = small_success();
    let damaged = text(&whole).replacen("2 s", "3 s", 1);
    folder.file("damaged.jsonl", damaged.as_bytes());
    folder.file("cut.jsonl", &whole[..whole.len() - 10]);
    folder.file("empty.jsonl", b"");
    folder.file("good.jsonl", &whole);
    let other = Folder::new("refused-source");
    other.file("good.jsonl", &whole).expect(0, &["import", "good.jsonl"]);
    other.expect(0, &["export", "small", "--redact", "--out", "redacted.jsonl"]);
    folder.file("redacted.jsonl", &fs::read(other.path("redacted.jsonl")).unwrap());
    for (name, word) in [
        ("damaged.jsonl", "wrong_hash"),
        ("cut.jsonl", "head -c"),
        ("empty.jsonl", "corrupt"),
        ("redacted.jsonl", "a redacted export"),
        ("missing.jsonl", "cannot be read"),
    ] {
        // With a good one before it: all or none.
        let (out, err) = folder.expect(7, &["import", "good.jsonl", name]);
        assert_eq!(out, "", "{name}");
        assert!(err.contains(name) && err.contains(word), "{name}: {err}");
    }
    assert!(!folder.path("portcullis.db").exists());
    let (_, err) = folder.expect(7, &["show", "redacted.jsonl"]);
    assert!(err.contains("a redacted export"), "{err}");
    let (out, _) = folder.expect(7, &["replay", "redacted.jsonl"]);
    assert!(out.contains("redacted_export"), "{out}");
}

#[test]
fn a_history_that_does_not_come_out_of_the_engine_is_not_imported() {
    use portcullis::vocabulary::digest::Digest;
    let folder = Folder::new("diverged");
    let history = text(&small_success());
    let (first, _) = history.split_once('\n').unwrap();
    // A record that claims another state, chained as it should be.
    let covered = first.rsplit_once(",\"hash\":").unwrap().0.replace("\"rounds\":0", "\"rounds\":7");
    let hash = Digest::of("portcullis.record.1", &[covered.as_bytes()]);
    folder.file("forged.jsonl", format!("{covered},\"hash\":\"{hash}\"}}\n").as_bytes());
    let (_, err) = folder.expect(6, &["import", "forged.jsonl"]);
    assert!(err.contains("record 0 diverges in state.rounds"), "{err}");
    folder.expect(6, &["show", "forged.jsonl"]);
    // Its chain is whole all the same.
    folder.expect(0, &["verify", "forged.jsonl"]);
}

#[test]
fn the_same_bytes_again_are_fine_and_other_bytes_of_that_run_are_not() {
    let folder = asking("again");
    let (out, _) = folder.expect(0, &["import", "asking.jsonl"]);
    assert!(out.contains("was there already, byte for byte"), "{out}");
    let (out, _) = folder.expect(0, &["import", "asking.jsonl", "--json"]);
    assert!(out.contains(r#""already":true"#), "{out}");
    let whole = golden(ASKING);
    let (_, err) = folder.expect(2, &["import", whole.to_str().unwrap()]);
    assert!(err.contains("first 3 records") && err.contains("goes on to 12"), "{err}");
    folder.file("shorter.jsonl", &first(&whole, 2));
    let (_, err) = folder.expect(2, &["import", "shorter.jsonl"]);
    assert!(err.contains("the first 2"), "{err}");
    assert_eq!(folder.run(&["export", ASKING]).stdout, first(&whole, 3));
    folder.file("other.jsonl", text(&small_success()).as_bytes());
    folder.expect(0, &["import", "other.jsonl"]);
}

#[test]
fn redacted_exports_of_every_golden_history_verify_and_hold_no_text_of_it() {
    let folder = stocked("redacted", &goldens());
    for path in goldens() {
        let run = run_of(&path);
        let out = format!("{run}.redacted");
        folder.expect(0, &["export", &run, "--redact", "--out", &out]);
        assert_eq!(folder.run(&["export", &run, "--redact"]).stdout, fs::read(folder.path(&out)).unwrap());
        let (said, _) = folder.expect(0, &["verify", &out]);
        assert!(said.contains(&format!("a redacted export of run {run}")), "{said}");
        let (export, original) = (fs::read_to_string(folder.path(&out)).unwrap(), fs::read_to_string(&path).unwrap());
        // What has a space in it was written by somebody.
        for written in original.split('"').filter(|word| word.contains(' ')) {
            assert!(!export.contains(written), "{run}: {written}");
        }
        let damaged = export.replacen("\"seq\":1,", "\"seq\":2,", 1);
        folder.file(&out, damaged.as_bytes());
        folder.expect(7, &["verify", &out]);
        let cut: String = export.lines().take(2).map(|line| format!("{line}\n")).collect();
        folder.file(&out, cut.as_bytes());
        let (said, _) = folder.expect(7, &["verify", &out]);
        assert!(said.contains("unclosed"), "{said}");
    }
}

#[test]
fn verify_says_of_each_file_what_it_is() {
    let folder = stocked("verify", &[golden("diagnosis")]);
    let history = fs::read(golden("diagnosis")).unwrap();
    folder.file("whole", &history).file("torn", &history[..history.len() - 1]).file("other", b"{}\n");
    let (out, _) = folder.expect(7, &["verify", "--json", "whole", "torn", "other"]);
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is: Vec<&str> = lines.iter().map(|line| line["is"].as_str().unwrap()).collect();
    assert_eq!(is, ["history", "corrupt", "corrupt"]);
    folder.expect(7, &["verify", "missing"]);
}

/// A store with two runs, and anchors of both.
fn anchored(name: &str) -> Folder {
    let folder = stocked(name, &[golden("diagnosis"), golden("row-15-cancelled")]);
    folder.expect(0, &["anchor", "--out", "anchors"]);
    let (out, _) = folder.expect(0, &["verify", "--anchor", "anchors"]);
    assert_eq!(out.matches(": holds: ").count(), 2, "{out}");
    folder
}

/// Whether the run's anchor holds no more, in one word; the other run's does.
fn broken(folder: &Folder) -> String {
    let (out, _) = folder.expect(7, &["verify", "--anchor", "anchors", "--json"]);
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["found"], "holds", "{out}");
    lines[0]["found"].as_str().unwrap().to_owned()
}

const OF_DIAGNOSIS: &str = "(SELECT number FROM runs WHERE id = 'diagnosis')";

#[test]
fn anchors_show_that_the_last_records_are_gone() {
    let folder = anchored("truncated");
    folder.raw(&format!("DELETE FROM records WHERE seq >= 10 AND run = {OF_DIAGNOSIS}"));
    assert_eq!(broken(&folder), "damaged");
    let (out, _) = folder.expect(7, &["verify"]);
    assert!(out.contains("diagnosis: damaged") && out.contains("row-15-cancelled: reproduced"), "{out}");
    for command in [&["show", "diagnosis"][..], &["export", "diagnosis"], &["anchor"]] {
        folder.expect(7, command);
    }
}

#[test]
fn anchors_show_a_cut_that_the_store_itself_agrees_with() {
    use portcullis::vocabulary::digest::Digest;
    let folder = anchored("cut-well");
    let head = text(&first(&golden("diagnosis"), 10));
    let head = head.trim_end().rsplit('"').nth(1).unwrap();
    assert!(Digest::from_hex(head).is_some());
    folder.raw(&format!(
        "DELETE FROM records WHERE seq >= 10 AND run = {OF_DIAGNOSIS};
         UPDATE heads SET records = 10, head = x'{head}', last = (SELECT position FROM records WHERE seq = 9 AND run = {OF_DIAGNOSIS})
         WHERE run = {OF_DIAGNOSIS};"
    ));
    // A shorter history is a whole one: only what was kept elsewhere can tell.
    folder.expect(0, &["verify"]);
    assert_eq!(broken(&folder), "shorter");
}

#[test]
fn anchors_show_an_edit_and_a_run_that_is_gone_or_was_put_in_its_place() {
    let folder = anchored("edited");
    folder.raw(&format!(
        "UPDATE records SET line = CAST(replace(CAST(line AS TEXT), '4100 ms', '4200 ms') AS BLOB) WHERE run = {OF_DIAGNOSIS}"
    ));
    assert_eq!(broken(&folder), "damaged");
    let folder = anchored("dropped");
    folder.raw("DELETE FROM runs WHERE id = 'diagnosis'");
    assert_eq!(broken(&folder), "missing");
    let folder = anchored("renamed");
    folder
        .raw("DELETE FROM runs WHERE id = 'diagnosis'; UPDATE runs SET id = 'diagnosis' WHERE id = 'row-15-cancelled'");
    let (out, _) = folder.expect(7, &["verify", "--anchor", "anchors"]);
    assert!(!out.contains(": holds: "), "{out}");
    let (out, _) = folder.expect(7, &["verify"]);
    assert!(out.contains("belong to run row-15-cancelled"), "{out}");
}

#[test]
fn an_anchor_holds_when_the_run_has_grown_and_not_when_it_is_another() {
    let folder = stocked("grown", &[golden("diagnosis")]);
    let short = first(&golden("diagnosis"), 4);
    folder.file("short.jsonl", &short).expect(0, &["import", "short.jsonl", "--store", "short.db"]);
    let (anchor, _) = folder.expect(0, &["anchor", "diagnosis", "--store", "short.db"]);
    folder.file("anchors", anchor.as_bytes());
    let (out, _) = folder.expect(0, &["verify", "--anchor", "anchors"]);
    assert!(out.contains("4 records were anchored, 12 are there"), "{out}");
    let head = anchor.split('"').nth(9).unwrap();
    folder.file("anchors", anchor.replace(head, &"0".repeat(64)).as_bytes());
    let (out, _) = folder.expect(7, &["verify", "--anchor", "anchors"]);
    assert!(out.contains("another history: record 3 is"), "{out}");
}

#[test]
fn anchors_that_say_nothing_verify_nothing() {
    let folder = stocked("no-anchors", &[golden("diagnosis")]);
    let zeros = "0".repeat(64);
    for (content, word) in [
        ("", "holds no anchor"),
        ("\n\n", "holds no anchor"),
        ("{}\n", "line 1"),
        (&format!("{{\"run\":\"r\",\"records\":0,\"head\":\"{zeros}\"}}\n"), "no record"),
        (&format!("{{\"run\":\"r\",\"records\":1,\"head\":\"{zeros}\",\"x\":1}}\n"), "line 1"),
    ] {
        folder.file("anchors", content.as_bytes());
        let (out, err) = folder.expect(2, &["verify", "--anchor", "anchors"]);
        assert_eq!((out.as_str(), err.contains(word)), ("", true), "{content}: {err}");
    }
    folder.expect(2, &["verify", "--anchor", "missing"]);
    folder.expect(2, &["verify", "--anchor", "anchors", "file"]);
    folder.expect(2, &["anchor", "nobody"]);
}

#[test]
fn control_characters_in_any_name_do_not_reach_the_terminal() {
    let folder = stocked("control", &[golden("diagnosis")]);
    let evil = "a\u{1b}[31m\u{202e}b\u{7}";
    for arguments in [
        &["show", evil][..],
        &["show", "diagnosis", "--ticket", evil],
        &["show", "diagnosis", "--call", evil],
        &["runs", "--ending", evil],
        &["runs", "--store", evil],
        &["export", evil],
        &["import", evil],
        &["anchor", evil],
        &["verify", evil],
        &["verify", "--anchor", evil],
        &["completions", evil],
    ] {
        let output = folder.run(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let said = text(&[output.stdout, output.stderr].concat());
        assert!(!said.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{arguments:?}: {said:?}");
    }
    folder.file(evil, &small_success());
    for arguments in [&["verify", evil][..], &["import", evil], &["import", evil, "--json"], &["show", evil]] {
        let (out, err) = folder.expect(0, arguments);
        assert!(!(out + &err).contains(['\u{1b}', '\u{7}']), "{arguments:?}");
    }
    folder.raw("UPDATE runs SET owner = 'x\u{1b}[31m'");
    let (out, _) = folder.expect(0, &["runs"]);
    assert!(!out.contains('\u{1b}'), "{out:?}");
}

#[test]
fn a_reader_that_went_away_changes_no_exit_code() {
    let folder = asking("pipe");
    folder.expect(0, &["import", golden("diagnosis").to_str().unwrap()]);
    folder.expect(0, &["anchor", "--out", "anchors"]);
    for (arguments, code) in [
        (&["runs"][..], 0),
        (&["runs", "--json"], 0),
        (&["show", ASKING], 8),
        (&["show", ASKING, "--json"], 8),
        (&["show", ASKING, "--ticket", TICKET], 0),
        (&["export", "diagnosis"], 0),
        (&["export", "diagnosis", "--redact"], 0),
        (&["anchor"], 0),
        (&["verify"], 0),
        (&["verify", "asking.jsonl"], 0),
        (&["verify", "--anchor", "anchors"], 0),
        (&["import", "asking.jsonl"], 0),
        (&["completions", "bash"], 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = folder.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn completions_know_every_command() {
    let folder = Folder::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (out, _) = folder.expect(0, &["completions", shell]);
        for command in ["runs", "show", "export", "import", "anchor", "verify", "completions", "replay"] {
            assert!(out.contains(command), "{shell}: {command}");
        }
    }
    let (out, _) = folder.expect(0, &["completions", "bash", "--json"]);
    assert_eq!(out.lines().count(), 1);
    folder.expect(2, &["completions", "no-shell"]);
    assert!(folder.names().is_empty());
}

/// The command as a user to whom permissions mean something.
#[cfg(unix)]
fn unprivileged(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    let root = fs::metadata(folder.path("asking.jsonl")).unwrap().uid() == 0;
    let mut command = if root {
        // Root may read and write everything, and nobody else may look into root's folders.
        let copy = folder.path("portcullis");
        if !copy.exists() {
            // Not by this process: a child that another test begins meanwhile would hold the copy open for writing,
            // and what is open for writing cannot be run.
            let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_portcullis")).arg(&copy).status().unwrap();
            assert!(copied.success());
        }
        let mut command = Command::new(copy);
        command.uid(65534).gid(65534);
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_portcullis"))
    };
    let output = command.args(arguments).current_dir(&folder.0).env_remove("PORTCULLIS_STORE").output().unwrap();
    (output.status.code().unwrap(), text(&output.stderr))
}

#[cfg(unix)]
#[test]
fn a_store_that_may_only_be_read_is_read_and_not_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = asking("read-only");
    unprivileged(&folder, &["completions", "bash"]);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let store = folder.path("portcullis.db");
    let before = fs::read(&store).unwrap();
    mode(&store, 0o444);
    mode(&folder.0, 0o777);
    for arguments in [&["runs"][..], &["show", ASKING, "--json"], &["export", ASKING], &["anchor"], &["verify"]] {
        let (code, err) = unprivileged(&folder, arguments);
        assert_eq!(code, if arguments[0] == "show" { 8 } else { 0 }, "{arguments:?}: {err}");
    }
    let (code, err) = unprivileged(&folder, &["import", "asking.jsonl"]);
    assert_eq!((code, err.contains("read_only")), (10, true), "{err}");
    for beside in ["portcullis.db-shm", "portcullis.db-wal"] {
        let _ = fs::remove_file(folder.path(beside));
    }
    // Nothing can be made beside it, so nobody writes it either: the file is all there is.
    mode(&folder.0, 0o555);
    let (code, err) = unprivileged(&folder, &["runs"]);
    mode(&folder.0, 0o755);
    assert_eq!(code, 0, "{err}");
    mode(&store, 0o000);
    let (code, err) = unprivileged(&folder, &["runs"]);
    assert_eq!((code, err.contains("portcullis.db")), (10, true), "{err}");
    mode(&store, 0o600);
    assert_eq!(fs::read(&store).unwrap(), before);
}

#[test]
fn a_store_that_somebody_else_writes_is_read_and_a_writer_says_that_it_is_locked() {
    let folder = asking("locked");
    let other = Connection::open(folder.path("portcullis.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE runs SET epoch = epoch").unwrap();
    folder.expect(0, &["runs"]);
    folder.expect(8, &["show", ASKING]);
    let (out, err) = folder.expect(10, &["import", golden("diagnosis").to_str().unwrap()]);
    assert_eq!((out.as_str(), err.contains("locked")), ("", true), "{err}");
    drop(other);
    folder.expect(0, &["import", golden("diagnosis").to_str().unwrap()]);
}

#[test]
fn the_page_of_commands_shows_what_the_binary_prints() {
    let page = fs::read_to_string(project("docs/commands.md")).unwrap();
    let folder = stocked("page", &[golden("diagnosis")]);
    folder.file("asking.jsonl", &first(&golden(ASKING), 3));
    let (imported, _) = folder.expect(0, &["import", "asking.jsonl"]);
    folder.expect(0, &["import", golden("row-15-cancelled").to_str().unwrap()]);
    folder.expect(0, &["anchor", "--out", "anchors"]);
    folder.expect(0, &["export", "row-15-cancelled", "--redact", "--out", "r.jsonl"]);
    let closing = fs::read_to_string(folder.path("r.jsonl")).unwrap();
    let shown = [imported, format!("{}\n", closing.lines().last().unwrap())];
    let printed = [
        (&["runs"][..], 0),
        (&["show", ASKING], 8),
        (&["show", ASKING, "--ticket", TICKET], 0),
        (&["anchor"], 0),
        (&["verify", "r.jsonl"], 0),
        (&["verify", "--anchor", "anchors"], 0),
        (&["verify"], 0),
    ];
    let printed = printed.into_iter().map(|(arguments, code)| folder.expect(code, arguments).0);
    let page = timeless(&page);
    for text in shown.into_iter().chain(printed) {
        assert!(page.contains(&timeless(&format!("{text}```"))), "docs/commands.md does not show:\n{text}");
    }
}

/// The text with one moment in the place of all others.
fn timeless(text: &str) -> String {
    const LENGTH: usize = "2026-01-31T09:12:00Z".len();
    let mut kept = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let moment = rest.get(..LENGTH).filter(|word| word.parse::<humantime::Timestamp>().is_ok());
        kept.push_str(if moment.is_some() { "2026-01-31T09:12:00Z" } else { &rest[..letter.len_utf8()] });
        rest = &rest[moment.map_or(letter.len_utf8(), str::len)..];
    }
    kept
}
