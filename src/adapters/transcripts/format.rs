//! The formats that are read, and how one is told from the others: by its shape, never by its name.

use super::chat;
use crate::vocabulary::wire::words;

words! {
    /// A format of recorded runs.
    pub enum Format {
        /// Lists of chat-completions messages, in several wrappings.
        ChatCompletions = "chat-completions",
    }
}

impl Format {
    /// What a document of the format looks like, in a few characters.
    #[must_use]
    pub const fn sketch(self) -> &'static str {
        match self {
            Self::ChatCompletions => {
                r#"a list `[{"role":..},..]`, bare or under "messages", "traj" or "answer_generation""#
            }
        }
    }

    /// What its entries are called, by which notes say a place.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ChatCompletions => "message",
        }
    }
}

/// Tells the format of a document. `None` for what none of them is, a scenario or a history among it.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Format> {
    chat::recognise(bytes).map(|_| Format::ChatCompletions)
}
