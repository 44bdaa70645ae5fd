//! Every machine's matrix (state by event, refusals included) and graph, as snapshots (SPEC 13).

use portcullis::machines::CHARTS;

#[test]
fn every_matrix_is_reviewed() {
    for chart in CHARTS {
        snapshot!(format!("matrix_{}", chart.machine), chart.matrix());
    }
}

#[test]
fn every_graph_is_reviewed() {
    for chart in CHARTS {
        snapshot!(format!("graph_{}", chart.machine), chart.mermaid());
    }
}

#[test]
fn every_state_can_be_reached_and_every_event_is_accepted_somewhere() {
    for chart in CHARTS {
        let mut reached: Vec<&str> = chart.states.iter().take(1).copied().collect();
        let mut seen = 0;
        while seen < reached.len() {
            let from = reached[seen];
            seen += 1;
            for line in chart.transitions.iter().filter(|line| line.from == from) {
                if !reached.contains(&line.to) {
                    reached.push(line.to);
                }
            }
        }
        let missing: Vec<_> = chart.states.iter().filter(|state| !reached.contains(state)).collect();
        assert!(missing.is_empty(), "{}: unreachable {missing:?}", chart.machine);
        let idle: Vec<_> =
            chart.events.iter().filter(|event| !chart.transitions.iter().any(|line| line.event == **event)).collect();
        assert!(idle.is_empty(), "{}: never accepted {idle:?}", chart.machine);
    }
}

#[test]
fn tables_name_only_states_and_events_of_their_machine() {
    for chart in CHARTS {
        for line in chart.transitions {
            assert!(chart.states.contains(&line.from), "{}: {line:?}", chart.machine);
            assert!(chart.states.contains(&line.to), "{}: {line:?}", chart.machine);
            assert!(chart.events.contains(&line.event), "{}: {line:?}", chart.machine);
        }
    }
}

#[test]
fn no_transition_leaves_an_ended_run() {
    let run = CHARTS.iter().find(|chart| chart.machine == "run").expect("there is a run machine");
    for ended in ["success", "failed", "cancelled", "timed_out", "budget_exhausted"] {
        assert_eq!(run.transitions.iter().filter(|line| line.from == ended).count(), 0, "{ended}");
    }
}
