//! The live configuration of a run that is carried on: its scenario, named by hand (SPEC 14.19).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::consent::Consent;
use super::exit::{Exit, Problem};
use super::live::Live;
use super::place::quoted;
use crate::adapters::scenario::Scenario;
use crate::vocabulary::spec::Spec;

/// The options of commands that carry a run on.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Configuration {
    /// The scenario that a run with real parts was started from: nothing else is started or contacted.
    #[arg(long = "with", value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

/// The option as it has to be typed again, with a space before it.
pub(crate) fn with(path: &Path) -> String {
    format!(" --with {}", quoted(&path.display().to_string()))
}

impl Configuration {
    /// The option as it has to be typed again, with a space before it; empty when it was not given.
    pub(crate) fn again(&self) -> String {
        self.file.as_deref().map(with).unwrap_or_default()
    }

    /// What carries a run on: the scenario of its file, which has to be the one that the run began with.
    pub(crate) fn read(&self, run: &str, began: &Scenario, recorded: &Spec) -> Result<(Scenario, Live), Problem> {
        let Some(path) = &self.file else {
            return Err(Problem::usage(format!(
                "run {run} has real parts, and only its scenario says what to start for them: \
                 portcullis resume {run} --with FILE"
            )));
        };
        let bytes = std::fs::read(path).map_err(|error| Problem::unreadable(Exit::Usage, path, &error))?;
        let bad = |reason: String| Problem::usage(format!("{}: {reason}", path.display()));
        let scenario = Scenario::read(&bytes).map_err(|fault| bad(fault.to_string()))?;
        if let Some(part) = differs(&scenario, began, recorded) {
            return Err(bad(format!("its {part} is not what run {run} began with: nothing is started for it")));
        }
        let ports = self.consent.ports(path, &scenario)?;
        Ok((scenario, ports))
    }

    /// A run without real parts goes on with the script beside it, and with no other.
    pub(crate) fn is_not_wanted(&self, run: &str) -> Result<(), Problem> {
        match &self.file {
            None => Ok(()),
            Some(_) => Err(Problem::usage(format!(
                "run {run} has no real parts, and its script lies beside it: leave --with out"
            ))),
        }
    }
}

/// The first part in which a scenario is not the one that a run began with.
fn differs(scenario: &Scenario, began: &Scenario, recorded: &Spec) -> Option<String> {
    if scenario.real != began.real {
        return Some("`real`".to_owned());
    }
    if let Some(field) = differs_in_spec(&scenario.spec, recorded) {
        return Some(format!("`spec.{field}`"));
    }
    if scenario.environment != began.environment {
        return Some("`environment`".to_owned());
    }
    (scenario.script != began.script).then(|| "`script`".to_owned())
}

/// The first field in which two specs differ.
fn differs_in_spec(one: &Spec, other: &Spec) -> Option<String> {
    if one == other {
        return None;
    }
    let fields = |spec: &Spec| match serde_json::to_value(spec) {
        Ok(serde_json::Value::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (ours, theirs) = (fields(one), fields(other));
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    // Numbers that only differ where this reading rounds them are in the parameters.
    let named = names.into_iter().find(|name| ours.get(*name) != theirs.get(*name)).cloned();
    Some(named.unwrap_or_else(|| "model".to_owned()))
}
