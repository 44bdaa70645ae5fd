//! Recorded runs of others from the command line: audits and suppositions.

use std::fs;

use super::{expect, portcullis};
use crate::support::{Scratch, project};

const LOGS: &str = "examples/logs";

#[test]
fn the_pages_show_what_audits_and_suppositions_print() {
    let page = |path: &str| fs::read_to_string(project(path)).unwrap();
    let (readme, audit, commands) = (page("README.md"), page("docs/audit.md"), page("docs/commands.md"));
    let whole = expect(0, &["audit", LOGS]).out;
    let limited = expect(0, &["audit", LOGS, "--set", "budget.model_calls=4"]).out;
    let supposed = expect(0, &["what-if", "examples/logs/inventory.json", "--set", "budget.model_calls=4"]).out;
    let clock = expect(0, &["what-if", "examples/recorded/clock.jsonl", "--set", "budget.model_calls=1"]).out;
    for (name, page, shown) in [
        ("README.md", &readme, &whole),
        ("README.md", &readme, &supposed),
        ("docs/audit.md", &audit, &whole),
        ("docs/audit.md", &audit, &limited),
        ("docs/audit.md", &audit, &supposed),
        ("docs/commands.md", &commands, &clock),
    ] {
        assert!(page.contains(shown.trim_end()), "{name} does not show:\n{shown}");
    }
}

#[test]
fn one_bad_file_is_named_and_stops_nothing() {
    let folder = Scratch::new("bad-among-good");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::copy(project("examples/logs/refund.json"), path("b.json")).unwrap();
    fs::write(path("a.json"), r#"[{"role":"user","content":"cut in the mid"#).unwrap();
    fs::write(path("c.json"), b"[\"\xff\"]").unwrap();
    fs::write(path("d.yaml"), "request: text").unwrap();
    let said = portcullis(&["audit", folder.path().to_str().unwrap()]);
    assert_eq!(said.code, 7, "{}", said.err);
    assert!(said.out.contains("b-turn-1") && said.out.contains("3 files could not be read"), "{}", said.out);
    for (file, reason) in [("a.json", "line 1, column"), ("c.json", "not UTF-8"), ("d.yaml", "the formats known are")] {
        let line = said.err.lines().find(|line| line.contains(file)).unwrap_or_else(|| panic!("{}", said.err));
        assert!(line.contains(reason), "{line}");
    }
}

#[test]
fn the_audit_as_json_is_one_object_a_line_and_a_total() {
    let said = expect(0, &["audit", LOGS, "--json"]);
    let lines: Vec<serde_json::Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |is: &str| lines.iter().filter(|line| line["is"] == is).count();
    assert_eq!((count("conversation"), count("run"), count("total")), (7, 8, 1));
    let total = lines.last().unwrap();
    assert_eq!((&total["runs"], &total["findings"]["failed_write_claimed_done"]), (&8.into(), &1.into()));
}

#[test]
fn the_page_is_whole_without_scripts_and_loads_nothing() {
    let folder = Scratch::new("audit-page");
    let hostile = r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":
        {"name":"</script><img src=x onerror=alert(1)>\u202e","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c","content":"</script><script>alert(2)</script>"},
        {"role":"assistant","content":"done 12 </details>"}]"#;
    let log = folder.path().join("<b onmouseover=alert(3)>.json");
    fs::write(&log, hostile).unwrap();
    let out = folder.path().join("out.html");
    expect(0, &["audit", LOGS, log.to_str().unwrap(), "--html", out.to_str().unwrap()]);
    let page = fs::read_to_string(&out).unwrap();
    for fact in ["9 runs in 8 files", "row 2: ", "refund-turn-1", "failed write of refund_order claimed as done"] {
        assert!(page.contains(fact), "{fact}");
    }
    let body = page.split_once("<body>").unwrap().1.rsplit_once("<script>").unwrap().0;
    for bad in ["<img", "<b ", "<script", "</script", "onerror=alert", "\u{202E}", "http:", "https:", "src="] {
        let found = body.find(bad).map(|at| body[at.saturating_sub(40)..].chars().take(90).collect::<String>());
        // Escaped text may name an attribute; no markup may.
        assert!(found.as_ref().is_none_or(|found| found.contains("&lt;")), "{bad}: {found:?}");
    }
    assert!(page.contains("default-src 'none'"));
    assert_eq!(page.matches("<script").count(), 1);
    let again = portcullis(&["audit", LOGS, "--html", out.to_str().unwrap()]);
    assert_eq!(again.code, 2, "a page that is there is not replaced: {}", again.err);
}

#[test]
fn a_supposition_that_is_kept_never_passes_for_a_history() {
    let folder = Scratch::new("what-if-out");
    let out = folder.path().join("steps.jsonl").to_str().unwrap().to_owned();
    let clock = "examples/recorded/clock.jsonl";
    expect(0, &["what-if", clock, "--set", "budget.model_calls=1", "--out", &out]);
    let kept = fs::read_to_string(&out).unwrap();
    assert!(kept.lines().count() > 3 && kept.lines().all(|line| line.starts_with(r#"{"what_if":1,"#)), "{kept}");
    for command in ["replay", "import", "show", "verify"] {
        assert_ne!(portcullis(&[command, &out]).code, 0, "{command}");
    }
}

#[test]
fn rules_that_cannot_be_set_are_refused_with_what_can() {
    let clock = "examples/recorded/clock.jsonl";
    for (written, reason) in [
        ("task=other", "rules are budgets"),
        ("budget.model_call=3", "unknown field `model_call`"),
        ("budget", "write PATH=VALUE"),
        ("retry.base_ms=0", "no run begins"),
    ] {
        let said = expect(2, &["what-if", clock, "--set", written]);
        assert!(said.err.contains(reason), "{written}: {}", said.err);
    }
    assert_eq!(expect(2, &["what-if", "nothing-there", "--set", "budget.model_calls=1"]).out, "");
}

#[test]
fn over_a_folder_rows_are_counted_before_and_after() {
    let said = expect(0, &["what-if", "tests/golden/v1", "--set", "budgets.model_calls=2"]);
    assert!(said.out.contains("row 1 becomes 13") && said.out.contains("row 14 becomes ?"), "{}", said.out);
    let json = expect(0, &["what-if", "tests/golden/v1", "--set", "budgets.model_calls=2", "--json"]);
    assert!(json.out.lines().all(|line| line.starts_with(r#"{"what_if":1,"#)));
}
