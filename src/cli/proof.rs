//! What an exploration proves and what its bounds leave out, as a part of a Markdown page.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::exit::{Exit, Problem};
use crate::engine::table::ROWS;
use crate::testkit::explorer::Exploration;
use crate::testkit::world::World;

const BEGINS: &str = "<!-- exploration begins -->\n";
const ENDS: &str = "<!-- exploration ends -->\n";

/// A page with a part to write.
pub(super) struct Page {
    file: PathBuf,
    before: String,
    after: String,
}

impl Page {
    /// Reads the page: before anything is explored, so that nobody waits for a page that cannot be written.
    pub(super) fn open(file: &Path) -> Result<Self, Problem> {
        let page = fs::read_to_string(file).map_err(|error| Problem::unreadable(Exit::Usage, file, &error))?;
        let marks = page.split_once(BEGINS).and_then(|(before, rest)| Some((before, rest.split_once(ENDS)?.1)));
        let Some((before, after)) = marks else {
            let (begins, ends) = (BEGINS.trim_end(), ENDS.trim_end());
            let reason = format!("{}: has no part to write: it needs the lines {begins} and {ends}", file.display());
            return Err(Problem::new(Exit::Usage, reason));
        };
        Ok(Self { file: file.to_owned(), before: before.to_owned(), after: after.to_owned() })
    }

    /// Puts the part between its marks; the rest of the page stays as it is.
    pub(super) fn write(self, worlds: &[World], exploration: &Exploration) -> Result<(), Problem> {
        let Self { file, before, after } = self;
        let page = format!("{before}{BEGINS}{}{ENDS}{after}", part(worlds, exploration));
        let beside = file.with_extension(format!("{}.partial", std::process::id()));
        let written = fs::write(&beside, page).and_then(|()| fs::rename(&beside, &file));
        written
            .map_err(|error| Problem::new(Exit::Unexpected, format!("{}: cannot be written: {error}", file.display())))
    }
}

fn part(worlds: &[World], exploration: &Exploration) -> String {
    let Exploration { figures, endings, worlds: explored } = exploration;
    let folded = figures.transitions.saturating_add(explored.len() as u64).saturating_sub(figures.states);
    let whole = explored.iter().filter(|explored| explored.whole).count();
    let mut part = format!(
        "**{} of {} rows, as {} distinct endings. {} states, {} transitions, {} refusals.** {} of the transitions led \
         to a state that was known. {whole} of {} worlds were explored to their end.\n\n\
         | world | model calls | takeovers | states | transitions | refusals |\n|---|---|---|---|---|---|\n",
        exploration.rows().len(),
        ROWS.len(),
        endings.len(),
        figures.states,
        figures.transitions,
        figures.refusals,
        folded,
        explored.len(),
    );
    for (world, explored) in worlds.iter().zip(explored) {
        let calls = world.spec.budgets.model_calls.map_or("any".to_owned(), |calls| calls.to_string());
        let takeovers = world.recoveries_max;
        let (states, transitions, refusals) = (explored.states, explored.transitions, explored.refusals);
        let name = world.name;
        let _ = writeln!(part, "| {name} | {calls} | {takeovers} | {states} | {transitions} | {refusals} |");
    }
    part.push_str(&left_out(worlds));
    part
}

/// What no state here can show.
fn left_out(worlds: &[World]) -> String {
    let most = |count: fn(&World) -> usize| worlds.iter().map(count).max().unwrap_or_default();
    let calls = worlds.iter().filter_map(|world| world.spec.budgets.model_calls).max().unwrap_or_default();
    let takeovers = worlds.iter().map(|world| world.recoveries_max).max().unwrap_or_default();
    let batch = most(|world| world.menu.batches.iter().map(|(calls, _)| calls.len()).max().unwrap_or_default());
    let drafts = most(|world| world.menu.drafts.len());
    let nested = worlds.iter().map(|world| world.menu.nested_max).max().unwrap_or_default();
    format!(
        "\nWhat these bounds leave out:\n\n\
         - more than {calls} model calls, {takeovers} takeovers, {batch} tool calls in one response, {nested} nested \
         calls of one tool call;\n\
         - answers that are not on a world's menu: at most {drafts} different drafts, and a handful of results, \
         errors, decisions and hook answers;\n\
         - times other than now, when a timer is due, a millisecond before that, and the deadline;\n\
         - rules of the spec that no world combines: each world varies a few of them;\n\
         - sizes near the limits, and what texts say; states that differ only in those count as one.\n"
    )
}
