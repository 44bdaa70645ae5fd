//! What no answer may say, and what each must have.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{read, wrong};
use crate::composition::{PluginConfigError, PluginManifest};
use crate::machines::release::Citation;
use crate::runtime::plugins::{Contributions, Plugin};
use crate::runtime::ports::{GateAbout, GateFailure, GateQuestion};
use crate::vocabulary::bound::{Allowance, Bound};
use crate::vocabulary::input::GateAnswer;
use crate::vocabulary::json::{Json, Pointer};

const ID: &str = "answer-policy";

/// The largest compiled pattern, in bytes; what it caches while it matches may take as much again.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The form of a configuration.
const CONFIG: &str = r#"{
    "type": "object",
    "additionalProperties": false,
    "properties": {
        "forbidden": {"type": "array", "maxItems": 256, "items": {"type": "string", "minLength": 1, "maxLength": 4096}},
        "required": {"type": "array", "maxItems": 256, "items": {"type": "string", "maxLength": 4096}},
        "max_bytes": {"type": "integer", "minimum": 1}
    }
}"#;

/// A gate before the release, `answer-policy`:
///
/// ```json
/// {"forbidden": ["(?i)password", "\\b\\d{16}\\b"], "required": ["/service", "/owner"], "max_bytes": 4096}
/// ```
///
/// A pattern of `forbidden` (a regular expression of the `regex` crate, which takes time in proportion to the
/// text) may match nothing that a reader would be shown: not the conclusion, no quote, no cited fact, and in
/// `data` no text, number or key. Each of them is matched by itself. What a pointer of `required` names must stand
/// in `data` and not be `null`. Conclusion and `data` (as JSON text) may have `max_bytes` together.
///
/// A draft that breaks a rule ends the run in row 20. The reason names the rule by its place, and never what was
/// found.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerPolicy;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    forbidden: Vec<String>,
    #[serde(default)]
    required: Vec<String>,
    max_bytes: Option<u64>,
}

struct Policy {
    forbidden: Vec<Regex>,
    required: Vec<Pointer>,
    max_bytes: Option<u64>,
}

impl Policy {
    fn new(config: Config) -> Result<Self, PluginConfigError> {
        let forbidden = config.forbidden.iter().enumerate().map(|(index, pattern)| compiled(index, pattern));
        let required = config.required.iter().enumerate().map(|(index, pointer)| {
            Pointer::parse(pointer).map_err(|error| wrong(ID, "required", index, error.to_string()))
        });
        Ok(Self {
            forbidden: forbidden.collect::<Result<_, _>>()?,
            required: required.collect::<Result<_, _>>()?,
            max_bytes: config.max_bytes,
        })
    }

    /// The first rule that a draft breaks, by its place.
    fn broken(&self, statement: &str, data: Option<&Json>, citations: &[Citation]) -> Option<String> {
        let mut shown = vec![statement.to_owned()];
        for citation in citations {
            shown.push(citation.fact.statement.clone());
            shown.extend(citation.quote.clone());
        }
        if let Some(data) = data {
            collect(data, &mut shown);
        }
        let says = |pattern: &Regex| shown.iter().any(|text| pattern.is_match(text));
        if let Some(index) = self.forbidden.iter().position(says) {
            return Some(format!("the answer matches forbidden/{index}"));
        }
        let stands =
            |pointer: &Pointer| data.and_then(|data| data.pointer(pointer)).is_some_and(|value| *value != Json::Null);
        if let Some(index) = self.required.iter().position(|pointer| !stands(pointer)) {
            return Some(format!("the answer's data lacks required/{index}"));
        }
        let bytes = (statement.len() + data.map_or(0, |data| data.to_text().len())) as u64;
        let limit = self.max_bytes.filter(|limit| bytes > *limit)?;
        Some(format!("the answer has {bytes} bytes, over max_bytes {limit}"))
    }
}

fn compiled(index: usize, pattern: &str) -> Result<Regex, PluginConfigError> {
    let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build();
    compiled.map_err(|error| wrong(ID, "forbidden", index, format!("no pattern that can be used: {error}")))
}

/// Every text, number and key of a value.
fn collect(value: &Json, into: &mut Vec<String>) {
    match value {
        Json::String(text) => into.push(text.clone()),
        Json::Integer(_) | Json::Double(_) => into.push(value.to_text()),
        Json::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Json::Object(members) => {
            for (key, member) in members {
                into.push(key.clone());
                collect(member, into);
            }
        }
        Json::Null | Json::Bool(_) => {}
    }
}

impl Plugin for AnswerPolicy {
    fn manifest(&self) -> PluginManifest {
        let bound = Bound { release_gates: Allowance::ids([ID]), ..Bound::default() };
        PluginManifest { config: Json::parse(CONFIG).ok(), ..PluginManifest::new(ID, bound) }
    }

    fn activate(&self, config: &Json) -> Result<Contributions, PluginConfigError> {
        let policy = Arc::new(Policy::new(read(ID, config)?)?);
        Ok(Contributions::new().release_gate(ID, move |question: GateQuestion| {
            let policy = Arc::clone(&policy);
            async move {
                match &question.about {
                    GateAbout::Release { statement, data, citations } => {
                        let broken = policy.broken(statement, data.as_ref(), citations);
                        Ok(broken.map_or(GateAnswer::Allow, |rule| GateAnswer::Block { reason: Some(rule) }))
                    }
                    GateAbout::Tool { .. } | GateAbout::Nested { .. } => {
                        Err(GateFailure("it stands before releases alone".to_owned()))
                    }
                }
            }
        }))
    }
}
