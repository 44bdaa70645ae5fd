//! What a timer reports when it fires.

use crate::vocabulary::effect::TimerKind;
use crate::vocabulary::ids::Ticket;
use crate::vocabulary::input::Input;

/// The input of a timer of that kind, `of` being what the engine says that it belongs to.
pub(super) fn input(kind: TimerKind, of: &str) -> Option<Input> {
    Some(match kind {
        TimerKind::Deadline => Input::DeadlineElapsed { displaced: None },
        TimerKind::Backoff => {
            let (call, attempt) = of.split_once('/')?;
            Input::BackoffElapsed { call: call.parse().ok()?, attempt: attempt.parse().ok()? }
        }
        TimerKind::ToolTimeout => {
            let (call, attempt) = of.split_once('/')?;
            Input::ToolTimedOut { call: call.parse().ok()?, attempt: attempt.parse().ok()? }
        }
        TimerKind::TicketExpiry => Input::TicketExpired { ticket: Ticket(of.to_owned()) },
    })
}
