//! What is done with recorded runs: other rules are supposed for them.

mod what_if;
