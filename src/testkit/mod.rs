//! Floor 3, for suites, the project's own and yours: the closed table once more by another hand, checks of
//! whole histories, a finite alphabet of reports, and the explorer that feeds it to every state (SPEC 13).
//!
//! Nothing here can build a proof or a state: states are reached by stepping.
//!
//! | module | what |
//! |---|---|
//! | [`mod@reference`] | the closed table over wire words; knows no engine |
//! | [`audit`] | rules that a whole history keeps; knows no engine |
//! | [`world`] | small bounds: a spec, an environment, and what the world may answer |
//! | [`alphabet`] | the reports that answer a state, and those that it must refuse |
//! | [`coverage`] | what a suite took: transitions, and reports by the state they met |
//! | [`explorer`] | breadth first through every state of a world |

pub mod alphabet;
pub mod audit;
pub mod coverage;
pub mod explorer;
pub mod reference;
pub mod world;
