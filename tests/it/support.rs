//! What several subjects share.

use std::path::{Path, PathBuf};

/// A snapshot under `snapshots/`. Settings of insta are thread-local, so this is the one way to take one.
#[macro_export]
macro_rules! snapshot {
    ($name:expr, $value:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $value);
        })
    };
}

/// A path inside the project.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A generated document must stand in the project as the code says it. `UPDATE_DOCS=1` writes it.
pub(crate) fn assert_generated(path: &str, content: &str) {
    let place = project(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&place, content).expect("the document can be written");
    }
    let stands = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(stands == content, "{path} is not what the code says: run the tests with UPDATE_DOCS=1 and review it");
}

/// A finished history: a success with every kind of record that is small.
pub(crate) fn history_of(script: &[(u64, &str)]) -> Vec<u8> {
    let (mut engine, mut recorder) = (portcullis::engine::Engine::new(), portcullis::history::Recorder::new());
    let mut history = Vec::new();
    for (at_ms, input) in script {
        let input = serde_json::from_str(input).unwrap_or_else(|error| panic!("{input}: {error}"));
        let step = engine.step(*at_ms, input).unwrap_or_else(|refusal| panic!("{at_ms}: {refusal}"));
        history.extend_from_slice(recorder.record(&engine, &step));
    }
    history
}

/// A run that asks one evidence tool and is then released.
pub(crate) fn small_success() -> Vec<u8> {
    let tool = r#"{"name":"metrics","evidence":true}"#;
    let draft = r#"{\"conclusion\":{\"statement\":\"the database is slow\"},\"citations\":[\"f1\"]}"#;
    let digest =
        portcullis::vocabulary::digest::Digest::of("portcullis.draft.1", &[draft.replace('\\', "").as_bytes()]);
    history_of(&[
        (
            0,
            &format!(
                r#"{{"type":"run_started","run_id":"small","spec":{{"task":"why?","model":{{"name":"m"}},"tools":[{tool}]}},"nonce":"n","wall_time":"2026-01-01T00:00:00Z"}}"#
            ),
        ),
        (1, &format!(r#"{{"type":"environment_resolved","environment":{{"tools":[{tool}]}}}}"#)),
        (
            2,
            r#"{"type":"model_responded","call":"m1","attempt":1,"content":{"calls":[{"name":"metrics","arguments":"{}"}]},"finish":"tool_calls","usage":{"input_tokens":3,"output_tokens":2}}"#,
        ),
        (3, r#"{"type":"tools_dispatched","calls":["t1.0"]}"#),
        (
            4,
            r#"{"type":"tool_completed","call":"t1.0","attempt":1,"output":{"type":"success","content":"p99 is 2 s","facts":[{"statement":"p99 is 2 s"}]}}"#,
        ),
        (
            5,
            &format!(
                r#"{{"type":"model_responded","call":"m2","attempt":1,"content":{{"text":"{draft}"}},"finish":"stop","usage":{{}}}}"#
            ),
        ),
        (
            6,
            &format!(
                r#"{{"type":"semantics_judged","call":"j1","attempt":1,"draft":"{digest}","verdict":"supported"}}"#
            ),
        ),
        (7, r#"{"type":"release_delivered","receipt":"r"}"#),
    ])
}

/// The settings of a property: what failed once is remembered at the top of the project, and tried first.
#[cfg(feature = "cli")]
pub(crate) fn remembered(place: &'static str) -> proptest::test_runner::Config {
    let persistence = proptest::test_runner::FileFailurePersistence::Direct(place);
    proptest::test_runner::Config { failure_persistence: Some(Box::new(persistence)), ..Default::default() }
}

/// A folder that is removed when the test ends.
#[cfg(feature = "runtime")]
pub(crate) struct Scratch(PathBuf);

#[cfg(feature = "runtime")]
impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("portcullis-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a scratch folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(feature = "runtime")]
impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The binary, with a store of its own that no other command of the suite sees.
#[cfg(feature = "cli")]
pub(crate) fn portcullis() -> std::process::Command {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COMMANDS: AtomicU32 = AtomicU32::new(0);
    let nth = COMMANDS.fetch_add(1, Ordering::Relaxed);
    let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{}-{nth}.db", std::process::id()));
    // A process of that number may have left one behind.
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", store.display()));
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.env("PORTCULLIS_STORE", store);
    command
}
