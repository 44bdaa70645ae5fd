//! Chat-completions messages.
//!
//! | of the run | message |
//! |---|---|
//! | instructions, notices, imported facts | `system` |
//! | the task, earlier user messages | `user` |
//! | an answer | `assistant` with `tool_calls` |
//! | the observation of a call, in model order | `tool` |
//! | a call that is still open at the end of the history | `tool`, and its content says so: every call has its message |
//! | a request that failed or was not answered | none |

use serde_json::{Value, json};

use super::conversation::{Answer, Called, Conversation, Said};

/// What stands for the result of a call that has none yet.
const OPEN: &str = "no result: the history ends before it";

pub(super) fn document(conversation: &Conversation) -> Value {
    let mut messages = Vec::new();
    for exchange in &conversation.exchanges {
        messages.extend(exchange.told.iter().map(told));
        if let Answer::Replied { text, calls, .. } = &exchange.answer {
            messages.push(assistant(text.as_deref(), calls));
            messages.extend(calls.iter().map(result));
        }
    }
    messages.extend(conversation.unasked.iter().map(told));
    json!({ "messages": messages })
}

fn told(said: &Said) -> Value {
    let (role, text) = match said {
        Said::System(text) => ("system", text),
        Said::User(text) => ("user", text),
        Said::Assistant(text) => ("assistant", text),
    };
    json!({ "role": role, "content": text })
}

fn assistant(text: Option<&str>, calls: &[Called]) -> Value {
    if calls.is_empty() {
        return json!({ "role": "assistant", "content": text.unwrap_or_default() });
    }
    let calls: Vec<_> = calls.iter().map(call).collect();
    json!({ "role": "assistant", "content": text, "tool_calls": calls })
}

fn call(called: &Called) -> Value {
    let function = json!({ "name": called.name, "arguments": called.arguments });
    json!({ "id": called.id, "type": "function", "function": function })
}

fn result(called: &Called) -> Value {
    let text = called.outcome.as_ref().map_or(OPEN, |outcome| &outcome.text);
    json!({ "role": "tool", "tool_call_id": called.id, "content": text })
}
