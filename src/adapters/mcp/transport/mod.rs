//! How bytes go to a server and come back.
//!
//! The protocol's client is rmcp's; what carries its messages is ours, because of three things that only the
//! carrier can know: whether anything of a request was written (SPEC 7), what the bytes of an answer were
//! before a lenient reader merged keys and rounded numbers (SPEC 4), and how much was read.
//!
//! | module | what |
//! |---|---|
//! | `message` | one message, read strictly |
//! | `lines` | messages over a process's standard streams |
//! | `process` | the process: start, last words, end |
//! | `http` | messages over HTTP |
//! | `events` | answers that come as a stream of events |
//! | `replies` | our answers to what a server asks over HTTP |

mod events;
mod http;
mod lines;
mod message;
mod process;
mod replies;

pub(super) use http::Endpoint;
pub(super) use lines::{GivenUp, pipe};
pub(super) use process::Process;

use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;

/// A message of a server.
type Message = RxJsonRpcMessage<RoleClient>;

/// The most bytes of one message of a server.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Messages that wait for their reader, in either direction.
const WAITING_MAX: usize = 256;

/// A message that was not carried, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendFault {
    /// Nothing of it was written.
    #[error("{0}")]
    Unwritten(String),
    /// The write was begun.
    #[error("{0}")]
    Begun(String),
}
