//! What a spec must keep before a run may begin (SPEC 5).

mod secrets;
mod variables;

use super::{Spec, ToolSpec, Transport};
use crate::vocabulary::json::Json;
use secrets::{refuse_secret_arguments, refuse_secrets, refuse_secrets_in_address};
use variables::{check_references, check_set};

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
        for (key, value) in &self.prior_state {
            refuse_secrets(&Json::Object([(key.clone(), value.clone())].into()), "prior_state")?;
        }
        let state: usize = self.prior_state.iter().map(|(key, value)| key.len() + value.to_text().len()).sum();
        if state as u64 > self.limits.state_bytes_max {
            return Err(fault("prior_state", format!("{state} bytes, over limits.state_bytes_max")));
        }
        self.check_prior_facts()?;
        self.check_sources()?;
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
            ("limits.state_bytes_max", self.limits.state_bytes_max, 0, 1 << 30),
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
        let fallbacks = self.fallbacks.iter().enumerate().map(|(index, model)| (model, format!("fallbacks[{index}]")));
        let judge = self.release.judge_model.iter().map(|model| (model, "release.judge_model".to_owned()));
        for (model, place) in std::iter::once((&self.model, "model".to_owned())).chain(fallbacks).chain(judge) {
            if model.name.trim().is_empty() {
                return Err(fault(format!("{place}.name"), "is empty"));
            }
            refuse_secrets(&model.parameters, &format!("{place}.parameters"))?;
            refuse_secrets_in_address(model.base_url.as_deref().unwrap_or_default(), &format!("{place}.base_url"))?;
            check_references(model.key.iter().map(|key| ("key", key)), &place)?;
            if !(1..=3_600_000).contains(&model.timeout_ms) {
                return Err(fault(
                    format!("{place}.timeout_ms"),
                    format!("{} is outside 1 to 3600000", model.timeout_ms),
                ));
            }
        }
        Ok(())
    }

    fn check_sources(&self) -> Result<(), SpecFault> {
        for (index, source) in self.tool_sources.iter().enumerate() {
            let place = format!("tool_sources[{index}]");
            match &source.transport {
                Transport::Stdio { args, env, .. } => {
                    refuse_secret_arguments(args, &format!("{place}.transport.args"))?;
                    let place = format!("{place}.transport.env");
                    env.keys().try_for_each(|name| check_set(name, &place))?;
                    check_references(env.iter().map(|(name, value)| (name.as_str(), value)), &place)?;
                }
                Transport::Http { url, headers } => {
                    refuse_secrets_in_address(url, &format!("{place}.transport.url"))?;
                    let headers = headers.iter().map(|(name, value)| (name.as_str(), value));
                    check_references(headers, &format!("{place}.transport.headers"))?;
                }
            }
            for (tool, settings) in &source.tools {
                refuse_secrets(settings, &format!("{place}.tools.{tool}"))?;
            }
        }
        Ok(())
    }

    fn check_prior_facts(&self) -> Result<(), SpecFault> {
        for (index, fact) in self.prior_facts.iter().enumerate() {
            let place = format!("prior_facts[{index}]");
            let bytes = fact.statement.len() as u64;
            if fact.statement.trim().is_empty() {
                return Err(fault(format!("{place}.statement"), "is empty"));
            }
            if bytes > self.limits.statement_bytes_max {
                let reason = format!("{bytes} bytes, over limits.statement_bytes_max");
                return Err(fault(format!("{place}.statement"), reason));
            }
            if !ToolSpec::is_name(&fact.tool) {
                return Err(fault(format!("{place}.tool"), "is no tool's name: 1 to 128 of [A-Za-z0-9_.-]"));
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::spec::{ModelSpec, ToolSource};

    fn refused(spec: &Spec) -> String {
        spec.check().map_err(|fault| fault.field).unwrap_err()
    }

    fn with_source(transport: &str) -> Spec {
        let source = format!(r#"{{"name":"s","transport":{transport}}}"#);
        let source: ToolSource = serde_json::from_str(&source).unwrap();
        Spec { tool_sources: vec![source], ..Spec::new("t", "m") }
    }

    #[test]
    fn a_reference_that_is_no_variable_is_refused_wherever_it_stands() {
        let key = Some(crate::vocabulary::spec::SecretRef { env: "A B".to_owned() });
        let model = ModelSpec { key, ..ModelSpec::new("m") };
        assert_eq!(refused(&Spec { model: model.clone(), ..Spec::new("t", "m") }), "model.key.env");
        assert_eq!(refused(&Spec { fallbacks: vec![model], ..Spec::new("t", "m") }), "fallbacks[0].key.env");
        for (transport, field) in [
            (r#"{"type":"stdio","command":"c","env":{"A":{"env":"B=C"}}}"#, "env.A.env"),
            (r#"{"type":"stdio","command":"c","env":{"A-B":{"env":"B"}}}"#, "env.A-B"),
            (r#"{"type":"stdio","command":"c","env":{"PATH":{"env":"PWD"}}}"#, "env.PATH"),
            (r#"{"type":"http","url":"https://h","headers":{"x-key":{"env":""}}}"#, "headers.x-key.env"),
        ] {
            assert_eq!(refused(&with_source(transport)), format!("tool_sources[0].transport.{field}"));
        }
        assert_eq!(with_source(r#"{"type":"stdio","command":"c","env":{"A":{"env":"PATH"}}}"#).check(), Ok(()));
    }

    #[test]
    fn an_address_with_a_secret_is_refused_wherever_it_stands() {
        for url in ["https://h/mcp?api_key=x", "http:///u:p@h"] {
            let transport = format!(r#"{{"type":"http","url":"{url}"}}"#);
            assert_eq!(refused(&with_source(&transport)), "tool_sources[0].transport.url");
            let model = ModelSpec { base_url: Some(url.to_owned()), ..ModelSpec::new("m") };
            assert_eq!(refused(&Spec { model, ..Spec::new("t", "m") }), "model.base_url");
        }
    }
}
