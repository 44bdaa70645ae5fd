//! Stores: where records become durable.
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | a store that dies with the process: for tests and for runs in virtual time |
//! | `sqlite` | the store in one SQLite file (feature `sqlite`) |

pub mod memory;
#[cfg(feature = "sqlite")]
pub mod sqlite;
