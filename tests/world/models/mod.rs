//! Models over HTTP.
//!
//! | module | what |
//! |---|---|
//! | `asking` | how a model is asked here, without a run around it |
//! | `llama` | the real server |
//! | `real` | what the real server answers |
//! | `recorded` | exchanges that were recorded with real providers |
//! | `requests` | what is sent, dialect by dialect |
//! | `answers` | what is read: finish reasons, usage, streams, steps |
//! | `damaged` | answers that are cut, or say two things at once |
//! | `spent` | what a failed answer used |
//! | `told` | what is told in text cannot speak for somebody else |
//! | `errors` | statuses and error objects |
//! | `conforming` | the suite that embedders' models must pass |
//! | `hostile` | servers that mean ill |
//! | `keys` | where keys go, and where they must not stand |
//! | `judging` | a model as the judge |
//! | `runs` | whole runs |

mod answers;
pub(crate) mod asking;
mod conforming;
mod damaged;
mod errors;
mod hostile;
mod judging;
mod keys;
pub(crate) mod llama;
mod real;
mod recorded;
mod requests;
mod runs;
mod spent;
mod told;

use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let parts = [
        real::trials(),
        recorded::trials(),
        requests::trials(),
        answers::trials(),
        damaged::trials(),
        spent::trials(),
        told::trials(),
        errors::trials(),
        conforming::trials(),
        hostile::trials(),
        keys::trials(),
        judging::trials(),
        runs::trials(),
    ];
    parts.into_iter().flatten().collect()
}
