//! OpenTelemetry traces in OTLP JSON whose spans follow one of the GenAI dialects: one document, or one a line.
//!
//! | span | told by | becomes |
//! |---|---|---|
//! | a model's | `gen_ai.operation.name` `chat`, `openinference.span.kind` `LLM`, `ai.operationId` `..doGenerate`, `llm.request.type`, or messages of its own | a request: its input is the context, its output the reply |
//! | a tool's | `execute_tool`, `TOOL`, `ai.toolCall.name`, `traceloop.span.kind` `tool`, or `gen_ai.tool.name` | the result of the call of its id, else of its name |
//! | an agent's | `invoke_agent`, `AGENT`, `ai.generateText`, .. | whose requests they are; its error is the turn's failure |
//! | any other | | left out, with a note |
//!
//! | of a model's span | attributes, the first that is there |
//! |---|---|
//! | input | `llm.input_messages.N.*`, `gen_ai.input.messages`, `gen_ai.prompt.N.*`, `ai.prompt.messages`, events `gen_ai.*.message` (of the span, or listed in `events`), `input.value` |
//! | output | `llm.output_messages.N.*`, `gen_ai.output.messages`, `gen_ai.completion.N.*`, `ai.response.text` and `.toolCalls`, events `gen_ai.choice`, `output.value` |
//! | instructions | `gen_ai.system_instructions`, also its agent's |
//! | finish | `gen_ai.response.finish_reasons`, `ai.response.finishReason`, the output message's own |
//! | usage | `gen_ai.usage.*`, `llm.token_count.*`, `ai.usage.*` |
//! | failure | status `ERROR`: `http.response.status_code`, `error.type`, an event `exception`'s `exception.type` |
//!
//! Spans are taken by their start, so that children may stand before parents. Every agent of a trace is a
//! conversation, and so are the requests without one; an agent that runs again and whose first request holds
//! the conversation of its run before goes on with it. Attributes that `x.restored_from_langfuse_columns`
//! names were put back from a store's columns, and are noted.

mod agents;
mod attributes;
mod dialect;
mod flat;
mod kind;
mod span;
mod trace;

use super::draft::Draft;
use super::error::TranscriptError;
use super::format::Format;
use super::lines::{Skips, lines};
use super::node::{Form, Node};
use super::outline::Outline;
use super::reading::ReadOptions;

/// Spans of resources.
pub(super) fn is(outline: &Outline<'_>) -> bool {
    ["resourceSpans", "resource_spans"].iter().any(|key| outline.has(key, Form::List))
}

/// Reads every conversation of a document's traces.
pub(super) fn read(document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    let mut spans = Vec::new();
    let whole = match Node::root(document) {
        Ok(root) => {
            span::spans(&root, options, &mut spans)?;
            return trace::drafts(&spans);
        }
        Err(error) => error,
    };
    let mut skips = Skips::default();
    for line in lines(document) {
        options.admit(Format::Otlp, line.number)?;
        let before = spans.len();
        let read = Node::root(line.text).and_then(|root| span::spans(&root, options, &mut spans));
        if let Err(error) = read {
            spans.truncate(before);
            if error == TranscriptError::Unrecognised {
                skips.foreign(line, "no `resourceSpans`");
            } else {
                skips.add(line, &error);
            }
        }
    }
    skips.settle(trace::drafts(&spans)?, Some(whole))
}
