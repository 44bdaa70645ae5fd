//! The command line: arguments, rendering, exit codes (SPEC 14). Results go to standard output, everything
//! else to standard error.

mod anchor;
mod announcement;
mod answer;
mod attended;
mod audit;
mod carry_on;
mod check;
mod columns;
mod completions;
mod configuration;
mod consent;
mod diagram;
mod diff;
mod ending;
mod exit;
mod explain;
mod exploration;
mod export;
mod fork;
mod histories;
mod import;
mod interrupts;
mod invariance;
mod live;
mod logs;
mod moment;
mod origin;
mod output;
mod performance;
mod place;
mod proof;
mod questions;
mod reasons;
mod release;
mod replay;
mod resume;
mod rules;
mod run;
mod runs;
mod screen;
mod show;
mod simulate;
mod source;
mod staging;
mod stepped;
mod subject;
mod table;
mod timeline;
mod upgrade;
mod verify;
mod what_if;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use exit::{Exit, Problem};

/// A deterministic, fail-closed run engine for LLM agents.
///
/// Exit codes: 0 success or reproduced, 1 unexpected error, 2 bad usage or input, 3 fallback, 4 failed,
/// 5 cancelled, 6 divergence, difference or broken invariant, 7 corrupt or unreadable history, 8 awaiting a person,
/// 9 reproduced but open, 10 persistence failed.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, about, max_term_width = 100)]
struct Arguments {
    /// One JSON object, or one a line, on standard output.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Takes a run to its end, from a scenario or a recorded transcript.
    Run(run::Arguments),
    /// Merges the plugins of a scenario as a run would, and says what comes of it: 0 it resolves, 4 it does not.
    Check(check::Arguments),
    /// Carries on a run whose driver died, or every such run.
    Resume(resume::Resume),
    /// Cancels a run, whoever drives it.
    Cancel(answer::Cancel),
    /// Says whether a call that waits for a person may run.
    Decide(answer::Decide),
    /// Says what an interrupted call did.
    Reconcile(answer::Reconcile),
    /// Carries on every run whose timer has come due.
    Wake(resume::Wake),
    /// Feeds raw inputs to the engine, one JSON a line; one line out for each.
    Simulate(simulate::Arguments),
    /// Verifies histories: chain, steps and bytes.
    Replay(replay::Arguments),
    /// Takes recorded runs of other runtimes through the engine, and says what is odd about them.
    Audit(audit::Arguments),
    /// Supposes other rules for recorded runs, and shows how their endings change.
    WhatIf(what_if::Arguments),
    /// Prints the closed table; with --check, shows that nothing outside it can be reached.
    Table(table::Arguments),
    /// Draws the graph of a machine, from the code.
    Diagram(diagram::Arguments),
    /// Lists the runs of the store.
    Runs(runs::Arguments),
    /// Shows what happened in a run, and what it waits for.
    Show(show::Arguments),
    /// Says why a run ended as it did, and what would have had to be otherwise; or what it waits for.
    Explain(explain::Arguments),
    /// Compares two histories: 0 the same but for ids and times, 6 different.
    Diff(diff::Arguments),
    /// Begins a run of its own with the first records of another.
    Fork(fork::Arguments),
    /// Brings a history to the newest version of records.
    Upgrade(upgrade::Arguments),
    /// Gives a history out of the store, whole or redacted.
    Export(export::Arguments),
    /// Takes histories into the store, verified.
    Import(import::Arguments),
    /// Gives the heads of runs, to be kept where the store cannot reach.
    Anchor(anchor::Arguments),
    /// Verifies files by their chain, or the store by replay or against anchors.
    Verify(verify::Arguments),
    /// Prints what a shell completes.
    Completions(completions::Arguments),
}

/// Runs a command that drives runs.
fn block_on(command: impl Future<Output = Result<Exit, Problem>>) -> Result<Exit, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::new(Exit::Unexpected, format!("no event loop: {error}")))?;
    runtime.block_on(command)
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if error.use_stderr() {
                // It repeats what was typed.
                exit::note!("{}", exit::printable(error.render().to_string().trim_end()));
                return Exit::Usage.into();
            }
            // Nothing is left to say when the terminal is gone.
            let _ = error.print();
            return Exit::Success.into();
        }
    };
    let json = arguments.json;
    interrupts::survive_file_size_limits();
    let result = match arguments.command {
        Command::Run(arguments) => block_on(run::run(&arguments, json)),
        Command::Check(arguments) => check::run(&arguments, json),
        Command::Resume(arguments) => block_on(resume::resume(&arguments, json)),
        Command::Cancel(arguments) => block_on(answer::cancel(&arguments, json)),
        Command::Decide(arguments) => block_on(answer::decide(&arguments, json)),
        Command::Reconcile(arguments) => block_on(answer::reconcile(&arguments, json)),
        Command::Wake(arguments) => block_on(resume::wake(&arguments, json)),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments, json),
        Command::Audit(arguments) => audit::run(&arguments, json),
        Command::WhatIf(arguments) => what_if::run(&arguments, json),
        Command::Table(arguments) => table::run(&arguments, json),
        Command::Diagram(arguments) => diagram::run(&arguments, json),
        Command::Runs(arguments) => runs::run(&arguments, json),
        Command::Show(arguments) => show::run(&arguments, json),
        Command::Explain(arguments) => explain::run(&arguments, json),
        Command::Diff(arguments) => diff::run(&arguments, json),
        Command::Fork(arguments) => fork::run(&arguments, json),
        Command::Upgrade(arguments) => upgrade::run(&arguments, json),
        Command::Export(arguments) => export::run(&arguments, json),
        Command::Import(arguments) => import::run(&arguments, json),
        Command::Anchor(arguments) => anchor::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments, json),
        Command::Completions(arguments) => completions::run(&arguments, json),
    };
    result.unwrap_or_else(Problem::report).into()
}
