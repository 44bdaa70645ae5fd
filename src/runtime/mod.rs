//! Floor 4, the runtime: the asynchronous edge of the engine.

#[cfg(feature = "testkit")]
pub mod conformance;
pub mod store;
