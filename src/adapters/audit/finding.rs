//! What can be odd about a run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::transcripts::{Claim, Turn};
use super::write;
use crate::engine::Ending;
use crate::vocabulary::json::Json;
use crate::vocabulary::outcome::StopReason;
use crate::vocabulary::tool::ObservationCode;

/// One thing that is odd about a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Finding {
    /// An answer was shown though nothing was observed.
    ReleasedWithoutEvidence,
    /// A limit was met, and the recording shows an answer or a success all the same.
    LimitShownAsSuccess,
    /// The recording itself says that a limit stopped it.
    LimitReached {
        /// In its words.
        said: String,
    },
    /// The recording stops before an answer.
    NoAnswer,
    /// A write failed, was never done later, and the end does not say so.
    FailedWriteClaimedDone {
        /// The tool.
        tool: String,
    },
    /// The model went on after its answer.
    WorkAfterEnd {
        /// How many replies.
        replies: u32,
    },
    /// Calls without a recorded result.
    OrphanCalls {
        /// How many.
        calls: u32,
    },
    /// Results that belong to no call.
    OrphanResults {
        /// How many.
        results: u32,
    },
    /// The same tool was called with the same arguments more than once.
    RepeatedCall {
        /// The tool.
        tool: String,
        /// How often.
        times: u32,
    },
    /// Arguments that are no JSON object.
    MalformedArguments {
        /// Calls.
        calls: u32,
    },
    /// Arguments that the length limit cut.
    TruncatedArguments {
        /// Calls.
        calls: u32,
    },
    /// The provider's id of an earlier call of the conversation stands for another call.
    ReusedCallIds {
        /// Calls.
        calls: u32,
    },
}

impl Finding {
    /// Every type on the wire, the gravest first.
    pub const TYPES: [&'static str; 12] = [
        "released_without_evidence",
        "limit_shown_as_success",
        "failed_write_claimed_done",
        "work_after_end",
        "truncated_arguments",
        "malformed_arguments",
        "orphan_calls",
        "orphan_results",
        "repeated_call",
        "reused_call_ids",
        "limit_reached",
        "no_answer",
    ];

    /// Its type on the wire.
    #[must_use]
    pub const fn tag(&self) -> &'static str {
        match self {
            Self::ReleasedWithoutEvidence => "released_without_evidence",
            Self::LimitShownAsSuccess => "limit_shown_as_success",
            Self::LimitReached { .. } => "limit_reached",
            Self::NoAnswer => "no_answer",
            Self::FailedWriteClaimedDone { .. } => "failed_write_claimed_done",
            Self::WorkAfterEnd { .. } => "work_after_end",
            Self::OrphanCalls { .. } => "orphan_calls",
            Self::OrphanResults { .. } => "orphan_results",
            Self::RepeatedCall { .. } => "repeated_call",
            Self::MalformedArguments { .. } => "malformed_arguments",
            Self::TruncatedArguments { .. } => "truncated_arguments",
            Self::ReusedCallIds { .. } => "reused_call_ids",
        }
    }
}

/// What is known of one run.
pub(super) struct Seen<'a> {
    pub(super) turn: &'a Turn,
    pub(super) answered: bool,
    pub(super) ending: Option<&'a Ending>,
    pub(super) facts: usize,
    pub(super) codes: &'a BTreeMap<ObservationCode, u32>,
}

impl Seen<'_> {
    /// What is odd about it, as far as the run alone shows.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let shown = self.shows_success();
        if shown && self.facts == 0 {
            findings.push(Finding::ReleasedWithoutEvidence);
        }
        let limited = self.ending.is_some_and(|ending| ending.stop_reason == Some(StopReason::BudgetLimitReached));
        if shown && limited {
            findings.push(Finding::LimitShownAsSuccess);
        }
        if let Claim::LimitReached { said } = &self.turn.claim {
            findings.push(Finding::LimitReached { said: said.clone() });
        }
        if !self.answered && self.turn.claim == Claim::Unsaid {
            findings.push(Finding::NoAnswer);
        }
        if self.claims_done() {
            findings.extend(write::undone(self.turn).map(|tool| Finding::FailedWriteClaimedDone { tool }));
        }
        findings.extend(self.calls());
        findings
    }

    /// Whether its reader was shown a success: an answer, or a word of success, and no word of anything else.
    fn shows_success(&self) -> bool {
        match self.turn.claim {
            Claim::Success => true,
            Claim::Unsaid => self.answered,
            Claim::Cancelled | Claim::LimitReached { .. } | Claim::ModelFailed { .. } | Claim::Failed { .. } => false,
        }
    }

    /// Whether the end says that what was asked for was done: in so many words, or by an answer that has no word of
    /// failure.
    fn claims_done(&self) -> bool {
        let answer = self.turn.replies.last().and_then(|last| last.text.as_deref()).unwrap_or_default();
        self.turn.claim == Claim::Success || (self.shows_success() && !write::admits_failure(answer))
    }

    /// What is odd about its calls.
    fn calls(&self) -> Vec<Finding> {
        let count = |code| self.codes.get(&code).copied().unwrap_or_default();
        let (malformed, truncated) =
            (count(ObservationCode::InvalidArguments), count(ObservationCode::ArgumentsTruncated));
        let calls = self.turn.replies.iter().flat_map(|reply| &reply.calls);
        let orphans = calls.clone().filter(|call| call.result.is_none()).count();
        let mut repeated: BTreeMap<(&str, String), u32> = BTreeMap::new();
        for call in calls {
            *repeated.entry((&call.name, canonical(&call.arguments))).or_default() += 1;
        }
        let mut findings = Vec::new();
        if malformed > 0 {
            findings.push(Finding::MalformedArguments { calls: malformed });
        }
        if truncated > 0 {
            findings.push(Finding::TruncatedArguments { calls: truncated });
        }
        if orphans > 0 {
            findings.push(Finding::OrphanCalls { calls: u32::try_from(orphans).unwrap_or(u32::MAX) });
        }
        let repeated = repeated.into_iter().filter(|(_, times)| *times > 1);
        findings.extend(repeated.map(|((tool, _), times)| Finding::RepeatedCall { tool: tool.to_owned(), times }));
        findings
    }
}

/// Arguments as they compare: canonical where they are JSON.
fn canonical(arguments: &str) -> String {
    Json::parse(arguments).map_or_else(|_| arguments.to_owned(), |json| json.canonical())
}
