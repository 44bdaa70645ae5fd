//! Plugins: code of the embedder that takes part in a run under a bound that it has published (SPEC 12).
//!
//! A [`Plugin`] is registered once, with [`Builder::plugin`](crate::runtime::Builder::plugin). A run's spec says
//! which plugins take part, and with what configuration. For each run, and for each run again that is recovered,
//! taken over or woken, in this process or another, the plugin is activated with the configuration that record 0
//! holds; what it contributes then is a declaration and a handler in one.
//!
//! What a handler answers is an input and is in the history, so replaying a run asks no plugin. A handler that
//! fails, panics or is not there any more fails closed: a hook or an action ends the run as `internal`, a gate
//! blocks, a tool's call gets an error.

mod company;
mod contributions;
mod question;

pub use contributions::Contributions;
pub use question::{ActionQuestion, HookAbout, HookAnswer, HookFailure, HookQuestion};

pub(crate) use company::{Company, Registered};
pub(crate) use contributions::Handler;

use crate::composition::{PluginConfigError, PluginManifest};
use crate::vocabulary::json::Json;

/// A plugin.
pub trait Plugin: Send + Sync + 'static {
    /// Who it is, which plugins it requires, what its configuration looks like, and its bound. Asked once, when
    /// it is registered.
    fn manifest(&self) -> PluginManifest;

    /// What it contributes to a run that is configured like this. It decides from the configuration alone, for a
    /// run that is recovered must find the handlers that it had: what changes while the run goes on belongs into
    /// the shared state.
    ///
    /// # Errors
    /// When it cannot work with that configuration. The run ends in row 18; a panic is such an error too.
    fn activate(&self, config: &Json) -> Result<Contributions, PluginConfigError>;
}
