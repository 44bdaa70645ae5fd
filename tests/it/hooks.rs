//! Hooks, actions, shared state and imported facts, inside the engine (SPEC 12).

use std::collections::BTreeMap;

use portcullis::engine::Step;
use portcullis::machines::consultation::State as Consultation;
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::{
    Capability, Environment, GateOf, Hook, HookPoint, MergePolicy, StateKeySpec, StateScope,
};
use portcullis::vocabulary::fact::{Origin, PriorFact};
use portcullis::vocabulary::failure::{Failure, ResolutionError, ResolutionKind};
use portcullis::vocabulary::ids::{Ask, FactId};
use portcullis::vocabulary::input::{GateAnswer, Input, StagedCommand, Verdict};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::message::Message;
use portcullis::vocabulary::outcome::{FailureCode, RunStatus};
use portcullis::vocabulary::refusal::RefusalKind;
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::{JudgePolicy, Spec, ToolSpec};
use portcullis::vocabulary::tool::{ObservationCode, ToolOutput};

use crate::play::{Play, act, call, cancel, conclusion, fact, look, spec};

const RUN: StateScope = StateScope::Run;
const THREAD: StateScope = StateScope::Thread;

/// Everything that the plugins of these tests may do.
fn bound(hooks: &[HookPoint]) -> Bound {
    Bound {
        hooks: hooks.to_vec(),
        state_keys: Allowance::namespace("n"),
        action_kinds: Allowance::ids(["tidy"]),
        tools: Allowance::ids(["act"]),
        ..Bound::default()
    }
}

fn capability(plugin: &str, hooks: &[HookPoint]) -> Capability {
    Capability {
        plugin: plugin.to_owned(),
        bound: bound(hooks),
        tools: Vec::new(),
        gates: Vec::new(),
        action_kinds: Vec::new(),
    }
}

/// `look` and `act`, one of each kind of key, and these hooks; `p` contributes `act`, `q` performs `tidy`.
pub(crate) fn environment(hooks: &[(&str, HookPoint)]) -> Environment {
    let points =
        |plugin: &str| hooks.iter().filter(|(of, _)| *of == plugin).map(|(_, point)| *point).collect::<Vec<_>>();
    let key = |scope, key: &str, policy| StateKeySpec { scope, key: key.to_owned(), policy };
    Environment {
        tools: vec![look(), act()],
        hooks: hooks.iter().map(|(plugin, point)| Hook { plugin: (*plugin).to_owned(), point: *point }).collect(),
        state_keys: vec![
            key(RUN, "n.once", MergePolicy::Exclusive),
            key(THREAD, "n.once", MergePolicy::Exclusive),
            key(RUN, "n.sum", MergePolicy::Commutative),
            key(RUN, "n.parts", MergePolicy::Disjoint),
        ],
        action_kinds: vec!["tidy".to_owned()],
        plugins: vec!["p".to_owned(), "q".to_owned()],
        capabilities: vec![
            Capability { tools: vec!["act".to_owned()], ..capability("p", &points("p")) },
            Capability { action_kinds: vec!["tidy".to_owned()], ..capability("q", &points("q")) },
        ],
        ..Environment::default()
    }
}

fn unjudged() -> Spec {
    let mut spec = spec();
    spec.release.judge = JudgePolicy::Off;
    spec
}

fn set(key: &str, value: impl Into<Json>) -> StagedCommand {
    StagedCommand::Set { scope: RUN, key: key.to_owned(), value: value.into() }
}

fn remove(key: &str) -> StagedCommand {
    StagedCommand::Remove { scope: RUN, key: key.to_owned() }
}

fn tidy() -> StagedCommand {
    StagedCommand::Schedule { action: "tidy".to_owned(), payload: Json::from(7u32) }
}

impl Play {
    /// Who is asked now: the plugin, where, and the question's number.
    fn asked(&self) -> Option<(String, String, Ask)> {
        self.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::CallHook { ask, point, plugin } => Some((plugin, point.to_string(), ask)),
            Effect::PerformAction { ask, action, plugin } => Some((plugin, action, ask)),
            _ => None,
        })
    }

    fn hook(&mut self, commands: Vec<StagedCommand>) -> Step {
        let (_, _, ask) = self.asked().expect("nobody is asked");
        self.step(Input::HookAnswered { ask, commands, context: None })
    }

    fn state(&self, key: &str) -> Option<Json> {
        self.engine.shared_state().get(&(RUN, key.to_owned())).cloned()
    }
}

fn raised(step: &Step, tag: &str) -> bool {
    step.signals.iter().any(|signal| signal.tag() == tag)
}

fn at(play: &Play) -> String {
    play.asked().map(|(plugin, point, _)| format!("{plugin} {point}")).unwrap_or_default()
}

#[test]
fn every_hook_is_asked_at_its_point_in_the_environments_order() {
    let hooks: Vec<(&str, HookPoint)> =
        HookPoint::ALL.iter().flat_map(|point| [("p", *point), ("q", *point)]).collect();
    let mut play = Play::resolved(spec(), environment(&hooks));
    let mut asked = Vec::new();
    let mut answers = |play: &mut Play| {
        while !at(play).is_empty() {
            asked.push(at(play));
            play.hook(Vec::new());
        }
    };
    answers(&mut play);
    play.asks(&[("look", r#"{"at":1}"#), ("act", "{}")]);
    answers(&mut play);
    play.dispatch();
    play.returns("t1.1", ToolOutput::text("done"));
    play.returns("t1.0", fact("seen"));
    answers(&mut play);
    play.says(&conclusion(&["f1"]));
    answers(&mut play);
    let judged = play.judged(Verdict::Supported);
    play.step(judged);
    answers_before_release(&mut play, &mut asked);
    let both = |point: &str| [format!("p {point}"), format!("q {point}")];
    let expected: Vec<String> = [
        "round_start",
        "before_inference",
        "after_inference",
        "after_tool",
        "after_tool",
        "round_end",
        "round_start",
        "before_inference",
        "after_inference",
        "before_release",
    ]
    .into_iter()
    .flat_map(both)
    .collect();
    assert_eq!(asked, expected);
    assert_eq!(play.row(), 1);
    let told: Vec<String> = play
        .engine
        .outstanding()
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallHook { point, plugin, .. } => Some(format!("{plugin} {point}")),
            _ => None,
        })
        .collect();
    assert_eq!(told, both("run_end"));
}

fn answers_before_release(play: &mut Play, asked: &mut Vec<String>) {
    while play.is_open() {
        asked.push(at(play));
        play.hook(Vec::new());
    }
}

#[test]
fn what_a_round_stages_is_seen_by_nobody_before_the_round_ends() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart), ("q", HookPoint::RoundEnd)]));
    play.hook(vec![set("n.once", 1u32)]);
    play.asks(&[("act", "{}")]);
    play.dispatch();
    play.returns("t1.0", ToolOutput::text("done").staging([set("n.sum", 2u32)]));
    assert_eq!((play.state("n.once"), play.state("n.sum")), (None, None));
    let step = play.hook(vec![set("n.sum", 3u32)]);
    assert!(step.signals.contains(&Signal::StateCommitted { commands: 3 }));
    assert_eq!((play.state("n.once"), play.state("n.sum")), (Some(Json::from(1u32)), Some(Json::from(5u32))));
}

#[test]
fn two_sets_of_an_exclusive_key_in_one_batch_end_the_run_and_roll_the_tail_back() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart), ("q", HookPoint::RoundEnd)]));
    play.hook(vec![set("n.once", 1u32)]);
    play.asks(&[("look", r#"{"at":1}"#)]);
    play.dispatch();
    play.returns("t1.0", fact("seen"));
    let step = play.hook(vec![set("n.sum", 1u32), set("n.once", 1u32)]);
    let conflict = Signal::StateConflicted {
        scope: RUN,
        key: "n.once".to_owned(),
        earlier: "p".to_owned(),
        later: "q".to_owned(),
    };
    assert!(step.signals.contains(&conflict), "{:?}", step.signals);
    assert!(step.signals.contains(&Signal::StateRolledBack { commands: 2 }));
    assert!(!raised(&step, "state_committed"));
    assert!(play.engine.shared_state().is_empty());
    let ending = play.ending();
    assert_eq!((ending.row, ending.failure), (17, Some(Failure::StateConflict)));
    assert_eq!(ending.facts, 1, "the batch's facts are published all the same");
}

/// The history of a run whose hook set an exclusive key twice.
pub(crate) fn in_conflict() -> String {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
    play.hook(vec![set("n.once", 1u32), set("n.once", 1u32)]);
    assert_eq!(play.row(), 17);
    play.lines
}

#[test]
fn a_remove_between_two_sets_resets_no_conflict() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
    play.hook(vec![set("n.once", 1u32), remove("n.once"), set("n.once", 2u32)]);
    assert_eq!(play.ending().failure, Some(Failure::StateConflict));
}

#[test]
fn one_key_in_two_scopes_and_in_two_batches_is_no_conflict() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
    let thread = StagedCommand::Set { scope: THREAD, key: "n.once".to_owned(), value: Json::from(1u32) };
    play.hook(vec![set("n.once", 1u32), thread]);
    play.looks(1, "seen");
    play.hook(vec![set("n.once", 2u32)]);
    play.says(&conclusion(&["f1"]));
    assert_eq!(play.row(), 1);
    assert_eq!(play.state("n.once"), Some(Json::from(2u32)), "the last round commits with the run's own end");
}

#[test]
fn tools_of_one_wave_conflict_whichever_of_them_returns_first() {
    for order in [["t1.0", "t1.1"], ["t1.1", "t1.0"]] {
        let mut play = Play::resolved(unjudged(), environment(&[]));
        play.asks(&[("act", r#"{"n":1}"#), ("act", r#"{"n":2}"#)]);
        while play.is_open() {
            let wave = play.dispatch();
            for id in order.iter().filter(|id| wave.contains(&call(id))) {
                play.returns(id, ToolOutput::text("done").staging([set("n.once", 1u32)]));
            }
        }
        assert_eq!(play.ending().failure, Some(Failure::StateConflict));
    }
}

#[test]
fn a_result_that_does_not_count_stages_nothing() {
    let mut play = Play::resolved(unjudged(), environment(&[]));
    play.asks(&[("act", "{}")]);
    play.dispatch();
    let long = "x".repeat(300 * 1024);
    play.returns("t1.0", ToolOutput::text(long).staging([set("n.once", 1u32)]));
    assert_eq!(play.codes(), [Some(ObservationCode::ResultTooLarge)]);
    assert_eq!(play.state("n.once"), None);
}

/// Each is beyond the bound or names nothing that is declared; none is dropped to let the run go on.
#[test]
fn a_command_beyond_the_bound_ends_the_run_before_its_batch_commits() {
    let unknown_action = StagedCommand::Schedule { action: "burn".to_owned(), payload: Json::Null };
    let other_scope = StagedCommand::Set { scope: THREAD, key: "n.sum".to_owned(), value: Json::Null };
    for command in
        [set("m.once", 1u32), set("n", 1u32), set("n.undeclared", 1u32), remove("m.x"), unknown_action, other_scope]
    {
        let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
        let step = play.hook(vec![set("n.once", 1u32), command.clone()]);
        assert!(raised(&step, "bound_broken") && raised(&step, "state_rolled_back"), "{command:?}");
        assert!(play.engine.shared_state().is_empty());
        let ending = play.ending();
        assert_eq!((ending.row, ending.failure), (17, Some(Failure::CapabilityBound)), "{command:?}");
    }
}

#[test]
fn a_tool_that_no_plugin_contributes_may_stage_nothing() {
    let mut play = Play::resolved(unjudged(), environment(&[]));
    play.asks(&[("look", r#"{"at":1}"#)]);
    play.dispatch();
    let step = play.returns("t1.0", fact("seen").staging([set("n.once", 1u32)]));
    let contribution = "a command of a tool that no plugin contributes".to_owned();
    let broken = Signal::BoundBroken { plugin: "look".to_owned(), contribution };
    assert!(step.signals.contains(&broken), "{:?}", step.signals);
    let ending = play.ending();
    assert_eq!((ending.row, ending.facts), (17, 1));
}

/// A host's tool that is named like a plugin is not that plugin's.
#[test]
fn a_tool_that_is_named_like_a_plugin_may_stage_nothing_all_the_same() {
    let mut environment = environment(&[]);
    environment.tools.push(ToolSpec::new("p"));
    let mut play = Play::resolved(unjudged(), environment);
    play.asks(&[("p", "{}")]);
    play.dispatch();
    play.returns("t1.0", ToolOutput::text("done").staging([set("n.once", 1u32)]));
    assert_eq!(play.ending().failure, Some(Failure::CapabilityBound));
}

/// Both gates of one id are held against the bound, whichever stands first.
#[test]
fn a_gate_of_another_kind_under_an_allowed_id_is_beyond_the_bound() {
    let mut environment = environment(&[]);
    let gate = |of| portcullis::vocabulary::environment::Gate { id: "door".into(), of, tools: vec![] };
    environment.gates = vec![gate(GateOf::Tool), gate(GateOf::Release)];
    environment.capabilities[0].gates.push("door".to_owned());
    environment.capabilities[0].bound.tool_gates = Allowance::ids(["door"]);
    assert_eq!(Play::resolved(unjudged(), environment).ending().failure, Some(Failure::CapabilityBound));
}

#[test]
fn state_may_fill_its_limit_and_not_a_byte_more() {
    for (bytes, fits) in [(63usize, true), (64, true), (65, false)] {
        let mut spec = unjudged();
        spec.limits.state_bytes_max = 64;
        let mut play = Play::resolved(spec, environment(&[("p", HookPoint::RoundStart)]));
        // `n.once` and two quotes are eight bytes.
        play.hook(vec![set("n.once", Json::String("x".repeat(bytes - 8)))]);
        assert_eq!(play.is_open(), fits, "{bytes}");
    }
}

#[test]
fn a_scheduled_action_is_performed_before_anybody_else_is_asked() {
    let mut play =
        Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart), ("q", HookPoint::RoundStart)]));
    assert_eq!(at(&play), "p round_start");
    play.hook(vec![tidy()]);
    assert_eq!(at(&play), "q tidy");
    play.hook(vec![set("n.once", 1u32)]);
    assert_eq!(at(&play), "q round_start");
    play.hook(vec![set("n.once", 2u32)]);
    assert_eq!(play.ending().failure, Some(Failure::StateConflict), "an action stages into the same batch");
}

/// 64 actions in one batch; the one after them breaks the bound, so that plugins that schedule each other end.
#[test]
fn actions_that_schedule_each_other_come_to_an_end() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
    for asked in 1..=64 {
        play.hook(vec![tidy()]);
        assert!(play.is_open(), "{asked}");
    }
    play.hook(vec![tidy()]);
    assert_eq!(play.ending().failure, Some(Failure::CapabilityBound));
}

#[test]
fn context_joins_the_next_model_request_and_no_other() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::BeforeInference)]));
    let (_, _, ask) = play.asked().unwrap();
    let digest = |play: &Play| {
        play.engine.outstanding().into_iter().find_map(|effect| match effect {
            Effect::CallModel { request, .. } => Some(request),
            _ => None,
        })
    };
    play.step(Input::HookAnswered { ask, commands: Vec::new(), context: Some("be brief".to_owned()) });
    let shown = |play: &Play| play.engine.model_request().unwrap().context.to_vec();
    let context = Message::Context { by: "p".to_owned(), text: "be brief".to_owned() };
    assert_eq!(shown(&play).iter().map(|message| &**message).collect::<Vec<_>>(), [&context]);
    let with_context = digest(&play);
    let mut plain = Play::resolved(unjudged(), environment(&[("p", HookPoint::BeforeInference)]));
    plain.hook(Vec::new());
    assert_ne!(with_context, digest(&plain), "the request's digest covers it");
    // An attempt that fails keeps it, the next request does not.
    play.fails(portcullis::vocabulary::llm::Error::Timeout { message: String::new() });
    play.at_ms = 5_000;
    play.step(Input::BackoffElapsed { call: "m1".parse().unwrap(), attempt: 2 });
    assert_eq!(shown(&play).len(), 1);
    play.looks(1, "seen");
    play.hook(Vec::new());
    assert!(shown(&play).is_empty());
    assert!(!play.engine.transcript().iter().any(|message| **message == context));
}

#[test]
fn a_hook_that_fails_ends_the_run_as_internal() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
    play.hook(vec![set("n.once", 1u32)]);
    play.looks(1, "seen");
    let (_, _, ask) = play.asked().unwrap();
    play.step(Input::HookFailed { ask });
    let ending = play.ending();
    assert_eq!((ending.row, ending.failure, ending.facts), (17, Some(Failure::Internal), 1));
    assert_eq!(play.state("n.once"), Some(Json::from(1u32)), "the round before it is committed");
}

#[test]
fn a_hook_that_fails_with_the_budget_marked_is_a_budget_stop() {
    let mut spec = unjudged();
    spec.budgets.tool_calls = Some(1);
    let mut play = Play::resolved(spec, environment(&[("p", HookPoint::RoundEnd)]));
    play.asks(&[("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]);
    play.dispatch();
    play.returns("t1.0", fact("seen"));
    let (_, _, ask) = play.asked().unwrap();
    play.step(Input::HookFailed { ask });
    assert_eq!(play.row(), 13);
}

#[test]
fn nobody_is_asked_about_a_round_that_the_budget_denies() {
    let mut spec = unjudged();
    spec.budgets.model_calls = Some(1);
    let mut play = Play::resolved(spec, environment(&[("p", HookPoint::RoundStart)]));
    play.hook(vec![set("n.once", 1u32)]);
    play.looks(1, "seen");
    assert_eq!(play.row(), 13);
    assert_eq!(play.state("n.once"), Some(Json::from(1u32)), "the round that was made is committed");
}

#[test]
fn a_run_that_is_cut_off_rolls_its_tail_back_and_one_that_ends_by_itself_commits_it() {
    type End = fn(&mut Play);
    let ends: [(End, RunStatus); 3] = [
        (|play| drop(play.step(cancel())), RunStatus::Cancelled),
        (|play| drop(play.step(Input::ExecutionCrashed { origin: "driver".to_owned() })), RunStatus::Failed),
        (|play| drop(play.says(&conclusion(&["f1"]))), RunStatus::Success),
    ];
    for (end, status) in ends {
        let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
        play.hook(Vec::new());
        play.looks(1, "seen");
        play.hook(vec![set("n.once", 1u32)]);
        end(&mut play);
        assert_eq!(play.ending().run_state, status);
        assert_eq!(play.state("n.once").is_some(), status == RunStatus::Success, "{status}");
    }
}

#[test]
fn a_cancellation_does_not_wait_for_hooks_and_their_late_answers_are_refused() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart), ("q", HookPoint::RunEnd)]));
    let (_, _, ask) = play.asked().unwrap();
    let step = play.step(cancel());
    assert!(step.effects.iter().any(|effect| matches!(effect, Effect::AbortInFlight)));
    assert_eq!(at(&play), "q run_end");
    let late = |ask| Input::HookAnswered { ask, commands: Vec::new(), context: None };
    assert_eq!(play.refused(late(ask)), RefusalKind::Terminal);
    let (_, _, told) = play.asked().unwrap();
    assert_eq!(play.refused(late(told)), RefusalKind::Terminal, "a hook at the end is told, and not asked");
    assert_eq!(play.row(), 15);
}

/// 13.I5: the calls of a response that is held are closed too.
#[test]
fn a_response_that_is_held_when_the_run_ends_leaves_no_call_without_its_closing() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::AfterInference)]));
    play.asks(&[("look", r#"{"at":1}"#), ("nobody", "{}")]);
    play.step(cancel());
    assert_eq!(play.row(), 15);
    assert_eq!(play.codes(), [Some(ObservationCode::NotDispatched); 2]);
}

/// The same when it is the hook's own answer that ends the run.
#[test]
fn a_response_is_held_until_the_answer_to_its_hook_holds() {
    let ends = [vec![set("zzz", 1u32)], vec![set("n.once", 1u32), set("n.once", 1u32)], vec![tidy(); 65]];
    for commands in ends {
        let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::AfterInference)]));
        play.asks(&[("look", r#"{"at":1}"#)]);
        play.hook(commands);
        assert_eq!(play.row(), 17);
        assert_eq!(play.codes(), [Some(ObservationCode::NotDispatched)]);
    }
}

#[test]
fn an_answer_may_stage_256_commands_and_not_one_more() {
    for (commands, fits) in [(255, true), (256, true), (257, false)] {
        let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
        let (_, _, ask) = play.asked().unwrap();
        let input = Input::HookAnswered { ask, commands: vec![set("n.sum", 1u32); commands], context: None };
        if fits {
            play.step(input);
        } else {
            assert_eq!(play.refused(input), RefusalKind::Malformed);
        }
    }
}

#[test]
fn what_a_result_stages_counts_towards_its_size() {
    let mut environment = environment(&[]);
    environment.tools[1].result_bytes_max = 64;
    let mut play = Play::resolved(unjudged(), environment);
    play.asks(&[("act", "{}")]);
    play.dispatch();
    play.returns("t1.0", ToolOutput::text("x").staging([set("n.once", Json::String("x".repeat(64)))]));
    assert_eq!(play.codes(), [Some(ObservationCode::ResultTooLarge)]);
}

#[test]
fn a_resolution_error_that_would_not_fit_its_line_is_malformed() {
    let mut spec = unjudged();
    spec.limits.line_bytes_max = 4_096;
    spec.limits.state_bytes_max = 4_096;
    let mut play = Play::started(spec);
    let error = |bytes: usize| ResolutionError::Config { plugin: "p".to_owned(), message: "x".repeat(bytes) };
    assert_eq!(play.refused(Input::ResolutionFailed { error: error(4_000) }), RefusalKind::Malformed);
    play.step(Input::ResolutionFailed { error: error(1_000) });
    assert_eq!(play.row(), 18);
}

#[test]
fn thread_state_over_its_limit_begins_no_run() {
    let mut spec = spec();
    spec.limits.state_bytes_max = 8;
    for (text, fits) in [("xxxx", true), ("xxxxx", true), ("xxxxxx", false)] {
        spec.prior_state = BTreeMap::from([("k".to_owned(), Json::from(text))]);
        assert_eq!(spec.check().is_ok(), fits, "{text}");
    }
}

#[test]
fn the_deadline_passes_while_a_hook_is_asked() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::BeforeInference)]));
    play.at_ms = 600_000;
    let (_, _, ask) = play.asked().unwrap();
    let step = play.step(Input::HookAnswered { ask, commands: vec![set("n.once", 1u32)], context: None });
    assert!(matches!(step.input, Input::DeadlineElapsed { displaced: Some(_) }));
    assert_eq!(play.row(), 16);
    assert!(play.engine.shared_state().is_empty());
}

#[test]
fn an_answer_must_name_the_open_question() {
    let mut play =
        Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart), ("q", HookPoint::RoundStart)]));
    let answer = |ask, text: &str| Input::HookAnswered { ask, commands: Vec::new(), context: Some(text.to_owned()) };
    let (_, _, first) = play.asked().unwrap();
    assert_eq!(play.refused(answer(Ask(first.0 + 1), "")), RefusalKind::Stale);
    assert_eq!(play.refused(Input::GateAnswered { ask: first, answer: GateAnswer::Allow }), RefusalKind::Unexpected);
    play.step(answer(first, "a"));
    assert_eq!(play.refused(answer(first, "a")), RefusalKind::Duplicate);
    assert_eq!(play.refused(answer(first, "b")), RefusalKind::Conflict);
    play.hook(Vec::new());
    assert_eq!(play.refused(Input::HookFailed { ask: Ask(99) }), RefusalKind::Unexpected);
}

#[test]
fn a_command_deeper_than_json_may_be_is_malformed() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart)]));
    let deep = (0..65).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    let (_, _, ask) = play.asked().unwrap();
    let input = Input::HookAnswered { ask, commands: vec![set("n.once", deep)], context: None };
    assert_eq!(play.refused(input), RefusalKind::Malformed);
}

#[test]
fn after_a_crash_the_same_hook_is_asked_under_the_same_number() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RoundStart), ("p", HookPoint::RoundEnd)]));
    play.hook(vec![set("n.sum", 1u32)]);
    play.asks(&[("look", r#"{"at":1}"#)]);
    play.dispatch();
    play.returns("t1.0", fact("seen"));
    let before = play.asked();
    let step = play.recover(1);
    assert_eq!(play.asked(), before);
    assert!(step.effects.iter().any(|effect| matches!(effect, Effect::CallHook { .. })));
    play.hook(vec![set("n.sum", 1u32)]);
    assert_eq!(play.state("n.sum"), Some(Json::from(2u32)), "nothing is staged twice");
}

#[test]
fn hooks_at_the_end_are_told_again_until_the_release_is_delivered() {
    let mut play = Play::resolved(unjudged(), environment(&[("p", HookPoint::RunEnd), ("q", HookPoint::RunEnd)]));
    play.looks(1, "seen");
    let step = play.says(&conclusion(&["f1"]));
    let told = |effects: &[portcullis::engine::Request]| {
        effects.iter().filter(|effect| matches!(effect, Effect::CallHook { .. })).cloned().collect::<Vec<_>>()
    };
    assert_eq!(told(&step.effects).len(), 2);
    let again = play.recover(1);
    assert_eq!(told(&again.effects), told(&step.effects));
    play.step(Input::ReleaseDelivered { receipt: "read".to_owned() });
    assert!(play.engine.outstanding().is_empty());
    assert!(matches!(play.engine.consultation(), Consultation::Telling { .. }));
    play.check_history();
}

/// The judge was asked once: its verdict is not taken again while hooks hear of the draft, nor asked for again.
#[test]
fn a_verdict_is_taken_once_while_hooks_hear_of_the_draft() {
    let mut play = Play::resolved(spec(), environment(&[("p", HookPoint::BeforeRelease)]));
    play.looks(1, "seen");
    play.says(&conclusion(&["f1"]));
    let verdict = play.judged(Verdict::Supported);
    play.step(verdict.clone());
    assert_eq!(play.refused(verdict), RefusalKind::Duplicate);
    let again = play.recover(1);
    assert!(!again.effects.iter().any(|effect| matches!(effect, Effect::JudgeSemantics { .. })));
    play.hook(Vec::new());
    assert_eq!(play.row(), 1);
}

#[test]
fn a_hook_before_the_release_can_still_end_the_run() {
    let mut play = Play::resolved(unjudged(), {
        let mut environment = environment(&[("p", HookPoint::BeforeRelease)]);
        environment.gates =
            vec![portcullis::vocabulary::environment::Gate { id: "last".into(), of: GateOf::Release, tools: vec![] }];
        environment
    });
    play.looks(1, "seen");
    play.says(&conclusion(&["f1"]));
    assert!(play.engine.evidence().is_some(), "the hook may read what is to be released");
    play.hook(vec![set("n.once", 1u32)]);
    play.gate(GateAnswer::Block { reason: None });
    assert_eq!(play.row(), 20);
    assert!(play.engine.shared_state().is_empty(), "what a blocked release staged is rolled back");
}

#[test]
fn an_environment_beyond_a_bound_ends_the_run_before_it_begins() {
    let hookless = |hooks: &[(&str, HookPoint)]| {
        let mut environment = environment(hooks);
        for capability in &mut environment.capabilities {
            capability.bound.hooks.clear();
        }
        environment
    };
    let mut other_tool = environment(&[]);
    other_tool.capabilities[0].tools.push("look".to_owned());
    let mut other_kind = environment(&[]);
    other_kind.action_kinds.push("burn".to_owned());
    other_kind.capabilities[1].action_kinds.push("burn".to_owned());
    let mut gate = environment(&[]);
    gate.gates = vec![portcullis::vocabulary::environment::Gate { id: "door".into(), of: GateOf::Tool, tools: vec![] }];
    gate.capabilities[0].gates.push("door".to_owned());
    let mut unbound = environment(&[("r", HookPoint::RoundStart)]);
    unbound.plugins.push("r".to_owned());
    for environment in [hookless(&[("p", HookPoint::RoundStart)]), other_tool, other_kind, gate, unbound] {
        let play = Play::resolved(unjudged(), environment);
        let ending = play.ending();
        assert_eq!((ending.row, ending.failure), (18, Some(Failure::CapabilityBound)));
        assert_eq!(ending.failure_code, Some(FailureCode::InternalFailure));
    }
}

#[test]
fn an_environment_that_contradicts_itself_is_refused_by_name() {
    type Spoil = fn(&mut Environment);
    let breaks: [(Spoil, ResolutionKind); 9] = [
        (
            |environment| environment.capabilities.push(environment.capabilities[0].clone()),
            ResolutionKind::DuplicatePlugin,
        ),
        (|environment| environment.capabilities[1].tools.push("act".to_owned()), ResolutionKind::DuplicateTool),
        (
            |environment| environment.capabilities[0].action_kinds.push("tidy".to_owned()),
            ResolutionKind::DuplicateActionKind,
        ),
        (|environment| environment.plugins.push("q".to_owned()), ResolutionKind::DuplicatePlugin),
        (|environment| environment.action_kinds.push("tidy".to_owned()), ResolutionKind::DuplicateActionKind),
        (|environment| environment.plugins.push(" ".to_owned()), ResolutionKind::Config),
        (|environment| environment.plugins.clear(), ResolutionKind::Config),
        (|environment| environment.action_kinds.push("nobody's".to_owned()), ResolutionKind::Config),
        (|environment| environment.state_keys.push(environment.state_keys[0].clone()), ResolutionKind::Config),
    ];
    for (spoil, kind) in breaks {
        let mut environment = environment(&[]);
        spoil(&mut environment);
        let ending = Play::resolved(unjudged(), environment).ending();
        assert_eq!((ending.row, ending.failure), (18, Some(Failure::Resolution { kind })));
    }
}

fn earlier(statement: &str, fact: u32) -> PriorFact {
    PriorFact {
        origin: Origin { run: "earlier".parse().unwrap(), fact: FactId(fact) },
        call: call("t1.0"),
        tool: "look".to_owned(),
        statement: statement.to_owned(),
        key: None,
    }
}

#[test]
fn facts_of_an_earlier_run_may_be_cited_and_say_where_they_come_from() {
    let mut spec = unjudged();
    spec.prior_facts = vec![earlier("seen then", 4)];
    let mut play = Play::resolved(spec, environment(&[]));
    play.looks(1, "seen now");
    play.says(&conclusion(&["f1", "f2"]));
    assert_eq!(play.row(), 1);
    let release: Json = Json::parse(&serde_json::to_string(play.engine.release().unwrap()).unwrap()).unwrap();
    let origin = release.as_object().unwrap()["citations"].as_array().unwrap()[0].as_object().unwrap().get("origin");
    assert_eq!(origin.unwrap().to_text(), r#"{"fact":"f4","run":"earlier"}"#);
}

#[test]
fn a_fact_that_an_earlier_run_knew_is_not_new() {
    let mut spec = unjudged();
    spec.prior_facts = vec![earlier("seen", 1)];
    spec.collection.saturation_after = Some(1);
    let mut play = Play::resolved(spec, environment(&[]));
    play.asks(&[("look", r#"{"at":1}"#)]);
    play.dispatch();
    let step = play.returns("t1.0", fact("seen"));
    assert!(raised(&step, "information_saturated"));
}

#[test]
fn a_run_that_cannot_begin_imports_nothing() {
    let mut spec = unjudged();
    spec.prior_facts = vec![earlier("seen", 1)];
    let mut play = Play::started(spec);
    play.step(Input::ResolutionFailed { error: ResolutionError::DependencyCycle { plugins: Vec::new() } });
    let ending = play.ending();
    assert_eq!((ending.row, ending.facts), (18, 0));
}

#[test]
fn thread_state_of_the_spec_is_what_a_run_begins_with() {
    let mut spec = unjudged();
    spec.prior_state = BTreeMap::from([("n.once".to_owned(), Json::from(3u32))]);
    let play = Play::resolved(spec, environment(&[]));
    let state = play.engine.shared_state();
    assert_eq!(state.get(&(THREAD, "n.once".to_owned())), Some(&Json::from(3u32)));
    assert_eq!(state.len(), 1);
}

#[test]
fn prior_facts_must_be_facts() {
    let empty = earlier("  ", 1);
    let mut long = earlier("x", 1);
    long.statement = "x".repeat(65_537);
    let mut nameless = earlier("x", 1);
    nameless.tool = String::new();
    for fact in [empty, long, nameless] {
        let mut spec = spec();
        spec.prior_facts = vec![fact];
        assert!(spec.check().unwrap_err().field.starts_with("prior_facts[0]."));
    }
}

#[test]
fn a_deadline_that_stood_still_goes_on_when_the_last_call_is_denied() {
    let mut spec = unjudged();
    spec.deadline_pauses_while_awaiting = true;
    let asked = ToolSpec { confirm: true, ..act() };
    let mut play = Play::resolved(spec, Environment { tools: vec![look(), asked], ..Environment::default() });
    play.asks(&[("act", "{}")]);
    play.at_ms = 1_000_000;
    play.decide(portcullis::vocabulary::input::Decision::Deny { note: None });
    assert_eq!(play.engine.decider().clock().unwrap().deadline_ms(), Some(1_600_000));
}
