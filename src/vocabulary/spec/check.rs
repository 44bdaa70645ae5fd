//! What a spec must keep before a run may begin (SPEC 5).

use super::{Spec, ToolSpec};
use crate::vocabulary::json::Json;

/// A spec that may not begin a run: the field, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.{field}: {reason}")]
pub struct SpecFault {
    /// The field's path.
    pub field: String,
    /// What is wrong, and the way out.
    pub reason: String,
}

fn fault(field: impl Into<String>, reason: impl Into<String>) -> SpecFault {
    SpecFault { field: field.into(), reason: reason.into() }
}

impl Spec {
    /// Checks ranges, names and secrets.
    ///
    /// # Errors
    /// The first field that is out of its range, clashes with another or holds a secret by value.
    pub fn check(&self) -> Result<(), SpecFault> {
        if self.budgets.model_calls.is_none() && self.deadline_ms.is_none() {
            return Err(fault(
                "budgets.model_calls",
                "unlimited, and so is deadline_ms: set one of them, or the run may never end",
            ));
        }
        self.check_ranges()?;
        self.check_models()?;
        for (index, tool) in self.tools.iter().enumerate() {
            tool.check(self).map_err(|reason| fault(format!("tools[{index}]"), reason))?;
        }
        self.check_tool_names()?;
        if let Some(schema) = &self.draft.data_schema {
            check_schema(schema, self).map_err(|reason| fault("draft.data_schema", reason))?;
        }
        for plugin in &self.plugins {
            refuse_secrets(&plugin.config, &format!("plugins.{}.config", plugin.id))?;
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), SpecFault> {
        let hour_ms = 3_600_000;
        let ranges = [
            ("collection.violation_limit", u64::from(self.collection.violation_limit), 1, 1_000),
            ("collection.saturation_after", u64::from(self.collection.saturation_after.unwrap_or(1)), 1, 1_000),
            ("draft.repairs", u64::from(self.draft.repairs), 0, 100),
            ("release.evidence_repairs", u64::from(self.release.evidence_repairs), 0, 100),
            ("retry.retries_max", u64::from(self.retry.retries_max), 0, 100),
            ("retry.base_ms", self.retry.base_ms, 1, hour_ms),
            ("retry.overloaded_base_ms", self.retry.overloaded_base_ms, 1, hour_ms),
            ("retry.delay_ms_max", self.retry.delay_ms_max, 1, hour_ms),
            ("retry.retry_after_ms_max", self.retry.retry_after_ms_max, 0, hour_ms),
            ("limits.calls_in_response_max", u64::from(self.limits.calls_in_response_max), 1, 1_024),
            ("limits.facts_in_result_max", u64::from(self.limits.facts_in_result_max), 1, 65_536),
            ("limits.line_bytes_max", self.limits.line_bytes_max, 4_096, 1 << 30),
            ("limits.schema_bytes_max", self.limits.schema_bytes_max, 2, 16 << 20),
            ("fallbacks", self.fallbacks.len() as u64, 0, 64),
            ("deadline_ms", self.deadline_ms.unwrap_or(1), 1, 1 << 53),
        ];
        for (field, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(fault(field, format!("{value} is outside {low} to {high}")));
            }
        }
        Ok(())
    }

    fn check_models(&self) -> Result<(), SpecFault> {
        let places = std::iter::once("model".to_owned()).chain((0..).map(|index| format!("fallbacks[{index}]")));
        for (model, place) in std::iter::once(&self.model).chain(&self.fallbacks).zip(places) {
            if model.name.trim().is_empty() {
                return Err(fault(format!("{place}.name"), "is empty"));
            }
            refuse_secrets(&model.parameters, &format!("{place}.parameters"))?;
        }
        Ok(())
    }

    fn check_tool_names(&self) -> Result<(), SpecFault> {
        let mut names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair.first() == pair.last()) {
            Some(pair) => Err(fault("tools", format!("{:?} is declared twice", pair.first().copied().unwrap_or("")))),
            None => Ok(()),
        }
    }
}

impl ToolSpec {
    /// Whether a tool may have that name: 1 to 128 of `[A-Za-z0-9_.-]`.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        (1..=128).contains(&name.len()) && name.bytes().all(allowed)
    }

    /// Checks one declaration, whoever made it. The error is the reason.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), String> {
        if !Self::is_name(&self.name) {
            return Err(format!("the name {:?} is not 1 to 128 of [A-Za-z0-9_.-]", self.name));
        }
        if !(1..=100).contains(&self.attempts_max) {
            return Err(format!("attempts_max {} is outside 1 to 100", self.attempts_max));
        }
        if self.result_bytes_max > spec.limits.line_bytes_max {
            return Err(format!("result_bytes_max {} is over limits.line_bytes_max", self.result_bytes_max));
        }
        check_schema(&self.parameters, spec)
    }
}

fn check_schema(schema: &Json, spec: &Spec) -> Result<(), String> {
    let bytes = schema.to_text().len() as u64;
    if bytes > spec.limits.schema_bytes_max {
        return Err(format!("the schema has {bytes} bytes, over limits.schema_bytes_max"));
    }
    match schema {
        Json::Object(_) | Json::Bool(_) => Ok(()),
        Json::Null | Json::Integer(_) | Json::Double(_) | Json::String(_) | Json::Array(_) => {
            Err("a JSON Schema is an object or a boolean".to_owned())
        }
    }
}

/// Free-form JSON must not carry a secret by value: a name that says secret needs a reference (SPEC 5).
fn refuse_secrets(json: &Json, place: &str) -> Result<(), SpecFault> {
    const NAMES: [&str; 7] =
        ["apikey", "authorization", "accesstoken", "bearertoken", "password", "privatekey", "secret"];
    match json {
        Json::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
            let plain = plain.to_ascii_lowercase();
            let inside = format!("{place}.{name}");
            if matches!(value, Json::String(_)) && NAMES.iter().any(|secret| plain.ends_with(secret)) {
                return Err(fault(inside, "looks like a secret by value: write {\"env\":\"NAME\"} instead"));
            }
            refuse_secrets(value, &inside)
        }),
        Json::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| refuse_secrets(item, &format!("{place}[{index}]")))
        }
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => Ok(()),
    }
}
