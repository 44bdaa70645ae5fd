//! Whether somebody agrees to what a scenario with real parts starts and contacts (SPEC 14.19).

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

use super::announcement::{announced, word};
use super::attended::{ask_for, forget_typed};
use super::exit::{Problem, note, printable};
use super::live::{Live, made};
use crate::adapters::scenario::Scenario;

/// The option of every command that may start and contact something.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Consent {
    /// Start and contact what the scenario names, without asking.
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// The ports that a scenario asks for, once a person has agreed to what they do.
    pub(crate) fn ports(self, path: &Path, scenario: &Scenario) -> Result<Live, Problem> {
        if scenario.real.is_empty() {
            return Ok(Live::default());
        }
        let refused = |reason: String| Problem::usage(format!("{}: {reason}", path.display()));
        let does = announced(scenario).map_err(refused)?;
        let ports = made(scenario).map_err(refused)?;
        note!("portcullis: {} is to be run for real. It will", word(&path.display().to_string()));
        for line in &does {
            note!("  {}", printable(line));
        }
        if !self.yes {
            agree(path)?;
        }
        leave_no_core();
        Ok(ports)
    }
}

/// A process that holds keys leaves no image of its memory behind when it crashes, nor do those that it starts.
fn leave_no_core() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // Who may not even lower a limit has one that was set for good reasons.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

/// Asks on a terminal. Without one nobody can agree.
fn agree(path: &Path) -> Result<(), Problem> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Problem::usage(format!(
            "{}: nobody is here to agree to that: say --yes if it may",
            path.display()
        )));
    }
    forget_typed();
    ask_for("Go on? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Problem::usage(format!("{}: not run", path.display()))),
    }
}
