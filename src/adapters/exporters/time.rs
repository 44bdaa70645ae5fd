//! Wall time, of what counts from the run's beginning.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::conversation::Conversation;

/// When a step was. A run whose beginning is no RFC 3339 time began in 1970.
pub(super) fn at(conversation: &Conversation, at_ms: u64) -> SystemTime {
    let began = humantime::parse_rfc3339(&conversation.wall_time).unwrap_or(UNIX_EPOCH);
    began.checked_add(Duration::from_millis(at_ms)).unwrap_or(began)
}

/// Nanoseconds since 1970, as OTLP writes them.
pub(super) fn nanos(conversation: &Conversation, at_ms: u64) -> String {
    at(conversation, at_ms).duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// RFC 3339 with milliseconds.
pub(super) fn stamp(conversation: &Conversation, at_ms: u64) -> String {
    humantime::format_rfc3339_millis(at(conversation, at_ms)).to_string()
}
