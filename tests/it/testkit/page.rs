//! The page for embedders says what the code does: its suite, tables and report are written from here.
//! `UPDATE_DOCS=1 cargo test --test it testkit::page` rewrites it.

use std::fs;

use portcullis::testkit::invariants::{Invariant, report};

use super::forged::rechained;
use crate::audit::{lie, success};
use crate::support::project;

fn source(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rules of a suite with their doc lines.
fn rules(path: &str) -> String {
    let text = source(path);
    let (_, list) = text.split_once("pub enum Rule {").expect("a list of rules");
    let (list, _) = list.split_once("\n    }\n").expect("its end");
    let mut doc = Vec::new();
    let mut table = "| rule | |\n|---|---|\n".to_owned();
    for line in list.lines().map(str::trim) {
        if let Some(told) = line.strip_prefix("/// ") {
            doc.push(told);
        } else if let Some((_, word)) = line.split_once(" = ") {
            let word = word.trim_end_matches(',').trim_matches('"');
            table.push_str(&format!("| `{word}` | {} |\n", doc.join(" ")));
            doc.clear();
        }
    }
    assert!(table.lines().count() > 6, "{path}: {table}");
    table
}

fn invariants() -> String {
    let row = |invariant: &Invariant| {
        let number = invariant.number();
        format!("| [13.I{number}](rules.md#13.I{number}) | `{invariant}` | {} |\n", invariant.demands())
    };
    format!("| | name | demands |\n|---|---|---|\n{}", Invariant::ALL.iter().map(row).collect::<String>())
}

/// What a failing assertion says of a history in which a release was slipped in, hashed anew.
fn failing() -> String {
    let early = r#""effects":[{"type":"publish","release":{},"key":""}]"#;
    let forged = rechained(&lie(&success(), 4, r#""effects":[]"#, early));
    format!("```text\n{}```\n", report(forged).expect_err("it passes"))
}

fn block(name: &str) -> String {
    match name {
        "suite" => format!("```rust\n{}```\n", source("examples/embedder/tests/fail_closed.rs")),
        "invariants" => invariants(),
        "report" => failing(),
        "host" | "store" => rules(&format!("src/runtime/conformance/{name}/mod.rs")),
        name => rules(&format!("src/runtime/conformance/{name}.rs")),
    }
}

#[test]
fn the_page_holds_the_suite_the_tables_and_a_real_report() {
    let page = source("docs/testkit.md");
    let mut written = page.clone();
    for name in ["suite", "invariants", "report", "model", "judge", "tools", "host", "store"] {
        let begin = format!("<!-- {name} -->\n");
        let (before, rest) = written.split_once(&begin).unwrap_or_else(|| panic!("no place for {name}"));
        let (_, after) = rest.split_once("<!-- end -->").expect("its end");
        written = format!("{before}{begin}{}<!-- end -->{after}", block(name));
    }
    crate::support::assert_generated("docs/testkit.md", &written);
}

#[test]
fn the_suite_on_the_page_is_about_forty_lines() {
    let suite = source("examples/embedder/tests/fail_closed.rs");
    let lines = suite.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("use ")).count();
    assert!((30..=50).contains(&lines), "{lines}");
}
