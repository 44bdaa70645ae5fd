//! A runtime from its ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chance::Chance;
use super::clock::{Clock, SystemClock};
use super::driver::Equipment;
use super::execution::{Error, Trouble};
use super::plugins::{Company, Plugin, Registered};
use super::ports::{Advisers, AnyGates, AnyJudge, AnyModel, AnyTools, Gates, Judge, Model, Ports, Tools, Toolset};
use super::shared::Runtime;
use super::store::Store;
use super::trace::Traces;
use super::witness::Witness;
use super::world::World;

/// How many runs are driven at once, unless the builder says otherwise.
const DRIVEN_MAX: usize = 16_384;

/// Takes the ports of a [`Runtime`]. A model and a store are needed. Without tools, a judge or gates, a run that
/// asks for one gets its failure; without a clock, the machine's is used.
#[derive(Default)]
pub struct Builder {
    model: Option<Arc<dyn AnyModel>>,
    tools: Option<Arc<dyn AnyTools>>,
    judge: Option<Arc<dyn AnyJudge>>,
    gates: Option<Arc<dyn AnyGates>>,
    plugins: BTreeMap<String, Registered>,
    /// A plugin id that two plugins have.
    twice: Option<String>,
    store: Option<Arc<dyn Store>>,
    clock: Option<Arc<dyn Clock>>,
    driven_max: Option<usize>,
    traces: Traces,
    chance: Chance,
}

impl Builder {
    /// What models are asked through.
    #[must_use]
    pub fn model(self, model: impl Model) -> Self {
        Self { model: Some(Arc::new(model)), ..self }
    }

    /// What tools are found and entered through.
    #[must_use]
    pub fn tools(self, tools: impl Tools) -> Self {
        Self { tools: Some(Arc::new(tools)), ..self }
    }

    /// Who judges conclusions.
    #[must_use]
    pub fn judge(self, judge: impl Judge) -> Self {
        Self { judge: Some(Arc::new(judge)), ..self }
    }

    /// Who answers for gates.
    #[must_use]
    pub fn gates(self, gates: impl Gates) -> Self {
        Self { gates: Some(Arc::new(gates)), ..self }
    }

    /// A plugin that runs may ask for: those whose spec names it. Registering it gives it to no run.
    #[must_use]
    pub fn plugin(mut self, plugin: impl Plugin) -> Self {
        let manifest = plugin.manifest();
        let id = manifest.id.clone();
        if self.plugins.insert(id.clone(), Registered { manifest, plugin: Box::new(plugin) }).is_some() {
            self.twice.get_or_insert(id);
        }
        self
    }

    /// Where records become durable.
    #[must_use]
    pub fn store(self, store: impl Store) -> Self {
        Self { store: Some(Arc::new(store)), ..self }
    }

    /// Where time comes from.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// How many runs are driven at once: 1 or more. A further one waits in [`Runtime::start`] until another has
    /// ended or waits for a person. Default: 16,384.
    #[must_use]
    pub fn driven_max(self, runs: usize) -> Self {
        Self { driven_max: Some(runs.max(1)), ..self }
    }

    /// What spans show. Default: no content.
    #[must_use]
    pub fn traces(self, traces: Traces) -> Self {
        Self { traces, ..self }
    }

    /// Leaves nothing to chance: the nonce of a run follows from `seed` and its id, and a history is replayed where
    /// it is asked for instead of on a thread of its own. On a runtime of one thread, with a clock and ports that
    /// answer alike, the same calls of [`Runtime::start_as`] then lead to the same bytes. For simulations only:
    /// whoever knows the seed knows every operation id, and a long replay holds all runs up.
    #[must_use]
    pub fn reproducible(self, seed: u64) -> Self {
        Self { chance: Chance::Seeded(seed), ..self }
    }

    /// Puts them together.
    ///
    /// # Errors
    /// [`Trouble::Unequipped`] without a model or a store, [`Trouble::PluginTwice`] with two plugins of one id.
    pub fn build(self) -> Result<Runtime, Error> {
        let model = self.model.ok_or(Trouble::Unequipped("a model"))?;
        let store = self.store.ok_or(Trouble::Unequipped("a store"))?;
        let tools = self.tools.unwrap_or_else(|| Arc::new(Toolset::new()));
        if let Some(id) = self.twice {
            return Err(Trouble::PluginTwice(id).into());
        }
        let (judge, gates, traces) = (self.judge, self.gates, self.traces);
        let plugins = Company::new(self.plugins);
        let world = Arc::new(Ports { model, tools, judge, advisers: Advisers { gates, plugins, traces }, traces });
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let equipment = Equipment { store, clock, world, witness: None, traces, takes_over: false };
        Ok(Runtime::new(equipment, self.chance, self.driven_max.unwrap_or(DRIVEN_MAX), true))
    }
}

impl Runtime {
    /// A runtime whose world is a script. Nobody's timers ring here: a run that waits for a person waits.
    pub(crate) fn scripted(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        world: Arc<dyn World>,
        witness: Option<Arc<dyn Witness>>,
        takes_over: bool,
    ) -> Self {
        let traces = Traces::Outline;
        let equipment = Equipment { store, clock, world, witness, traces, takes_over };
        Self::new(equipment, Chance::Free, DRIVEN_MAX, false)
    }
}
