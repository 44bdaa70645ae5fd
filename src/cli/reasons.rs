//! The words of an explanation. What is true stands in `history::explain`; here is how it is said.

use crate::history::explain::{
    Account, By, Condition, Edge, Gap, Layers, Neighbour, Observation, Place, Raised, Turn, Wait,
};

/// A time as it is read: seconds.
pub(super) fn seconds(at_ms: u64) -> String {
    format!("{}.{:03} s", at_ms / 1_000, at_ms % 1_000)
}

pub(super) fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(between)
}

/// A text on one line.
pub(super) fn called(text: &str) -> String {
    text.replace('\n', " ")
}

/// A signal with what it is about.
pub(super) fn raised(raised: &Raised) -> String {
    raised.of.as_ref().map_or_else(|| raised.signal.to_owned(), |of| format!("{} ({of})", raised.signal))
}

/// A record that turned the run.
pub(super) fn turned(turn: &Turn) -> String {
    let signals = joined(turn.signals.iter().map(raised), ", ");
    let signals = if signals.is_empty() { signals } else { format!(": {signals}") };
    format!("Record {} at {}, {}{signals}.", turn.seq, seconds(turn.at_ms), turn.input)
}

/// A call that did not simply succeed.
pub(super) fn observed(seen: &Observation) -> String {
    let tool = seen.tool.as_deref().unwrap_or("an unknown tool");
    format!("Record {}: {tool} ({}), {}.", seen.seq, seen.call, seen.code)
}

/// Who decided.
pub(super) const fn decided_by(account: &Account) -> &'static str {
    match account.by {
        By::Resolution => "Resolution: no route or no environment was found.",
        By::Time => "A resource: the time that the run had.",
        By::Resource => "A resource: the budget, asked before the next model call.",
        By::Collection => "Collection: the rules by which evidence is gathered.",
        By::OutputContract => "The output contract: the form that a draft must have.",
        By::Conclusion => "The release checks: the draft is legal, and concludes nothing.",
        By::Evidence => "The release checks: the evidence guard.",
        By::Semantics => "The release checks: the judge.",
        By::Gate => "The release checks: a gate.",
        By::EveryCheck => "The release checks: every one of them let the draft through.",
        By::Caller => "Whoever cancelled.",
        By::Execution => "Execution: something failed beyond recovery.",
        By::Crashes => "Recovery: too many crashes in a row, and no report between them.",
        By::Recovery => "Recovery: nobody may guess what an interrupted call did.",
    }
}

pub(super) const fn whereabouts(place: Place) -> &'static str {
    match place {
        Place::BeforeTheLoop => "The run stood before the loop.",
        Place::InTheLoop => "The run stood in the loop.",
        Place::OutOfTheLoop => "The run stood outside of the loop: it had given a draft.",
    }
}

/// How it left the loop (SPEC 9).
pub(super) const fn left(edge: Edge) -> &'static str {
    match edge {
        Edge::Draft => "It left with a draft.",
        Edge::ControlledStop => {
            "It left by a controlled stop, without a draft: no failure, and nothing that the model could still answer."
        }
        Edge::Interruption => "It was interrupted: no controlled stop, and no failure of its own.",
        Edge::Failure => "It left by a failure. Facts do not soften one.",
        Edge::NeverInside => "It never came inside.",
    }
}

pub(super) fn layers(layers: &Layers) -> String {
    let Layers { run_state, outcome, gap } = layers;
    let why = match gap {
        Gap::None => return format!("Yes: the run is {run_state}, and its reader sees {outcome}."),
        Gap::NotVerified => {
            "The run came to its own end, but no report could be verified: the facts are given instead."
        }
        Gap::StoppedWithFacts => "The budget stopped the run, and what was observed until then is given.",
        Gap::StoppedWithoutFacts => "The budget stopped the run, and nothing was observed that could be given.",
        Gap::OutOfTime => "The time was up, and for a reader that is a failure, whatever was observed.",
    };
    format!("No: the run is {run_state}, and its reader sees {outcome}. {why}")
}

/// A row that was not taken.
pub(super) fn neighbour(neighbour: &Neighbour) -> String {
    let conditions = joined(neighbour.conditions.iter().map(condition), ", and ");
    match (neighbour.row, neighbour.happened) {
        (Some(row), Some(happened)) => format!("Row {row} ({happened}), if {conditions}."),
        (Some(row), None) => format!("Row {row}, if {conditions}."),
        (None, _) => format!("The run would have gone on, if {conditions}."),
    }
}

fn condition(condition: &Condition) -> String {
    let instead = |what: &str, not: Option<String>| match not {
        Some(not) => format!("{what} (it was {not})"),
        None => what.to_owned(),
    };
    match condition {
        Condition::FactObserved => "a fact had been observed".to_owned(),
        Condition::NothingObserved => "nothing had been observed".to_owned(),
        Condition::DraftLegal { instead_of } => {
            instead("the draft had been well formed", instead_of.map(|kind| kind.to_string()))
        }
        Condition::Concluded => "the draft had concluded something".to_owned(),
        Condition::ConcludedNothing => "it had concluded nothing".to_owned(),
        Condition::EvidenceHeld { instead_of } => {
            instead("the evidence had held", instead_of.map(|kind| kind.to_string()))
        }
        Condition::EvidenceViolated => "the evidence had not held and no repair had helped".to_owned(),
        Condition::SemanticsHeld { instead_of } => {
            instead("the judge had supported the conclusion", instead_of.map(|kind| kind.to_string()))
        }
        Condition::SemanticsRefused => "the judge had not supported the conclusion".to_owned(),
        Condition::GatesAllowed { instead_of: None } => "no release gate had blocked".to_owned(),
        Condition::GatesAllowed { instead_of: Some(gate) } => format!("the release gate {gate} had not blocked"),
        Condition::GateBlocked { gates } => format!("a release gate had blocked ({})", gates.join(", ")),
        Condition::Answered => "the model had answered and not asked for more evidence".to_owned(),
        Condition::ProtocolKept { limit } => {
            format!("the last response had kept the protocol ({limit} in a row end the loop)")
        }
        Condition::BudgetLeft { limit: Some(limit), of: Some(of) } => {
            format!("{limit} had been left for another model call (of {of})")
        }
        Condition::BudgetLeft { limit: Some(limit), of: None } => {
            format!("{limit} had been left for another model call")
        }
        Condition::BudgetLeft { limit: None, .. } => "the budget had had room for another model call".to_owned(),
        Condition::BudgetMarked => "a call had met the overall tool limit before: then it is a budget stop".to_owned(),
        Condition::NotCancelled => "nobody had cancelled".to_owned(),
        Condition::DeadlineLater { deadline_ms: Some(deadline_ms) } => {
            format!("the deadline had been later than {}", seconds(*deadline_ms))
        }
        Condition::DeadlineLater { deadline_ms: None } => "the deadline had been later".to_owned(),
        Condition::NotFailed { failure } => {
            format!("that had not failed ({})", failure.as_deref().unwrap_or("an unknown failure"))
        }
        Condition::Resolved => "a route and an environment had been found".to_owned(),
        Condition::ReportCame { limit } => {
            format!("a report had come between the crashes ({limit} in a row without one are survived)")
        }
        Condition::OutcomeKnown => "it had been known what every interrupted call did".to_owned(),
    }
}

/// What is outstanding.
pub(super) fn waiting_for(wait: &Wait) -> String {
    let about = wait.about.as_ref().map(|about| format!(" ({about})")).unwrap_or_default();
    let due = wait.due_ms.map(|due_ms| format!(", due at {}", seconds(due_ms))).unwrap_or_default();
    let who = if wait.by_a_person { "A person: " } else { "" };
    let answers = wait.answered_by.join(" or ");
    format!("{who}{}{about}{due}; answered by {answers}.", wait.effect)
}
