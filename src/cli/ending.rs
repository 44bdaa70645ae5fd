//! How an ending is shown: one line of JSON, or one sentence (SPEC 14).

use serde::Serialize;

use super::exit::Exit;
use crate::engine::Ending;
use crate::engine::table::ROWS;
use crate::machines::ledger::Ledger;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::outcome::ReleaseOutcome;

/// The ending of a run as `--json` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct EndingLine<'a> {
    run: &'a RunId,
    #[serde(flatten)]
    ending: &'a Ending,
    model_calls: u64,
    tool_calls: u64,
    records: u64,
    head: Digest,
}

impl<'a> EndingLine<'a> {
    pub(crate) fn new(run: &'a RunId, ending: &'a Ending, ledger: Option<&Ledger>, records: u64, head: Digest) -> Self {
        let (model_calls, tool_calls) = ledger.map_or((0, 0), |ledger| (ledger.model_calls, ledger.tool_calls));
        Self { run, ending, model_calls, tool_calls, records, head }
    }
}

/// A run that has not ended, as `--json` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct OpenLine<'a> {
    run: &'a RunId,
    open: bool,
    model_calls: u64,
    tool_calls: u64,
    records: u64,
    head: Digest,
}

impl<'a> OpenLine<'a> {
    pub(crate) fn new(run: &'a RunId, ledger: Option<&Ledger>, records: u64, head: Digest) -> Self {
        let (model_calls, tool_calls) = ledger.map_or((0, 0), |ledger| (ledger.model_calls, ledger.tool_calls));
        Self { run, open: true, model_calls, tool_calls, records, head }
    }
}

/// The ending in one line, for people.
pub(crate) fn describe(ending: &Ending) -> String {
    let happened = ROWS.iter().find(|row| row.number == ending.row).map_or("", |row| row.happened);
    let why = ending.fallback_type.map(|kind| format!(" {kind}"));
    let code = ending.failure_code.map(|code| format!(" {code}"));
    let shown = format!("{}{}{}", ending.outcome, why.unwrap_or_default(), code.unwrap_or_default());
    let facts = if ending.facts == 1 { "1 fact".to_owned() } else { format!("{} facts", ending.facts) };
    let cause = ending.failure.as_ref().map(|failure| format!(": {}", cause(failure))).unwrap_or_default();
    format!("row {}, {shown}: {happened} (run {}{cause}, {facts})", ending.row, ending.run_state)
}

/// A failure's code, and what it is about.
fn cause(failure: &Failure) -> String {
    let code = failure.tag();
    match failure {
        Failure::Inference { code: error } => format!("{code} {error}"),
        Failure::Resolution { kind } => format!("{code} {kind}"),
        Failure::DraftContract { kind } => format!("{code} {kind}"),
        Failure::Blocked { gate } => format!("{code} by {gate}"),
        Failure::CapabilityBound
        | Failure::StateConflict
        | Failure::NoObservedFacts
        | Failure::Indeterminate
        | Failure::Internal => code.to_owned(),
    }
}

/// The exit code of an ending.
pub(crate) const fn exit(ending: &Ending) -> Exit {
    match ending.outcome {
        ReleaseOutcome::Success => Exit::Success,
        ReleaseOutcome::Fallback => Exit::Fallback,
        ReleaseOutcome::Failed => Exit::Failed,
        ReleaseOutcome::Cancelled => Exit::Cancelled,
    }
}
