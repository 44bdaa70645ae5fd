//! A run of ours in the formats of others (SPEC 14): what was said and done, without the proof of it.
//!
//! | format | what |
//! |---|---|
//! | [`ExportFormat::Otlp`] | OTLP JSON: spans `invoke_agent`, `chat`, `execute_tool` of the GenAI conventions |
//! | [`ExportFormat::Atif`] | the Agent Trajectory Interchange Format |
//! | [`ExportFormat::ChatCompletions`] | a list of chat-completions messages, every call with exactly one result |
//!
//! All are made of a [`Conversation`], which a replay fills step by step. They hold text that was never
//! released, as the history itself does: they are privileged. Calls carry our own ids, since a provider's may
//! repeat (SPEC 7); results are what the model was shown. What is read back from an export by
//! [`transcripts`](super::transcripts) is the same turns, replies, calls and results.

mod atif;
mod chat;
mod conversation;
mod otlp;
mod time;

pub use conversation::{Answer, Called, Conversation, Exchange, Outcome, Said};

use crate::vocabulary::wire::words;

words! {
    /// A format that runs are exported to.
    pub enum ExportFormat {
        /// OTLP JSON.
        Otlp = "otlp",
        /// The Agent Trajectory Interchange Format.
        Atif = "atif",
        /// Chat-completions messages.
        ChatCompletions = "chat-completions",
    }
}

impl ExportFormat {
    /// The run as one JSON document, with a line end. Privileged: it may hold text that was never released.
    ///
    /// # Errors
    /// None that is known: nothing of a conversation is without a JSON form.
    pub fn write(self, conversation: &Conversation) -> serde_json::Result<String> {
        let mut document = match self {
            Self::Otlp => serde_json::to_string(&otlp::document(conversation)),
            Self::Atif => atif::document(conversation),
            Self::ChatCompletions => serde_json::to_string(&chat::document(conversation)),
        }?;
        document.push('\n');
        Ok(document)
    }
}
