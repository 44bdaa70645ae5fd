//! Documents say what the code does: the closed table, the numbers of rules, the licences of dependencies.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use portcullis::engine::table::{ROWS, Stop};

use crate::support::project;

fn page(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_rules_page_shows_the_closed_table_of_the_code() {
    let rules = page("docs/rules.md");
    for row in ROWS {
        let anchor = format!("<a id=\"3.{}\"></a>", row.number);
        let line = rules.lines().find(|line| line.contains(&anchor)).unwrap_or_else(|| panic!("no row {anchor}"));
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, _, _, state, stop, facts, outcome, _] = cells[..] else { panic!("{line}") };
        assert!(state.starts_with(row.run_state.word()), "{line}");
        let expected = match row.stop {
            Stop::IfSaturated => "IS".to_owned(),
            Stop::Always(reason) => format!("`{reason}`"),
            Stop::Never => "none".to_owned(),
        };
        assert_eq!(stop, expected, "{line}");
        assert_eq!(facts, row.facts.map_or("any", |facts| if facts { "yes" } else { "no" }), "{line}");
        assert!(outcome.starts_with(row.outcome.word()), "{line}");
        assert!(row.codes.iter().all(|code| outcome.contains(code.word())), "{line}");
        if let [fallback] = row.fallbacks {
            assert!(outcome.contains(fallback.word()), "{line}");
        }
    }
}

/// The rule numbers that stand behind `SPEC` in a text.
fn cited(text: &str) -> Vec<String> {
    let numbers = |rest: &str| -> Vec<String> {
        let list: String =
            rest.chars().take_while(|letter| letter.is_ascii_alphanumeric() || "., ".contains(*letter)).collect();
        let looks_like = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
        list.split([',', ' '])
            .take_while(|word| word.is_empty() || looks_like(word))
            .filter(looks_like)
            .map(|word| word.trim_end_matches('.').to_owned())
            .collect()
    };
    text.split("SPEC ").skip(1).flat_map(numbers).collect()
}

#[test]
fn every_cited_rule_stands_on_the_rules_page() {
    let rules = page("docs/rules.md");
    let stands = |number: &str| {
        rules.contains(&format!("<a id=\"{number}\"></a>")) || rules.contains(&format!("\n## {number}. "))
    };
    let (mut missing, mut found) = (BTreeSet::new(), 0);
    for path in crate::floors::sources(&project("src")) {
        for number in cited(&page(path.to_str().expect("text"))) {
            found += 1;
            if !stands(&number) {
                missing.insert(format!("{}: SPEC {number}", path.display()));
            }
        }
    }
    assert!(found > 60, "only {found} citations");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn links_between_documents_resolve() {
    let mut broken = Vec::new();
    for entry in
        fs::read_dir(project("docs")).expect("there are docs").chain(fs::read_dir(project(".")).expect("a folder"))
    {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = page(path.to_str().expect("text"));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.starts_with("http") {
                continue;
            }
            let other = if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            let there = fs::read_to_string(&other).unwrap_or_default();
            let heading = |line: &str| line.starts_with('#') && line.to_lowercase().replace(' ', "-").contains(anchor);
            let anchored =
                anchor.is_empty() || there.contains(&format!("<a id=\"{anchor}\">")) || there.lines().any(heading);
            if !other.exists() || !anchored {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn dependencies_have_permissive_licences() {
    const PERMISSIVE: &[&str] = &[
        "MIT",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Zlib",
        "Unicode-3.0",
        "CC0-1.0",
        "Unlicense",
        "0BSD",
        "BSL-1.0",
        "MIT-0",
    ];
    // What other platforms need may not have been fetched here, and nothing is fetched for a test.
    let rustc = Command::new("rustc").args(["--version", "--verbose"]).output().expect("rustc runs");
    let version = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--offline", "--filter-platform", host])
        .current_dir(project("."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 50);
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        let free = licence.split(" OR ").flat_map(|choice| choice.split('/')).any(|choice| {
            choice.split(" AND ").all(|one| {
                let one = one.trim_matches(['(', ')', ' ']);
                PERMISSIVE.iter().any(|permissive| one == *permissive || one.starts_with(&format!("{permissive} WITH")))
            })
        });
        assert!(free, "{} is under {licence}", package["name"]);
    }
}
