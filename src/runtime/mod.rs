//! Floor 4, the runtime: the asynchronous edge of the engine, on tokio.
//!
//! [`Runtime::builder`] takes the ports: a [`Model`](ports::Model), [`Tools`](ports::Tools), a
//! [`Judge`](ports::Judge), a [`Store`](store::Store), a [`Clock`](clock::Clock). [`Runtime::start`] gives a
//! [`RunHandle`]. What goes in through a handle: cancel, decide, reconcile, delivered. What comes out, in the
//! order in which it is used: [`RunHandle::events`], [`RunHandle::outcome`].
//!
//! A step is appended and made durable before its effects begin. When the store refuses, nothing that depends
//! on the step is done.

mod alarms;
mod builder;
mod chance;
pub mod clock;
#[cfg(feature = "testkit")]
pub mod conformance;
mod driver;
mod event;
pub mod execution;
mod face;
mod handle;
mod loading;
pub mod plugins;
pub mod ports;
mod requests;
mod shared;
mod standing;
pub mod store;
mod thread;
mod trace;
mod virtual_clock;
pub(crate) mod witness;
pub(crate) mod world;

pub use builder::Builder;
pub use event::{Event, Question};
pub use face::{Ended, Events, Waiting};
pub use handle::{OnDrop, Outcome, RunHandle};
pub use shared::{Recovery, Runtime};
pub use thread::Thread;
pub use trace::Traces;
pub use virtual_clock::VirtualClock;

#[cfg(feature = "cli")]
pub(crate) use event::question;
pub(crate) use shared::{Start, Taken};
