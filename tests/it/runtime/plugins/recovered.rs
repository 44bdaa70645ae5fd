//! After a crash: the handlers of a run are found again from the spec that its history holds.

use std::sync::Arc;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::composition::PluginManifest;
use portcullis::history::{Policy, replay};
use portcullis::runtime::clock::Clock;
use portcullis::runtime::plugins::{Contributions, HookAnswer, HookQuestion};
use portcullis::runtime::ports::{GateQuestion, Invocation, ModelAnswer};
use portcullis::runtime::{Builder, Ended, Outcome, VirtualClock};
use portcullis::vocabulary::environment::HookPoint;
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::Failure;
use portcullis::vocabulary::input::GateAnswer;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::ToolOutput;

use super::super::{Talker, Workshop, asks, runtime};
use super::{Made, Notebook, generous, made, plugin, until, with};

/// The first one that comes here never comes back: the process dies with it.
async fn hang_once(notebook: &Notebook, line: String) {
    notebook.note(line);
    if notebook.lines().len() == 1 {
        std::future::pending::<()>().await;
    }
}

/// A run whose process dies as soon as somebody hangs, and that goes on in a process with `then` in the place of
/// `first`. `None`: it waits for a person.
fn crashed(
    notebook: &Notebook,
    spec: Spec,
    calls: &[&str],
    first: Vec<Made>,
    then: Vec<Made>,
) -> (Option<Arc<Ended>>, String) {
    let store = MemoryStore::new();
    let (next, reader) = (store.session(), store.session());
    let clock = VirtualClock::default();
    let draft = (0, Ok(ModelAnswer::text(super::super::CITES)));
    let model = Talker::new(&clock, calls.iter().map(|call| (0, Ok(asks(&[call])))).chain([draft]));
    let answers = model.clone();
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = process.block_on(async {
        // Nobody's time goes on, so that no timer ends what hangs.
        std::mem::forget(clock.busy());
        let builder = runtime(&clock, store, model, Workshop::new(&clock, 0));
        let runtime = first.into_iter().fold(builder, Builder::plugin).build().unwrap();
        let run = runtime.start(spec).await.unwrap().run().clone();
        until(|| !notebook.lines().is_empty()).await;
        run
    });
    process.shutdown_background();
    crate::stage::block_on(async {
        // The clock of the first process stands still for good; its model has the rest of its answers.
        let clock = VirtualClock::starting_at(1_000);
        let rest = answers.answers.lock().unwrap().drain(..).collect::<Vec<_>>();
        let builder = runtime(&clock, next, Talker::new(&clock, rest), Workshop::new(&clock, 5));
        let runtime = then.into_iter().fold(builder, Builder::plugin).build().unwrap();
        let handle = runtime.attach(&run).await.unwrap();
        let ended = match handle.outcome().await.unwrap() {
            Outcome::Ended(ended) => Some(ended),
            Outcome::Awaiting(_) => None,
        };
        let history = crate::stage::history(&reader, run.as_str()).await;
        assert_eq!(replay(&*history, Policy::Stop).unwrap().divergences, Vec::new());
        (ended, String::from_utf8(history).unwrap())
    })
}

fn hook(notebook: &Notebook) -> Made {
    let schema = Json::parse(r#"{"type":"object"}"#).unwrap();
    let manifest = PluginManifest { config: Some(schema), ..PluginManifest::new("p", generous()) };
    let notebook = notebook.clone();
    made(manifest, move |config| {
        let (notebook, config) = (notebook.clone(), config.to_text());
        Ok(Contributions::new().hook(HookPoint::RoundEnd, move |question: HookQuestion| {
            let (notebook, line) = (notebook.clone(), format!("{} {config}", question.ask.0));
            async move {
                hang_once(&notebook, line).await;
                Ok(HookAnswer::nothing())
            }
        }))
    })
}

#[test]
fn a_hook_that_a_crash_interrupts_is_asked_again_under_its_number_and_with_its_configuration() {
    let notebook = Notebook::default();
    let spec = with(&[("p", r#"{"n":7}"#)]);
    let (ended, history) = crashed(&notebook, spec, &["look"], vec![hook(&notebook)], vec![hook(&notebook)]);
    assert_eq!(ended.unwrap().ending.row, 1);
    assert_eq!(notebook.lines(), [r#"1 {"n":7}"#, r#"1 {"n":7}"#]);
    assert_eq!(history.matches(r#""type":"hook_answered""#).count(), 1);
}

#[test]
fn a_hook_whose_plugin_is_not_there_any_more_is_row_17() {
    let notebook = Notebook::default();
    let (ended, _) = crashed(&notebook, with(&[("p", "{}")]), &["look"], vec![hook(&notebook)], vec![]);
    let ending = ended.unwrap().ending.clone();
    assert_eq!((ending.row, ending.failure), (17, Some(Failure::Internal)));
}

#[test]
fn a_hook_that_its_plugin_has_no_more_is_row_17() {
    let notebook = Notebook::default();
    let bare = plugin("p", Contributions::new);
    let other = Made { manifest: hook(&notebook).manifest, ..bare };
    let (ended, _) = crashed(&notebook, with(&[("p", "{}")]), &["look"], vec![hook(&notebook)], vec![other]);
    assert_eq!(ended.unwrap().ending.failure, Some(Failure::Internal));
}

fn gates(notebook: &Notebook, release: bool) -> Made {
    let notebook = notebook.clone();
    plugin("p", move || {
        let notebook = notebook.clone();
        let gate = move |question: GateQuestion| {
            let (notebook, line) = (notebook.clone(), question.ask.0.to_string());
            async move {
                hang_once(&notebook, line).await;
                Ok(GateAnswer::Allow)
            }
        };
        let every: [String; 0] = [];
        if release {
            Contributions::new().release_gate("test.gate", gate)
        } else {
            Contributions::new().tool_gate("test.gate", every, gate)
        }
    })
}

#[test]
fn a_gate_that_a_crash_interrupts_is_asked_again_and_blocks_when_its_plugin_is_gone() {
    for (release, row) in [(false, 3), (true, 20)] {
        let notebook = Notebook::default();
        let spec = || with(&[("p", "null")]);
        let again = vec![gates(&notebook, release)];
        let (ended, _) = crashed(&notebook, spec(), &["look"], vec![gates(&notebook, release)], again);
        assert_eq!((ended.unwrap().ending.row, notebook.lines()), (1, vec!["1".to_owned(), "1".to_owned()]));
        let notebook = Notebook::default();
        let (ended, history) = crashed(&notebook, spec(), &["look"], vec![gates(&notebook, release)], vec![]);
        assert_eq!((ended.unwrap().ending.row, history.matches(r#""type":"gate_failed""#).count()), (row, 1));
    }
}

fn tool(notebook: &Notebook) -> Made {
    let notebook = notebook.clone();
    plugin("p", move || {
        let notebook = notebook.clone();
        Contributions::new().tool(ToolSpec::evidence("test.look"), move |_: Json, invocation: Invocation| {
            let (notebook, line) = (notebook.clone(), format!("{}/{}", invocation.call, invocation.attempt));
            async move {
                hang_once(&notebook, line).await;
                Ok(ToolOutput::facts("seen", [Statement::new("a fact")]))
            }
        })
    })
}

#[test]
fn a_plugins_tool_is_live_and_entered_again_as_long_as_its_plugin_is_there() {
    let notebook = Notebook::default();
    let spec = || with(&[("p", "null")]);
    let (ended, _) = crashed(&notebook, spec(), &["test.look"], vec![tool(&notebook)], vec![tool(&notebook)]);
    assert_eq!((ended.unwrap().ending.row, notebook.lines()), (1, vec!["t1.0/1".to_owned(), "t1.0/2".to_owned()]));
    let notebook = Notebook::default();
    let (ended, _) = crashed(&notebook, spec(), &["test.look"], vec![tool(&notebook)], vec![]);
    assert!(ended.is_none(), "nobody declares it any more, so a person has to say what it did");
    assert_eq!(notebook.lines().len(), 1);
}

#[test]
fn a_call_of_a_tool_whose_plugin_is_gone_gets_an_error_and_the_run_goes_on() {
    let notebook = Notebook::default();
    let slow =
        || Made { manifest: PluginManifest { id: "slow".to_owned(), ..hook(&notebook).manifest }, ..hook(&notebook) };
    let spec = with(&[("slow", "{}"), ("p", "null")]);
    let gone = Notebook::default();
    let (ended, history) = crashed(&notebook, spec, &["look", "test.look"], vec![slow(), tool(&gone)], vec![slow()]);
    assert_eq!((ended.unwrap().ending.row, gone.lines().len()), (1, 0));
    assert!(history.contains(r#"{"type":"tool_failed","call":"t2.0","attempt":1,"error":{"type":"unknown""#));
    assert!(history.contains("TOOL_EXECUTION_ERROR") && history.contains("does not take part: it is not registered"));
}

#[test]
fn a_run_whose_plugins_activate_no_longer_fails_closed() {
    let notebook = Notebook::default();
    let refuses = made(hook(&notebook).manifest, |_| panic!("secret words"));
    let (ended, history) = crashed(&notebook, with(&[("p", "{}")]), &["look"], vec![hook(&notebook)], vec![refuses]);
    assert_eq!((ended.unwrap().ending.row, history.contains("secret words")), (17, false));
}
