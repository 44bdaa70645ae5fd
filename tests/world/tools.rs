//! Tools over MCP.
//!
//! | module | what |
//! |---|---|
//! | `bench` | a live configuration, and calls of its tools one by one |
//! | `hostile` | a tool server that does what it should not; this program, started again |
//! | `servers` | real servers |
//! | `badly_behaved` | the hostile one over standard streams |
//! | `over_http` | real and hostile ones over HTTP |
//! | `secrets` | what is handed over does not come back |
//! | `runs` | whole runs |

mod badly_behaved;
pub(crate) mod bench;
mod hostile;
mod over_http;
mod runs;
mod secrets;
mod servers;

use std::process::ExitCode;

use libtest_mimic::Trial;

/// Serves as a tool server, where this process was started as one.
pub(crate) fn served() -> Option<ExitCode> {
    hostile::served()
}

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [servers::trials(), badly_behaved::trials(), over_http::trials(), secrets::trials(), runs::trials()];
    trials.into_iter().flatten().collect()
}
