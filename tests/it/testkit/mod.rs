//! The test kit itself: what it accepts, and that every check of it bites.

mod forged;
mod invariants;
mod page;
mod seeded;
mod sound;
mod strategies;
