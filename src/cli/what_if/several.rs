//! Many supposed runs: rows before and after.

use std::collections::BTreeMap;
use std::io::{BufWriter, StdoutLock, Write};

use comfy_table::{ContentArrangement, Table, presets};

use super::super::exit::{Problem, printable};
use super::super::output::Output;
use super::Subject;
use super::detail::{came_to, unfounded};
use super::supposed::Line;
use crate::history::{OtherRequest, Supposed, Supposition};
use crate::vocabulary::spec::Settings;

/// Supposed runs, taken one by one. Of each a line is kept.
pub(super) struct Several<'a> {
    rules: &'a Settings,
    other: OtherRequest,
    json: bool,
    out: Output<BufWriter<StdoutLock<'static>>>,
    table: Table,
    /// How many runs went from one row to another.
    moves: BTreeMap<(String, String), u64>,
}

impl<'a> Several<'a> {
    pub(super) fn new(rules: &'a Settings, other: OtherRequest, json: bool) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["recorded", "supposed", "from record", "run", ""]);
        let out = Output::new(BufWriter::new(std::io::stdout().lock()));
        Self { rules, other, json, out, table, moves: BTreeMap::new() }
    }

    pub(super) fn take(&mut self, Subject { name, history }: &Subject) -> Result<(), Problem> {
        let supposition = history.under(self.rules, self.other, |_, _| {}).map_err(|error| unfounded(name, &error))?;
        if self.json {
            self.out.json(&Line::new(name, self.rules, &supposition))?;
            return Ok(());
        }
        let (before, after) = (before(&supposition), after(&supposition));
        let from = supposition.change.map_or_else(String::new, |change| change.seq.to_string());
        let ended = matches!(supposition.supposed, Supposed::Ended(_));
        let why = if ended { String::new() } else { came_to(&supposition) };
        self.table.add_row([before.clone(), after.clone(), from, printable(name), printable(&why)]);
        *self.moves.entry((before, after)).or_default() += 1;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Problem> {
        if !self.json {
            let rules = self.rules.to_text();
            writeln!(self.out, "what if {} had held?\n\n{}\n", printable(&rules), self.table.trim_fmt())?;
            for ((before, after), runs) in &self.moves {
                let change = if before == after { "stays" } else { "becomes" };
                writeln!(self.out, "{runs:>6}  row {before} {change} {after}")?;
            }
        }
        self.out.finish()?;
        Ok(())
    }
}

fn before(supposition: &Supposition) -> String {
    supposition.recorded.as_ref().map_or_else(|| "open".to_owned(), |ending| ending.row.to_string())
}

fn after(supposition: &Supposition) -> String {
    match &supposition.supposed {
        Supposed::Ended(ending) => ending.row.to_string(),
        Supposed::Unanswered { .. } => "?".to_owned(),
        Supposed::Open { .. } => "open".to_owned(),
    }
}
