//! What was accepted, remembered by type and ids, with a hash of its body: it gives a refused repetition its
//! right name, duplicate or conflict (SPEC 4). It never lets anything in.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, Ticket, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::RefusalKind;

/// Accepted reports: the hash of type and ids, and that of the body. They are kept in memory only, and decide
/// nothing but a name: 64 bits are enough.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receipts(BTreeMap<u64, u64>);

/// The ids that make a report that report.
#[derive(Hash)]
enum Ids<'a> {
    Once,
    Number(u64),
    Ask(Ask),
    Model(ModelCallId, u32),
    Judge(JudgeCallId, u32),
    Tool(ToolCallId, u32),
    Nested(NestedCallId),
    Ticket(&'a Ticket),
    Wave(&'a [ToolCallId]),
}

impl Receipts {
    /// Remembers an accepted report.
    pub(crate) fn keep(&mut self, input: &Input) {
        if let Some(ids) = ids(input) {
            self.0.insert(hash(&(input.tag(), ids)), hash(input));
        }
    }

    /// Whether a refused input repeats an accepted one.
    pub(crate) fn repeated(&self, input: &Input) -> Option<RefusalKind> {
        let accepted = self.0.get(&hash(&(input.tag(), ids(input)?)))?;
        Some(if *accepted == hash(input) { RefusalKind::Duplicate } else { RefusalKind::Conflict })
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// `None` for an input that may come again.
fn ids(input: &Input) -> Option<Ids<'_>> {
    Some(match input {
        Input::RunStarted { .. } | Input::CancelRequested { .. } | Input::ExecutionCrashed { .. } => return None,
        Input::EnvironmentResolved { .. }
        | Input::ResolutionFailed { .. }
        | Input::DeadlineElapsed { .. }
        | Input::ReleaseDelivered { .. } => Ids::Once,
        Input::ModelResponded { call, attempt, .. }
        | Input::ModelFailed { call, attempt, .. }
        | Input::BackoffElapsed { call, attempt } => Ids::Model(*call, *attempt),
        Input::ToolsDispatched { calls } => Ids::Wave(calls),
        Input::ToolCompleted { call, attempt, .. }
        | Input::ToolFailed { call, attempt, .. }
        | Input::ToolTimedOut { call, attempt } => Ids::Tool(*call, *attempt),
        Input::NestedCallRequested { nested, .. } | Input::NestedCompleted { nested, .. } => Ids::Nested(*nested),
        Input::GateAnswered { ask, .. }
        | Input::GateFailed { ask }
        | Input::HookAnswered { ask, .. }
        | Input::HookFailed { ask } => Ids::Ask(*ask),
        Input::DecisionGiven { ticket, .. } | Input::TicketExpired { ticket } => Ids::Ticket(ticket),
        Input::SemanticsJudged { call, attempt, .. } | Input::SemanticsFailed { call, attempt, .. } => {
            Ids::Judge(*call, *attempt)
        }
        Input::ToolReconciled { call, .. } => Ids::Tool(*call, 0),
        Input::RunRecovered { epoch: number, .. } | Input::TailRepaired { ordinal: number, .. } => Ids::Number(*number),
    })
}
