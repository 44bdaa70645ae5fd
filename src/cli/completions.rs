//! `portcullis completions`: what a shell completes, from the arguments themselves (SPEC 14).

use clap::CommandFactory;
use clap_complete::Shell;

use super::exit::{Exit, Problem};
use super::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

#[derive(serde::Serialize)]
struct Script {
    shell: String,
    script: String,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "portcullis", &mut script);
    let mut out = Output::stdout();
    if json {
        let script = String::from_utf8_lossy(&script).into_owned();
        out.json(&Script { shell: arguments.shell.to_string(), script })?;
    } else {
        std::io::Write::write_all(&mut out, &script)?;
    }
    out.finish()?;
    Ok(Exit::Success)
}
