//! Sizes that nothing may exceed (SPEC 5). Each breach has a transition, never a panic.

use crate::vocabulary::wire::object;

object! {
    default
    /// The limits of a run.
    pub struct Limits {
        /// Bytes of a stored line; a larger report is refused as malformed. Default: 16,777,216.
        pub line_bytes_max: u64,
        /// Bytes of a model's response, text and arguments together. Default: 1,048,576.
        pub response_bytes_max: u64,
        /// Bytes of one fact's statement; a larger one fails its projection. Default: 65,536.
        pub statement_bytes_max: u64,
        /// Bytes of a note, a reason or another remark of a person or plugin. Default: 4,096.
        pub note_bytes_max: u64,
        /// Tool calls in one response. Default: 64.
        pub calls_in_response_max: u32,
        /// Facts in one result. Default: 256.
        pub facts_in_result_max: u32,
        /// Bytes of the transcript in total; over it the next model call fails as `context_overflow`.
        /// Default: 16,777,216.
        pub transcript_bytes_max: u64,
        /// Bytes of one tool's schema or of the schema of `data`. Default: 65,536.
        pub schema_bytes_max: u64,
        /// Bytes of shared state, keys and values together; a command that would exceed it breaks its plugin's
        /// bound. Default: 1,048,576.
        #[serde(skip_serializing_if = "is_default_state")]
        pub state_bytes_max: u64,
    }
}

const STATE_BYTES_MAX: u64 = 1 << 20;

/// Specs of before this limit was there do not name it.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_default_state(bytes: &u64) -> bool {
    *bytes == STATE_BYTES_MAX
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes_max: 16 << 20,
            response_bytes_max: 1 << 20,
            statement_bytes_max: 64 << 10,
            note_bytes_max: 4 << 10,
            calls_in_response_max: 64,
            facts_in_result_max: 256,
            transcript_bytes_max: 16 << 20,
            schema_bytes_max: 64 << 10,
            state_bytes_max: STATE_BYTES_MAX,
        }
    }
}
