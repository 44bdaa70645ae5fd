//! Other rules, as they are typed: a policy from a file, settings after it.

use std::path::PathBuf;

use super::exit::{Exit, Problem};
use crate::vocabulary::spec::Settings;

#[derive(Debug, clap::Args)]
pub(crate) struct Rules {
    /// Rules in the form of a spec, one JSON object: {"budgets":{"model_calls":6}}.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// One rule: a path into the spec and a JSON value, such as budget.model_calls=6. May be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
}

impl Rules {
    /// All of them; what is set wins over the policy.
    pub(crate) fn read(&self) -> Result<Settings, Problem> {
        let mut rules = match &self.policy {
            None => Settings::none(),
            Some(path) => {
                let text =
                    std::fs::read_to_string(path).map_err(|error| Problem::unreadable(Exit::Usage, path, &error))?;
                let bad = |fault| Problem::usage(format!("{}: {fault}", path.display()));
                Settings::policy(&text).map_err(bad)?
            }
        };
        for written in &self.settings {
            rules.set(written).map_err(|fault| Problem::usage(format!("--set {fault}")))?;
        }
        Ok(rules)
    }
}
