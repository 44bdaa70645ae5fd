//! What the reader of a run gets, for people.

use crate::machines::release::{Body, Citation, Release};
use crate::vocabulary::fact::Fact;

/// A release as text. Every line of it is indented, so that no released text looks like a line of ours; and what
/// follows the first line of a text is marked, so that no text looks like another one.
pub(crate) fn released(release: &Release) -> String {
    let mut text = String::new();
    let mut say = |indent: &str, line: &str| {
        for (place, line) in line.lines().enumerate() {
            text.push_str(indent);
            text.push_str(if place > 0 { "  | " } else { "" });
            text.push_str(line);
            text.push('\n');
        }
    };
    match release.body() {
        Body::Success { statement, data, citations, judged, .. } => {
            say("  ", statement);
            for Citation { fact, quote } in citations {
                say("    ", &told(fact));
                if let Some(quote) = quote {
                    say("      ", &format!("quoted: {quote}"));
                }
            }
            if let Some(data) = data {
                say("    ", &format!("data: {}", data.to_text()));
            }
            if !judged {
                say("  ", "(no judge was asked: the spec switched it off)");
            }
        }
        Body::Fallback { facts, .. } => {
            say("  ", "No report could be verified. This was observed:");
            for fact in facts {
                say("    ", &told(fact));
            }
        }
        Body::Failed { message, .. } | Body::Cancelled { message, .. } => say("  ", message),
    }
    text
}

fn told(fact: &Fact) -> String {
    let origin = fact.origin.as_ref().map(|origin| format!(" ({} of {})", origin.fact, origin.run));
    format!("[{}] {}{}: {}", fact.id, fact.tool, origin.unwrap_or_default(), fact.statement)
}
