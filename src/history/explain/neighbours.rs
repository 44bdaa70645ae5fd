//! The nearest rows of the closed table that were not taken, and what would have had to be otherwise. The conditions
//! follow from the table (SPEC 3) and take their numbers from the record that decided.

use serde::Serialize;

use super::witness::{Decided, code};
use crate::engine::table::ROWS;
use crate::engine::{CRASHES_MAX, Ending, Engine};
use crate::vocabulary::draft::DraftFault;
use crate::vocabulary::environment::GateOf;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::outcome::{EvidenceViolation, SemanticRefusal};
use crate::vocabulary::signal::{BudgetLimit, Signal};
use crate::vocabulary::spec::JudgePolicy;

/// Something that was not so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Condition {
    /// A fact had been observed.
    FactObserved,
    /// Nothing had been observed.
    NothingObserved,
    /// The draft had been well formed.
    DraftLegal {
        /// What was wrong with it.
        instead_of: Option<DraftFault>,
    },
    /// The draft had concluded something.
    Concluded,
    /// It had concluded nothing.
    ConcludedNothing,
    /// The evidence had held.
    EvidenceHeld {
        /// How it did not.
        instead_of: Option<EvidenceViolation>,
    },
    /// The evidence had not held, and no repair had helped.
    EvidenceViolated,
    /// The judge had supported the conclusion.
    SemanticsHeld {
        /// What it did.
        instead_of: Option<SemanticRefusal>,
    },
    /// The judge had not supported it.
    SemanticsRefused,
    /// The gates before a release had let it through.
    GatesAllowed {
        /// The one that did not.
        instead_of: Option<String>,
    },
    /// A gate before a release had blocked.
    GateBlocked {
        /// The gates there are.
        gates: Vec<String>,
    },
    /// The model had answered, and not asked for evidence again.
    Answered,
    /// The last response had kept the protocol.
    ProtocolKept {
        /// How many in a row end the loop.
        limit: u32,
    },
    /// There had been budget for another model call.
    BudgetLeft {
        /// Which.
        limit: Option<BudgetLimit>,
        /// How much there was.
        of: Option<u64>,
    },
    /// A call had met the overall tool limit before.
    BudgetMarked,
    /// Nobody had cancelled.
    NotCancelled,
    /// The deadline had been later.
    DeadlineLater {
        /// Where it was, in milliseconds from the start.
        deadline_ms: Option<u64>,
    },
    /// It had not failed.
    NotFailed {
        /// Its code.
        failure: Option<String>,
    },
    /// A route and an environment had been found.
    Resolved,
    /// It had been known what the interrupted call did.
    OutcomeKnown,
    /// A report had come between the crashes.
    ReportCame {
        /// How many recoveries in a row without one a run survives.
        limit: u32,
    },
}

/// A row that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// The row; `None` when the run would have gone on.
    pub row: Option<u8>,
    /// What happens in that row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened: Option<&'static str>,
    /// What all would have had to be so.
    #[serde(rename = "if")]
    pub conditions: Vec<Condition>,
}

impl Neighbour {
    fn row(number: u8, conditions: Vec<Condition>) -> Self {
        let happened = ROWS.iter().find(|row| row.number == number).map(|row| row.happened);
        Self { row: Some(number), happened, conditions }
    }

    fn goes_on(condition: Condition) -> Self {
        Self { row: None, happened: None, conditions: vec![condition] }
    }
}

/// What the deciding record says of the draft, and of the checks that a release would have passed.
struct Seen<'a> {
    engine: &'a Engine,
    signals: &'a [Signal],
}

/// The nearest rows to `ending`.
pub(super) fn neighbours(engine: &Engine, ending: &Ending, decided: &Decided, signals: &[Signal]) -> Vec<Neighbour> {
    use Condition::{
        Answered, BudgetMarked, Concluded, ConcludedNothing, EvidenceViolated, FactObserved, NotCancelled,
        NothingObserved, OutcomeKnown, ReportCame, Resolved, SemanticsRefused,
    };
    let seen = Seen { engine, signals };
    let row = Neighbour::row;
    let checked = |before: &[Condition]| seen.checks(before);
    match ending.row {
        1 => {
            let refused = seen.is_judged().then(|| row(4, vec![SemanticsRefused]));
            let blocked = seen.gate_blocked().map(|blocked| row(20, vec![blocked]));
            let always = [row(2, vec![EvidenceViolated]), row(5, vec![ConcludedNothing])];
            always.into_iter().chain(refused).chain(blocked).collect()
        }
        2 => vec![row(1, checked(&[])), row(3, vec![NothingObserved])],
        3 => vec![row(2, vec![FactObserved]), row(1, checked(&[FactObserved]))],
        4 => vec![row(1, std::iter::once(seen.semantics_held()).chain(seen.gates()).collect())],
        5 => vec![row(1, checked(&[Concluded])), row(6, vec![NothingObserved])],
        6 => vec![row(5, vec![FactObserved])],
        7 => {
            let legal = seen.draft_legal();
            let concludes_nothing = vec![legal.clone(), ConcludedNothing];
            vec![row(1, checked(&[legal, Concluded])), row(5, concludes_nothing), row(8, vec![NothingObserved])]
        }
        8 => vec![row(7, vec![FactObserved]), row(6, vec![seen.draft_legal(), ConcludedNothing])],
        9 => vec![
            row(1, checked(&[Answered, Concluded])),
            row(5, vec![Answered, ConcludedNothing]),
            row(10, vec![NothingObserved]),
        ],
        10 => vec![row(9, vec![FactObserved]), row(6, vec![Answered, ConcludedNothing])],
        11 => vec![Neighbour::goes_on(seen.protocol_kept()), row(12, vec![NothingObserved])],
        12 => vec![Neighbour::goes_on(seen.protocol_kept()), row(11, vec![FactObserved])],
        13 => vec![Neighbour::goes_on(seen.budget_left()), row(14, vec![NothingObserved])],
        14 => vec![Neighbour::goes_on(seen.budget_left()), row(13, vec![FactObserved])],
        15 => vec![Neighbour::goes_on(NotCancelled)],
        16 => vec![Neighbour::goes_on(seen.deadline_later())],
        18 => vec![Neighbour::goes_on(Resolved)],
        19 if decided.crashes > CRASHES_MAX => vec![Neighbour::goes_on(ReportCame { limit: CRASHES_MAX })],
        19 => vec![Neighbour::goes_on(OutcomeKnown)],
        20 => vec![row(1, vec![seen.gates_allowed(ending)])],
        _ => {
            let failure = ending.failure.as_ref();
            let marked = (failure == Some(&Failure::Internal))
                .then(|| row(if ending.facts > 0 { 13 } else { 14 }, vec![BudgetMarked]));
            let not_failed = Condition::NotFailed { failure: failure.map(code) };
            std::iter::once(Neighbour::goes_on(not_failed)).chain(marked).collect()
        }
    }
}

impl Seen<'_> {
    fn find<T>(&self, pick: impl Fn(&Signal) -> Option<T>) -> Option<T> {
        self.signals.iter().find_map(pick)
    }

    /// Whether the spec has a judge.
    fn is_judged(&self) -> bool {
        self.engine.spec().is_some_and(|spec| spec.release.judge == JudgePolicy::On)
    }

    fn release_gates(&self) -> Vec<String> {
        let gates = self.engine.environment().into_iter().flat_map(|environment| &environment.gates);
        gates.filter(|gate| gate.of == GateOf::Release).map(|gate| gate.id.clone()).collect()
    }

    fn gate_blocked(&self) -> Option<Condition> {
        let gates = self.release_gates();
        (!gates.is_empty()).then_some(Condition::GateBlocked { gates })
    }

    /// The gates, where there are any.
    fn gates(&self) -> Option<Condition> {
        (!self.release_gates().is_empty()).then_some(Condition::GatesAllowed { instead_of: None })
    }

    /// What stands between a run and row 1: what comes before, then evidence, judge and gates.
    fn checks(&self, before: &[Condition]) -> Vec<Condition> {
        let judged = self.is_judged().then(|| self.semantics_held());
        let checks = std::iter::once(self.evidence_held()).chain(judged).chain(self.gates());
        before.iter().cloned().chain(checks).collect()
    }

    fn evidence_held(&self) -> Condition {
        let instead_of =
            self.find(|signal| if let Signal::EvidenceViolated { kind } = signal { Some(*kind) } else { None });
        Condition::EvidenceHeld { instead_of }
    }

    fn semantics_held(&self) -> Condition {
        let instead_of =
            self.find(|signal| if let Signal::SemanticsRefused { kind } = signal { Some(*kind) } else { None });
        Condition::SemanticsHeld { instead_of }
    }

    fn draft_legal(&self) -> Condition {
        let instead_of =
            self.find(|signal| if let Signal::DraftInvalid { kind, .. } = signal { Some(*kind) } else { None });
        Condition::DraftLegal { instead_of }
    }

    fn gates_allowed(&self, ending: &Ending) -> Condition {
        let gate = ending.failure.as_ref();
        let gate = gate.and_then(|cause| if let Failure::Blocked { gate } = cause { Some(gate.clone()) } else { None });
        Condition::GatesAllowed { instead_of: gate }
    }

    fn protocol_kept(&self) -> Condition {
        Condition::ProtocolKept { limit: self.engine.spec().map_or(0, |spec| spec.collection.violation_limit) }
    }

    fn budget_left(&self) -> Condition {
        let limit =
            self.find(|signal| if let Signal::BudgetExhausted { limit } = signal { Some(*limit) } else { None });
        let budgets = self.engine.spec().map(|spec| &spec.budgets);
        let of = limit.zip(budgets).and_then(|(limit, budgets)| match limit {
            BudgetLimit::ModelCalls => budgets.model_calls,
            BudgetLimit::ToolCalls => budgets.tool_calls,
            BudgetLimit::TotalTokens => budgets.total_tokens,
            BudgetLimit::CostMicros => budgets.cost_micros,
        });
        Condition::BudgetLeft { limit, of }
    }

    fn deadline_later(&self) -> Condition {
        Condition::DeadlineLater { deadline_ms: self.engine.spec().and_then(|spec| spec.deadline_ms) }
    }
}
