//! The closed table is closed: reached by exploration, agreed on by two hands, and the check bites (SPEC 3,
//! 13.9, 13.10).

use std::collections::BTreeSet;
use std::sync::OnceLock;

use portcullis::engine::table::{ROWS, Row, Stop};
use portcullis::engine::{Ending, Engine};
use portcullis::history::{self, Policy, Recorder};
use portcullis::testkit::audit::audit;
use portcullis::testkit::explorer::{Bounds, Exploration, Reached, explore, worlds};
use portcullis::testkit::reference::{self, Columns};
use portcullis::vocabulary::draft::DraftFault;
use portcullis::vocabulary::failure::{Failure, ResolutionKind};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::Code;
use portcullis::vocabulary::outcome::{FailureCode, FallbackType, ReleaseOutcome, RunStatus, StopReason};
use portcullis::vocabulary::signal::Signal;

/// Deep enough for every row; `portcullis table --check` goes on to the end.
const DEPTH: u32 = 9;

/// The exploration that these tests share.
pub(crate) fn explored() -> &'static Exploration {
    static EXPLORED: OnceLock<Exploration> = OnceLock::new();
    EXPLORED.get_or_init(|| match explore(&worlds(), Bounds { depth: DEPTH }, |_| {}) {
        Ok(exploration) => exploration,
        Err(offence) => {
            let lines = offence.reports.iter().map(|report| serde_json::to_string(report).unwrap());
            panic!("{offence}\n{}", lines.collect::<Vec<_>>().join("\n"))
        }
    })
}

fn endings_of(row: u8) -> impl Iterator<Item = &'static Reached> {
    explored().endings.iter().filter(move |reached| reached.ending.row == row)
}

fn wire(ending: &Ending) -> Json {
    Json::parse(&serde_json::to_string(ending).unwrap()).unwrap()
}

#[test]
fn every_row_is_reached_and_nothing_outside_the_table() {
    let rows: Vec<u8> = explored().rows().into_iter().collect();
    assert_eq!(rows, (1..=20).collect::<Vec<u8>>());
    assert!(explored().outside(ROWS).is_none());
    assert!(explored().endings.iter().all(|reached| reference::is_legal(&wire(&reached.ending)).is_ok()));
}

#[test]
fn exploration_takes_every_live_signal_and_every_refusal_kind() {
    let figures = &explored().figures;
    let silent: Vec<_> = Signal::TAGS.iter().filter(|tag| !figures.signals.contains_key(*tag)).collect();
    assert!(silent.is_empty(), "never raised: {silent:?}");
    let kinds: BTreeSet<_> = figures.refusals_by_kind().keys().copied().collect();
    let all: BTreeSet<_> = portcullis::vocabulary::refusal::RefusalKind::ALL.iter().map(|kind| kind.word()).collect();
    assert_eq!(kinds, all);
}

#[test]
fn every_kind_of_cause_and_fallback_is_reached() {
    let reached = |fits: &dyn Fn(&Ending) -> bool| explored().endings.iter().any(|reached| fits(&reached.ending));
    for kind in FallbackType::ALL {
        assert!(reached(&|ending| ending.fallback_type == Some(*kind)), "{kind}");
    }
    for code in Code::ALL {
        let failure = Some(Failure::Inference { code: *code });
        assert!(reached(&|ending| ending.failure == failure), "{code}");
    }
    for kind in ResolutionKind::ALL {
        let failure = Some(Failure::Resolution { kind: *kind });
        assert!(reached(&|ending| ending.failure == failure), "{kind}");
    }
    for kind in DraftFault::ALL {
        let failure = Some(Failure::DraftContract { kind: *kind });
        assert!(reached(&|ending| ending.failure == failure), "{kind}");
    }
}

/// "IS" is information_saturated if collecting was saturated, else none.
#[test]
fn every_row_that_may_be_saturated_is_reached_both_ways() {
    for row in ROWS {
        let reached = |fits: &dyn Fn(&Ending) -> bool| endings_of(row.number).any(|reached| fits(&reached.ending));
        if row.stop == Stop::IfSaturated {
            assert!(reached(&|ending| ending.stop_reason.is_some()), "row {} saturated", row.number);
            assert!(reached(&|ending| ending.stop_reason.is_none()), "row {} not saturated", row.number);
        }
        if row.facts.is_none() {
            assert!(reached(&|ending| ending.facts > 0), "row {} with facts", row.number);
            assert!(reached(&|ending| ending.facts == 0), "row {} without facts", row.number);
        }
    }
}

#[test]
fn a_second_exploration_finds_the_same_in_the_same_order() {
    let bounds = Bounds { depth: 4 };
    let (once, again) = (explore(&worlds(), bounds, |_| {}).unwrap(), explore(&worlds(), bounds, |_| {}).unwrap());
    let lines = |exploration: &Exploration| -> Vec<String> {
        exploration.endings.iter().map(|reached| format!("{} {:?}", reached.world, reached.reports)).collect()
    };
    assert_eq!(lines(&once), lines(&again));
    assert_eq!(once.figures.states, again.figures.states);
    assert_eq!(once.figures.coverage, again.figures.coverage);
}

#[test]
fn the_way_to_every_ending_is_a_history_that_audits_and_replays() {
    for reached in &explored().endings {
        let (mut engine, mut recorder, mut lines) = (Engine::new(), Recorder::new(), String::new());
        for (index, report) in reached.reports.iter().enumerate() {
            assert!(engine.ending().is_none(), "a shorter way would do: {index} reports");
            let step = engine.step(report.at_ms, report.input.clone()).unwrap();
            for signal in &step.signals {
                assert_eq!(serde_json::to_value(signal).unwrap()["type"], signal.tag(), "the name on the wire");
            }
            lines.push_str(std::str::from_utf8(recorder.record(&engine, &step)).unwrap());
        }
        assert_eq!(engine.ending(), Some(&reached.ending));
        let audited = audit(lines.lines()).unwrap_or_else(|breach| panic!("{breach}\n{lines}"));
        assert!(audited.has_ended());
        let summary = history::replay(lines.as_bytes(), Policy::Stop).unwrap();
        assert_eq!(summary.divergences, Vec::new());
        assert_eq!(summary.ending.as_ref(), Some(&reached.ending));
    }
}

/// One failure of each kind that the table tells apart, and none.
fn failures() -> Vec<Option<Failure>> {
    vec![
        None,
        Some(Failure::Inference { code: Code::Timeout }),
        Some(Failure::CapabilityBound),
        Some(Failure::StateConflict),
        Some(Failure::Resolution { kind: ResolutionKind::Routing }),
        Some(Failure::Resolution { kind: ResolutionKind::Config }),
        Some(Failure::DraftContract { kind: DraftFault::Empty }),
        Some(Failure::NoObservedFacts),
        Some(Failure::Blocked { gate: "door".to_owned() }),
        Some(Failure::Indeterminate),
        Some(Failure::Internal),
    ]
}

fn or_none<T: Copy>(all: &[T]) -> Vec<Option<T>> {
    std::iter::once(None).chain(all.iter().copied().map(Some)).collect()
}

/// Every tuple there is with that row number.
fn tuples(row: u8, mut visit: impl FnMut(&Ending)) {
    let (stops, fallbacks, codes) = (or_none(StopReason::ALL), or_none(FallbackType::ALL), or_none(FailureCode::ALL));
    for failure in failures() {
        for run_state in RunStatus::ALL {
            for stop_reason in &stops {
                for facts in [0, 1, 3] {
                    for outcome in ReleaseOutcome::ALL {
                        for fallback_type in &fallbacks {
                            for failure_code in &codes {
                                visit(&Ending {
                                    row,
                                    run_state: *run_state,
                                    failure: failure.clone(),
                                    stop_reason: *stop_reason,
                                    facts,
                                    outcome: *outcome,
                                    fallback_type: *fallback_type,
                                    failure_code: *failure_code,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the reference says of a tuple, past the JSON of it.
fn reference_admits(ending: &Ending) -> bool {
    let failure = match &ending.failure {
        None => "-".to_owned(),
        Some(Failure::Inference { code }) => format!("inference/{code}"),
        Some(Failure::Resolution { kind }) => format!("resolution/{kind}"),
        Some(Failure::DraftContract { kind }) => format!("draft_contract/{kind}"),
        Some(other) => other.tag().to_owned(),
    };
    reference::stands_in_table(&Columns {
        row: ending.row.into(),
        run_state: ending.run_state.word(),
        failure: &failure,
        stop_reason: ending.stop_reason.map_or("-", StopReason::word),
        observed: ending.facts > 0,
        outcome: ending.outcome.word(),
        fallback_type: ending.fallback_type.map_or("-", FallbackType::word),
        failure_code: ending.failure_code.map_or("-", FailureCode::word),
    })
}

/// A tuple that one hand has in the table and the other has not.
fn disagreement(row: &Row) -> Option<Ending> {
    let mut found = None;
    tuples(row.number, |ending| {
        if found.is_none() && row.admits(ending) != reference_admits(ending) {
            found = Some(ending.clone());
        }
    });
    found
}

/// The row with one column changed to what no reached ending of it has.
fn wrong_columns(row: &Row) -> Vec<(&'static str, Row)> {
    let run_state = if row.run_state == RunStatus::Cancelled { RunStatus::TimedOut } else { RunStatus::Cancelled };
    let failures: &[&str] = if row.failures.is_empty() { &["internal"] } else { &[] };
    let stop = match row.stop {
        Stop::IfSaturated | Stop::Never => Stop::Always(StopReason::ProtocolViolation),
        Stop::Always(_) => Stop::Never,
    };
    let facts = Some(!row.facts.unwrap_or(true));
    let outcome =
        if row.outcome == ReleaseOutcome::Success { ReleaseOutcome::Fallback } else { ReleaseOutcome::Success };
    let fallbacks: &[FallbackType] =
        if row.fallbacks.is_empty() { FallbackType::ALL } else { row.fallbacks.split_first().unwrap().1 };
    let codes: &[FailureCode] = if row.codes.is_empty() { FailureCode::ALL } else { &[] };
    vec![
        ("run_state", Row { run_state, ..*row }),
        ("failure", Row { failures, ..*row }),
        ("stop_reason", Row { stop, ..*row }),
        ("facts", Row { facts, ..*row }),
        ("outcome", Row { outcome, ..*row }),
        ("fallback_type", Row { fallbacks, ..*row }),
        ("failure_code", Row { codes, ..*row }),
    ]
}

/// The row with one column made too wide: no reached ending shows that, only the other hand does.
fn wide_columns(row: &Row) -> Vec<(&'static str, Row)> {
    let mut wide = Vec::new();
    if row.facts.is_some() {
        wide.push(("facts", Row { facts: None, ..*row }));
    }
    if row.stop != Stop::IfSaturated {
        wide.push(("stop_reason", Row { stop: Stop::IfSaturated, ..*row }));
    }
    if row.failures.len() == 1 {
        const MORE: &[&str] = &["no_observed_facts", "draft_contract", "indeterminate", "blocked", "resolution"];
        wide.push(("failure", Row { failures: MORE, ..*row }));
    }
    if row.fallbacks.len() == 1 {
        wide.push(("fallback_type", Row { fallbacks: FallbackType::ALL, ..*row }));
    }
    if !row.codes.is_empty() {
        wide.push(("failure_code", Row { codes: FailureCode::ALL, ..*row }));
    }
    wide
}

/// The endings that differ from `ending` in one column.
fn neighbours(ending: &Ending) -> Vec<(&'static str, Ending)> {
    let mut all = Vec::new();
    let mut add = |column, changed: Ending| {
        if changed != *ending {
            all.push((column, changed));
        }
    };
    for row in 0..=21 {
        add("row", Ending { row, ..ending.clone() });
    }
    for run_state in RunStatus::ALL {
        add("run_state", Ending { run_state: *run_state, ..ending.clone() });
    }
    for failure in failures() {
        add("failure", Ending { failure, ..ending.clone() });
    }
    for stop_reason in or_none(StopReason::ALL) {
        add("stop_reason", Ending { stop_reason, ..ending.clone() });
    }
    add("facts", Ending { facts: u32::from(ending.facts == 0), ..ending.clone() });
    for outcome in ReleaseOutcome::ALL {
        add("outcome", Ending { outcome: *outcome, ..ending.clone() });
    }
    for fallback_type in or_none(FallbackType::ALL) {
        add("fallback_type", Ending { fallback_type, ..ending.clone() });
    }
    for failure_code in or_none(FailureCode::ALL) {
        add("failure_code", Ending { failure_code, ..ending.clone() });
    }
    all
}

/// The check of one row fails on a bug in any of its columns.
fn the_check_bites(number: u8) {
    let place = ROWS.iter().position(|row| row.number == number).unwrap();
    let row = &ROWS[place];
    assert_eq!(disagreement(row), None, "two hands, two tables");
    for (column, wrong) in wrong_columns(row) {
        let mut table = ROWS.to_vec();
        table[place] = wrong;
        let outside = explored().outside(&table).unwrap_or_else(|| panic!("a wrong {column} goes unnoticed"));
        assert_eq!(outside.ending.row, number, "{column}");
        assert!(disagreement(&wrong).is_some(), "the reference does not notice a wrong {column}");
    }
    for (column, wide) in wide_columns(row) {
        assert!(disagreement(&wide).is_some(), "the reference does not notice a wide {column}");
    }
    let mut without = ROWS.to_vec();
    without.remove(place);
    assert_eq!(explored().outside(&without).map(|reached| reached.ending.row), Some(number));
    for reached in endings_of(number) {
        let mut refused = BTreeSet::new();
        for (column, changed) in neighbours(&reached.ending) {
            let legal = ROWS.iter().any(|row| row.admits(&changed));
            assert_eq!(legal, reference::is_legal(&wire(&changed)).is_ok(), "{changed:?}");
            if !legal {
                refused.insert(column);
            }
        }
        let facts_are_free = row.facts.is_none();
        assert_eq!(refused.len(), if facts_are_free { 7 } else { 8 }, "{refused:?}");
    }
}

macro_rules! every_column_bites {
    ($($name:ident: $number:literal;)*) => { $(
        #[test]
        fn $name() {
            the_check_bites($number);
        }
    )* };
}

every_column_bites! {
    row_01_verified_success_bites: 1;
    row_02_evidence_violated_bites: 2;
    row_03_evidence_violated_without_facts_bites: 3;
    row_04_semantics_refused_bites: 4;
    row_05_no_conclusion_bites: 5;
    row_06_no_conclusion_without_facts_bites: 6;
    row_07_bad_draft_bites: 7;
    row_08_bad_draft_without_facts_bites: 8;
    row_09_collection_stopped_bites: 9;
    row_10_collection_stopped_without_facts_bites: 10;
    row_11_protocol_violation_bites: 11;
    row_12_protocol_violation_without_facts_bites: 12;
    row_13_budget_exhausted_bites: 13;
    row_14_budget_exhausted_without_facts_bites: 14;
    row_15_cancelled_bites: 15;
    row_16_deadline_bites: 16;
    row_17_execution_failed_bites: 17;
    row_18_unresolved_bites: 18;
    row_19_indeterminate_bites: 19;
    row_20_blocked_bites: 20;
}

#[test]
fn the_reference_refuses_what_is_no_ending() {
    let ending = r#"{"row":1,"run_state":"success","stop_reason":null,"facts":1,"outcome":"success"}"#;
    let legal = |text: &str| reference::is_legal(&Json::parse(text).unwrap()).is_ok();
    assert!(legal(ending));
    assert!(!legal("[]"));
    assert!(!legal("{}"));
    assert!(!legal(&ending.replace("\"facts\":1", "\"facts\":\"1\"")));
    assert!(!legal(&ending.replace("\"facts\":1", "\"facts\":1,\"note\":1")));
    assert!(!legal(&ending.replace("\"facts\":1", "\"facts\":1,\"failure\":\"internal\"")));
}
