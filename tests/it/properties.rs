//! Properties over long random sequences: reports drawn from what is outstanding, mixed with reports that
//! fit nothing. All twelve invariants of SPEC 13 and the closed table hold at every step.

use std::collections::BTreeMap;

use portcullis::engine::{Decider, Ending, Engine, Step};
use portcullis::history::{self, Envelope, Policy};
use portcullis::testkit::alphabet::Report;
use portcullis::testkit::audit::Audit;
use portcullis::testkit::explorer::worlds;
use portcullis::testkit::reference;
use portcullis::testkit::shown::Shown;
use portcullis::testkit::strategies::{Mix, Move, UNVERIFIED, Walk, moves, small_world, world};
use portcullis::testkit::world::World;
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::outcome::ReleaseOutcome;
use portcullis::vocabulary::refusal::RefusalKind;
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::ToolSpec;
use portcullis::vocabulary::tool::{Recovery, ToolOutput};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

use crate::play::{Play, call, cancel, environment, fact, look, spec};

/// How many moves follow the end of a run.
const PAST_THE_END: usize = 12;

/// The same cases in every run: what was counted once is counted again.
pub(crate) fn runner(cases: u32) -> TestRunner {
    let persistence = FileFailurePersistence::Direct("proptest-regressions/properties.txt");
    let config = Config { cases, failure_persistence: Some(Box::new(persistence)), ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// About `ends` of 300 moves may end the run, and every fourth fits nothing.
fn steady(ends: u32) -> Mix {
    Mix { onward: 200, draft: ends, aside: 36, any: ends.div_ceil(10), foreign: 70, stale: 20 }
}

/// A walk, and everything that is checked beside it.
struct Checked {
    walk: Walk,
    fold: Decider,
    audit: Audit,
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

impl Checked {
    fn new(world: World) -> Self {
        Self { walk: Walk::new(world), fold: Decider::default(), audit: Audit::default(), counts: Counts::default() }
    }

    const fn engine(&self) -> &Engine {
        self.walk.engine()
    }

    fn make(&mut self, next: Move) -> TestCaseResult {
        self.walk.report(next).map_or(Ok(()), |report| self.take(report))
    }

    fn take(&mut self, report: Report) -> TestCaseResult {
        let (before, recorded) = (Before::of(self.engine()), self.walk.history().len());
        match self.walk.take(report.clone()) {
            Ok(step) => self.accepted(&before, recorded, &step),
            Err(refusal) => {
                *self.counts.refusals.entry(refusal.kind.word()).or_default() += 1;
                let said = serde_json::to_string(&refusal).unwrap();
                prop_assert!(!said.contains(UNVERIFIED), "{said}");
                prop_assert!(Before::of(self.engine()) == before, "13.I7: {refusal}");
                prop_assert_eq!(self.walk.take(report), Err(refusal));
                Ok(())
            }
        }
    }

    fn accepted(&mut self, before: &Before, recorded: usize, step: &Step) -> TestCaseResult {
        self.count(before, step);
        let engine = self.walk.engine();
        prop_assert_eq!(engine.decider().violations(), Vec::new());
        if let Some(ending) = &before.ending {
            prop_assert_eq!(engine.ending(), Some(ending), "13.I1");
        }
        if let Some(ending) = engine.ending() {
            let wire = Json::parse(&serde_json::to_string(ending).unwrap()).unwrap();
            prop_assert_eq!(reference::is_legal(&wire), Ok(()));
        }
        self.stays_silent(step)?;
        let (engine, line) = (self.walk.engine(), &self.walk.history()[recorded..]);
        self.audit.take(line).map_err(|breach| TestCaseError::fail(breach.to_string()))?;
        let envelope: Envelope<'_> = serde_json::from_str(line).unwrap();
        let again = self.fold.step(envelope.at_ms, envelope.input);
        prop_assert_eq!(again.as_ref(), Ok(step), "13.I6");
        prop_assert_eq!(self.fold.identity(), engine.decider().identity(), "13.I6");
        prop_assert_eq!(self.fold.state_json(), engine.decider().state_json(), "13.I6");
        Ok(())
    }

    /// 13.I10: what the model wrote stands in no signal, state or effect before it is released.
    fn stays_silent(&self, step: &Step) -> TestCaseResult {
        let released = self.engine().ending().is_some_and(|ending| ending.outcome == ReleaseOutcome::Success);
        let told = [
            serde_json::to_string(&step.signals).unwrap(),
            if released { String::new() } else { serde_json::to_string(&step.effects).unwrap() },
            self.engine().decider().state_json(),
            format!("{:?}", self.engine().ending()),
        ];
        prop_assert!(!told.iter().any(|text| text.contains(UNVERIFIED)), "13.I10: {told:?}");
        Ok(())
    }

    fn count(&mut self, before: &Before, step: &Step) {
        *self.counts.inputs.entry(step.input.tag()).or_default() += 1;
        self.counts.longest += u64::from(before.ending.is_none());
        for signal in &step.signals {
            *self.counts.signals.entry(signal.tag()).or_default() += 1;
        }
        if let (Some(ending), None) = (self.walk.engine().ending(), &before.ending) {
            *self.counts.rows.entry(ending.row).or_default() += 1;
        }
    }

    /// Half of it replays, and the whole.
    fn replays(&self) -> TestCaseResult {
        let lines = self.walk.history();
        let ends: Vec<usize> = lines.match_indices('\n').map(|(at, _)| at + 1).collect();
        let half = ends.get(ends.len() / 2).copied();
        for end in half.into_iter().chain([lines.len()]) {
            let prefix = &lines[..end];
            let summary = history::replay(prefix.as_bytes(), Policy::Stop)
                .map_err(|fault| TestCaseError::fail(fault.to_string()))?;
            prop_assert_eq!(summary.divergences, Vec::new());
            prop_assert_eq!(summary.records as usize, prefix.lines().count());
        }
        Ok(())
    }
}

/// What stands before a report: a refusal must leave it as it was.
#[derive(PartialEq)]
struct Before {
    shown: Shown,
    ending: Option<Ending>,
}

impl Before {
    fn of(engine: &Engine) -> Self {
        Self { shown: Shown::of(engine), ending: engine.ending().cloned() }
    }
}

/// Walks `moves` through `world`, a little past its end, and gives the counts.
fn walk(world: World, moves: &[Move]) -> Result<Counts, TestCaseError> {
    let mut checked = Checked::new(world);
    let mut past = 0;
    for next in moves {
        past += usize::from(checked.engine().ending().is_some());
        if past > PAST_THE_END {
            break;
        }
        checked.make(*next)?;
    }
    checked.replays()?;
    Ok(checked.counts)
}

/// A small world, which ends soon and in every way (those with the rarest endings more often), or a wide one, which goes on for long.
fn any_walk() -> impl Strategy<Value = (World, Vec<Move>)> {
    let rare: Vec<World> = worlds()
        .into_iter()
        .filter(|world| ["drafts", "gates", "ends_when_unknown", "shared_state"].contains(&world.name))
        .collect();
    assert_eq!(rare.len(), 4);
    let small = prop_oneof![2 => small_world(), 1 => prop::sample::select(rare)];
    prop_oneof![3 => (small, moves(steady(60), 200..210)), 1 => (world(), moves(steady(3), 300..400))]
}

#[test]
fn every_invariant_holds_over_long_sequences() {
    let mut counts = Counts::default();
    let sums = std::cell::RefCell::new(&mut counts);
    let outcome = runner(500).run(&any_walk(), |(world, moves)| {
        let found = walk(world, &moves)?;
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
    let sequences = (world(), moves(steady(2), 1..40), any::<bool>());
    let outcome = runner(96).run(&sequences, |(world, moves, cancel_first)| {
        let mut checked = Checked::new(world);
        for next in moves {
            checked.make(next)?;
        }
        let clock = checked.engine().decider().clock().cloned();
        let Some((at_ms, Some(deadline_ms))) = clock.map(|clock| (clock.at_ms(), clock.deadline_ms())) else {
            return Ok(());
        };
        if checked.engine().ending().is_some() {
            return Ok(());
        }
        let cancelled = || Report { at_ms, input: cancel() };
        let elapsed = || Report { at_ms: deadline_ms, input: Input::DeadlineElapsed { displaced: None } };
        let order = if cancel_first { [cancelled(), elapsed()] } else { [elapsed(), cancelled()] };
        let [first, second] = order;
        checked.take(first.clone())?;
        let winner = checked.engine().ending().cloned();
        prop_assert_eq!(winner.as_ref().map(|ending| ending.row), Some(if cancel_first { 15 } else { 16 }));
        for report in [first, second.clone(), second] {
            let refused = checked.engine().clone().step(report.at_ms, report.input.clone());
            prop_assert_eq!(refused.map_err(|refusal| refusal.kind), Err(RefusalKind::Terminal));
            checked.take(report)?;
        }
        prop_assert_eq!(checked.engine().ending().cloned(), winner);
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
