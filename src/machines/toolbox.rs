//! The tools of a resolved environment, ready to be used: schemas compiled, gates assigned.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::capabilities::{Capabilities, HOST};
use super::schema::Schema;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::environment::{Environment, GateOf, HookPoint};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::json::Json;
use crate::vocabulary::spec::{Assessment, Spec, ToolSpec};

/// The argument that the engine adds to evidence tools when assessment is required (SPEC 7.4).
pub const ASSESSMENT_FIELD: &str = "previous_observation";

/// Everything that was resolved.
#[derive(Debug, Clone)]
pub struct Toolbox {
    environment: Environment,
    tools: BTreeMap<Arc<str>, Arc<Tool>>,
    release_gates: Vec<String>,
    capabilities: Capabilities,
    digest: Digest,
}

/// One tool, ready to be used.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: Arc<str>,
    /// Its declaration.
    pub spec: ToolSpec,
    /// What the model is told its arguments are.
    pub advertised: Json,
    /// The gates before it, in order.
    pub gates: Vec<String>,
    pub(crate) schema: Schema,
}

impl Toolbox {
    /// Prepares an environment.
    pub(crate) fn new(spec: &Spec, environment: Environment) -> Result<Self, ResolutionError> {
        refuse_what_would_be_dropped(spec, &environment)?;
        let capabilities = Capabilities::new(&environment)?;
        let mut tools = BTreeMap::new();
        for declared in &environment.tools {
            let tool = Arc::new(Tool::new(spec, &environment, declared)?);
            if tools.insert(Arc::clone(&tool.name), tool).is_some() {
                let id = declared.name.clone();
                return Err(ResolutionError::DuplicateTool {
                    id,
                    first: "environment".into(),
                    second: "environment".into(),
                });
            }
        }
        let of_release = |gate: &&crate::vocabulary::environment::Gate| gate.of == GateOf::Release;
        let release_gates = environment.gates.iter().filter(of_release).map(|gate| gate.id.clone()).collect();
        let bytes = serde_json::to_vec(&environment).unwrap_or_default();
        let digest = Digest::of("portcullis.environment.1", &[&bytes]);
        Ok(Self { environment, tools, release_gates, capabilities, digest })
    }

    /// The tool of that name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Every tool, in the environment's order.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.environment.tools.iter().filter_map(|declared| self.tools.get(declared.name.as_str()))
    }

    /// The gates before a release, in order.
    #[must_use]
    pub fn release_gates(&self) -> &[String] {
        &self.release_gates
    }

    /// What each plugin may do.
    #[must_use]
    pub const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The plugins that have a hook at that point, in order.
    pub fn hooks(&self, point: HookPoint) -> impl Iterator<Item = &str> {
        self.environment.hooks.iter().filter(move |hook| hook.point == point).map(|hook| hook.plugin.as_str())
    }

    /// Of the whole environment.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// What was resolved.
    #[must_use]
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }
}

impl Tool {
    /// The gate in that place, from 0; empty when there is none.
    pub(crate) fn gate(&self, place: u32) -> String {
        self.gates.get(place as usize).cloned().unwrap_or_default()
    }

    fn new(spec: &Spec, environment: &Environment, declared: &ToolSpec) -> Result<Self, ResolutionError> {
        let invalid = |message| ResolutionError::InvalidTool { id: declared.name.clone(), message };
        declared.check(spec).map_err(invalid)?;
        let schema = Schema::compile(&declared.parameters).map_err(invalid)?;
        let assessed = declared.evidence && spec.collection.assessment == Assessment::Required;
        let advertised =
            if assessed { with_assessment(&declared.parameters) } else { Some(declared.parameters.clone()) };
        let advertised =
            advertised.ok_or_else(|| invalid(format!("the argument `{ASSESSMENT_FIELD}` belongs to the engine")))?;
        let stands_before = |gate: &&crate::vocabulary::environment::Gate| {
            gate.of == GateOf::Tool && (gate.tools.is_empty() || gate.tools.contains(&declared.name))
        };
        Ok(Self {
            name: Arc::from(declared.name.as_str()),
            spec: declared.clone(),
            advertised,
            gates: environment.gates.iter().filter(stands_before).map(|gate| gate.id.clone()).collect(),
            schema,
        })
    }
}

/// Nothing is dropped silently to make a run start (SPEC 12): what this engine could not honour is refused.
fn refuse_what_would_be_dropped(spec: &Spec, environment: &Environment) -> Result<(), ResolutionError> {
    if let Some(plugin) = spec.plugins.iter().find(|plugin| !environment.plugins.contains(&plugin.id)) {
        let message = "the spec asks for it, and the environment does not have it".to_owned();
        return Err(ResolutionError::Config { plugin: plugin.id.clone(), message });
    }
    for gate in &environment.gates {
        let unknown = |name: &&String| !environment.tools.iter().any(|tool| tool.name == **name);
        if let Some(tool) = gate.tools.iter().find(unknown) {
            let message = format!("the gate {:?} stands before {tool:?}, and there is no such tool", gate.id);
            return Err(ResolutionError::Config { plugin: HOST.to_owned(), message });
        }
    }
    Ok(())
}

/// The schema with the engine's own argument in it; `None` when the tool already owns the name.
fn with_assessment(schema: &Json) -> Option<Json> {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    let mut properties = match fields.get("properties") {
        Some(properties) => properties.as_object().cloned().unwrap_or_default(),
        None => BTreeMap::new(),
    };
    if properties.contains_key(ASSESSMENT_FIELD) {
        return None;
    }
    let text = |word: &str| Json::from(word);
    let words = ["informative", "uninformative", "contradictory"].map(text).to_vec();
    let assessment = Json::Object([("enum".to_owned(), Json::Array(words))].into());
    let note = Json::Object([("type".to_owned(), text("string"))].into());
    let own = Json::Object(
        [
            ("type".to_owned(), text("object")),
            (
                "properties".to_owned(),
                Json::Object([("assessment".to_owned(), assessment), ("note".to_owned(), note)].into()),
            ),
            ("required".to_owned(), Json::Array(vec![text("assessment")])),
            ("additionalProperties".to_owned(), Json::Bool(false)),
        ]
        .into(),
    );
    properties.insert(ASSESSMENT_FIELD.to_owned(), own);
    fields.insert("properties".to_owned(), Json::Object(properties));
    Some(Json::Object(fields))
}
