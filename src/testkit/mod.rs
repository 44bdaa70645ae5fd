//! Floor 3, for suites, the project's own and yours: the closed table once more by another hand, checks of
//! whole histories, a finite alphabet of reports, and the explorer that feeds it to every state (SPEC 13).
//!
//! Nothing here can build a proof or a state: states are reached by stepping. What ports and hosts must keep
//! needs the runtime, and stands in `runtime::conformance`.
//!
//! | module | what | feature |
//! |---|---|---|
//! | [`mod@reference`] | the closed table over wire words; knows no engine | `explorer` |
//! | [`audit`] | rules that a whole history keeps; knows no engine | `explorer` |
//! | [`world`] | small bounds: a spec, an environment, and what the world may answer | `explorer` |
//! | [`alphabet`] | the reports that answer a state, and those that it must refuse | `explorer` |
//! | [`coverage`] | what a suite took: transitions, and reports by the state they met | `explorer` |
//! | [`shown`] | what a refusal must leave as it was | `explorer` |
//! | [`explorer`] | breadth first through every state of a world | `explorer` |
//! | [`invariants`] | the twelve invariants, asked of any history | `explorer` |
//! | `strategies` | specs, inputs, sequences and histories, for proptest | `testkit` |

pub mod alphabet;
pub mod audit;
pub mod coverage;
pub mod explorer;
pub mod invariants;
pub mod reference;
pub mod shown;
#[cfg(feature = "testkit")]
pub mod strategies;
pub mod world;

/// The proptest that the strategies are made for.
#[cfg(feature = "testkit")]
pub use proptest;
