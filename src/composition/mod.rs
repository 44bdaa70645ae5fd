//! Floor 2, plugins: what they declare, how they become one environment, and the keys by which they share state
//! (SPEC 12). Pure: plugin code is called above.
//!
//! | file | holds |
//! |---|---|
//! | `manifest` | [`PluginManifest`], and the check of a configuration against it |
//! | `contribution` | [`Contribution`] and [`Proposal`]: what a plugin brings |
//! | `merge` | [`ResolvedExecutionEnv`]: everything that is brought, checked class by class |
//! | `party` | whose each contribution is, and whether it lies inside the bound |
//! | `order` | dependencies first |
//! | `configuration` | the last class of checks |
//! | `error` | [`MergeError`] and what stands in it |
//! | `state` | [`StateKey`]: a state key with a type |

mod configuration;
mod contribution;
mod error;
mod manifest;
mod merge;
mod order;
mod party;
mod state;

pub use contribution::{Contribution, Proposal};
pub use error::{BoundViolation, ContributionKind, MergeError, PluginConfigError};
pub use manifest::PluginManifest;
pub use merge::{HOST, ResolvedExecutionEnv};
pub use state::{StateKey, StateShape};
