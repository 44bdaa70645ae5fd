//! Properties first, then the examples that a reader checks a JSON type by.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod canonical;
mod number;
mod parse;
mod pointer;
mod refuse;
mod strategies;
mod wire;

use super::*;

/// The value of a text that is known to be good.
fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn hash_of(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
