//! Runs of the command line with real ports.
//!
//! | module | what |
//! |---|---|
//! | `stand` | a folder, a scenario, a tool server that reports, and the command line |
//! | `terminal` | a person at a terminal |
//! | `consent` | what is started, and who agreed |
//! | `people` | decisions at the prompt and elsewhere |
//! | `carried_on` | runs of dead processes |
//! | `whole` | a model, tools and a judge, all over the wire; interrupts; keys |
//! | `components` | a real model and real tools |

mod carried_on;
mod components;
mod consent;
mod people;
mod stand;
#[cfg(unix)]
mod terminal;
mod whole;

use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    [consent::trials(), people::trials(), carried_on::trials(), whole::trials(), components::trials()]
        .into_iter()
        .flatten()
        .collect()
}
