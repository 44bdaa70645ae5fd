//! Tools of MCP servers, over standard streams and HTTP (SPEC 7).
//!
//! A spec names servers ([`ToolSource`]); resolution asks each for its list and puts the tools into the recorded
//! environment. Only servers that [`McpTools`] was made with are ever contacted.
//!
//! | module | what |
//! |---|---|
//! | `tools` | the port |
//! | `source` | one server: started when needed, started again once |
//! | `connection` | handshake, list, call, cancellation |
//! | `transport` | how bytes go and come |
//! | `listing`, `declaration`, `names` | what a server lists, as tools of a run |
//! | `rendering` | arguments and results |
//! | `fault` | what can go wrong, and what it means for a call |
//! | `references` | variables that the configuration refers to |
//! | `secrets` | what was handed over, and may not come back |
//! | `program` | which program a command is |
//! | `text` | text that nobody vouches for |
//!
//! [`ToolSource`]: crate::vocabulary::spec::ToolSource

mod connection;
mod declaration;
mod fault;
mod listing;
mod names;
mod program;
mod references;
mod rendering;
mod secrets;
mod source;
mod text;
mod tools;
mod transport;

pub use declaration::stated;
pub(crate) use program::program;
pub use tools::McpTools;
