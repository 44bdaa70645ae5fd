//! Floor 0, words: what every other floor speaks of. Plain values, their wire forms and their limits.

pub mod bound;
pub mod digest;
pub mod draft;
pub mod effect;
pub mod environment;
pub mod fact;
pub mod failure;
pub mod ids;
pub mod input;
pub mod json;
pub mod llm;
pub mod message;
pub mod outcome;
pub mod refusal;
pub mod signal;
pub mod spec;
pub mod tool;
pub(crate) mod wire;
