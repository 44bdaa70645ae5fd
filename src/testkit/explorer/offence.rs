//! What an exploration must never find, with the way to it.

use std::fmt;

use crate::engine::{Ending, Violation};
use crate::testkit::alphabet::Report;
use crate::testkit::reference::Illegal;
use crate::vocabulary::refusal::Refusal;

/// Something that must not be reachable, and a shortest way to it.
#[derive(Debug, Clone)]
pub struct Offence {
    /// What.
    pub fault: Fault,
    /// Under which bounds.
    pub world: &'static str,
    /// The reports that lead there; the last one is where it shows.
    pub reports: Vec<Report>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An invariant is broken.
    Broken(Vec<Violation>),
    /// The engine's own table does not have the ending.
    OutsideTable(Ending),
    /// The reference does not have the ending.
    OutsideReference(Illegal),
    /// A terminal state changed its ending.
    EndingChanged(Ending),
    /// A refused report changed the state.
    RefusalChangedState(Refusal),
    /// An outstanding answer was refused.
    AnswerRefused(Refusal),
    /// A report that fits nothing was accepted.
    ForeignAccepted,
    /// Answers lead to no ending from here.
    NoWayOut,
    /// Answers lead back to here: a run might go on for ever.
    Circle,
    /// Another state counts as this one and has another future.
    UnlikeTwin,
}

impl fmt::Display for Offence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (world {}, {} reports)", self.fault, self.world, self.reports.len())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(violations) => {
                let names: Vec<&str> = violations.iter().map(|violation| violation.word()).collect();
                write!(out, "broken: {}", names.join(", "))
            }
            Self::OutsideTable(ending) => write!(out, "an ending outside the table: {}", wire(ending)),
            Self::OutsideReference(illegal) => write!(out, "an ending outside the reference: {illegal}"),
            Self::EndingChanged(ending) => write!(out, "the ending changed, it was {}", wire(ending)),
            Self::RefusalChangedState(refusal) => write!(out, "a refusal changed the state: {refusal}"),
            Self::AnswerRefused(refusal) => write!(out, "an outstanding answer was refused: {refusal}"),
            Self::ForeignAccepted => out.write_str("a report that answers nothing was accepted"),
            Self::NoWayOut => out.write_str("no answers lead to an ending from here"),
            Self::Circle => out.write_str("answers lead back to here: a run might go on for ever"),
            Self::UnlikeTwin => out.write_str("another state counts as this one and goes on otherwise"),
        }
    }
}

fn wire(ending: &Ending) -> String {
    serde_json::to_string(ending).unwrap_or_default()
}
