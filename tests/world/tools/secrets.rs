//! What a server is handed over does not come back where people and models read.

use libtest_mimic::Trial;
use portcullis::vocabulary::spec::{SecretRef, ToolSource, Transport};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

use super::badly_behaved::{hostile, no_route, silent};
use super::bench::{Bench, Ear};
use crate::components::test;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("tools::secrets::a_result_that_holds_a_secret_is_refused", in_results),
        test("tools::secrets::a_secret_is_struck_out_of_every_error", in_errors),
        test("tools::secrets::a_secret_is_struck_out_of_the_error_of_a_failed_start", in_failed_starts),
        test("tools::secrets::a_value_that_is_no_secret_may_come_back", places),
        test("tools::secrets::error_output_stands_in_the_error_of_a_failed_start_and_nowhere_else", error_output),
    ]
}

/// What is handed over: a variable that is set wherever tests run, in the place of a secret.
fn value() -> String {
    std::env::var("PATH").unwrap()
}

fn handed(mut source: ToolSource, name: &str) -> ToolSource {
    if let Transport::Stdio { env, .. } = &mut source.transport {
        env.insert(name.to_owned(), SecretRef { env: "PATH".to_owned() });
    }
    source
}

/// The error, without the value and what it begins with.
fn clean(failed: Result<ToolOutput, ToolError>) -> String {
    let Err(ToolError::Execution { message }) = failed else { panic!("{failed:?}") };
    assert!(!message.contains(&value()[..8]), "{message}");
    message
}

async fn in_results() {
    let bench = Bench::new([handed(silent("plain"), "HANDED_TOKEN")]).await.unwrap();
    for tool in ["h__tell", "h__tell-in-json", "h__tell-in-a-failure"] {
        assert!(clean(bench.call(tool, "{}").await).contains("holds a secret"));
    }
    assert_eq!(bench.text("h__echo", "{}").await, "echo");
}

async fn in_errors() {
    for name in ["HANDED_TOKEN", "HANDED_PLACE"] {
        let bench = Bench::new([handed(silent("plain"), name)]).await.unwrap();
        let failed = bench.call("h__tell-in-an-error", "{}").await;
        let Err(ToolError::Execution { message }) = failed else { panic!("{failed:?}") };
        assert!(message.contains("not allowed: [struck out]") && !message.contains(&value()), "{message}");
    }
}

async fn in_failed_starts() {
    let dead = no_route(handed(silent("dies-with-what-it-was-handed"), "HANDED_TOKEN")).await;
    assert!(dead.contains("exited with 3: refused: [struck out]") && !dead.contains(&value()[..8]), "{dead}");
    let listed = no_route(handed(silent("describes-what-it-was-handed"), "HANDED_TOKEN")).await;
    assert!(listed.contains("holds a secret") && !listed.contains(&value()[..8]), "{listed}");
}

async fn places() {
    let bench = Bench::new([handed(silent("plain"), "HANDED_PLACE")]).await.unwrap();
    assert_eq!(bench.text("h__tell", "{}").await, format!("it is {}", value()));
}

async fn error_output() {
    let ear = Ear::open().await;
    let bench = Bench::new([hostile("plain", ear.port)]).await.unwrap();
    let failed = bench.call("h__die-talking", "{}").await;
    let Err(ToolError::Execution { message }) = failed else { panic!("{failed:?}") };
    assert!(!message.contains("mauve"), "{message}");
}
