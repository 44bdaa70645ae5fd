//! Settings that are laid over a spec: the same run under other rules.

use std::collections::BTreeMap;

use super::Spec;
use crate::vocabulary::json::Json;

/// The parts of a spec that are rules. The rest is the question itself: task, messages, model, tools.
const RULES: [&str; 8] =
    ["budgets", "collection", "deadline_ms", "deadline_pauses_while_awaiting", "draft", "limits", "release", "retry"];

/// Rules in place of those of a spec. What is not named stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, Json>);

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    /// No `PATH=VALUE`.
    #[error("{written:?} is no setting: write PATH=VALUE, such as budgets.model_calls=3")]
    NoSetting {
        /// What was written.
        written: String,
    },
    /// A policy that is no JSON object.
    #[error("a policy is one JSON object, such as {{\"budgets\":{{\"model_calls\":3}}}}: {reason}")]
    NoObject {
        /// What is wrong.
        reason: String,
    },
    /// A part of the spec that is no rule, or no part of it.
    #[error("{name:?} cannot be set: rules are {}", RULES.join(", "))]
    NoRule {
        /// The part.
        name: String,
    },
    /// The rules do not make a spec.
    #[error("these rules do not fit: {reason}")]
    Unfit {
        /// What does not.
        reason: String,
    },
}

impl Settings {
    /// No setting: every spec stays as it is.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The settings of a policy: a JSON object in the form of a spec that names rules alone.
    ///
    /// # Errors
    /// When it is no strict JSON object, or names what is no rule.
    pub fn policy(text: &str) -> Result<Self, SettingsFault> {
        let no_object = |reason: String| SettingsFault::NoObject { reason };
        let policy = Json::parse(text).map_err(|error| no_object(error.to_string()))?;
        let kind = policy.kind_name();
        let Json::Object(rules) = policy else { return Err(no_object(format!("this is {kind}"))) };
        let mut settings = Self::none();
        rules.into_iter().try_for_each(|(name, value)| settings.lay(&name, value))?;
        Ok(settings)
    }

    /// Adds one setting, `PATH=VALUE`: names and places from the spec's root, joined by dots, and a JSON value.
    /// What is no JSON is text. A later setting of the same path wins.
    ///
    /// # Errors
    /// When it is no setting, or of what is no rule.
    pub fn set(&mut self, written: &str) -> Result<(), SettingsFault> {
        let no_setting = || SettingsFault::NoSetting { written: written.to_owned() };
        let (path, value) = written.split_once('=').ok_or_else(no_setting)?;
        let value = Json::parse(value).unwrap_or_else(|_| Json::from(value));
        let mut names = path.split('.').map(str::trim);
        let first = names.next().unwrap_or_default();
        let inner: Vec<&str> = names.collect();
        if first.is_empty() || inner.iter().any(|name| name.is_empty()) {
            return Err(no_setting());
        }
        let nested =
            inner.into_iter().rev().fold(value, |value, name| Json::Object(BTreeMap::from([(name.to_owned(), value)])));
        self.lay(first, nested)
    }

    /// The same as a policy's text, canonical.
    #[must_use]
    pub fn to_text(&self) -> String {
        Json::Object(self.0.clone()).canonical()
    }

    /// The spec under these rules. Whether they hold together is asked where a run begins.
    ///
    /// # Errors
    /// When a rule has no such setting, or not such a value.
    pub fn apply(&self, spec: &Spec) -> Result<Spec, SettingsFault> {
        let unfit = |reason: String| SettingsFault::Unfit { reason };
        let written = serde_json::to_string(spec).map_err(|error| unfit(error.to_string()))?;
        let mut whole = Json::parse(&written).map_err(|error| unfit(error.to_string()))?;
        merge(&mut whole, &Json::Object(self.0.clone()));
        serde_json::from_str(&whole.to_text()).map_err(|error| unfit(without_place(&error)))
    }

    fn lay(&mut self, name: &str, value: Json) -> Result<(), SettingsFault> {
        // What is spent is one budget to whoever types it.
        let name = if name == "budget" { "budgets" } else { name };
        if !RULES.contains(&name) {
            return Err(SettingsFault::NoRule { name: name.to_owned() });
        }
        merge(self.0.entry(name.to_owned()).or_insert(Json::Null), &value);
        Ok(())
    }
}

/// Lays one value over another: objects member by member, anything else in the place of what was there.
fn merge(under: &mut Json, over: &Json) {
    match (under, over) {
        (Json::Object(under), Json::Object(over)) => {
            for (name, value) in over {
                merge(under.entry(name.clone()).or_insert(Json::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// The reason alone: the line and column are of a text that nobody wrote.
fn without_place(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    whole.strip_suffix(&place).unwrap_or(&whole).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(written: &[&str]) -> Result<Spec, SettingsFault> {
        let mut settings = Settings::none();
        written.iter().try_for_each(|written| settings.set(written))?;
        settings.apply(&Spec::new("task", "model"))
    }

    #[test]
    fn a_setting_takes_the_place_of_one_rule_and_leaves_the_others() {
        let spec = set(&["budget.model_calls=3", "collection.saturation_after=1", "deadline_ms=null"]).unwrap();
        let usual = Spec::new("task", "model");
        assert_eq!((spec.budgets.model_calls, spec.budgets.tool_calls), (Some(3), usual.budgets.tool_calls));
        assert_eq!((spec.collection.saturation_after, spec.deadline_ms), (Some(1), None));
        assert_eq!(set(&["budgets.model_calls=3", "budgets.model_calls=4"]).unwrap().budgets.model_calls, Some(4));
    }

    #[test]
    fn a_policy_says_the_same_as_its_settings() {
        let policy = Settings::policy(r#"{"budgets":{"tool_calls_by_tool":{"search":2}},"release":{"judge":"off"}}"#);
        let mut settings = Settings::none();
        settings.set("budgets.tool_calls_by_tool.search=2").unwrap();
        settings.set("release.judge=off").unwrap();
        assert_eq!(policy.as_ref(), Ok(&settings));
        assert_eq!(Settings::policy(&settings.to_text()), policy);
    }

    #[test]
    fn no_setting_leaves_every_byte() {
        let spec = Spec::new("task", "model");
        assert_eq!(Settings::none().apply(&spec), Ok(spec));
    }

    #[test]
    fn the_question_itself_cannot_be_set_and_a_bad_rule_says_why() {
        for written in ["task=other", "tools.0.evidence=false", "model.name=x", "nothing=1"] {
            assert!(matches!(set(&[written]), Err(SettingsFault::NoRule { .. })), "{written}");
        }
        for written in ["", "budgets", ".x=1", "budgets..x=1"] {
            assert!(matches!(set(&[written]), Err(SettingsFault::NoSetting { .. })), "{written}");
        }
        let unknown = set(&["budgets.model_call=3"]).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `model_call`") && !unknown.contains("line"), "{unknown}");
        assert!(matches!(set(&["budgets.model_calls=many"]), Err(SettingsFault::Unfit { .. })));
        assert!(matches!(Settings::policy("[1]"), Err(SettingsFault::NoObject { .. })));
    }
}
