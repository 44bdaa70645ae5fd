//! What of a report belongs to the run that it was made in, and to no other: a ticket is made of the run's id
//! (SPEC 7.8). It is named by its place instead, as the ticket of that call, and so found again in another run.

use crate::engine::Engine;
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::{Ticket, ToolCallId};
use crate::vocabulary::input::Input;

/// The tickets that are open in a run, each with the call that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OpenTickets(Vec<(Ticket, ToolCallId)>);

impl OpenTickets {
    /// Those of `engine`.
    pub(super) fn of(engine: &Engine) -> Self {
        let open = engine.outstanding().into_iter().filter_map(|effect| {
            if let Effect::AwaitDecision { ticket, call } = effect { Some((ticket, call)) } else { None }
        });
        Self(open.collect())
    }

    /// The call that a report's ticket is about; `None` when it names no ticket, or one that is not open.
    pub(super) fn about(&self, report: &Input) -> Option<ToolCallId> {
        let named = ticket(report)?;
        self.0.iter().find(|(ticket, _)| ticket == named).map(|(_, call)| *call)
    }

    /// The ticket about that call.
    pub(super) fn ticket(&self, call: ToolCallId) -> Option<&Ticket> {
        self.0.iter().find(|(_, about)| *about == call).map(|(ticket, _)| ticket)
    }
}

/// The ticket that a report names, itself or in the report that it displaced.
pub(super) fn ticket(report: &Input) -> Option<&Ticket> {
    if let Input::DecisionGiven { ticket, .. } | Input::TicketExpired { ticket } = report {
        return Some(ticket);
    }
    let Input::DeadlineElapsed { displaced } = report else { return None };
    displaced.as_deref().and_then(ticket)
}

/// The report with `to` in the place of its ticket.
pub(super) fn renamed(mut report: Input, to: &Ticket) -> Input {
    rename(&mut report, to);
    report
}

fn rename(report: &mut Input, to: &Ticket) {
    if let Input::DecisionGiven { ticket, .. } | Input::TicketExpired { ticket } = report {
        ticket.clone_from(to);
    } else if let Input::DeadlineElapsed { displaced: Some(late) } = report {
        rename(late, to);
    }
}
