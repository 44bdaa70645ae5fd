//! What is done with recorded runs: they are audited, and other rules are supposed for them.

mod audit;
mod what_if;
