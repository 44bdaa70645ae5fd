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
    }
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
        }
    }
}
