//! A scripted run, watched until it has ended or waits for a person.

use std::path::Path;

use super::ending::{EndingLine, OpenLine, describe, exit};
use super::exit::{Exit, Problem, note, printable};
use super::interrupts::Interrupts;
use super::place::refused;
use super::questions;
use super::release::released;
use super::screen::Screen;
use crate::adapters::scenario::{Expectation, Stage};
use crate::runtime::execution::{Error, Trouble};
use crate::runtime::store::Store;
use crate::runtime::{Ended, Outcome};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::{CancelOrigin, Input};
use crate::vocabulary::refusal::RefusalKind;

/// Plays a run until nothing more happens. The first interrupt from the terminal cancels it, the second leaves
/// it as it is.
pub(crate) async fn watch(stage: &mut Stage, run: &RunId) -> Result<Outcome, Problem> {
    let mut interrupts = Interrupts::listen();
    let by = tokio::select! {
        biased;
        outcome = stage.curtain() => return outcome.map_err(|error| failed(&error)),
        by = interrupts.next() => by,
    };
    note!("portcullis: cancelling {run}; once more leaves it as it is");
    stage.cut_short();
    let input = Input::CancelRequested { by: by.to_owned(), origin: CancelOrigin::Caller };
    let told = tokio::select! {
        biased;
        told = stage.report(input) => told,
        _ = interrupts.next() => return Err(left(run)),
    };
    match told {
        Ok(()) => {}
        // A run that has just ended needs no cancellation, and nobody waits for what comes too late for it.
        Err(Error::Execution(Trouble::Refused(_))) => return stage.outcome().await.map_err(|error| failed(&error)),
        Err(error) => return Err(failed(&error)),
    }
    tokio::select! {
        biased;
        outcome = stage.curtain() => outcome.map_err(|error| failed(&error)),
        _ = interrupts.next() => Err(left(run)),
    }
}

/// A run that is left as it is.
pub(crate) fn left(run: &RunId) -> Problem {
    Problem::new(Exit::Open, format!("run {run} is left as it is; it goes on with: portcullis resume {run}"))
}

/// The problem of a call that failed.
pub(crate) fn failed(error: &Error) -> Problem {
    let exit = match error {
        Error::Commit(error) => return not_committed(error),
        Error::Resolution { .. } => Exit::Usage,
        Error::Execution(trouble) => match trouble {
            Trouble::UnknownRun(_) | Trouble::Refused(_) | Trouble::RefusedThere { .. } | Trouble::Driven { .. } => {
                Exit::Usage
            }
            Trouble::Damaged { .. } => Exit::Corrupt,
            Trouble::Diverged { .. } => Exit::Divergence,
            Trouble::Stopped(_) | Trouble::Unequipped(_) | Trouble::PluginTwice(_) | Trouble::Unanswered(_) => {
                Exit::Unexpected
            }
        },
    };
    let Error::Execution(Trouble::Refused(refusal)) = error else { return Problem::new(exit, error.to_string()) };
    Problem::new(exit, format!("{}: {refusal}", unfit(refusal.kind)))
}

/// A refusal in words.
const fn unfit(kind: RefusalKind) -> &'static str {
    match kind {
        RefusalKind::Terminal => "the run has ended already",
        RefusalKind::Stale => "nothing of that name is waiting any more; `portcullis show RUN` names what is",
        RefusalKind::Duplicate => "this was said already",
        RefusalKind::Conflict => "something else was said already",
        RefusalKind::Unexpected => "nothing waits for that now; `portcullis show RUN` says where the run stands",
        RefusalKind::Malformed => "this is out of form",
        RefusalKind::NotDue => "it is too early for that",
        RefusalKind::NotStarted | RefusalKind::AlreadyStarted => "the run does not take that",
    }
}

fn not_committed(error: &crate::runtime::store::StoreError) -> Problem {
    let message = crate::vocabulary::outcome::FailureCode::RunPersistenceFailed.safe_message();
    let problem = refused(error);
    Problem::new(Exit::Persistence, format!("{problem}. {message}"))
}

/// How a run of the store is named again: the option of the store, and that of what carries the run on.
pub(crate) struct Again<'a> {
    pub(crate) store: &'a str,
    pub(crate) with: &'a str,
}

/// Shows where a run came to: its ending and release, or what it waits for and, if it is kept, what to type next.
pub(crate) async fn show(
    screen: &Screen,
    outcome: &Outcome,
    run: &RunId,
    store: &dyn Store,
    again: Option<&Again<'_>>,
) -> Result<(), Problem> {
    let listed = store.find(run).await.map_err(|error| refused(&error))?;
    let (records, head) =
        listed.map_or((0, crate::vocabulary::digest::Digest::ZERO), |listed| (listed.records, listed.head));
    match outcome {
        Outcome::Ended(ended) => {
            let Ended { ending, release, spent, .. } = &**ended;
            screen.write(|mut out| {
                if screen.is_json() {
                    return write_json(&EndingLine::new(run, ending, Some(spent), records, head), &mut out);
                }
                writeln!(out, "{}", printable(&describe(ending)))?;
                write!(out, "{}", printable(&released(release)))
            })?;
        }
        Outcome::Awaiting(waiting) => screen.write(|mut out| {
            if screen.is_json() {
                return write_json(&OpenLine::new(run, Some(&waiting.spent), records, head), &mut out);
            }
            writeln!(out, "open: the run awaits a person")?;
            for question in &waiting.questions {
                writeln!(out, "  {}", printable(&questions::asked(question)))?;
                let Some(Again { store, with }) = again else { continue };
                writeln!(out, "    {}", questions::see(&format!("{run}{store}"), question))?;
                writeln!(out, "    {}", questions::answer(run, question, &format!("{store}{with}")))?;
            }
            Ok(())
        })?,
    }
    Ok(())
}

/// Says where the words are of whoever failed, when a run with real parts came to nothing because of them.
pub(crate) fn point_to_errors(outcome: &Outcome, run: &RunId, again: Option<&Again<'_>>) {
    let (Outcome::Ended(ended), Some(Again { store, .. })) = (outcome, again) else { return };
    if matches!(ended.ending.row, 4 | 17 | 18) {
        note!("portcullis: what was said about it: portcullis show {run} --errors{store}");
    }
}

fn write_json(value: &impl serde::Serialize, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Says on standard error what the script left open or expected otherwise, and gives the exit code.
pub(crate) fn remark(
    source: &Path,
    stage: &Stage,
    run: &RunId,
    outcome: &Outcome,
    expect: Option<&Expectation>,
) -> Exit {
    let remarks = stage.questions().into_iter().map(|question| format!("the file leaves open: {question}"));
    let remarks = remarks.chain(stage.unused().into_iter().map(|unused| format!("the file holds {unused}")));
    for remark in remarks {
        say(source, &format!("{run}: {remark}"));
    }
    let ended = match outcome {
        Outcome::Ended(ended) => ended,
        Outcome::Awaiting(_) => {
            for person in stage.people() {
                say(source, &format!("{run}: {person}"));
            }
            let Some(expected) = expect else { return Exit::Awaiting };
            say(source, &format!("{run}: expected an ending in row {}, but the run awaits a person", expected.row));
            return Exit::Unexpected;
        }
    };
    let differences = expect.map(|expected| expected.differences(&ended.ending)).unwrap_or_default();
    for difference in &differences {
        say(source, &format!("{run}: the ending differs in {difference}"));
    }
    if differences.is_empty() { exit(&ended.ending) } else { Exit::Unexpected }
}

/// Remarks go to standard error: they are about the file, not the result.
pub(crate) fn say(path: &Path, remark: &str) {
    note!("{}", printable(&format!("portcullis: {}: {remark}", path.display())));
}

/// The one that is reported when several runs end (SPEC 14.8).
pub(crate) fn worse(one: Exit, other: Exit) -> Exit {
    const ORDER: [Exit; 6] =
        [Exit::Unexpected, Exit::Awaiting, Exit::Cancelled, Exit::Failed, Exit::Fallback, Exit::Success];
    ORDER.into_iter().find(|exit| *exit == one || *exit == other).unwrap_or(one)
}
