//! `portcullis check`: what a run would resolve to, without a run (SPEC 12).

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::exit::{Exit, Problem, note, printable};
use super::output::Output;
use super::staging::Staging;
use crate::adapters::scenario::Part;
use crate::vocabulary::environment::{Capability, Environment, GateOf, Hook, StateScope};
use crate::vocabulary::failure::{Failure, ResolutionError};
use crate::vocabulary::spec::Spec;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A scenario. Its spec and environment are merged with the plugins that the spec names, as a run of it would
    /// do; nothing is asked, stored or started.
    file: PathBuf,
}

/// What `--json` gives.
#[derive(Serialize)]
struct Checked<'a> {
    resolves: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a Environment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ResolutionError>,
    /// What a run would commit, in row 18.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let staging = Staging::read(&arguments.file)?;
    let (Some(scenario), true) = (staging.scenario(0), staging.written().is_some()) else {
        let file = arguments.file.display();
        return Err(Problem::usage(format!("{file}: is a recorded transcript, and has no environment to be merged")));
    };
    let checked = scenario.check();
    if scenario.real.contains(&Part::Tools) {
        for source in &scenario.spec.tool_sources {
            let note =
                format!("portcullis: note: the tools of {} join when it is run; nothing is started here", source.name);
            note!("{}", printable(&note));
        }
    }
    let exit = if checked.is_ok() { Exit::Success } else { Exit::Failed };
    if let Ok(environment) = &checked {
        for key in undeclared(&scenario.spec, environment) {
            let note = format!("portcullis: note: nobody declares the thread state key {key:?} of prior_state");
            note!("{}", printable(&note));
        }
    }
    let mut out = Output::stdout();
    if json {
        let (environment, error) = (checked.as_ref().ok(), checked.as_ref().err());
        let failure = error.map(ResolutionError::failure);
        out.json(&Checked { resolves: error.is_none(), environment, error, failure })?;
    } else {
        match &checked {
            Ok(environment) => describe(&mut out, environment)?,
            Err(error) => {
                let failure = error.failure();
                let text = format!("does not resolve: {error}\na run would end in row 18 ({})", failure.tag());
                writeln!(out, "{}", printable(&text))?;
            }
        }
    }
    out.finish()?;
    Ok(exit)
}

/// Keys of the thread that a run begins with and no plugin knows: a slip of the pen, as a rule.
fn undeclared<'a>(spec: &'a Spec, environment: &'a Environment) -> impl Iterator<Item = &'a String> {
    let declared =
        |key: &str| environment.state_keys.iter().any(|state| state.scope == StateScope::Thread && state.key == key);
    spec.prior_state.keys().filter(move |key| !declared(key))
}

fn describe(out: &mut impl Write, environment: &Environment) -> std::io::Result<()> {
    let gates = |of| {
        let gates = environment.gates.iter().filter(move |gate| gate.of == of);
        list(gates.map(|gate| gate.id.clone()))
    };
    let keys = environment.state_keys.iter().map(|key| format!("{} {} ({})", key.scope, key.key, key.policy));
    let lines = [
        ("plugins", list(environment.plugins.iter().cloned())),
        ("tools", list(environment.tools.iter().map(|tool| tool.name.clone()))),
        ("tool gates", gates(GateOf::Tool)),
        ("release gates", gates(GateOf::Release)),
        ("hooks", list(environment.hooks.iter().map(|Hook { plugin, point }| format!("{plugin} at {point}")))),
        ("state keys", list(keys)),
        ("action kinds", list(environment.action_kinds.iter().cloned())),
    ];
    writeln!(out, "resolves")?;
    for (name, items) in lines {
        writeln!(out, "  {name:<14} {}", printable(&items))?;
    }
    for own in &environment.capabilities {
        writeln!(out, "  {}", printable(&brought(own)))?;
    }
    Ok(())
}

/// What a plugin brings.
fn brought(own: &Capability) -> String {
    let parts = [("tools", &own.tools), ("gates", &own.gates), ("action kinds", &own.action_kinds)];
    let named = parts.iter().filter(|(_, items)| !items.is_empty());
    let brought: Vec<String> = named.map(|(name, items)| format!("{name} {}", items.join(", "))).collect();
    let brought = if brought.is_empty() { "nothing but hooks and keys".to_owned() } else { brought.join("; ") };
    format!("{} brings {brought}", own.plugin)
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}
