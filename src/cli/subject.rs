//! What a person has to decide on: the exact tool and arguments. Privileged: a model wrote them (SPEC 3.U4, 7.8).

use super::exit::{Exit, Problem, is_hidden, note};
use super::output::Output;
use super::questions;
use super::stepped::Stepped;
use crate::runtime::Question;
use crate::vocabulary::ids::{Ticket, ToolCallId};
use crate::vocabulary::json::Json;

/// Which of the open questions.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    /// The one of that ticket.
    Ticket(String),
    /// The one about that call.
    Call(ToolCallId),
}

/// Prints tool and arguments as one line of canonical JSON.
pub(crate) fn show(stepped: &Stepped, wanted: &Wanted) -> Result<Exit, Problem> {
    let open = questions::open(&stepped.engine);
    let found = open.iter().find(|question| match (wanted, question) {
        (Wanted::Ticket(name), Question::Decision { ticket: Ticket(ticket), .. }) => name == ticket,
        (Wanted::Ticket(_), Question::Reconciliation { .. }) => false,
        (Wanted::Call(wanted), Question::Decision { call, .. } | Question::Reconciliation { call, .. }) => {
            wanted == call
        }
    });
    let Some(question) = found else {
        return Err(Problem::usage(format!("{}: {}", stepped.run, nothing(wanted, &open))));
    };
    let mut members = vec![("run", Json::from(stepped.run.as_str()))];
    let call = match question {
        Question::Decision { ticket, call, .. } => {
            members.push(("ticket", Json::from(ticket.0.as_str())));
            *call
        }
        Question::Reconciliation { call, operation_id, .. } => {
            members.push(("operation_id", Json::from(operation_id.0.as_str())));
            *call
        }
    };
    let Some(plan) = stepped.engine.plan(call) else {
        return Err(Problem::new(Exit::Unexpected, format!("{}: {call} has no plan", stepped.run)));
    };
    members.push(("call", Json::from(call.to_string().as_str())));
    members.push(("tool", Json::from(&*plan.tool.name)));
    members.push(("arguments", plan.arguments.clone()));
    let subject = Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    note!("portcullis: privileged: a model wrote these arguments, and nothing has released them");
    let mut out = Output::stdout();
    std::io::Write::write_all(&mut out, format!("{}\n", visible(&subject.canonical())).as_bytes())?;
    out.finish()?;
    Ok(Exit::Success)
}

/// Writes characters that would hide or reorder others as their JSON escapes: the value stays the same, and what
/// is seen is what will be called.
pub(crate) fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_hidden(letter) {
            let mut units = [0; 2];
            text.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(letter);
        }
    }
    text
}

fn nothing(wanted: &Wanted, open: &[Question]) -> String {
    let wanted = match wanted {
        Wanted::Ticket(ticket) => format!("ticket {ticket:?}"),
        Wanted::Call(call) => format!("call {call}"),
    };
    let named: Vec<String> = open
        .iter()
        .map(|question| match question {
            Question::Decision { ticket, .. } => format!("--ticket {ticket}"),
            Question::Reconciliation { call, .. } => format!("--call {call}"),
        })
        .collect();
    if named.is_empty() {
        format!("{wanted} is not open, and the run waits for no person")
    } else {
        format!("{wanted} is not open; there is {}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_reorders_text_is_escaped_and_stays_the_same_value() {
        let json = Json::from("pay \u{202E}001\u{2066} to\u{200B} a\u{7F}b\u{9B}");
        let shown = visible(&json.canonical());
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert_eq!(Json::parse(&shown).unwrap(), json);
    }
}
