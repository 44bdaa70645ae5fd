//! Floor 5, the world: what reports to a run and what acts on its effects.
//!
//! | module | what |
//! |---|---|
//! | [`stores`] | where records become durable: memory, SQLite |
//! | [`scenario`] | a scripted world: one run from a file, in virtual time |
//! | [`transcripts`] | recorded conversations of other agent loops, read strictly |
//! | [`exporters`] | a run of ours in the formats of others |
//! | [`playback`] | a recorded turn taken through the engine at once, without the runtime |
//! | [`audit`] | what recorded runs would have ended in, and what is odd about them |
//! | [`recording`] | a recorded conversation as scenarios, one a user turn |
//! | `providers` | models over HTTP (feature `providers`) |
//! | `mcp` | tools of MCP servers (feature `mcp`) |

#[cfg(any(feature = "mcp", feature = "providers"))]
pub(crate) mod address;
pub mod audit;
pub mod exporters;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod playback;
#[cfg(any(feature = "cli", feature = "mcp", feature = "providers"))]
pub(crate) mod printable;
#[cfg(feature = "providers")]
pub mod providers;
pub mod recording;
pub mod scenario;
pub mod stores;
pub mod transcripts;
