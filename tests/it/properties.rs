//! Properties over long random sequences: reports drawn from what is outstanding, mixed with reports that
//! fit nothing. All twelve invariants of SPEC 13 and the closed table hold at every step.

use std::collections::BTreeMap;

use portcullis::engine::{Decider, Ending, Engine, Step};
use portcullis::history::{self, Envelope, Policy, Recorder};
use portcullis::testkit::alphabet::{Report, answers, foreign};
use portcullis::testkit::audit::Audit;
use portcullis::testkit::explorer::worlds;
use portcullis::testkit::reference;
use portcullis::testkit::world::{Menu, NestedAsk, Output, World};
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::{Environment, Gate, GateOf};
use portcullis::vocabulary::input::{Decision, GateAnswer, Input, Reconciliation, Verdict};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{self, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::outcome::ReleaseOutcome;
use portcullis::vocabulary::refusal::RefusalKind;
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::{Assessment, JudgePolicy, ModelSpec, Spec, ToolSpec};
use portcullis::vocabulary::tool::{Concurrency, OnIndeterminate, Recovery, ToolError, ToolOutput};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

use crate::play::{Play, call, cancel, content, environment, fact, look, spec};

/// What a model writes and no release holds unless it was verified.
const SECRET: &str = "hush";

/// How many choices follow the end of a run.
const PAST_THE_END: usize = 12;

/// The same cases in every run: what was counted once is counted again.
fn runner(cases: u32) -> TestRunner {
    let persistence = FileFailurePersistence::Direct("proptest-regressions/properties.txt");
    let config = Config { cases, failure_persistence: Some(Box::new(persistence)), ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// One choice: which report, and when.
#[derive(Debug, Clone, Copy)]
struct Choice {
    pick: u32,
    kind: Kind,
    late_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An answer that lets the run go on.
    Onward,
    /// A model's draft, where one is awaited.
    Draft,
    /// A takeover or a repair of the history, which change little.
    Aside,
    /// Any answer, those that end the run among them.
    Any,
    /// A report that fits nothing.
    Foreign,
}

/// About `ends` of 300 choices may end the run.
fn choice(ends: u32) -> impl Strategy<Value = Choice> {
    let kind = prop_oneof![
        200 => Just(Kind::Onward),
        ends => Just(Kind::Draft),
        36 => Just(Kind::Aside),
        ends.div_ceil(10) => Just(Kind::Any),
        70 => Just(Kind::Foreign),
    ];
    let late = prop_oneof![8 => Just(0u64), 1 => 1..40u64];
    (any::<u32>(), kind, late).prop_map(|(pick, kind, late_ms)| Choice { pick, kind, late_ms })
}

/// Budgets wide enough for long runs, and every rule of the spec drawn.
fn wide_world() -> impl Strategy<Value = World> {
    let budgets = (30..80u64, prop_oneof![Just(None), (20..200u64).prop_map(Some)], 0..3u64, any::<bool>());
    let rules = (prop_oneof![Just(None), (1..6u32).prop_map(Some)], any::<bool>(), 2..7u32, any::<bool>());
    let repairs = (0..3u32, 0..3u32, any::<bool>(), any::<bool>());
    (budgets, rules, repairs).prop_map(|(budgets, rules, repairs)| {
        let mut spec = Spec::new("find out", "model");
        let (model_calls, tool_calls, reserve, tokens) = budgets;
        spec.budgets.model_calls = Some(model_calls);
        spec.budgets.tool_calls = tool_calls;
        spec.budgets.final_call_reserve = reserve;
        spec.budgets.total_tokens = tokens.then_some(15 * model_calls / 2);
        spec.budgets.tool_calls_by_tool = [("pay".to_owned(), 3)].into();
        let (saturation_after, assessed, violation_limit, paused) = rules;
        spec.collection.saturation_after = saturation_after;
        spec.collection.assessment = if assessed { Assessment::Required } else { Assessment::Off };
        spec.collection.violation_limit = violation_limit;
        spec.deadline_ms = Some(10_000_000);
        spec.deadline_pauses_while_awaiting = paused;
        let (draft_repairs, evidence_repairs, judged, gated) = repairs;
        spec.draft.repairs = draft_repairs;
        spec.release.evidence_repairs = evidence_repairs;
        spec.release.judge = if judged { JudgePolicy::On } else { JudgePolicy::Off };
        spec.retry.retries_max = 1;
        spec.fallbacks = vec![ModelSpec::new("other")];
        World { name: "wide", spec, menu: wide_menu(gated), recoveries_max: 40 }
    })
}

fn wide_menu(gated: bool) -> Menu {
    let gate = |id: &str, of| Gate { id: id.to_owned(), of, tools: vec!["act".to_owned()] };
    let gates = if gated {
        vec![gate("door", GateOf::Tool), gate("hatch", GateOf::Tool), gate("portcullis", GateOf::Release)]
    } else {
        Vec::new()
    };
    let answers = vec![
        GateAnswer::Allow,
        GateAnswer::Block { reason: None },
        GateAnswer::SetResult { content: "set".to_owned() },
        GateAnswer::Confirm { expires_ms: Some(30) },
    ];
    let message = || "for people".to_owned();
    let text = |text: &str| (text.replace("it is so", SECRET), FinishReason::Stop);
    Menu {
        environments: vec![Environment { tools: wide_tools(), gates, ..Environment::default() }],
        drafts: vec![
            text(r#"{"conclusion":{"statement":"it is so"},"citations":["f1"],"quotes":{"f1":"seen"}}"#),
            text(r#"{"conclusion":{"statement":"it is so"},"citations":[]}"#),
            text(r#"{"conclusion":null,"citations":["f1"]}"#),
            text("it is so"),
        ],
        batches: wide_batches(),
        usage: Usage { input_tokens: Some(10), output_tokens: Some(5) },
        model_errors: vec![
            llm::Error::Timeout { message: message() },
            llm::Error::ModelNotFound { message: message() },
            llm::Error::InvalidRequest { message: message() },
        ],
        outputs: vec![
            Output::Fresh,
            Output::Given(fact("seen before")),
            Output::Given(ToolOutput::text("nothing")),
            Output::Given(ToolOutput::error("refused")),
        ],
        tool_errors: vec![
            ToolError::UnavailableBeforeDispatch { message: message() },
            ToolError::Execution { message: message() },
        ],
        nested: vec![
            NestedAsk::Tool { tool: "act".to_owned(), arguments: Json::Object(BTreeMap::new()) },
            NestedAsk::Tool { tool: "pay".to_owned(), arguments: Json::Object(BTreeMap::new()) },
            NestedAsk::Model,
        ],
        nested_max: 3,
        tool_gates: answers.clone(),
        release_gates: answers,
        decisions: vec![
            Decision::Allow,
            Decision::AllowWith { arguments: Json::Object(BTreeMap::new()) },
            Decision::Deny { note: None },
        ],
        verdicts: Verdict::ALL.to_vec(),
        reconciliations: vec![
            Reconciliation::Applied { output: fact("done") },
            Reconciliation::NotApplied,
            Reconciliation::Unknown,
        ],
        ..Menu::default()
    }
}

fn wide_tools() -> Vec<ToolSpec> {
    let pay = ToolSpec { recovery: Some(Recovery::Idempotent), ..ToolSpec::new("pay") };
    let note = ToolSpec { on_indeterminate: OnIndeterminate::Observe, ..ToolSpec::new("note") };
    let serial = ToolSpec { concurrency: Concurrency::Serial, confirm_expires_ms: Some(50), ..ToolSpec::new("act") };
    let again = ToolSpec { repeatable: true, ..ToolSpec::evidence("poll") };
    let tools = vec![ToolSpec::evidence("look"), again, serial, pay, note];
    tools.into_iter().map(|tool| ToolSpec { timeout_ms: Some(100), ..tool }).collect()
}

fn wide_batches() -> Vec<(Vec<ToolRequest>, FinishReason)> {
    let assessed = r#"{"at":7,"previous_observation":{"assessment":"uninformative"}}"#;
    let batches: [&[(&str, &str)]; 8] = [
        &[("look", r#"{"at":1}"#)],
        &[("look", r#"{"at":2}"#), ("look", r#"{"at":3}"#), ("look", r#"{"at":2}"#)],
        &[("poll", "{}"), ("poll", r#"{"previous_observation":{"assessment":"informative"}}"#)],
        &[("look", assessed), ("act", "{}")],
        &[("act", "{}"), ("act", "{}")],
        &[("pay", "{}"), ("note", "{}"), ("poll", "{}")],
        &[("nobody", "{}"), ("look", "{")],
        &[("act", r#"{"to":"them"}"#), ("poll", assessed)],
    ];
    batches.iter().map(|calls| (content(None, calls).calls, FinishReason::ToolCalls)).collect()
}

/// A run of choices, and everything that is checked beside it.
struct Walk {
    world: World,
    engine: Engine,
    fold: Decider,
    recorder: Recorder,
    audit: Audit,
    lines: String,
    last: Option<Report>,
    counts: Counts,
}

/// How often each row, signal, refusal kind and accepted input was met.
#[derive(Debug, Default)]
struct Counts {
    rows: BTreeMap<u8, u64>,
    signals: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, u64>,
    inputs: BTreeMap<&'static str, u64>,
    /// Accepted reports before the end, of the longest run.
    longest: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.longest = self.longest.max(other.longest);
        other.rows.into_iter().for_each(|(row, count)| *self.rows.entry(row).or_default() += count);
        let pairs = [
            (&mut self.signals, other.signals),
            (&mut self.refusals, other.refusals),
            (&mut self.inputs, other.inputs),
        ];
        for (sums, counts) in pairs {
            counts.into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
        }
    }
}

impl Walk {
    fn new(world: World) -> Self {
        Self {
            world,
            engine: Engine::new(),
            fold: Decider::default(),
            recorder: Recorder::new(),
            audit: Audit::default(),
            lines: String::new(),
            last: None,
            counts: Counts::default(),
        }
    }

    /// The report that the choice names in this state.
    fn report(&self, choice: Choice) -> Option<Report> {
        let reports = match choice.kind {
            Kind::Foreign => foreign(&self.engine, &self.world, self.last.as_ref()),
            kind => self.answers(kind),
        };
        // The first draft of every menu is the good one.
        let good = choice.kind == Kind::Draft && choice.pick.is_multiple_of(2);
        let index = if good { 0 } else { choice.pick as usize % reports.len().max(1) };
        let report = reports.into_iter().nth(index)?;
        // A timer that is a millisecond early must stay early.
        let late_ms = if choice.kind == Kind::Foreign { 0 } else { choice.late_ms };
        Some(Report { at_ms: report.at_ms + late_ms, ..report })
    }

    /// The answers of that kind; where there are none, those that go on, or else all of them.
    fn answers(&self, kind: Kind) -> Vec<Report> {
        let all = answers(&self.engine, &self.world);
        let aside = |input: &Input| matches!(input, Input::RunRecovered { .. } | Input::TailRepaired { .. });
        let fits = |kind: Kind, report: &Report| match kind {
            Kind::Onward => goes_on(report, &self.engine) && !aside(&report.input),
            Kind::Draft => is_draft(&report.input) && is_in_time(report, &self.engine),
            Kind::Aside => aside(&report.input),
            Kind::Any | Kind::Foreign => true,
        };
        let fitting = |kind| all.iter().filter(|report| fits(kind, report)).cloned().collect::<Vec<_>>();
        let chosen = [kind, Kind::Onward].into_iter().map(fitting).find(|reports| !reports.is_empty());
        chosen.unwrap_or(all)
    }

    fn take(&mut self, report: Report) -> TestCaseResult {
        let before = Before::of(&self.engine);
        match self.engine.step(report.at_ms, report.input.clone()) {
            Ok(step) => {
                self.accepted(&before, &step)?;
                self.last = Some(report);
            }
            Err(refusal) => {
                *self.counts.refusals.entry(refusal.kind.word()).or_default() += 1;
                let said = serde_json::to_string(&refusal).unwrap();
                prop_assert!(!said.contains(SECRET), "{said}");
                prop_assert!(Before::of(&self.engine) == before, "13.I7: {refusal}");
                prop_assert_eq!(self.engine.step(report.at_ms, report.input), Err(refusal));
            }
        }
        Ok(())
    }

    fn accepted(&mut self, before: &Before, step: &Step) -> TestCaseResult {
        self.count(before, step);
        let decider = self.engine.decider();
        prop_assert_eq!(decider.violations(), Vec::new());
        if let Some(ending) = &before.ending {
            prop_assert_eq!(self.engine.ending(), Some(ending), "13.I1");
        }
        if let Some(ending) = self.engine.ending() {
            let wire = Json::parse(&serde_json::to_string(ending).unwrap()).unwrap();
            prop_assert_eq!(reference::is_legal(&wire), Ok(()));
        }
        self.stays_silent(step)?;
        let line = std::str::from_utf8(self.recorder.record(&self.engine, step)).unwrap();
        self.lines.push_str(line);
        self.audit.take(line).map_err(|breach| TestCaseError::fail(breach.to_string()))?;
        let envelope: Envelope<'_> = serde_json::from_str(line).unwrap();
        let again = self.fold.step(envelope.at_ms, envelope.input);
        prop_assert_eq!(again.as_ref(), Ok(step), "13.I6");
        prop_assert_eq!(self.fold.identity(), self.engine.decider().identity(), "13.I6");
        prop_assert_eq!(self.fold.state_json(), self.engine.decider().state_json(), "13.I6");
        Ok(())
    }

    /// 13.I10: what the model wrote stands in no signal, state or effect before it is released.
    fn stays_silent(&self, step: &Step) -> TestCaseResult {
        let released = self.engine.ending().is_some_and(|ending| ending.outcome == ReleaseOutcome::Success);
        let told = [
            serde_json::to_string(&step.signals).unwrap(),
            if released { String::new() } else { serde_json::to_string(&step.effects).unwrap() },
            self.engine.decider().state_json(),
            format!("{:?}", self.engine.ending()),
        ];
        prop_assert!(!told.iter().any(|text| text.contains(SECRET)), "13.I10: {told:?}");
        Ok(())
    }

    fn count(&mut self, before: &Before, step: &Step) {
        *self.counts.inputs.entry(step.input.tag()).or_default() += 1;
        self.counts.longest += u64::from(before.ending.is_none());
        for signal in &step.signals {
            *self.counts.signals.entry(signal.tag()).or_default() += 1;
        }
        if let (Some(ending), None) = (self.engine.ending(), &before.ending) {
            *self.counts.rows.entry(ending.row).or_default() += 1;
        }
    }

    /// Every prefix replays, up to the whole.
    fn replays(&self) -> TestCaseResult {
        let ends: Vec<usize> = self.lines.match_indices('\n').map(|(at, _)| at + 1).collect();
        let half = ends.get(ends.len() / 2).copied();
        for end in half.into_iter().chain([self.lines.len()]) {
            let prefix = &self.lines[..end];
            let summary = history::replay(prefix.as_bytes(), Policy::Stop)
                .map_err(|fault| TestCaseError::fail(fault.to_string()))?;
            prop_assert_eq!(summary.divergences, Vec::new());
            prop_assert_eq!(summary.records as usize, prefix.lines().count());
        }
        Ok(())
    }
}

/// Whether an answer is likely to let the run go on.
fn goes_on(report: &Report, engine: &Engine) -> bool {
    let ends = match &report.input {
        Input::CancelRequested { .. } | Input::ExecutionCrashed { .. } | Input::DeadlineElapsed { .. } => true,
        Input::ModelFailed { error, .. } => !error.code().retryable(),
        input => is_draft(input),
    };
    is_in_time(report, engine) && !ends
}

fn is_in_time(report: &Report, engine: &Engine) -> bool {
    let deadline = engine.decider().clock().and_then(|clock| clock.deadline_ms());
    deadline.is_none_or(|deadline| report.at_ms < deadline)
}

fn is_draft(input: &Input) -> bool {
    matches!(input, Input::ModelResponded { content, .. } if content.calls.is_empty())
}

/// What a refusal must leave as it was.
#[derive(PartialEq)]
struct Before {
    state: String,
    identity: String,
    outstanding: String,
    expected: Vec<&'static str>,
    messages: usize,
    facts: usize,
    ending: Option<Ending>,
}

impl Before {
    fn of(engine: &Engine) -> Self {
        Self {
            state: engine.decider().state_json(),
            identity: engine.decider().identity().to_string(),
            outstanding: serde_json::to_string(&engine.outstanding()).unwrap(),
            expected: engine.expected(),
            messages: engine.transcript().len(),
            facts: engine.facts().len(),
            ending: engine.ending().cloned(),
        }
    }
}

/// Walks `choices` through `world`, a little past its end, and gives the counts.
fn walk(world: World, choices: &[Choice]) -> Result<Counts, TestCaseError> {
    let mut walk = Walk::new(world);
    let mut past = 0;
    for choice in choices {
        past += usize::from(walk.engine.ending().is_some());
        if past > PAST_THE_END {
            break;
        }
        if let Some(report) = walk.report(*choice) {
            walk.take(report)?;
        }
    }
    walk.replays()?;
    Ok(walk.counts)
}

/// A small world, which ends soon and in every way (those with the rarest endings more often), or a wide one, which goes on for long.
fn any_walk() -> impl Strategy<Value = (World, Vec<Choice>)> {
    let narrow = ["drafts", "gates", "ends_when_unknown"]
        .map(|name| worlds().iter().position(|world| world.name == name).unwrap());
    let index = prop_oneof![2 => 0..worlds().len(), 1 => prop::sample::select(narrow.to_vec())];
    let small = index.prop_map(|index| worlds().swap_remove(index));
    prop_oneof![3 => (small, vec(choice(60), 200..210)), 1 => (wide_world(), vec(choice(3), 300..400))]
}

#[test]
fn every_invariant_holds_over_long_sequences() {
    let mut counts = Counts::default();
    let sums = std::cell::RefCell::new(&mut counts);
    let outcome = runner(500).run(&any_walk(), |(world, choices)| {
        let found = walk(world, &choices)?;
        sums.borrow_mut().add(found);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{counts:#?}");
    let never = |all: &[&'static str], met: &BTreeMap<&'static str, u64>| -> Vec<&'static str> {
        all.iter().copied().filter(|name| !met.contains_key(name)).collect()
    };
    assert_eq!(counts.rows.keys().copied().collect::<Vec<u8>>(), (1..=20).collect::<Vec<u8>>(), "rows");
    assert_eq!(never(Signal::TAGS, &counts.signals), Vec::<&str>::new(), "signals");
    let kinds: Vec<&str> = RefusalKind::ALL.iter().map(|kind| kind.word()).collect();
    assert_eq!(never(&kinds, &counts.refusals), Vec::<&str>::new(), "refusal kinds");
    assert!(counts.longest >= 200, "long sequences: {}", counts.longest);

    assert_eq!(never(Input::TAGS, &counts.inputs), Vec::<&str>::new(), "inputs");
}

#[test]
fn a_model_call_limit_of_n_admits_exactly_n() {
    let outcome = runner(32).run(&(0..12u64), |limit| {
        let mut spec = spec();
        spec.budgets.model_calls = Some(limit);
        let mut play = Play::resolved(spec, environment(vec![ToolSpec::new("act")]));
        while play.is_open() {
            play.asks(&[("nobody", "{}")]);
        }
        prop_assert_eq!(play.engine.ledger().map(|ledger| ledger.model_calls), Some(limit));
        prop_assert_eq!(play.row(), 14);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_tool_call_limit_of_n_admits_exactly_n_at_n_minus_1_n_n_plus_1_and_0() {
    let outcome = runner(64).run(&(0..6u64, 1..9u64, any::<bool>()), |(limit, asked, by_tool)| {
        let mut spec = spec();
        if by_tool {
            spec.budgets.tool_calls_by_tool = [("look".to_owned(), limit)].into();
        } else {
            spec.budgets.tool_calls = Some(limit);
        }
        let mut play = Play::resolved(spec, environment(vec![look()]));
        let arguments: Vec<String> = (0..asked).map(|at| format!("{{\"at\":{at}}}")).collect();
        let calls: Vec<_> = arguments.iter().map(|arguments| ("look", arguments.as_str())).collect();
        play.asks(&calls);
        let admitted = limit.min(asked);
        let ledger = play.engine.ledger().cloned().unwrap();
        prop_assert_eq!(ledger.tool_calls, admitted);
        prop_assert_eq!(ledger.marked, !by_tool && asked > limit, "a limit of one tool marks nothing");
        prop_assert_eq!(play.is_open(), by_tool || asked <= limit || limit > 0);
        if admitted > 0 {
            prop_assert_eq!(play.dispatch().len() as u64, admitted);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn the_order_of_completion_changes_neither_transcript_nor_facts() {
    let outputs = prop_oneof![
        (0..3u8).prop_map(|number| fact(&format!("seen {number}"))),
        Just(ToolOutput::text("nothing")),
        Just(ToolOutput::error("refused")),
    ];
    let orders = vec(outputs, 2..6).prop_flat_map(|outputs| {
        let order: Vec<usize> = (0..outputs.len()).collect();
        (Just(outputs), Just(order).prop_shuffle())
    });
    let outcome = runner(128).run(&orders, |(outputs, order)| {
        let complete = |order: &[usize]| {
            let mut play = Play::resolved(spec(), environment(vec![look()]));
            let arguments: Vec<String> = (0..outputs.len()).map(|at| format!("{{\"at\":{at}}}")).collect();
            let calls: Vec<_> = arguments.iter().map(|arguments| ("look", arguments.as_str())).collect();
            play.asks(&calls);
            play.dispatch();
            for index in order {
                play.returns(&format!("t1.{index}"), outputs[*index].clone());
            }
            play.check_history();
            (play.engine.transcript().to_vec(), play.engine.facts(), play.engine.decider().state_json())
        };
        let in_order: Vec<usize> = (0..outputs.len()).collect();
        prop_assert_eq!(complete(&order), complete(&in_order));
        Ok(())
    });
    outcome.unwrap();
}

/// Somewhere in a run, cancel and deadline come, each twice, in either order: the first wins, every later
/// one is refused and changes nothing.
#[test]
fn cancel_and_deadline_have_one_winner() {
    let sequences = (wide_world(), vec(choice(2), 1..40), any::<bool>());
    let outcome = runner(96).run(&sequences, |(world, choices, cancel_first)| {
        let mut walk = Walk::new(world);
        for choice in &choices {
            if let Some(report) = walk.report(*choice) {
                walk.take(report)?;
            }
        }
        let clock = walk.engine.decider().clock().cloned();
        let Some((at_ms, Some(deadline_ms))) = clock.map(|clock| (clock.at_ms(), clock.deadline_ms())) else {
            return Ok(());
        };
        if walk.engine.ending().is_some() {
            return Ok(());
        }
        let cancelled = || Report { at_ms, input: cancel() };
        let elapsed = || Report { at_ms: deadline_ms, input: Input::DeadlineElapsed { displaced: None } };
        let order = if cancel_first { [cancelled(), elapsed()] } else { [elapsed(), cancelled()] };
        let [first, second] = order;
        walk.take(first.clone())?;
        let winner = walk.engine.ending().cloned();
        prop_assert_eq!(winner.as_ref().map(|ending| ending.row), Some(if cancel_first { 15 } else { 16 }));
        for report in [first, second.clone(), second] {
            let refused = walk.engine.step(report.at_ms, report.input.clone()).map_err(|refusal| refusal.kind);
            prop_assert_eq!(refused.err(), Some(RefusalKind::Terminal));
            walk.take(report)?;
        }
        prop_assert_eq!(walk.engine.ending().cloned(), winner);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_report_of_a_run_that_has_ended_is_refused_whenever_it_comes() {
    let outcome = runner(64).run(&(any::<u64>(), 1..4u32), |(at_ms, attempt)| {
        let mut play = Play::resolved(spec(), environment(vec![look()]));
        play.asks(&[("look", "{}")]);
        play.dispatch();
        play.step(cancel());
        play.at_ms = at_ms;
        let late = Input::ToolCompleted { call: call("t1.0"), attempt, output: fact("late") };
        prop_assert_eq!(play.refused(late), RefusalKind::Terminal);
        Ok(())
    });
    outcome.unwrap();
}

/// An indeterminate call is invoked no second time, whatever recoveries follow.
#[test]
fn an_indeterminate_call_is_never_entered_again() {
    let outcome = runner(64).run(&vec(any::<bool>(), 1..5), |live| {
        let mut play = Play::resolved(spec(), environment(vec![ToolSpec::new("act")]));
        play.asks(&[("act", "{}")]);
        play.dispatch();
        for (epoch, live) in (1..).zip(live) {
            let declared = portcullis::vocabulary::input::LiveTool {
                name: "act".to_owned(),
                recovery: if live { Recovery::Idempotent } else { Recovery::NeverReplay },
            };
            let step = play.step(Input::RunRecovered { epoch, tools: vec![declared] });
            let entered = step.effects.iter().any(|effect| matches!(effect, Effect::InvokeTool { .. }));
            prop_assert!(!entered);
        }
        play.check_history();
        Ok(())
    });
    outcome.unwrap();
}
