//! The project lints itself: imports point down only, and what must not stand below the runtime does not.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::project;

/// The floors, from the ground up. Modules of one number may import each other's lower neighbours only.
const FLOORS: &[(&str, u32)] = &[
    ("vocabulary", 0),
    ("machines", 1),
    ("composition", 2),
    ("engine", 3),
    ("history", 4),
    ("testkit", 5),
    ("runtime", 6),
    ("plugins", 7),
    ("adapters", 8),
    ("service", 9),
    ("cli", 10),
];

/// Words that decide nothing below the runtime: clocks, threads, randomness, unordered maps, floats that
/// decide, and whatever unwinds.
const BANNED: &[&str] = &[
    "std::time",
    "SystemTime",
    "Instant::now",
    "std::thread",
    "tokio",
    "rand::",
    "getrandom",
    "HashMap",
    "HashSet",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    ".unwrap()",
    ".expect(",
    "panic!",
    "todo!",
    "unimplemented!",
    "unreachable!",
];

/// The floors that the ban holds for.
const PURE: &[&str] = &["vocabulary", "machines", "composition", "engine", "history"];

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.map(|entry| entry.expect("a folder can be listed").path()) {
        if entry.is_dir() {
            found.extend(sources(&entry));
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The code of a file: without comments and without test modules, which stand in files of their own or at
/// the end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file can be read");
    let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    before_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn imports_point_down_only() {
    let mut upward = Vec::new();
    for (floor, height) in FLOORS {
        for path in sources(&project("src").join(floor)).iter().filter(|path| !is_test(path)) {
            for (other, above) in FLOORS.iter().filter(|(_, other)| other > height) {
                if code(path).contains(&format!("crate::{other}")) {
                    upward.push(format!("{} imports {other} ({above} over {height})", path.display()));
                }
            }
        }
    }
    assert!(upward.is_empty(), "{upward:#?}");
}

#[test]
fn every_module_at_the_top_is_a_floor() {
    for entry in fs::read_dir(project("src")).expect("there is a src") {
        let path = entry.expect("src can be listed").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let known = FLOORS.iter().any(|(floor, _)| *floor == name) || name == "lib" || name == "main";
        assert!(known, "{name} has no floor");
    }
}

#[test]
fn pure_floors_hold_no_clock_no_randomness_and_nothing_that_unwinds() {
    let mut found = Vec::new();
    let mut read = 0;
    for floor in PURE {
        for path in sources(&project("src").join(floor)).iter().filter(|path| !is_test(path)) {
            read += 1;
            let code = code(path);
            for word in BANNED.iter().filter(|word| code.contains(**word)) {
                found.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(read > 40, "only {read} files were read");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn statig_stays_inside_the_machines() {
    for path in sources(&project("src")).iter().filter(|path| !path.starts_with(project("src/machines"))) {
        assert!(!code(path).contains("statig"), "{}", path.display());
    }
}

#[test]
fn the_lint_sees_what_it_should() {
    let source = "// std::time is fine here\nuse std::time::Instant;\n#[cfg(test)]\nmod tests { fn f() { panic!() } }";
    let path = std::env::temp_dir().join(format!("portcullis-lint-{}.rs", std::process::id()));
    fs::write(&path, source).expect("a scratch file can be written");
    let code = code(&path);
    fs::remove_file(&path).expect("a scratch file can be removed");
    assert!(code.contains("std::time") && !code.contains("panic!") && !code.contains("is fine"));
}
