//! Every transition of every machine is taken, and every report is met in every state of a run: what no test takes
//! fails here, and docs/states.md says what was taken.

use std::collections::BTreeSet;
use std::fmt::Write;

use portcullis::machines::{CHARTS, Chart, Taken};
use portcullis::testkit::coverage::{Answer, Coverage};
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::refusal::RefusalKind;

use crate::closed_table::explored;
use crate::support::assert_generated;

fn coverage() -> &'static Coverage {
    &explored().figures.coverage
}

fn run() -> &'static Chart {
    CHARTS.iter().find(|chart| chart.machine == "run").unwrap()
}

#[test]
fn every_transition_of_every_machine_is_taken() {
    let all = CHARTS.iter().flat_map(|chart| {
        chart.transitions.iter().map(|transition| Taken { machine: chart.machine, transition: *transition })
    });
    let untaken: Vec<Taken> = all.filter(|taken| !coverage().transitions.contains_key(taken)).collect();
    assert!(untaken.is_empty(), "no test takes {untaken:#?}");
}

#[test]
fn nothing_is_taken_that_no_table_has() {
    for taken in coverage().transitions.keys() {
        let chart = CHARTS.iter().find(|chart| chart.machine == taken.machine).unwrap();
        assert!(chart.transitions.contains(&taken.transition), "{taken:?}");
    }
}

/// What became of that report in that state, each answer once.
fn answers(state: &str, report: &str) -> BTreeSet<Answer> {
    let met = coverage().reports.keys().filter(|(at, tag, _)| *at == state && *tag == report);
    met.map(|(_, _, answer)| *answer).collect()
}

#[test]
fn every_type_of_report_is_met_in_every_state_of_a_run() {
    for state in run().states {
        for report in Input::TAGS {
            assert!(!answers(state, report).is_empty(), "no test offers {report} to a run that is {state}");
        }
    }
}

#[test]
fn every_state_refuses_something_and_every_kind_of_refusal_is_met_where_it_can_be() {
    let kinds = |state: &str| -> BTreeSet<RefusalKind> {
        let refused = Input::TAGS.iter().flat_map(|report| answers(state, report));
        refused.filter_map(|answer| if let Answer::Refused(kind) = answer { Some(kind) } else { None }).collect()
    };
    assert_eq!(kinds("created"), [RefusalKind::Malformed, RefusalKind::NotStarted].into());
    for state in run().states.iter().filter(|state| **state != "created") {
        let ended = run().terminals().any(|terminal| terminal == *state);
        let expected: &[RefusalKind] = if ended {
            &[RefusalKind::Malformed, RefusalKind::AlreadyStarted, RefusalKind::Terminal]
        } else {
            &[RefusalKind::Malformed, RefusalKind::AlreadyStarted, RefusalKind::Unexpected, RefusalKind::Stale]
        };
        for kind in expected {
            assert!(kinds(state).contains(kind), "{state} was never seen to refuse as {kind}");
        }
        assert!(!kinds(state).contains(&RefusalKind::NotStarted), "{state}");
    }
}

#[test]
fn docs_show_the_tables_the_graphs_and_what_the_suite_takes_of_them() {
    assert_generated("docs/states.md", &page());
}

fn page() -> String {
    let mut page = String::from(
        "# States\n\nGenerated from the code and checked by the tests: do not edit.\n\nEach machine has a table of \
         transitions, which opens its source file. Here are its graph and its matrix: for each state and event the \
         states that may follow, `-` where the event is refused. Behind each state stands how often the exploration \
         that every run of the tests makes takes that transition, as the power of ten that it reaches: `1`, `10`, \
         `100`, `1k`, `10k`. A transition that it never takes fails the tests. Every refusal of a matrix is tried where the \
         matrix is made.\n",
    );
    for chart in CHARTS {
        let _ = write!(page, "\n## {}\n\n```mermaid\n{}```\n\n{}", chart.machine, chart.mermaid(), matrix(chart));
    }
    page.push_str(
        "\n## Reports\n\nWhat becomes of each report in each state of a run, in the same exploration. `+` is accepted, \
         `late` is carried by the deadline that it comes after; the other words are kinds of refusal \
         ([4.R1](rules.md#4.R1) and those after it). A report that is never offered to a state fails the tests.\n\n",
    );
    page.push_str(&reports());
    page
}

fn matrix(chart: &Chart) -> String {
    chart.matrix_with(|transition| {
        let taken = Taken { machine: chart.machine, transition: *transition };
        let times = coverage().transitions.get(&taken).copied().unwrap_or_default();
        format!("{} {}", transition.to, magnitude(times))
    })
}

/// The power of ten that a count reaches.
fn magnitude(times: u64) -> String {
    match times.checked_ilog10() {
        None => "never".to_owned(),
        Some(power @ 0..3) => 10_u64.pow(power).to_string(),
        Some(power) => format!("{}k", 10_u64.pow(power - 3)),
    }
}

fn reports() -> String {
    let mut table = String::from("| |");
    for state in run().states {
        let _ = write!(table, " {state} |");
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(run().states.len()));
    for report in Input::TAGS {
        let _ = write!(table, "\n| **{report}** |");
        for state in run().states {
            let words: Vec<&str> = answers(state, report).into_iter().map(word).collect();
            let _ = write!(table, " {} |", words.join(", "));
        }
    }
    table.push('\n');
    table
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Accepted => "+",
        Answer::Displaced => "late",
        Answer::Refused(kind) => kind.word(),
    }
}
