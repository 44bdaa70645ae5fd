//! What an exploration proves and what its bounds leave out, as a part of a Markdown page.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::exit::{Exit, Problem};
use super::histories::HistoryFile;
use crate::engine::table::ROWS;
use crate::testkit::explorer::Exploration;
use crate::testkit::world::World;

const BEGINS: &str = "<!-- exploration begins -->";
const ENDS: &str = "<!-- exploration ends -->";

/// A page with a part to write.
#[derive(Debug)]
pub(super) struct Page {
    file: PathBuf,
    /// Up to the part, with the mark before it.
    before: String,
    /// From the mark after the part on.
    after: String,
}

impl Page {
    /// Reads the page and looks whether it can be written: before anything is explored, so that nobody waits for a
    /// page that cannot be.
    pub(super) fn open(file: &Path) -> Result<Self, Problem> {
        let page = Self::read(file)?;
        let unwritable = |error: io::Error| Problem::usage(format!("{}: cannot be written: {error}", file.display()));
        OpenOptions::new().write(true).open(file).map_err(unwritable)?;
        // Its new text is written beside it: that is tried, and leaves nothing behind.
        HistoryFile::instead_of(file).map_err(|error| {
            let reason = format!("nothing can be written beside it: {error}; name a page in a folder that is yours");
            Problem::usage(format!("{}: {reason}", file.display()))
        })?;
        Ok(page)
    }

    fn read(file: &Path) -> Result<Self, Problem> {
        let bad = |reason: &str| Problem::usage(format!("{}: {reason}", file.display()));
        let unreadable = |error: io::Error| Problem::unreadable(Exit::Usage, file, &error);
        let found = fs::symlink_metadata(file).map_err(unreadable)?;
        if found.is_symlink() {
            return Err(bad("is a link, and pages are never written through one: name the file itself"));
        }
        if !found.is_file() {
            return Err(bad("is no file"));
        }
        if found.permissions().readonly() {
            return Err(bad("is read-only: make it writable, or name another page"));
        }
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let (before, after) = halves(&text).map_err(|reason| bad(&reason))?;
        Ok(Self { file: file.to_owned(), before: before.to_owned(), after: after.to_owned() })
    }

    /// Puts the part between its marks; the rest of the page stays as it is now, and so do its line ends and
    /// permissions.
    pub(super) fn write(self, worlds: &[World], exploration: &Exploration) -> Result<(), Problem> {
        // An exploration takes minutes: somebody may have written to the page meanwhile.
        let Self { file, before, after } = Self::read(&self.file)?;
        let mut part = part(worlds, exploration);
        if before.ends_with("\r\n") {
            part = part.replace('\n', "\r\n");
        }
        let put = || {
            let mut page = HistoryFile::instead_of(&file)?;
            page.write_all(format!("{before}{part}{after}").as_bytes())?;
            page.permit(fs::metadata(&file)?.permissions())?;
            page.keep()
        };
        put().map_err(|error: io::Error| {
            Problem::new(Exit::Unexpected, format!("{}: cannot be written: {error}", file.display()))
        })
    }
}

/// What stands before the part and after it, the marks included. The error says what is wrong, and where.
fn halves(text: &str) -> Result<(&str, &str), String> {
    let (begins, ends) = (only(text, BEGINS)?, only(text, ENDS)?);
    if ends.number < begins.number {
        return Err(format!("line {}: `{ENDS}` stands before `{BEGINS}`: exchange them", ends.number));
    }
    let before = text.get(..begins.offset.saturating_add(begins.length)).unwrap_or_default();
    Ok((before, text.get(ends.offset..).unwrap_or_default()))
}

/// A line of a page, with its end.
struct Line {
    /// From 1.
    number: usize,
    offset: usize,
    length: usize,
}

/// The one line that is this mark.
fn only(text: &str, mark: &str) -> Result<Line, String> {
    let mut offset = 0_usize;
    let mut found: Option<Line> = None;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.trim_end() == mark {
            if let Some(first) = found {
                let reason = "one page has one part to write: take one of the two away";
                return Err(format!("line {number}: `{mark}` stands in line {} already; {reason}", first.number));
            }
            found = Some(Line { number, offset, length: line.len() });
        }
        offset = offset.saturating_add(line.len());
    }
    found.ok_or_else(|| {
        format!("no line is `{mark}`: the part to write stands between the lines `{BEGINS}` and `{ENDS}`; add them")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes away with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("portcullis-proof-{}-{name}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn page(&self, text: &str) -> PathBuf {
            let page = self.0.join("page.md");
            fs::write(&page, text).unwrap();
            page
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn marked(line_end: &str) -> String {
        ["above", BEGINS, "old", ENDS, "below", ""].join(line_end)
    }

    fn refused(text: &str) -> String {
        halves(text).unwrap_err()
    }

    #[test]
    fn the_part_is_replaced_and_the_rest_stays() {
        let folder = Folder::new("replaced");
        let page = folder.page(&marked("\n"));
        Page::open(&page).unwrap().write(&[], &Exploration::default()).unwrap();
        let written = fs::read_to_string(&page).unwrap();
        assert!(written.starts_with(&format!("above\n{BEGINS}\n**0 of ")), "{written}");
        assert!(written.ends_with(&format!("\n{ENDS}\nbelow\n")), "{written}");
        assert!(!written.contains("old"));
        assert_eq!(folder.files(), 1);
    }

    #[test]
    fn a_page_keeps_its_line_ends() {
        let folder = Folder::new("line-ends");
        let page = folder.page(&marked("\r\n"));
        Page::open(&page).unwrap().write(&[], &Exploration::default()).unwrap();
        let written = fs::read_to_string(&page).unwrap();
        assert_eq!(written.matches('\n').count(), written.matches("\r\n").count());
        assert!(written.ends_with(&format!("{ENDS}\r\nbelow\r\n")) && written.contains("|---|"), "{written}");
    }

    #[test]
    fn what_was_written_to_the_page_meanwhile_stays() {
        let folder = Folder::new("meanwhile");
        let page = folder.page(&marked("\n"));
        let open = Page::open(&page).unwrap();
        folder.page(&marked("\n").replace("below", "something new"));
        open.write(&[], &Exploration::default()).unwrap();
        assert!(fs::read_to_string(&page).unwrap().ends_with("something new\n"));
    }

    #[cfg(unix)]
    #[test]
    fn a_page_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("permissions");
        let page = folder.page(&marked("\n"));
        fs::set_permissions(&page, fs::Permissions::from_mode(0o640)).unwrap();
        Page::open(&page).unwrap().write(&[], &Exploration::default()).unwrap();
        assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn a_page_is_never_written_through_a_link() {
        let folder = Folder::new("link");
        let page = folder.page(&marked("\n"));
        let link = folder.0.join("link.md");
        std::os::unix::fs::symlink(&page, &link).unwrap();
        assert!(Page::open(&link).unwrap_err().to_string().contains("link.md: is a link"));
        // Nor when it becomes one while others are exploring.
        let open = Page::open(&page).unwrap();
        fs::remove_file(&link).unwrap();
        fs::rename(&page, &link).unwrap();
        std::os::unix::fs::symlink(&link, &page).unwrap();
        assert!(open.write(&[], &Exploration::default()).unwrap_err().to_string().contains("page.md: is a link"));
        assert_eq!(fs::read_to_string(&link).unwrap(), marked("\n"));
    }

    #[test]
    fn a_read_only_page_is_refused_as_such() {
        let folder = Folder::new("read-only");
        let page = folder.page(&marked("\n"));
        let mut permissions = fs::metadata(&page).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&page, permissions).unwrap();
        let problem = Page::open(&page).unwrap_err().to_string();
        assert!(problem.ends_with("page.md: is read-only: make it writable, or name another page"), "{problem}");
        assert_eq!(folder.files(), 1);
    }

    #[test]
    fn a_folder_is_no_page() {
        let folder = Folder::new("folder");
        assert!(Page::open(&folder.0).unwrap_err().to_string().ends_with("is no file"));
    }

    #[test]
    fn a_second_pair_of_marks_is_refused_with_its_line() {
        let twice = marked("\n").repeat(2);
        assert!(refused(&twice).starts_with("line 7: `<!-- exploration begins -->` stands in line 2 already"));
        let ends_twice = format!("{}{ENDS}\n", marked("\n"));
        assert!(refused(&ends_twice).starts_with("line 6: `<!-- exploration ends -->` stands in line 4 already"));
    }

    #[test]
    fn marks_in_the_wrong_order_are_refused_with_their_line() {
        let turned = format!("{ENDS}\n{BEGINS}\n");
        assert!(refused(&turned).starts_with("line 1: `<!-- exploration ends -->` stands before"));
    }

    #[test]
    fn a_mark_that_is_missing_is_named() {
        assert!(refused("").starts_with("no line is `<!-- exploration begins -->`"));
        assert!(refused(&format!("{BEGINS}\n")).starts_with("no line is `<!-- exploration ends -->`"));
        let quoted = format!("between `{BEGINS}` and `{ENDS}`\n");
        assert!(refused(&quoted).starts_with("no line is"), "words of a sentence are no marks");
    }

    #[test]
    fn a_last_line_without_an_end_is_a_mark_too() {
        let text = format!("{BEGINS}\nold\n{ENDS}");
        assert_eq!(halves(&text), Ok((format!("{BEGINS}\n").as_str(), ENDS)));
    }
}
