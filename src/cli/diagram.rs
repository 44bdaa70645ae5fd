//! `portcullis diagram`: the graph of a machine, from the code (SPEC 14).

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use super::exit::{Exit, Problem};
use super::output::Output;
use crate::machines::{CHARTS, Chart};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The machine: run, inference, tool_call, nested_call, collection, consultation or release; all of them when
    /// absent.
    machine: Option<String>,
    /// The language of the graph.
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Mermaid state diagrams, as Markdown viewers draw them.
    Mermaid,
    /// Graphviz.
    Dot,
}

#[derive(Serialize)]
struct Drawn<'a> {
    machine: &'a str,
    graph: &'a str,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let wanted = |chart: &&Chart| arguments.machine.as_deref().is_none_or(|machine| machine == chart.machine);
    let charts: Vec<&Chart> = CHARTS.iter().filter(wanted).collect();
    if charts.is_empty() {
        let known: Vec<&str> = CHARTS.iter().map(|chart| chart.machine).collect();
        let asked = arguments.machine.as_deref().unwrap_or_default();
        return Err(Problem::usage(format!("no machine {asked:?}; there are {}", known.join(", "))));
    }
    let mut out = Output::stdout();
    for chart in charts {
        let graph = match arguments.format {
            Format::Mermaid => chart.mermaid(),
            Format::Dot => chart.dot(),
        };
        if json {
            let drawn = Drawn { machine: chart.machine, graph: &graph };
            serde_json::to_writer(&mut out, &drawn).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{graph}")?;
        }
    }
    out.finish()?;
    Ok(Exit::Success)
}
