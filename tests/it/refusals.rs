//! Every refusal kind, in the order in which they are asked: the first that applies is given (SPEC 4.R1 to
//! 4.R9). `Play::refusal` checks each time that nothing changes.

use portcullis::engine::Engine;
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::environment::{Environment, GateOf};
use portcullis::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, Ticket};
use portcullis::vocabulary::input::{CancelOrigin, Decision, GateAnswer, Input, NestedKind, Reconciliation, Verdict};
use portcullis::vocabulary::llm::{self, FinishReason, Usage};
use portcullis::vocabulary::refusal::RefusalKind::{
    self, AlreadyStarted, Conflict, Duplicate, Malformed, NotDue, NotStarted, Stale, Terminal, Unexpected,
};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

use crate::play::{Play, act, call, cancel, content, environment, fact, gated, look, spec, started};

fn long_remark() -> String {
    "x".repeat(spec().limits.note_bytes_max as usize + 1)
}

fn late_answer(call: u32, attempt: u32) -> Input {
    Input::ModelResponded {
        call: ModelCallId(call),
        attempt,
        content: content(Some("late"), &[]),
        finish: FinishReason::Stop,
        usage: Usage::default(),
    }
}

fn malformed_cancel() -> Input {
    Input::CancelRequested { by: long_remark(), origin: CancelOrigin::Caller }
}

fn executing() -> Play {
    let mut play = Play::resolved(spec(), environment(vec![look(), act()]));
    play.asks(&[("look", "{}"), ("act", "{}")]);
    play.dispatch();
    play
}

fn ended() -> Play {
    let mut play = executing();
    play.step(cancel());
    play
}

#[test]
fn malformed_comes_before_everything_else() {
    let mut play = Play::resolved(spec(), Environment::default());
    assert_eq!(play.refused(malformed_cancel()), Malformed);
    play.step(cancel());
    assert_eq!(play.refused(malformed_cancel()), Malformed, "before terminal");
    let nameless = Input::RunStarted {
        run_id: "again".parse().unwrap(),
        spec: Box::new(spec()),
        nonce: String::new(),
        wall_time: String::new(),
        forked_from: None,
    };
    assert_eq!(play.refused(nameless.clone()), Malformed, "before already_started");
    assert_eq!(Play::unborn().refused(nameless), Malformed);
}

#[test]
fn malformed_comes_before_duplicate_conflict_unexpected_and_stale() {
    let mut spec = spec();
    spec.limits.response_bytes_max = 8;
    spec.limits.calls_in_response_max = 1;
    let mut play = Play::resolved(spec, Environment::default());
    let long = |call| Input::ModelResponded {
        call: ModelCallId(call),
        attempt: 1,
        content: content(Some("more than eight"), &[]),
        finish: FinishReason::Stop,
        usage: Usage::default(),
    };
    let many = play.answer(content(None, &[("a", ""), ("b", "")]), FinishReason::ToolCalls);
    assert_eq!(play.refused(long(1)), Malformed);
    assert_eq!(play.refused(long(9)), Malformed, "before stale");
    assert_eq!(play.refused(many), Malformed);
    play.fails(llm::Error::Provider { message: String::new() });
    assert_eq!(play.refused(long(1)), Malformed, "before unexpected");
}

#[test]
fn every_remark_and_result_has_a_limit_of_size() {
    let mut spec = spec();
    spec.limits.line_bytes_max = 4_096;
    let mut look = look();
    look.result_bytes_max = 4_096;
    let mut play = Play::resolved(spec, environment(vec![look]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    let (id, by) = (call("t1.0"), || "a person".to_owned());
    let output = || ToolOutput::text("x".repeat(4_097));
    let ticket = || Ticket("nobody's".to_owned());
    let inputs = [
        Input::ToolCompleted { call: id, attempt: 1, output: output() },
        Input::ToolReconciled { call: id, by: by(), outcome: Reconciliation::Applied { output: output() } },
        Input::ToolReconciled { call: id, by: long_remark(), outcome: Reconciliation::Unknown },
        Input::DecisionGiven { ticket: ticket(), by: long_remark(), decision: Decision::Allow },
        Input::DecisionGiven { ticket: ticket(), by: by(), decision: Decision::Deny { note: Some(long_remark()) } },
        Input::GateAnswered { ask: Ask(1), answer: GateAnswer::Block { reason: Some(long_remark()) } },
        Input::GateAnswered { ask: Ask(1), answer: GateAnswer::SetResult { content: "x".repeat(4_097) } },
        Input::ExecutionCrashed { origin: long_remark() },
        Input::ReleaseDelivered { receipt: long_remark() },
        Input::DeadlineElapsed { displaced: Some(Box::new(malformed_cancel())) },
        Input::DeadlineElapsed { displaced: Some(Box::new(Input::DeadlineElapsed { displaced: None })) },
    ];
    for input in inputs {
        let refusal = play.refusal(input.clone());
        assert_eq!(refusal.kind, Malformed, "{input:?}");
        assert!(refusal.reason.is_some(), "a malformed report is told why");
    }
    assert!(play.is_open());
}

#[test]
fn a_malformed_spec_begins_nothing() {
    let endless = Spec { deadline_ms: None, ..spec() };
    let endless = Spec {
        budgets: portcullis::vocabulary::spec::Budgets { model_calls: None, ..endless.budgets.clone() },
        ..endless
    };
    let unnamed = Spec::new("find out", " ");
    for spec in [endless, unnamed] {
        let mut play = Play::unborn();
        assert_eq!(play.refused(started("played", spec)), Malformed);
        assert_eq!(play.refused(cancel()), NotStarted);
    }
}

#[test]
fn nothing_but_run_started_begins_a_run() {
    let mut play = Play::unborn();
    for input in [cancel(), late_answer(1, 1), Input::RunRecovered { epoch: 1, tools: Vec::new() }] {
        let refusal = play.refusal(input);
        assert_eq!(refusal.kind, NotStarted);
        assert_eq!((refusal.machine, refusal.state, refusal.expected), ("run", "created", vec!["run_started"]));
    }
    assert!(Engine::new().ending().is_none());
}

#[test]
fn a_run_starts_once_also_after_its_end() {
    let mut play = Play::started(spec());
    assert_eq!(play.refused(started("played", spec())), AlreadyStarted, "the same body is no duplicate");
    assert_eq!(play.refused(started("another", spec())), AlreadyStarted);
    play.step(cancel());
    assert_eq!(play.refused(started("played", spec())), AlreadyStarted, "before terminal");
}

#[test]
fn a_finished_run_refuses_every_report_but_three() {
    let mut play = ended();
    let (tool, nested) = (call("t1.0"), NestedCallId { parent: call("t1.0"), index: 0 });
    let error = || llm::Error::Timeout { message: String::new() };
    let inputs = [
        Input::EnvironmentResolved { environment: Box::default() },
        Input::ResolutionFailed {
            error: portcullis::vocabulary::failure::ResolutionError::DependencyCycle { plugins: Vec::new() },
        },
        late_answer(1, 1),
        Input::ModelFailed { call: ModelCallId(1), attempt: 1, error: error(), usage: None },
        Input::BackoffElapsed { call: ModelCallId(1), attempt: 1 },
        Input::ToolsDispatched { calls: vec![tool] },
        Input::ToolCompleted { call: tool, attempt: 1, output: fact("late") },
        Input::ToolFailed { call: tool, attempt: 1, error: ToolError::Execution { message: String::new() } },
        Input::ToolTimedOut { call: tool, attempt: 1 },
        Input::NestedCallRequested {
            parent: tool,
            attempt: 1,
            nested,
            kind: NestedKind::Model,
            tool: None,
            arguments: None,
        },
        Input::NestedCompleted { nested, usage: None },
        Input::GateAnswered { ask: Ask(1), answer: GateAnswer::Allow },
        Input::GateFailed { ask: Ask(1) },
        Input::HookAnswered { ask: Ask(1), commands: Vec::new(), context: None },
        Input::HookFailed { ask: Ask(1) },
        Input::DecisionGiven { ticket: Ticket("t".into()), by: "a".into(), decision: Decision::Allow },
        Input::TicketExpired { ticket: Ticket("t".into()) },
        Input::SemanticsJudged {
            call: JudgeCallId(1),
            attempt: 1,
            draft: Digest::ZERO,
            verdict: Verdict::Supported,
            usage: None,
        },
        Input::SemanticsFailed { call: JudgeCallId(1), attempt: 1, draft: Digest::ZERO, error: error() },
        cancel(),
        Input::DeadlineElapsed { displaced: None },
        Input::ExecutionCrashed { origin: "driver".into() },
        Input::ToolReconciled { call: tool, by: "a".into(), outcome: Reconciliation::NotApplied },
    ];
    let mut types: Vec<&str> = inputs.iter().map(Input::tag).collect();
    for input in inputs {
        assert_eq!(play.refused(input.clone()), Terminal, "{}: before duplicate, unexpected and stale", input.tag());
    }
    types.extend(["run_started", "release_delivered", "run_recovered", "tail_repaired"]);
    types.sort_unstable();
    let mut all = Input::TAGS.to_vec();
    all.sort_unstable();
    assert_eq!(types, all, "every type of input was tried");
}

#[test]
fn a_finished_run_takes_a_repair_a_takeover_and_one_receipt() {
    let mut play = ended();
    let ending = play.ending();
    let ordinal = play.engine.decider().records();
    play.step(Input::TailRepaired { ordinal, bytes: 3, digest: Digest::ZERO });
    play.recover(1);
    play.step(Input::ReleaseDelivered { receipt: "taken".into() });
    assert_eq!(play.ending(), ending);
    assert_eq!(play.refused(Input::RunRecovered { epoch: 2, tools: Vec::new() }), Terminal, "it was delivered");
    assert_eq!(play.refused(Input::ReleaseDelivered { receipt: "taken".into() }), Duplicate);
    assert_eq!(play.refused(Input::ReleaseDelivered { receipt: "another".into() }), Conflict);
}

#[test]
fn the_same_report_again_is_a_duplicate_and_with_another_body_a_conflict() {
    let mut play = executing();
    let completed = |statement| Input::ToolCompleted { call: call("t1.0"), attempt: 1, output: fact(statement) };
    play.step(completed("so"));
    for _ in 0..2 {
        assert_eq!(play.refused(completed("so")), Duplicate, "before stale");
        assert_eq!(play.refused(completed("otherwise")), Conflict, "before stale");
    }
    play.returns("t1.1", ToolOutput::text("done"));
    assert_eq!(play.refused(completed("so")), Duplicate, "before unexpected: the batch is gone");
}

#[test]
fn repetitions_are_known_of_every_kind_of_report() {
    let tool = ToolSpec { confirm: true, ..look() };
    let environment = gated(vec![tool], &[("door", GateOf::Tool)]);
    let mut play = Play::started(spec());
    let resolved = Input::EnvironmentResolved { environment: Box::new(environment) };
    play.step(resolved.clone());
    assert_eq!(play.refused(resolved), Duplicate);
    let answer = play.answer(content(None, &[("look", "{}")]), FinishReason::ToolCalls);
    play.step(answer.clone());
    assert_eq!(play.refused(answer), Duplicate);
    assert_eq!(play.refused(late_answer(1, 1)), Conflict);
    let allow = Input::GateAnswered { ask: play.ask(), answer: GateAnswer::Allow };
    play.step(allow.clone());
    assert_eq!(play.refused(allow), Duplicate);
    let decision = |decision| Input::DecisionGiven { ticket: Ticket(String::new()), by: "a".into(), decision };
    let with_ticket = |input: Input, ticket: Ticket| match input {
        Input::DecisionGiven { by, decision, .. } => Input::DecisionGiven { ticket, by, decision },
        other => other,
    };
    let ticket = play.ticket();
    play.step(with_ticket(decision(Decision::Allow), ticket.clone()));
    assert_eq!(play.refused(with_ticket(decision(Decision::Allow), ticket.clone())), Duplicate);
    assert_eq!(play.refused(with_ticket(decision(Decision::Deny { note: None }), ticket)), Conflict);
    let dispatched = Input::ToolsDispatched { calls: play.dispatch() };
    assert_eq!(play.refused(dispatched), Duplicate);
    play.returns("t1.0", fact("so"));
    let epoch = Input::RunRecovered { epoch: 4, tools: Vec::new() };
    play.step(epoch.clone());
    assert_eq!(play.refused(epoch), Duplicate);
    let ordinal = play.engine.decider().records();
    let repair = |bytes| Input::TailRepaired { ordinal, bytes, digest: Digest::ZERO };
    play.step(repair(3));
    assert_eq!(play.refused(repair(3)), Duplicate);
    assert_eq!(play.refused(repair(4)), Conflict);
}

#[test]
fn a_refused_report_is_not_remembered() {
    let mut play = executing();
    let early = Input::ToolCompleted { call: call("t1.1"), attempt: 2, output: ToolOutput::text("early") };
    assert_eq!(play.refused(early.clone()), Stale);
    assert_eq!(play.refused(early), Stale, "not a duplicate of a refused one");
}

#[test]
fn the_right_form_in_the_wrong_phase_is_unexpected() {
    let mut play = Play::started(spec());
    let draft = Digest::ZERO;
    let inputs = [
        late_answer(1, 1),
        Input::BackoffElapsed { call: ModelCallId(1), attempt: 1 },
        Input::ToolsDispatched { calls: vec![call("t1.0")] },
        Input::ToolCompleted { call: call("t1.0"), attempt: 1, output: fact("early") },
        Input::ToolTimedOut { call: call("t1.0"), attempt: 1 },
        Input::GateFailed { ask: Ask(1) },
        Input::TicketExpired { ticket: Ticket("t".into()) },
        Input::SemanticsJudged { call: JudgeCallId(1), attempt: 1, draft, verdict: Verdict::Supported, usage: None },
        Input::ToolReconciled { call: call("t1.0"), by: "a".into(), outcome: Reconciliation::NotApplied },
        Input::ReleaseDelivered { receipt: "early".into() },
        Input::HookFailed { ask: Ask(1) },
    ];
    for input in inputs {
        assert_eq!(play.refused(input.clone()), Unexpected, "{}", input.tag());
    }
    play.step(Input::EnvironmentResolved { environment: Box::default() });
    assert_eq!(play.refused(Input::EnvironmentResolved { environment: Box::new(environment(vec![look()])) }), Conflict);
    let error = portcullis::vocabulary::failure::ResolutionError::DependencyCycle { plugins: Vec::new() };
    assert_eq!(play.refused(Input::ResolutionFailed { error }), Unexpected);
}

#[test]
fn a_run_without_a_deadline_does_not_expect_one() {
    let mut play = Play::started(Spec { deadline_ms: None, ..spec() });
    assert_eq!(play.refused(Input::DeadlineElapsed { displaced: None }), Unexpected);
}

#[test]
fn what_fits_no_call_in_flight_is_stale() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    assert_eq!(play.refused(late_answer(1, 2)), Stale);
    assert_eq!(play.refused(late_answer(2, 1)), Stale);
    assert_eq!(play.refused(Input::RunRecovered { epoch: 0, tools: Vec::new() }), Stale);
    let ordinal = play.engine.decider().records() + 1;
    assert_eq!(play.refused(Input::TailRepaired { ordinal, bytes: 1, digest: Digest::ZERO }), Stale);
    play.asks(&[("look", "{}")]);
    assert_eq!(play.refused(Input::ToolsDispatched { calls: vec![call("t1.1")] }), Stale);
    assert_eq!(play.refused(Input::ToolCompleted { call: call("t1.0"), attempt: 1, output: fact("early") }), Stale);
    play.dispatch();
    for (id, attempt) in [("t1.0", 2), ("t1.1", 1), ("t2.0", 1)] {
        let report = Input::ToolCompleted { call: call(id), attempt, output: fact("late") };
        assert_eq!(play.refused(report), Stale, "{id}/{attempt}");
    }
}

#[test]
fn a_decision_needs_its_own_open_ticket() {
    let tool = ToolSpec { confirm: true, confirm_expires_ms: Some(100), ..look() };
    let mut play = Play::resolved(spec(), environment(vec![tool]));
    play.asks(&[("look", "{}")]);
    let ticket = play.ticket();
    let allow = |ticket: &str| Input::DecisionGiven {
        ticket: Ticket(ticket.to_owned()),
        by: "a person".into(),
        decision: Decision::Allow,
    };
    assert_eq!(play.refused(allow("another")), Stale);
    assert_eq!(play.refused(Input::TicketExpired { ticket: ticket.clone() }), NotDue);
    play.at_ms = 100;
    assert_eq!(play.refused(allow(&ticket.0)), Stale, "too late");
    play.step(Input::TicketExpired { ticket: ticket.clone() });
    assert_eq!(play.refused(Input::TicketExpired { ticket }), Duplicate, "single use");
}

#[test]
fn a_judgement_must_be_of_the_draft_that_is_judged() {
    let mut play = Play::resolved(spec(), environment(vec![look()]));
    play.looks(1, "so");
    play.says(&crate::play::conclusion(&["f1"]));
    let Input::SemanticsJudged { call, attempt, draft, verdict, usage } = play.judged(Verdict::Supported) else {
        unreachable!("a judgement")
    };
    let of = |call, attempt, draft| Input::SemanticsJudged { call, attempt, draft, verdict, usage };
    assert_eq!(play.refused(of(call, attempt, Digest::ZERO)), Stale);
    assert_eq!(play.refused(of(call, attempt + 1, draft)), Stale);
    assert_eq!(play.refused(of(JudgeCallId(9), attempt, draft)), Stale);
    play.step(of(call, attempt, draft));
    assert_eq!(play.row(), 1);
}

#[test]
fn a_timer_that_comes_early_stays_armed() {
    let tool = ToolSpec { timeout_ms: Some(50), ..look() };
    let mut play = Play::resolved(spec(), environment(vec![tool]));
    play.fails(llm::Error::Timeout { message: String::new() });
    let backoff = Input::BackoffElapsed { call: ModelCallId(1), attempt: 2 };
    assert_eq!(play.refused(backoff.clone()), NotDue);
    assert_eq!(play.refused(Input::BackoffElapsed { call: ModelCallId(1), attempt: 3 }), Stale, "before not due");
    play.at_ms = 1_000;
    play.step(backoff);
    play.asks(&[("look", "{}")]);
    play.dispatch();
    let timeout = Input::ToolTimedOut { call: call("t1.0"), attempt: 1 };
    play.at_ms = 1_049;
    assert_eq!(play.refused(timeout.clone()), NotDue);
    play.at_ms = 1_050;
    play.step(timeout);
    assert_eq!(play.refused(Input::DeadlineElapsed { displaced: None }), NotDue);
    play.at_ms = 600_000;
    play.step(Input::DeadlineElapsed { displaced: None });
    assert_eq!(play.row(), 16);
}

#[test]
fn a_tool_without_a_time_limit_has_no_timer() {
    let tool = ToolSpec { timeout_ms: None, ..look() };
    let mut play = Play::resolved(spec(), environment(vec![tool]));
    play.asks(&[("look", "{}")]);
    play.dispatch();
    assert_eq!(play.refused(Input::ToolTimedOut { call: call("t1.0"), attempt: 1 }), Unexpected);
}

#[test]
fn a_refusal_names_machine_state_and_what_was_expected() {
    let mut play = executing();
    let refusal = play.refusal(late_answer(1, 2));
    assert_eq!((refusal.machine, refusal.state), ("inference", "calling_tools"));
    for expected in ["tool_completed", "tool_failed", "tool_timed_out", "deadline_elapsed", "cancel_requested"] {
        assert!(refusal.expected.contains(&expected), "{expected} in {:?}", refusal.expected);
    }
}

#[test]
fn the_kinds_stand_in_the_order_in_which_they_are_asked() {
    let order = [Malformed, NotStarted, AlreadyStarted, Terminal, Duplicate, Conflict, Unexpected, Stale, NotDue];
    assert_eq!(RefusalKind::ALL, order);
}
