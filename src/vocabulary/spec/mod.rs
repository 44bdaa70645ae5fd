//! The spec of a run: everything it may do, in record 0 (SPEC 5).

mod budget;
mod check;
mod limits;
mod model;
mod settings;
mod tool;

use std::collections::BTreeMap;

use super::fact::PriorFact;
use super::json::{Json, present};
use super::wire::{object, words};

pub use budget::{Budgets, Price};
pub use check::SpecFault;
pub use limits::Limits;
pub use model::{Api, ModelSpec, Retry, SecretRef, ToolCalling};
pub use settings::{Settings, SettingsFault};
pub use tool::{Projection, ToolSource, ToolSpec, Transport};

object! {
    /// What a run is asked to do and what it may spend on it. Absent fields take their defaults; record 0 holds
    /// the whole spec with the defaults written out.
    pub struct Spec {
        /// The system text. Default: none.
        #[serde(default)]
        pub instructions: String,
        /// Messages of earlier runs of the thread, oldest first. Default: none.
        #[serde(default)]
        pub prior_messages: Vec<PriorMessage>,
        /// Thread state of earlier runs, by key. Default: none.
        #[serde(default)]
        pub prior_state: BTreeMap<String, Json>,
        /// Facts of earlier runs of the thread, oldest first: they are numbered before the run's own, and may be
        /// cited. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub prior_facts: Vec<PriorFact>,
        /// What the user asks for.
        pub task: String,
        /// The model that is asked first.
        pub model: ModelSpec,
        /// Models that are tried after it, in order. Default: none.
        #[serde(default)]
        pub fallbacks: Vec<ModelSpec>,
        /// Tools that the spec itself declares. Default: none.
        #[serde(default)]
        pub tools: Vec<ToolSpec>,
        /// Servers whose tools join at resolution. Default: none.
        #[serde(default)]
        pub tool_sources: Vec<ToolSource>,
        /// What may be spent.
        #[serde(default)]
        pub budgets: Budgets,
        /// When the run times out, in milliseconds from its start; `null` for never. Default: 600,000.
        #[serde(default = "defaults::deadline_ms")]
        pub deadline_ms: Option<u64>,
        /// Whether the deadline stands still while the run awaits a person. Default: no.
        #[serde(default)]
        pub deadline_pauses_while_awaiting: bool,
        /// When failed model requests are sent again.
        #[serde(default)]
        pub retry: Retry,
        /// When collecting evidence stops.
        #[serde(default)]
        pub collection: CollectionSpec,
        /// What an answer must look like.
        #[serde(default)]
        pub draft: DraftSpec,
        /// What an answer must pass before it is released.
        #[serde(default)]
        pub release: ReleaseSpec,
        /// Plugins that take part, in order. Default: none.
        #[serde(default)]
        pub plugins: Vec<PluginSpec>,
        /// Sizes that nothing may exceed.
        #[serde(default)]
        pub limits: Limits,
    }
}

mod defaults {
    #[allow(clippy::unnecessary_wraps)]
    pub(super) const fn deadline_ms() -> Option<u64> {
        Some(600_000)
    }
}

impl Spec {
    /// The model by whose price a judgement is charged.
    #[must_use]
    pub fn judge_name(&self) -> &str {
        &self.release.judge_model.as_ref().unwrap_or(&self.model).name
    }

    /// A spec with every default.
    #[must_use]
    pub fn new(task: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            instructions: String::new(),
            prior_messages: Vec::new(),
            prior_state: BTreeMap::new(),
            prior_facts: Vec::new(),
            task: task.into(),
            model: ModelSpec::new(model),
            fallbacks: Vec::new(),
            tools: Vec::new(),
            tool_sources: Vec::new(),
            budgets: Budgets::default(),
            deadline_ms: defaults::deadline_ms(),
            deadline_pauses_while_awaiting: false,
            retry: Retry::default(),
            collection: CollectionSpec::default(),
            draft: DraftSpec::default(),
            release: ReleaseSpec::default(),
            plugins: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// The model in place `index`: 0 is `model`, then the fallbacks.
    #[must_use]
    pub fn model_at(&self, index: u32) -> Option<&ModelSpec> {
        match index.checked_sub(1) {
            None => Some(&self.model),
            Some(fallback) => self.fallbacks.get(fallback as usize),
        }
    }
}

object! {
    /// A message of an earlier run of the same thread.
    pub struct PriorMessage {
        /// Who wrote it.
        pub role: PriorRole,
        /// What was written.
        pub text: String,
    }
}

words! {
    /// Who wrote a prior message.
    pub enum PriorRole {
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// A tool: what the model saw of it.
        Tool = "tool",
    }
}

object! {
    default
    /// When collecting evidence stops (SPEC 7.4, 8).
    pub struct CollectionSpec {
        /// Successful evidence observations in a row without a new fact that saturate collecting: 1 to 1,000,
        /// or `null` for never. Default: 2.
        pub saturation_after: Option<u32>,
        /// Whether later evidence calls must assess the previous observation. Default: off.
        pub assessment: Assessment,
        /// Responses in a row with a protocol violation that end the loop: 1 to 1,000. Default: 3.
        pub violation_limit: u32,
    }
}

impl Default for CollectionSpec {
    fn default() -> Self {
        Self { saturation_after: Some(2), assessment: Assessment::Off, violation_limit: 3 }
    }
}

words! {
    /// Whether evidence calls carry `previous_observation` (SPEC 7.4).
    pub enum Assessment {
        /// They need not.
        Off = "off",
        /// They must, once an evidence observation was delivered.
        Required = "required",
    }
}

object! {
    default
    /// What an answer must look like (SPEC 10).
    pub struct DraftSpec {
        /// Its form. Default: `json`.
        pub format: DraftFormat,
        /// How often a bad draft is asked for again: 0 to 100. Default: 0.
        pub repairs: u32,
        /// The JSON Schema of `data`. Default: none, then `data` may be anything.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        pub data_schema: Option<Json>,
    }
}

impl Default for DraftSpec {
    fn default() -> Self {
        Self { format: DraftFormat::Json, repairs: 0, data_schema: None }
    }
}

words! {
    /// The form of a draft.
    pub enum DraftFormat {
        /// `{"conclusion", "citations", "quotes"?, "data"?}`.
        Json = "json",
        /// Any text that is not empty, as a conclusion without citations: never a success (SPEC 10).
        Text = "text",
    }
}

object! {
    default
    /// What an answer must pass before it is released (SPEC 11).
    pub struct ReleaseSpec {
        /// How often a conclusion whose evidence fails is asked for again: 0 to 100. Default: 1.
        pub evidence_repairs: u32,
        /// Whether a judge must support the conclusion. Default: on. Off is said in the release.
        pub judge: JudgePolicy,
        /// The model that judges, where a model does. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub judge_model: Option<ModelSpec>,
    }
}

impl Default for ReleaseSpec {
    fn default() -> Self {
        Self { evidence_repairs: 1, judge: JudgePolicy::On, judge_model: None }
    }
}

words! {
    /// Whether semantics are judged.
    pub enum JudgePolicy {
        /// They are.
        On = "on",
        /// They are not, and the release says so.
        Off = "off",
    }
}

object! {
    /// A plugin and its configuration.
    pub struct PluginSpec {
        /// The plugin's id.
        pub id: String,
        /// What it is configured with. Default: `null`.
        #[serde(default = "nothing")]
        pub config: Json,
    }
}

const fn nothing() -> Json {
    Json::Null
}
