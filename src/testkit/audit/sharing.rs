//! Shared state: a batch commits as a whole or not at all (SPEC 12).

use super::wire::{integer, member, word};
use super::{Record, Rule};

/// Checks one record.
pub(super) fn check(record: &Record<'_>) {
    let own = |name: &str| record.signals.iter().any(|signal| word(signal, "type") == name);
    let committed = own("state_committed");
    let broken = own("bound_broken") || own("state_conflicted");
    record.require(!(committed && broken), Rule::WholeBatches, "a broken batch was committed");
    record.require(!(committed && own("state_rolled_back")), Rule::WholeBatches, "committed and rolled back at once");
    let ending = member(record.state, "ending");
    let failure = ending.and_then(|ending| member(ending, "failure")).map_or("", |failure| word(failure, "type"));
    if own("run_ended") {
        record.require(own("state_conflicted") == (failure == "state_conflict"), Rule::WholeBatches, failure);
        record.require(!own("bound_broken") || failure == "capability_bound", Rule::WholeBatches, failure);
    }
    let staged = member(record.state, "shared").and_then(|shared| integer(shared, "staged")).unwrap_or(0);
    record.require(ending.is_none() || staged == 0, Rule::WholeBatches, "a run that has ended leaves commands staged");
}
