//! The twelve invariants of SPEC 13 by name, each asked of any history: yours, from your own store.
//!
//! [`check`] asks for all of them, and for the rules of an [audit] beside them. [`assert_fail_closed!`] does the
//! same in a test and says what is wrong so that it can be read. Both step the whole history again and put
//! questions to the state after every record, so their cost grows with the square of its length: thousands of
//! records take a while. [`audit`](audit::audit) alone is linear.
//!
//! | module | asks |
//! |---|---|
//! | [audit] | the records alone: 1 to 5, 8, 12 |
//! | `silence` | the records alone: 10 |
//! | `prefixes` | steps again, record by record: 6; and asks each state what follows |
//! | `refusals` | each state: 7 |
//! | `winners` | each state: 9 |
//! | `waiting` | each state: 11 |
//! | `report` | how breaches read |
//!
//! [`assert_fail_closed!`]: crate::assert_fail_closed

mod prefixes;
mod refusals;
mod report;
mod silence;
mod waiting;
mod winners;

use std::fmt;

use super::audit;
use crate::engine::Engine;
use crate::vocabulary::wire::words;

pub use prefixes::Subject;
pub use report::{Report, report};

words! {
    /// An invariant of SPEC 13, in its order.
    pub enum Invariant {
        /// 13.I1: one terminal, and nothing after it changes the ending.
        OneTerminal = "one_terminal",
        /// 13.I2: success implies an observed fact behind every citation, and both guards held.
        ProvenSuccess = "proven_success",
        /// 13.I3: fallback implies observed facts.
        FoundedFallback = "founded_fallback",
        /// 13.I4: admitted never exceeds the limit.
        WithinLimits = "within_limits",
        /// 13.I5: every tool call of the model has exactly one closing observation.
        OneClosing = "one_closing",
        /// 13.I6: folding the history gives what is recorded, at every prefix.
        FoldIsRecord = "fold_is_record",
        /// 13.I7: a refusal leaves state, effects and counters byte-equal.
        RefusalChangesNothing = "refusal_changes_nothing",
        /// 13.I8: an indeterminate call is never dispatched again.
        NeverAgain = "never_again",
        /// 13.I9: cancel and deadline are idempotent, with one winner.
        OneWinner = "one_winner",
        /// 13.I10: text that was not released is unreachable.
        UnreleasedStaysInside = "unreleased_stays_inside",
        /// 13.I11: no run is stuck.
        NeverStuck = "never_stuck",
        /// 13.I12: no publish without a durable terminal record; one release value a run.
        OneRelease = "one_release",
    }
}

impl Invariant {
    /// Its number in SPEC 13, from 1.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// What it demands, in one sentence.
    #[must_use]
    pub const fn demands(self) -> &'static str {
        match self {
            Self::OneTerminal => "a run ends once, and nothing after that changes the ending",
            Self::ProvenSuccess => "a success has an observed fact behind every citation, and both guards held",
            Self::FoundedFallback => "a fallback gives every observed fact, and there is one",
            Self::WithinLimits => "no more is admitted than the limit",
            Self::OneClosing => "every tool call of the model gets exactly one closing observation",
            Self::FoldIsRecord => "stepping the inputs again gives every record, byte for byte",
            Self::RefusalChangesNothing => "a report that fits nothing is refused, and changes nothing at all",
            Self::NeverAgain => "a call whose outcome is unknown, or that is closed, is not entered again",
            Self::OneWinner => "of cancel and deadline the first wins, and nothing comes of a second one",
            Self::UnreleasedStaysInside => {
                "what a model wrote stands in no signal, state or effect until it is released"
            }
            Self::NeverStuck => "a run that has not ended waits for something whose answer it takes",
            Self::OneRelease => "a run has one release value, offered only once its end is recorded",
        }
    }

    /// Asks whether this invariant alone holds over `history`: whole lines, of which a cut last one is set aside.
    ///
    /// # Errors
    /// Where it does not hold, or where what it looks at cannot be read. Damage that it does not look at is no
    /// concern of one invariant: [`check`] reads the whole history.
    pub fn holds(self, history: impl AsRef<[u8]>) -> Result<(), Breach> {
        self.holds_with::<Engine>(history.as_ref())
    }

    /// The same, stepped by another engine than ours: one that you wrap, or one with a seeded bug.
    ///
    /// # Errors
    /// The same.
    pub fn holds_with<S: Subject>(self, history: &[u8]) -> Result<(), Breach> {
        let found = match self {
            Self::OneTerminal
            | Self::ProvenSuccess
            | Self::FoundedFallback
            | Self::WithinLimits
            | Self::OneClosing
            | Self::NeverAgain
            | Self::OneRelease => audited(history),
            Self::UnreleasedStaysInside => silence::check(&lines(history)),
            Self::FoldIsRecord | Self::RefusalChangesNothing | Self::OneWinner | Self::NeverStuck => {
                prefixes::check::<S>(history, &[self])
            }
        };
        let unread = Broken::Rule(audit::Rule::Unreadable);
        let own = |breach: &Breach| breach.broken == Broken::Invariant(self) || breach.broken == unread;
        found.into_iter().find(own).map_or(Ok(()), Err)
    }
}

/// What a history breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// An invariant.
    Invariant(Invariant),
    /// A rule that is none of the twelve: the closed table, the order of the records, their form.
    Rule(audit::Rule),
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(invariant) => write!(out, "13.I{} {invariant}", invariant.number()),
            Self::Rule(rule) => write!(out, "{rule}"),
        }
    }
}

impl From<audit::Rule> for Broken {
    fn from(rule: audit::Rule) -> Self {
        use audit::Rule;
        Self::Invariant(match rule {
            Rule::OneTerminal => Invariant::OneTerminal,
            Rule::ProvenSuccess => Invariant::ProvenSuccess,
            Rule::FoundedFallback => Invariant::FoundedFallback,
            Rule::WithinLimits => Invariant::WithinLimits,
            Rule::OneClosing => Invariant::OneClosing,
            Rule::NeverAgain => Invariant::NeverAgain,
            Rule::OneRelease => Invariant::OneRelease,
            Rule::Unreadable
            | Rule::OutOfOrder
            | Rule::ClosedTable
            | Rule::DispatchedFirst
            | Rule::WholeBatches
            | Rule::NestedInside => return Self::Rule(rule),
        })
    }
}

/// Where a history breaks something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{broken} at record {seq}: {reason}")]
pub struct Breach {
    /// What.
    pub broken: Broken,
    /// The record after which it shows, from 0.
    pub seq: u64,
    /// For people.
    pub reason: String,
}

impl From<audit::Breach> for Breach {
    fn from(breach: audit::Breach) -> Self {
        Self { broken: breach.rule.into(), seq: breach.seq, reason: breach.reason }
    }
}

/// Asks for every invariant, and for the rules of an audit.
///
/// `history` is what a store gives: whole lines, of which a cut last one is set aside. A history without one
/// whole line is a breach too, so that a suite which reads nothing does not pass.
///
/// # Errors
/// Everything that is broken, each where it first shows, in the order of the records.
pub fn check(history: impl AsRef<[u8]>) -> Result<(), Vec<Breach>> {
    check_with::<Engine>(history.as_ref())
}

/// The same, stepped by another engine than ours: one that you wrap, or one with a seeded bug.
///
/// # Errors
/// The same.
pub fn check_with<S: Subject>(history: &[u8]) -> Result<(), Vec<Breach>> {
    let mut found = prefixes::check::<S>(history, Invariant::ALL);
    found.extend(audited(history));
    found.extend(silence::check(&lines(history)));
    found.sort_by_key(|breach| (breach.seq, breach.broken));
    let mut seen = Vec::new();
    found.retain(|breach| {
        let first = !seen.contains(&breach.broken);
        seen.push(breach.broken);
        first
    });
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn audited(history: &[u8]) -> Vec<Breach> {
    let lines = lines(history);
    if lines.is_empty() {
        return vec![unreadable(0, "there is no whole record")];
    }
    audit::breaches(lines).into_iter().map(Breach::from).collect()
}

/// The whole lines. One that is no text reads as an empty one, which is no record.
fn lines(history: &[u8]) -> Vec<&str> {
    let whole = history.iter().rposition(|byte| *byte == b'\n').and_then(|end| history.get(..end));
    let lines = whole.into_iter().flat_map(|whole| whole.split(|byte| *byte == b'\n'));
    lines.map(|line| std::str::from_utf8(line).unwrap_or_default()).collect()
}

fn unreadable(seq: u64, reason: impl Into<String>) -> Breach {
    Breach { broken: Broken::Rule(audit::Rule::Unreadable), seq, reason: reason.into() }
}

/// Fails when a history is not fail-closed: when it breaks an invariant of SPEC 13 or a rule of an audit.
///
/// Takes what a store gives, as text or bytes, and a message if you like. What it says names the invariant, the
/// record and the reason, and holds nothing that a model wrote.
///
/// ```should_panic
/// portcullis::assert_fail_closed!("", "the history of {}", "my run");
/// ```
#[macro_export]
macro_rules! assert_fail_closed {
    ($history:expr $(,)?) => {
        if let ::core::result::Result::Err(report) = $crate::testkit::invariants::report(&$history) {
            ::core::panic!("{report}")
        }
    };
    ($history:expr, $($message:tt)+) => {
        if let ::core::result::Result::Err(report) = $crate::testkit::invariants::report(&$history) {
            ::core::panic!("{}: {report}", ::core::format_args!($($message)+))
        }
    };
}
