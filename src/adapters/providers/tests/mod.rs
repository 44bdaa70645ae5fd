//! The parts that need no network.

mod anything;
mod names;
mod told;
mod waits;
