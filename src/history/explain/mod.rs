//! Why a run ended as it did, read off its history: which record decided, what would have had to be otherwise, and
//! what the three layers of state say of it (SPEC 2, 3, 9). Of a run that has not ended: what it waits for.
//!
//! It is typed and holds no sentence; ids, codes, words of closed vocabularies and numbers alone, and the statements
//! that the release publishes.
//!
//! | module | what |
//! |---|---|
//! | `witness` | sees every step, and remembers what turned the run |
//! | `account` | the account of an ended run |
//! | `neighbours` | the nearest rows of the closed table that were not taken |
//! | `waits` | what an open run waits for |

mod account;
mod neighbours;
mod waits;
mod witness;

use serde::Serialize;

pub use account::{Account, By, Edge, Gap, Known, Layers};
pub use neighbours::{Condition, Neighbour};
pub use waits::{Wait, Waiting};
pub use witness::{Decided, Observation, Place, Raised, Turn, Witness};

use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Parent;

/// What can be said of a run from its history alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// How many records its history has.
    pub records: u64,
    /// Where it left its parent, if it is a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Parent>,
    /// What turned it, in the order of the records: all that did before the one that decided.
    pub turns: Vec<Turn>,
    /// What went wrong in a call and came to the model as an observation. None of it ended the run.
    pub observations: Vec<Observation>,
    /// What was observed.
    pub facts: Vec<Known>,
    /// Why it ended, or what it waits for.
    #[serde(flatten)]
    pub standing: Standing,
}

/// Whether there is an ending to account for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// There is.
    Ended(Box<Account>),
    /// Not yet.
    Open(Waiting),
}
