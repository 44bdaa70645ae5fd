//! What is fuzzed, and what must hold of it. One module a target, each with one door, `check`: bytes in, and a panic
//! when something does not hold. libFuzzer calls them (`fuzz_targets/`), and so does an ordinary test over the kept
//! inputs (`tests/corpora.rs`).
//!
//! | target | takes the bytes as |
//! |---|---|
//! | [`strict_json`] | a payload |
//! | [`draft_parser`] | a model's answer |
//! | [`transcripts`] | another agent's recorded conversation |
//! | [`history_reader`] | a history |
//! | [`simulate`] | raw inputs for the engine, or choices among those that fit it |
//! | [`store_recovery`] | damage to a store's file |

pub mod draft_parser;
pub mod history_reader;
pub mod mutator;
pub mod simulate;
pub mod store_recovery;
pub mod strict_json;
pub mod transcripts;

use portcullis::engine::{Ending, table};
use portcullis::testkit::reference;
use portcullis::vocabulary::json::Json;

/// An ending stands in the closed table, by either hand.
fn check_ending(ending: &Ending) {
    assert!(table::is_legal(ending), "{ending:?}");
    let wire = serde_json::to_string(ending).expect("an ending is written");
    let wire = Json::parse(&wire).expect("an ending is a payload");
    assert_eq!(reference::is_legal(&wire), Ok(()));
}
