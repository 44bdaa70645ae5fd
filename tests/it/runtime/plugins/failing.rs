//! Plugins that fail, panic, overstep or clash: each ending by its row and failure, and what is committed.

use portcullis::composition::{PluginConfigError, PluginManifest};
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::plugins::{Contributions, HookAnswer, HookFailure, HookQuestion};
use portcullis::runtime::ports::{GateFailure, GateQuestion, Invocation};
use portcullis::runtime::{Builder, Runtime};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{HookPoint, StateScope};
use portcullis::vocabulary::input::{GateAnswer, StagedCommand};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::ToolSpec;
use portcullis::vocabulary::tool::{ObservationCode, ToolOutput};

use super::super::asks;
use super::{Made, NOTES, Played, generous, hooked, made, play, plugin, with};

async fn of(plugin: Made, config: &str) -> Played {
    let id = plugin.manifest.id.clone();
    play(with(&[(&id, config)]), [(1, Ok(asks(&["look"])))], |builder| builder.plugin(plugin)).await
}

fn end(row: u8, failure: &str) -> (u8, String) {
    (row, failure.to_owned())
}

fn notes(texts: &[&str]) -> StagedCommand {
    NOTES.set(&texts.iter().map(ToString::to_string).collect()).unwrap()
}

/// A plugin that keeps a note in the first round, and does this in the second.
fn then<F>(id: &str, point: HookPoint, then: impl Fn() -> F + Clone + Send + Sync + 'static) -> Made
where
    F: Future<Output = Result<HookAnswer, HookFailure>> + Send + 'static,
{
    plugin(id, move || {
        let then = then.clone();
        let kept = |_: HookQuestion| async { Ok(HookAnswer::nothing().staging([notes(&["kept"])])) };
        let later = move |question: HookQuestion| {
            let then = then.clone();
            async move { if question.state().read(&NOTES)?.is_empty() { Ok(HookAnswer::nothing()) } else { then().await } }
        };
        Contributions::new().state_key(&NOTES).hook(HookPoint::RoundEnd, kept).hook(point, later)
    })
}

#[tokio::test]
async fn a_hook_that_fails_or_panics_is_row_17_and_what_was_committed_before_stays() {
    let fails = then("p", HookPoint::BeforeRelease, || async { Err(HookFailure("secret words".to_owned())) });
    let panics = then("p", HookPoint::BeforeRelease, || async { panic!("secret words") });
    for plugin in [fails, panics] {
        let played = of(plugin, "null").await;
        assert_eq!(played.end(), end(17, r#"{"type":"internal"}"#));
        assert_eq!(played.thread.state["test.notes"].to_text(), r#"["kept"]"#);
        assert_eq!(played.thread.facts.len(), 1);
        assert!(played.history.contains(r#""type":"hook_failed""#));
        assert!(!played.history.contains("secret words"), "what it says goes to the trace alone");
    }
}

#[tokio::test]
async fn a_hook_that_panics_before_its_first_await_is_caught_too() {
    let panics = hooked("p", HookPoint::RoundStart, |_| -> std::future::Ready<Result<HookAnswer, HookFailure>> {
        panic!("secret words")
    });
    assert_eq!(of(panics, "null").await.end(), end(17, r#"{"type":"internal"}"#));
}

#[tokio::test]
async fn a_hook_that_fails_when_the_run_has_ended_changes_nothing() {
    for panics in [false, true] {
        let late = hooked("p", HookPoint::RunEnd, move |_| async move {
            assert!(!panics, "secret words");
            Err(HookFailure("too late".to_owned()))
        });
        assert_eq!(of(late, "null").await.end(), end(1, ""));
    }
}

#[tokio::test]
async fn an_action_that_fails_is_row_17() {
    let schedules = plugin("p", || {
        let schedule = || StagedCommand::Schedule { action: "test.act".to_owned(), payload: Json::Null };
        Contributions::new()
            .action("test.act", |_| async { Err(HookFailure("secret words".to_owned())) })
            .hook(HookPoint::RoundStart, move |_| async move { Ok(HookAnswer::nothing().staging([schedule()])) })
    });
    assert_eq!(of(schedules, "null").await.end(), end(17, r#"{"type":"internal"}"#));
}

#[tokio::test]
async fn a_tool_gate_that_fails_or_panics_blocks_the_call_and_the_run_goes_on() {
    for panics in [false, true] {
        let gated = plugin("p", move || {
            Contributions::new().tool_gate("test.gate", ["look"], move |_: GateQuestion| async move {
                assert!(!panics, "secret words");
                Err(GateFailure("secret words".to_owned()))
            })
        });
        let played = of(gated, "null").await;
        assert_eq!(played.end(), end(3, r#"{"type":"no_observed_facts"}"#));
        assert_eq!(played.observations()[0].code, Some(ObservationCode::Blocked));
        assert!(!played.history.contains("secret words"));
    }
}

#[tokio::test]
async fn a_release_gate_that_fails_panics_or_answers_what_it_may_not_holds_the_answer_back() {
    type Answer = fn() -> Result<GateAnswer, GateFailure>;
    let answers: [(Answer, u8, &str); 3] = [
        (|| Err(GateFailure("secret words".to_owned())), 20, r#"{"type":"blocked","gate":"test.gate"}"#),
        (|| panic!("secret words"), 20, r#"{"type":"blocked","gate":"test.gate"}"#),
        (|| Ok(GateAnswer::Confirm { expires_ms: None }), 17, r#"{"type":"capability_bound"}"#),
    ];
    for (answer, row, failure) in answers {
        let gated =
            plugin("p", move || Contributions::new().release_gate("test.gate", move |_| async move { answer() }));
        assert_eq!(of(gated, "null").await.end(), end(row, failure));
    }
}

#[tokio::test]
async fn a_tool_of_a_plugin_that_panics_is_an_execution_error_of_its_call() {
    let panics = plugin("p", || {
        let panics = |_: Json, _: Invocation| async { panic!("secret words") };
        Contributions::new().tool(ToolSpec::evidence("test.look"), panics)
    });
    let build = |builder: Builder| builder.plugin(panics);
    let played = play(with(&[("p", "null")]), [(1, Ok(asks(&["test.look"])))], build).await;
    assert_eq!(played.observations()[0].code, Some(ObservationCode::ToolExecutionError));
    assert!(!played.history.contains("secret words"));
}

#[tokio::test]
async fn two_sets_of_an_exclusive_key_are_a_conflict_and_nothing_of_the_batch_is_committed() {
    let sets =
        |id: &str| then(id, HookPoint::RoundStart, || async { Ok(HookAnswer::nothing().staging([notes(&["b"])])) });
    let other = hooked("q", HookPoint::BeforeRelease, |_| async { Ok(HookAnswer::nothing().staging([notes(&["c"])])) });
    let build = |builder: Builder| builder.plugin(sets("p")).plugin(other);
    let played = play(with(&[("p", "null"), ("q", "null")]), [(1, Ok(asks(&["look"])))], build).await;
    assert_eq!(played.end(), end(17, r#"{"type":"state_conflict"}"#));
    assert_eq!(played.thread.state["test.notes"].to_text(), r#"["kept"]"#, "the batch before stands");
}

#[tokio::test]
async fn a_bound_that_is_overstepped_while_the_run_goes_on_is_row_17_and_commits_nothing() {
    let foreign = || StagedCommand::Set { scope: StateScope::Thread, key: "theirs".to_owned(), value: Json::Null };
    let both = move || async move { Ok(HookAnswer::nothing().staging([notes(&["more"]), foreign()])) };
    let played = of(then("p", HookPoint::BeforeRelease, both), "null").await;
    assert_eq!(played.end(), end(17, r#"{"type":"capability_bound"}"#));
    assert_eq!(played.thread.state["test.notes"].to_text(), r#"["kept"]"#);
}

/// Row and failure of a run whose environment cannot be resolved, and why, as the history says it.
async fn unresolved(plugins: Vec<Made>, config: &str) -> (u8, String, String) {
    let ids: Vec<String> = plugins.iter().map(|plugin| plugin.manifest.id.clone()).collect();
    let named: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), config)).collect();
    let build = |builder: Builder| plugins.into_iter().fold(builder, Builder::plugin);
    let played = play(with(&named), [], build).await;
    assert_eq!(played.asked.len(), 0, "no model is asked");
    let failed = played.history.lines().find(|line| line.contains(r#""type":"resolution_failed""#)).unwrap();
    let (row, failure) = played.end();
    (row, failure, failed.to_owned())
}

#[tokio::test]
async fn a_plugin_that_cannot_be_activated_is_a_config_error_by_its_name() {
    let config = r#"{"type":"resolution","kind":"config"}"#;
    let refuses = made(PluginManifest::new("p", generous()), |_| Err(PluginConfigError::new("p", "not on Sundays")));
    let (row, failure, why) = unresolved(vec![refuses], "null").await;
    assert_eq!((row, failure.as_str()), (18, config));
    assert!(why.contains("not on Sundays") && why.contains(r#""plugin":"p""#), "{why}");
    let panics = made(PluginManifest::new("p", generous()), |_| panic!("secret words"));
    let (row, failure, why) = unresolved(vec![panics], "null").await;
    assert_eq!((row, failure.as_str()), (18, config));
    assert!(why.contains("panicked") && !why.contains("secret words"), "{why}");
}

#[tokio::test]
async fn a_configuration_that_breaks_the_manifests_schema_is_named_with_its_place_and_nobody_is_activated() {
    let schema = Json::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).unwrap();
    let strict = || {
        let manifest = PluginManifest { config: Some(schema.clone()), ..PluginManifest::new("p", generous()) };
        made(manifest, |_| panic!("it was activated"))
    };
    for (config, place) in [(r#"{"n":"x"}"#, "/n"), ("null", "")] {
        let (row, _, why) = unresolved(vec![strict()], config).await;
        assert_eq!(row, 18);
        assert!(why.contains(&format!(r#"at \"{place}\""#)) && !why.contains("panicked"), "{why}");
    }
}

#[tokio::test]
async fn a_plugin_that_is_not_registered_is_named_with_those_that_are() {
    let spec = with(&[("missing", "null")]);
    let played = play(spec.clone(), [], |builder| builder.plugin(plugin("b", Contributions::new))).await;
    assert_eq!(played.end(), end(18, r#"{"type":"resolution","kind":"config"}"#));
    let why = r#""plugin":"missing","message":"it is not registered here; registered are b""#;
    assert!(played.history.contains(why), "{}", played.history);
    let played = play(spec, [], |builder| builder).await;
    assert_eq!(played.end().0, 18);
}

#[tokio::test]
async fn contributions_that_overstep_a_bound_or_clash_end_the_run_before_it_begins() {
    let tool = || Contributions::new().tool(ToolSpec::new("test.t"), |_: Json, _| async { Ok(ToolOutput::text("")) });
    let narrow = Bound { tools: Allowance::ids(["other"]), ..Bound::default() };
    let oversteps = made(PluginManifest::new("p", narrow), move |_| Ok(tool()));
    let (row, failure, why) = unresolved(vec![oversteps], "null").await;
    assert_eq!((row, failure.as_str()), (18, r#"{"type":"capability_bound"}"#));
    assert!(why.contains("the tool test.t"), "{why}");

    let (row, failure, why) = unresolved(vec![plugin("p", tool), plugin("q", tool)], "null").await;
    assert_eq!((row, failure.as_str()), (18, r#"{"type":"resolution","kind":"duplicate_tool"}"#));
    assert!(why.contains(r#""first":"p","second":"q""#), "{why}");

    type More = fn(Contributions) -> Contributions;
    let twice: [(More, &str); 4] = [
        (|all| all.hook(HookPoint::RoundEnd, |_| async { Ok(HookAnswer::nothing()) }), "config"),
        (|all| all.release_gate("test.g", |_| async { Ok(GateAnswer::Allow) }), "config"),
        (|all| all.action("test.a", |_| async { Ok(HookAnswer::nothing()) }), "duplicate_action_kind"),
        (|all| all.tool(ToolSpec::new("test.t"), |_: Json, _| async { Ok(ToolOutput::text("")) }), "duplicate_tool"),
    ];
    for (more, kind) in twice {
        let (row, failure, _) = unresolved(vec![plugin("p", move || more(more(Contributions::new())))], "null").await;
        assert_eq!((row, failure), (18, format!(r#"{{"type":"resolution","kind":"{kind}"}}"#)));
    }
}

#[tokio::test]
async fn a_spec_that_names_a_plugin_twice_or_without_what_it_requires_is_row_18() {
    let spec = with(&[("p", "null"), ("p", "null")]);
    let played = play(spec, [], |builder| builder.plugin(plugin("p", Contributions::new))).await;
    assert_eq!(played.end(), end(18, r#"{"type":"resolution","kind":"duplicate_plugin"}"#));
    let manifest = PluginManifest { requires: vec!["base".to_owned()], ..PluginManifest::new("p", generous()) };
    let (row, failure, _) = unresolved(vec![made(manifest, |_| Ok(Contributions::new()))], "null").await;
    assert_eq!((row, failure.as_str()), (18, r#"{"type":"resolution","kind":"missing_dependency"}"#));
}

#[test]
fn two_plugins_of_one_id_are_no_runtime() {
    let builder = Runtime::builder().plugin(plugin("p", Contributions::new)).plugin(plugin("p", Contributions::new));
    let model = super::Talker::new(&super::VirtualClock::default(), []);
    let built = builder.model(model).store(portcullis::adapters::stores::memory::MemoryStore::new()).build();
    assert!(matches!(built, Err(Error::Execution(Trouble::PluginTwice(id))) if id == "p"));
}
