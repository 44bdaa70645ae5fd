//! Floor 4, the runtime: the asynchronous edge of the engine.

pub mod store;
