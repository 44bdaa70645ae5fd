//! Where plugins are asked, what they see there, and what becomes of what they stage.

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::composition::{PluginManifest, StateKey};
use portcullis::runtime::plugins::{ActionQuestion, Contributions, HookAbout, HookAnswer, HookQuestion};
use portcullis::runtime::ports::{GateQuestion, Invocation, ModelAnswer};
use portcullis::runtime::{Builder, VirtualClock};
use portcullis::vocabulary::environment::{HookPoint, MergePolicy, StateScope};
use portcullis::vocabulary::input::{GateAnswer, StagedCommand};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, ToolOutput};
use serde::Deserialize;

use super::super::{CITES, Talker, Workshop, asks, ended, runtime};
use super::{NOTES, Notebook, generous, hooked, made, play, plugin, until, with};

/// What a hook was asked, in a line.
fn told(question: &HookQuestion) -> String {
    let what = match &question.about {
        HookAbout::RoundStart => String::new(),
        HookAbout::BeforeInference { purpose } => purpose.to_string(),
        HookAbout::AfterInference { content, finish } => {
            let names: Vec<&str> = content.calls.iter().map(|call| call.name.as_str()).collect();
            format!("{finish} {} {names:?}", content.text.is_some())
        }
        HookAbout::AfterTool { call, plan, code, text } => {
            let plan = plan.as_ref().map(|plan| (plan.tool.name.to_string(), plan.arguments.to_text()));
            format!("{call} {plan:?} {code:?} {text}")
        }
        HookAbout::RoundEnd { round } => round.to_string(),
        HookAbout::BeforeRelease { statement, data, citations } => {
            let cited: Vec<String> = citations.iter().map(|citation| citation.fact.id.to_string()).collect();
            format!("{statement} {} {cited:?}", data.as_ref().unwrap().to_text())
        }
        HookAbout::RunEnd { ending } => format!("row {}", ending.row),
    };
    format!("{} {}: {what}", question.ask.0, question.about.point())
}

/// A plugin that listens everywhere.
fn listener(notebook: &Notebook) -> super::Made {
    let notebook = notebook.clone();
    plugin("listener", move || {
        HookPoint::ALL.iter().fold(Contributions::new(), |all, point| {
            let notebook = notebook.clone();
            all.hook(*point, move |question| {
                notebook.note(told(&question));
                async { Ok(HookAnswer::nothing()) }
            })
        })
    })
}

#[tokio::test]
async fn every_point_is_asked_in_its_place_with_what_it_promises() {
    let notebook = Notebook::default();
    let answers = [(1, Ok(asks(&["look", "nothing"]))), (1, Ok(ModelAnswer::text(CITES)))];
    let played = play(with(&[("listener", "null")]), answers, |builder| builder.plugin(listener(&notebook))).await;
    assert_eq!(played.end(), (1, String::new()));
    let lines = [
        "1 round_start: ",
        "2 before_inference: step",
        r#"3 after_inference: tool_calls false ["look", "nothing"]"#,
        r#"4 after_tool: t1.0 Some(("look", "{\"n\":0}")) None seen"#,
        r#"5 after_tool: t1.1 None Some(UnknownTool) {"error":"UNKNOWN_TOOL"}"#,
        "6 round_end: 1",
        "7 round_start: ",
        "8 before_inference: step",
        "9 after_inference: stop true []",
        r#"10 before_release: s {"n":7} ["f1"]"#,
        "11 run_end: row 1",
    ];
    assert_eq!(notebook.lines(), lines);
}

#[tokio::test]
async fn hooks_of_one_point_are_asked_one_after_the_other_dependencies_first() {
    let notebook = Notebook::default();
    let named = |id: &'static str, requires: &[&str]| {
        let notebook = notebook.clone();
        let requires = requires.iter().map(ToString::to_string).collect();
        let manifest = PluginManifest { requires, ..PluginManifest::new(id, generous()) };
        made(manifest, move |_| {
            let notebook = notebook.clone();
            Ok(Contributions::new().hook(HookPoint::RoundStart, move |_| {
                notebook.note(id);
                async { Ok(HookAnswer::nothing()) }
            }))
        })
    };
    let plugins = with(&[("first", "null"), ("second", "null"), ("base", "null")]);
    let played = play(plugins, [(1, Ok(ModelAnswer::text(CITES)))], |builder| {
        builder.plugin(named("base", &[])).plugin(named("second", &[])).plugin(named("first", &["base"]))
    });
    played.await;
    assert_eq!(notebook.lines()[..3], ["second", "base", "first"]);
}

#[tokio::test]
async fn a_registered_plugin_that_the_spec_does_not_name_takes_no_part() {
    let notebook = Notebook::default();
    let played = play(with(&[]), [(1, Ok(asks(&["look"])))], |builder| builder.plugin(listener(&notebook))).await;
    assert_eq!((played.end().0, notebook.lines()), (1, Vec::new()));
    assert!(!played.history.contains("listener"));
}

#[tokio::test]
async fn what_a_hook_says_is_shown_in_the_next_request_and_in_no_other() {
    let said = hooked("advisor", HookPoint::RoundStart, |question: HookQuestion| async move {
        let first = question.ask.0 == 1;
        Ok(if first { HookAnswer::nothing().saying("look twice") } else { HookAnswer::nothing() })
    });
    let played = play(with(&[("advisor", "null")]), [(1, Ok(asks(&["look"])))], |builder| builder.plugin(said)).await;
    let shown = |call: usize| {
        let messages = played.asked[call].messages.iter();
        messages.filter(|message| matches!(&***message, Message::Context { by, text } if by == "advisor" && text == "look twice")).count()
    };
    assert_eq!((played.asked.len(), shown(0), shown(1)), (2, 1, 0));
}

#[derive(Deserialize)]
struct Remembered {
    n: u32,
}

/// A plugin with a tool that stages a note, and with eyes on the state everywhere.
fn rememberer(notebook: &Notebook) -> super::Made {
    let notebook = notebook.clone();
    plugin("rememberer", move || {
        let (hook, gate, tool) = (notebook.clone(), notebook.clone(), notebook.clone());
        let seen =
            |notebook: &Notebook, where_: &str, notes: Vec<String>| notebook.note(format!("{where_}: {notes:?}"));
        Contributions::new()
            .state_key(&NOTES)
            .tool(
                ToolSpec { concurrency: Concurrency::Serial, ..ToolSpec::evidence("test.remember") },
                move |arguments: Remembered, invocation: Invocation| {
                    let notebook = tool.clone();
                    async move {
                        let mut notes = invocation.state().read(&NOTES)?;
                        seen(&notebook, "tool", notes.clone());
                        notes.push(format!("note {}", arguments.n));
                        let facts = ToolOutput::facts(
                            "kept",
                            [portcullis::vocabulary::fact::Statement {
                                statement: format!("note {} is kept", arguments.n),
                                key: Some("notes".to_owned()),
                            }],
                        );
                        Ok(facts.staging([NOTES.set(&notes)?]))
                    }
                },
            )
            .tool_gate("test.gate", ["test.remember"], move |question: GateQuestion| {
                let notebook = gate.clone();
                async move {
                    seen(&notebook, "gate", question.state().read(&NOTES)?);
                    Ok(GateAnswer::Allow)
                }
            })
            .hook(HookPoint::RoundEnd, {
                let notebook = hook.clone();
                move |question: HookQuestion| {
                    let notebook = notebook.clone();
                    async move {
                        seen(&notebook, "round end", question.state().read(&NOTES)?);
                        Ok(HookAnswer::nothing())
                    }
                }
            })
            .hook(HookPoint::RoundStart, move |question: HookQuestion| {
                let notebook = hook.clone();
                async move {
                    seen(&notebook, "round start", question.state().read(&NOTES)?);
                    Ok(HookAnswer::nothing())
                }
            })
    })
}

fn remember(n: u32) -> ModelAnswer {
    let mut answer = asks(&["test.remember"]);
    answer.content.calls[0].arguments = format!(r#"{{"n":{n}}}"#);
    answer
}

#[tokio::test]
async fn what_a_plugins_tool_stages_is_seen_from_the_next_round_on_and_left_to_the_thread() {
    let notebook = Notebook::default();
    let spec = Spec { tools: Vec::new(), ..with(&[("rememberer", "null")]) };
    let build = |builder: Builder| builder.plugin(rememberer(&notebook));
    let first = play(spec.clone(), [(1, Ok(remember(1))), (1, Ok(remember(2)))], build).await;
    let lines = [
        "round start: []",
        "gate: []",
        "tool: []",
        "round end: []",
        r#"round start: ["note 1"]"#,
        r#"gate: ["note 1"]"#,
        r#"tool: ["note 1"]"#,
        r#"round end: ["note 1"]"#,
        r#"round start: ["note 1", "note 2"]"#,
    ];
    assert_eq!((first.end().0, notebook.lines()), (1, lines.map(str::to_owned).to_vec()));
    assert_eq!(first.thread.state["test.notes"].to_text(), r#"["note 1","note 2"]"#);
    assert_eq!(first.thread.read(&NOTES).unwrap(), ["note 1", "note 2"]);
    // The next run of the thread begins where this one ended.
    let after = Notebook::default();
    let build = |builder: Builder| builder.plugin(rememberer(&after));
    let thread = first.thread.clone();
    let next = Spec { prior_state: thread.state, prior_facts: thread.facts, ..spec };
    let second = play(next, [(1, Ok(remember(3)))], build).await;
    assert_eq!(after.lines()[0], r#"round start: ["note 1", "note 2"]"#);
    let run = first.ended.release.run();
    let origins: Vec<String> =
        second.thread.facts.iter().map(|fact| format!("{} {}", fact.origin.run == *run, fact.origin.fact)).collect();
    assert_eq!(origins, ["true f1", "true f2", "false f3"]);
    assert!(second.thread.facts.iter().all(|fact| fact.key.as_deref() == Some("notes")), "keys are carried on");
    assert!(second.history.contains(r#""new":0"#), "a fact with a known key is not new in the next run either");
}

#[tokio::test]
async fn an_action_is_performed_by_its_plugin_before_anybody_else_is_asked() {
    const TOTAL: StateKey<u64> = StateKey::new(StateScope::Run, "test.total", MergePolicy::Commutative);
    let notebook = Notebook::default();
    let (performs, listens) = (notebook.clone(), notebook.clone());
    let counter = plugin("counter", move || {
        let notebook = performs.clone();
        Contributions::new().state_key(&TOTAL).action("test.add", move |question: ActionQuestion| {
            notebook.note(format!("{} {} {}", question.ask.0, question.action, question.payload.to_text()));
            async move { Ok(HookAnswer::nothing().staging([TOTAL.set(&3)?])) }
        })
    });
    let scheduler = hooked("scheduler", HookPoint::RoundStart, |question: HookQuestion| async move {
        let schedule = StagedCommand::Schedule { action: "test.add".to_owned(), payload: Json::from(7_u64) };
        Ok(if question.ask.0 == 1 { HookAnswer::nothing().staging([schedule]) } else { HookAnswer::nothing() })
    });
    let last = hooked("last", HookPoint::RoundStart, move |question: HookQuestion| {
        listens.note(format!("{} last sees {}", question.ask.0, question.state().read(&TOTAL).unwrap()));
        async { Ok(HookAnswer::nothing()) }
    });
    let spec = with(&[("counter", "null"), ("scheduler", "null"), ("last", "null")]);
    let build = |builder: Builder| builder.plugin(counter).plugin(scheduler).plugin(last);
    let played = play(spec, [(1, Ok(asks(&["look"])))], build).await;
    assert_eq!(played.end().0, 1);
    assert_eq!(notebook.lines(), ["2 test.add 7", "3 last sees 0", "5 last sees 3"]);
}

#[tokio::test]
async fn the_end_is_told_also_of_a_run_that_nobody_looks_at_and_again_until_it_is_delivered() {
    let (clock, store, notebook) = (VirtualClock::default(), MemoryStore::new(), Notebook::default());
    let build = |store: MemoryStore| {
        let model = Talker::new(&clock, [(1, Ok(asks(&["look"])))]);
        let (here, notes) = (clock.clone(), notebook.clone());
        let slow = hooked("end", HookPoint::RunEnd, move |question: HookQuestion| {
            let (clock, notebook) = (here.clone(), notes.clone());
            async move {
                super::super::pass(&clock, 500).await;
                notebook.note(told(&question));
                // Whatever it says has no place to go to.
                Ok(HookAnswer::nothing().staging([NOTES.set(&vec!["late".to_owned()])?]).saying("too late"))
            }
        });
        runtime(&clock, store, model, Workshop::new(&clock, 5)).plugin(slow).build().unwrap()
    };
    let next = store.session();
    let reader = store.session();
    let first = build(store);
    let run = first.start(with(&[("end", "null")])).await.unwrap().run().clone();
    until(|| !notebook.lines().is_empty()).await;
    drop(first);
    let second = build(next);
    let handle = loop {
        // The first session lets the run go once its hook was told.
        let mut recovery = second.recover().await.unwrap();
        if let Some(handle) = recovery.runs.pop() {
            break handle;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((handle.run(), ended(&handle).await.ending.row), (&run, 1));
    until(|| notebook.lines().len() == 2).await;
    handle.delivered("read").await.unwrap();
    assert_eq!(notebook.lines(), ["1 run_end: row 1", "1 run_end: row 1"], "under one number, both times");
    assert!(second.recover().await.unwrap().runs.is_empty(), "nobody is told of a release that has arrived");
    let history = String::from_utf8(crate::stage::history(&reader, run.as_str()).await).unwrap();
    assert!(!history.contains("hook_answered") && !history.contains("too late"));
    assert_eq!(second.thread(&run).await.unwrap().state.len(), 0);
}
