//! What was accepted, remembered by type, ids and body: it gives a refused repetition its right name,
//! duplicate or conflict (SPEC 4). It never lets anything in.

use std::collections::BTreeMap;

use crate::vocabulary::digest::Digest;
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::RefusalKind;

/// Accepted reports: a digest of type and ids, to a digest of the whole report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receipts(BTreeMap<[u8; 16], [u8; 16]>);

impl Receipts {
    /// Remembers an accepted report.
    pub(crate) fn keep(&mut self, input: &Input) {
        if let Some((name, body)) = receipt(input) {
            self.0.insert(name, body);
        }
    }

    /// Whether a refused input repeats an accepted one.
    pub(crate) fn repeated(&self, input: &Input) -> Option<RefusalKind> {
        let (name, body) = receipt(input)?;
        let accepted = self.0.get(&name)?;
        Some(if *accepted == body { RefusalKind::Duplicate } else { RefusalKind::Conflict })
    }
}

fn receipt(input: &Input) -> Option<([u8; 16], [u8; 16])> {
    let body = serde_json::to_vec(input).unwrap_or_default();
    let name = Digest::of("portcullis.receipt.1", &[input.tag().as_bytes(), ids(input)?.as_bytes()]);
    Some((half(&name), half(&Digest::of("portcullis.report.1", &[&body]))))
}

fn half(digest: &Digest) -> [u8; 16] {
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// The ids that make a report that report; `None` for an input that may come again.
fn ids(input: &Input) -> Option<String> {
    Some(match input {
        Input::RunStarted { .. } | Input::CancelRequested { .. } | Input::ExecutionCrashed { .. } => return None,
        Input::EnvironmentResolved { .. }
        | Input::ResolutionFailed { .. }
        | Input::DeadlineElapsed { .. }
        | Input::ReleaseDelivered { .. } => String::new(),
        Input::ModelResponded { call, attempt, .. }
        | Input::ModelFailed { call, attempt, .. }
        | Input::BackoffElapsed { call, attempt } => format!("{call}/{attempt}"),
        Input::ToolsDispatched { calls } => calls.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        Input::ToolCompleted { call, attempt, .. }
        | Input::ToolFailed { call, attempt, .. }
        | Input::ToolTimedOut { call, attempt } => format!("{call}/{attempt}"),
        Input::NestedCallRequested { nested, .. } | Input::NestedCompleted { nested, .. } => nested.to_string(),
        Input::GateAnswered { ask, .. }
        | Input::GateFailed { ask }
        | Input::HookAnswered { ask, .. }
        | Input::HookFailed { ask } => ask.0.to_string(),
        Input::DecisionGiven { ticket, .. } | Input::TicketExpired { ticket } => ticket.0.clone(),
        Input::SemanticsJudged { call, attempt, .. } | Input::SemanticsFailed { call, attempt, .. } => {
            format!("{call}/{attempt}")
        }
        Input::RunRecovered { epoch, .. } => epoch.to_string(),
        Input::ToolReconciled { call, .. } => call.to_string(),
        Input::TailRepaired { ordinal, .. } => ordinal.to_string(),
    })
}
