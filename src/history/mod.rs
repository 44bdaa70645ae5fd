//! Floor 3, memory: records, their chain, reading them strictly and replaying them (SPEC 13). Bytes, no
//! files.
//!
//! | module | what |
//! |---|---|
//! | [`explain`] | why a run ended as it did, or what it waits for |
//! | [`compare`] | where two histories part |
//! | [`fork`] | a run of its own that begins with the records of another |
//! | [`redaction`] | a history without what was written in it |
//! | [`upgrade`] | an older history in the newest version |

mod chain;
pub mod compare;
mod difference;
pub mod explain;
mod fault;
pub mod fork;
mod identity;
mod reader;
mod record;
pub mod redaction;
mod replay;
#[cfg(feature = "schema")]
mod schema;
pub mod upgrade;
mod what_if;

pub use chain::Chain;
pub use fault::{Fault, FaultCode};
pub use reader::{Line, Lines, Next, Tail};
pub use record::{Envelope, Recorder, VERSION};
pub use replay::{Divergence, Policy, Replay, Replayed, Stepper, Summary, replay};
#[cfg(feature = "schema")]
pub use schema::schema;
pub use what_if::{Change, OtherRequest, Supposable, Supposed, Supposition, Unfounded, Unsupposable};
