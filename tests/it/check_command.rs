//! `portcullis check` as a process: what a scenario resolves to, without a run (SPEC 12, 14.18).

use std::process::Output;

use portcullis::vocabulary::json::Json;

fn check(file: &str, more: &[&str]) -> (i32, String, String) {
    let path =
        if file.starts_with('/') { file.into() } else { crate::support::project(&format!("examples/{file}.json")) };
    let output: Output = crate::support::portcullis().arg("check").arg(path).args(more).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A spec that names this plugin with this configuration, in a file of its own.
fn written(name: &str, plugins: &str, environment: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{name}.json"));
    let spec = format!(r#"{{"task":"t","model":{{"name":"m"}},"tools":[{{"name":"look"}}],"plugins":{plugins}}}"#);
    std::fs::write(&path, format!(r#"{{"spec":{spec},"environment":{environment}}}"#)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn the_page_shows_what_check_prints() {
    let page = std::fs::read_to_string(crate::support::project("docs/commands.md")).unwrap();
    for (file, code) in [("plugins-9-permission-and-policy", 0), ("plugins-5-hook-over-bound-at-resolution", 4)] {
        let (exit, shown, errors) = check(file, &[]);
        assert_eq!((exit, errors.as_str()), (code, ""));
        assert!(page.contains(&format!("$ portcullis check examples/{file}.json\n{shown}")), "{shown}");
    }
}

/// Whatever check says, a run says: it resolves, or it ends in row 18 with that failure.
#[test]
fn check_agrees_with_the_run_of_every_example() {
    for path in std::fs::read_dir(crate::support::project("examples")).unwrap() {
        let path = path.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let path = path.to_str().unwrap().to_owned();
        let (exit, shown, _) = check(&path, &["--json"]);
        let said = Json::parse(shown.trim()).unwrap();
        let resolves = said.as_object().unwrap()["resolves"].as_bool().unwrap();
        let run = crate::support::portcullis().args(["run", &path, "--no-store", "--json"]).output().unwrap();
        let ran = String::from_utf8(run.stdout).unwrap();
        assert_eq!(ran.contains(r#""row":18"#), !resolves, "{path}: {shown}{ran}");
        assert_eq!(exit, if resolves { 0 } else { 4 }, "{path}");
    }
}

#[test]
fn every_mistake_is_named_with_whose_it_is() {
    let mistakes = [
        (r#"[{"id":"nobody"}]"#, "{}", "config", "plugin nobody"),
        (
            r#"[{"id":"answer-policy","config":{}},{"id":"answer-policy","config":{}}]"#,
            "{}",
            "duplicate_plugin",
            "answer-policy",
        ),
        (r#"[{"id":"tool-permission","config":{"default":"perhaps"}}]"#, "{}", "config", "/default"),
        (r#"[{"id":"answer-policy","config":{"forbidden":["("]}}]"#, "{}", "config", "/forbidden/0"),
        ("[]", r#"{"hooks":[{"plugin":"ghost","point":"round_end"}],"plugins":["ghost"]}"#, "bound", "ghost"),
        (
            "[]",
            r#"{"state_keys":[{"scope":"run","key":"k","policy":"exclusive"},{"scope":"run","key":"k","policy":"disjoint"}]}"#,
            "config",
            "plugin host",
        ),
        ("[]", r#"{"gates":[{"id":"g","of":"tool","tools":["nope"]}]}"#, "config", "plugin host"),
        ("[]", r#"{"plugins":["host"],"capabilities":[{"plugin":"host"}]}"#, "config", "host"),
    ];
    for (plugins, environment, kind, named) in mistakes {
        let (_folder, path) = written("mistake", plugins, environment);
        let (exit, shown, _) = check(&path, &[]);
        assert_eq!(exit, 4, "{plugins} {environment}: {shown}");
        assert!(shown.starts_with("does not resolve: ") && shown.contains(named), "{named}: {shown}");
        let (_, json, _) = check(&path, &["--json"]);
        assert!(json.contains(&format!(r#""error":{{"type":"{kind}""#)), "{kind}: {json}");
    }
}

#[test]
fn a_key_of_the_thread_that_nobody_declares_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("typo.json");
    let spec = r#"{"task":"t","model":{"name":"m"},"prior_state":{"notse":1,"notes":2}}"#;
    let keys = r#"{"state_keys":[{"scope":"thread","key":"notes","policy":"exclusive"}]}"#;
    std::fs::write(&path, format!(r#"{{"spec":{spec},"environment":{keys}}}"#)).unwrap();
    let (exit, _, errors) = check(path.to_str().unwrap(), &[]);
    assert_eq!(exit, 0);
    assert!(errors.contains("\"notse\"") && !errors.contains("\"notes\""), "{errors}");
}

#[test]
fn what_is_no_scenario_is_bad_input_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let turns = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"hello"}]"#;
    let cases = [
        (file("turns.json", turns), "recorded transcript"),
        (file("cut.json", r#"{"spec":{"task":"t""#), "line 1"),
        (file("extra.json", r#"{"spec":{"task":"t","model":{"name":"m"}},"hooks":{}}"#), "hooks"),
        (folder.path().join("absent.json").to_str().unwrap().to_owned(), "cannot be read"),
    ];
    for (path, said) in cases {
        let (exit, shown, errors) = check(&path, &[]);
        assert_eq!((exit, shown.as_str()), (2, ""), "{path}");
        assert!(errors.contains(said), "{said}: {errors}");
    }
}
