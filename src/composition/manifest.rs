//! The manifest: what a plugin declares of itself before any of its code is asked.

use super::error::PluginConfigError;
use crate::machines::schema::Schema;
use crate::vocabulary::bound::Bound;
use crate::vocabulary::json::Json;

/// What a plugin is called, what it needs and what it may do, at most (SPEC 12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginManifest {
    /// Its id: the name by which the spec asks for it, and others require it.
    pub id: String,
    /// The ids of plugins that must take part too, and come before it.
    pub requires: Vec<String>,
    /// The JSON Schema (2020-12) of its configuration. `None`: it takes no configuration, which is `null`.
    pub config: Option<Json>,
    /// What it may contribute, and what its hooks and tools may use.
    pub bound: Bound,
}

impl PluginManifest {
    /// A plugin that requires nothing and takes no configuration.
    #[must_use]
    pub fn new(id: impl Into<String>, bound: Bound) -> Self {
        Self { id: id.into(), requires: Vec::new(), config: None, bound }
    }

    /// Checks a configuration against the manifest's schema.
    ///
    /// # Errors
    /// When the configuration breaks the schema, with the place where it does; when the schema itself cannot be
    /// used; and when there is a configuration and the plugin takes none.
    pub fn check_config(&self, config: &Json) -> Result<(), PluginConfigError> {
        let Some(schema) = &self.config else {
            if *config == Json::Null {
                return Ok(());
            }
            let kind = config.kind_name();
            let reason = format!("it takes no configuration, and was given one (of type {kind}): leave `config` out");
            return Err(PluginConfigError::new(&self.id, reason));
        };
        let schema = Schema::compile(schema)
            .map_err(|reason| PluginConfigError::new(&self.id, format!("in its manifest, {reason}")))?;
        schema.check(config).map_err(|breach| {
            let reason = format!("the value breaks `{}` of the plugin's schema", breach.keyword);
            PluginConfigError { pointer: breach.pointer.parse().ok(), ..PluginConfigError::new(&self.id, reason) }
        })
    }
}
