//! What a span is to the agent, told by its attributes.

use super::span::Span;

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    Tool,
    Agent,
    Other,
}

/// The kind that the word of an attribute means.
const WORDS: [(&str, &str, Kind); 20] = [
    ("gen_ai.operation.name", "chat", Kind::Model),
    ("gen_ai.operation.name", "text_completion", Kind::Model),
    ("gen_ai.operation.name", "generate_content", Kind::Model),
    ("gen_ai.operation.name", "execute_tool", Kind::Tool),
    ("gen_ai.operation.name", "invoke_agent", Kind::Agent),
    ("gen_ai.operation.name", "invoke_workflow", Kind::Agent),
    ("gen_ai.operation.name", "create_agent", Kind::Other),
    ("gen_ai.operation.name", "embeddings", Kind::Other),
    ("openinference.span.kind", "LLM", Kind::Model),
    ("openinference.span.kind", "TOOL", Kind::Tool),
    ("openinference.span.kind", "AGENT", Kind::Agent),
    ("ai.operationId", "ai.generateText.doGenerate", Kind::Model),
    ("ai.operationId", "ai.streamText.doStream", Kind::Model),
    ("ai.operationId", "ai.toolCall", Kind::Tool),
    ("ai.operationId", "ai.generateText", Kind::Agent),
    ("ai.operationId", "ai.streamText", Kind::Agent),
    ("traceloop.span.kind", "tool", Kind::Tool),
    ("traceloop.span.kind", "agent", Kind::Agent),
    ("llm.request.type", "chat", Kind::Model),
    ("llm.request.type", "completion", Kind::Model),
];

impl Kind {
    /// The kind of a span: by a word that says so, else by what it holds.
    pub(super) fn of(span: &Span<'_>) -> Self {
        let attributes = &span.attributes;
        let mut asked: Option<(&str, Option<String>)> = None;
        for (key, word, kind) in WORDS {
            if asked.as_ref().is_none_or(|(last, _)| *last != key) {
                asked = Some((key, attributes.text(&[key])));
            }
            if asked.as_ref().is_some_and(|(_, said)| said.as_deref() == Some(word)) {
                return kind;
            }
        }
        if attributes.has("gen_ai.tool.name") || attributes.has("ai.toolCall.name") {
            Self::Tool
        } else if attributes.has("pydantic_ai.all_messages") || attributes.has("all_messages_events") {
            Self::Agent
        } else if ["gen_ai.output.messages", "gen_ai.response.id", "gen_ai.completion.0.role"]
            .iter()
            .any(|key| attributes.has(key))
        {
            Self::Model
        } else {
            Self::Other
        }
    }
}
