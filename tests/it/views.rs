//! What an engine shows of its run at each stage: the views that drivers, ports and commands read.

use portcullis::engine::Engine;
use portcullis::machines::{collection, consultation, release::Progress, run};
use portcullis::vocabulary::effect::ToolOffer;
use portcullis::vocabulary::environment::HookPoint;
use portcullis::vocabulary::ids::NestedCallId;
use portcullis::vocabulary::input::{Input, NestedKind, Verdict};
use portcullis::vocabulary::outcome::{ReleaseOutcome, RunStatus};
use portcullis::vocabulary::tool::ToolOutput;

use crate::play::{Play, act, call, conclusion, environment, look, spec};

#[test]
fn an_engine_without_a_run_shows_none() {
    let engine = Engine::new();
    assert_eq!((engine.run_id(), engine.spec(), engine.ledger()), (None, None, None));
    assert!(engine.batch().is_none() && engine.environment().is_none() && engine.tool("look").is_none());
    assert!(engine.model_request().is_none() && engine.evidence().is_none() && engine.plan(call("t1.0")).is_none());
    assert!(engine.ending().is_none() && engine.release().is_none());
    assert!(engine.facts().is_empty() && engine.transcript().is_empty() && engine.outstanding().is_empty());
    assert!(engine.shared_state().is_empty());
    assert_eq!(engine.run_state(), &run::State::Created);
    assert_eq!(engine.collection(), &collection::State::START);
    assert_eq!(engine.consultation(), &consultation::State::Silent);
    assert_eq!(engine.progress(), Progress::Collecting);
    assert_eq!(engine.expected(), ["run_started"]);
    assert!(format!("{engine:?}").contains("Created"), "{engine:?}");
}

#[test]
fn an_open_model_request_shows_the_model_what_it_is_asked_with() {
    let mut play = Play::started(spec());
    assert_eq!(play.engine.run_id().unwrap().as_str(), "played");
    assert_eq!(play.engine.spec().unwrap().task, "find out");
    assert_eq!(play.engine.expected().first(), Some(&"environment_resolved"));
    play.step(Input::EnvironmentResolved { environment: Box::new(environment(vec![look(), act()])) });
    assert_eq!(play.engine.environment().unwrap().tools.len(), 2);
    assert_eq!(play.engine.tool("act").unwrap().spec.name, "act");
    assert!(play.engine.tool("nobody").is_none());
    assert_eq!(play.engine.ledger().unwrap().model_calls, 1);
    let request = play.engine.model_request().unwrap();
    assert_eq!((request.model.name.as_str(), request.offer), ("model", ToolOffer::Offered));
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(tools, ["look", "act"]);
    assert_eq!(request.messages.len(), play.engine.transcript().len());
    assert!(!request.messages.is_empty());
    assert!(play.engine.evidence().is_none() && play.engine.batch().is_none());
    let shown = format!("{:?}", play.engine);
    assert!(shown.contains("played") && shown.contains("Inferring"), "{shown}");
}

#[test]
fn withdrawn_tools_are_not_in_the_request() {
    let mut spec = spec();
    spec.budgets.model_calls = Some(1);
    spec.budgets.final_call_reserve = 1;
    let play = Play::resolved(spec, environment(vec![look()]));
    let request = play.engine.model_request().unwrap();
    assert_eq!((request.offer, request.tools.len()), (ToolOffer::Withdrawn, 0));
}

#[test]
fn a_batch_shows_its_calls_plans_and_nested_calls() {
    let mut play = Play::resolved(spec(), environment(vec![look(), act()]));
    play.asks(&[("act", r#"{"n":1}"#), ("look", "{}")]);
    play.dispatch();
    let batch = play.engine.batch().unwrap();
    assert_eq!((batch.round, batch.calls.len()), (1, 2));
    let plan = play.engine.plan(call("t1.0")).unwrap();
    assert_eq!((plan.tool.spec.name.as_str(), plan.arguments.to_text().as_str()), ("act", r#"{"n":1}"#));
    assert!(play.engine.plan(call("t1.2")).is_none());
    let first = NestedCallId { parent: call("t1.0"), index: 0 };
    assert_eq!(play.engine.next_nested(call("t1.0")), first);
    assert!(play.engine.nested(first).is_none());
    let (kind, tool, arguments) = (NestedKind::Model, None, None);
    play.step(Input::NestedCallRequested { parent: first.parent, attempt: 1, nested: first, kind, tool, arguments });
    assert!(play.engine.nested(first).is_some());
    assert_eq!(play.engine.next_nested(call("t1.0")), NestedCallId { index: 1, ..first });
    assert!(play.engine.expected().contains(&"nested_call_requested"));
    assert!(play.engine.expected().contains(&"tool_completed"));
}

#[test]
fn a_judged_draft_is_shown_with_its_evidence_and_then_as_a_release() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "so");
    assert_eq!(play.engine.facts().len(), 1);
    assert_eq!(play.engine.facts()[0].statement, "so");
    play.says(&conclusion(&["f1"]));
    assert_eq!(play.engine.progress(), Progress::SafetyValidating);
    assert_eq!(play.engine.evidence().unwrap().conclusion().statement, "it is so");
    assert!(play.engine.release().is_none());
    let judged = play.judged(Verdict::Supported);
    play.step(judged);
    assert!(play.engine.evidence().is_none() && play.engine.model_request().is_none());
    assert_eq!(play.engine.ending().unwrap().run_state, RunStatus::Success);
    assert_eq!(play.engine.release().unwrap().outcome(), ReleaseOutcome::Success);
    assert_eq!(play.engine.expected(), ["release_delivered", "run_recovered", "tail_repaired"]);
}

#[test]
fn an_open_question_and_the_state_that_was_committed_are_shown() {
    let mut play = Play::resolved(spec(), crate::hooks::environment(&[("p", HookPoint::RoundStart)]));
    assert!(matches!(play.engine.consultation(), consultation::State::Asking { .. }));
    assert!(play.engine.expected().contains(&"hook_answered"));
    play.step(Input::CancelRequested {
        by: "a person".to_owned(),
        origin: portcullis::vocabulary::input::CancelOrigin::Caller,
    });
    assert_eq!(play.engine.consultation(), &consultation::State::Silent);
}

#[test]
fn saturation_is_shown() {
    let mut spec = spec();
    spec.collection.saturation_after = Some(1);
    let mut play = Play::resolved(spec, environment(vec![look()]));
    play.asks(&[("look", r#"{"at":1}"#)]);
    play.dispatch();
    play.returns("t1.0", ToolOutput::text("nothing"));
    assert!(
        matches!(play.engine.collection(), collection::State::StopDelivered { .. }),
        "{:?}",
        play.engine.collection()
    );
}
