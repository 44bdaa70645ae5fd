//! A run that is driven by moves, and its history.

use std::fmt;

use super::moves::{Kind, Move};
use crate::engine::{Engine, Step};
use crate::history::Recorder;
use crate::testkit::alphabet::{Report, answers, foreign};
use crate::testkit::world::World;
use crate::vocabulary::input::{CancelOrigin, Input};
use crate::vocabulary::refusal::Refusal;

/// How many reports of earlier states are kept.
const PASSED_MAX: usize = 64;

/// How many moves a run gets to finish by itself.
const LAST_MOVES: u32 = 64;

/// A run under way in a world.
///
/// What goes in: [`take`](Self::take), with a report of [`report`](Self::report) or of your own. What comes out:
/// [`history`](Self::history).
#[derive(Clone)]
pub struct Walk {
    world: World,
    engine: Engine,
    recorder: Recorder,
    lines: String,
    /// Where the record that ended the run begins.
    ended_at: Option<usize>,
    last: Option<Report>,
    passed: Vec<Report>,
}

impl fmt::Debug for Walk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Walk").field("world", &self.world.name).field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Walk {
    /// Before the first report.
    #[must_use]
    pub fn new(world: World) -> Self {
        let (engine, recorder) = (Engine::new(), Recorder::new());
        Self { world, engine, recorder, lines: String::new(), ended_at: None, last: None, passed: Vec::new() }
    }

    /// A run that has taken these moves.
    #[must_use]
    pub fn through(world: World, moves: &[Move]) -> Self {
        let mut walk = Self::new(world);
        for next in moves {
            // A refused report is none of the history.
            let _taken = walk.make(*next);
        }
        walk
    }

    /// The engine as it stands.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What was recorded so far.
    #[must_use]
    pub fn history(&self) -> &str {
        &self.lines
    }

    /// The same without the record that ended the run, and what follows it.
    #[must_use]
    pub fn open_part(&self) -> &str {
        self.ended_at.and_then(|end| self.lines.get(..end)).unwrap_or(&self.lines)
    }

    /// The report that the move picks in this state; `None` when there is none of its kind.
    pub fn report(&mut self, next: Move) -> Option<Report> {
        let reports = match next.kind {
            Kind::Foreign => foreign(&self.engine, &self.world, self.last.as_ref()),
            Kind::Stale => self.passed.clone(),
            Kind::Onward | Kind::Draft | Kind::Aside | Kind::Any => self.answers(next.kind),
        };
        // The first draft of every menu is the good one.
        let good = next.kind == Kind::Draft && next.pick.is_multiple_of(2);
        let index = if good { 0 } else { (next.pick as usize).checked_rem(reports.len())? };
        let report = reports.get(index)?.clone();
        if let Some(other) = reports.get(index + 1).filter(|_| next.kind != Kind::Stale) {
            self.pass(other.clone());
        }
        // A timer that is a millisecond early must stay early.
        let late_ms = if next.kind == Kind::Foreign { 0 } else { next.late_ms };
        Some(Report { at_ms: report.at_ms.saturating_add(late_ms), ..report })
    }

    /// Takes a report.
    ///
    /// # Errors
    /// The refusal, which changes nothing.
    pub fn take(&mut self, report: Report) -> Result<Step, Refusal> {
        let had_ended = self.engine.ending().is_some();
        let step = self.engine.step(report.at_ms, report.input.clone())?;
        if self.engine.ending().is_some() && !had_ended {
            self.ended_at = Some(self.lines.len());
        }
        // Records are JSON, and so text.
        self.lines.push_str(&String::from_utf8_lossy(self.recorder.record(&self.engine, &step)));
        self.pass(report.clone());
        self.last = Some(report);
        Ok(step)
    }

    /// Takes what the move picks; `None` when it picks nothing.
    pub fn make(&mut self, next: Move) -> Option<Result<Step, Refusal>> {
        let report = self.report(next)?;
        Some(self.take(report))
    }

    /// Goes on until the run has ended: with good drafts where they are awaited, and with a cancellation when
    /// that takes too long.
    pub fn finish(&mut self) {
        for pick in 0..LAST_MOVES {
            if self.engine.ending().is_some() {
                return;
            }
            let kind = if pick.is_multiple_of(2) { Kind::Draft } else { Kind::Onward };
            let _taken = self.make(Move { kind, pick, late_ms: 0 });
        }
        let at_ms = self.engine.decider().clock().map_or(0, |clock| clock.at_ms());
        let input = Input::CancelRequested { by: "a walker".to_owned(), origin: CancelOrigin::Caller };
        // Refused only by a run that has ended just now.
        let _taken = self.take(Report { at_ms, input });
    }

    /// The answers of that kind; where there are none, those that go on, or else all of them.
    fn answers(&self, kind: Kind) -> Vec<Report> {
        let all = answers(&self.engine, &self.world);
        let aside = |input: &Input| matches!(input, Input::RunRecovered { .. } | Input::TailRepaired { .. });
        let fits = |kind: Kind, report: &Report| match kind {
            Kind::Onward => goes_on(report, &self.engine) && !aside(&report.input),
            Kind::Draft => is_draft(&report.input) && is_in_time(report, &self.engine),
            Kind::Aside => aside(&report.input),
            Kind::Any | Kind::Foreign | Kind::Stale => true,
        };
        let fitting = |kind| all.iter().filter(|report| fits(kind, report)).cloned().collect::<Vec<_>>();
        let chosen = [kind, Kind::Onward].into_iter().map(fitting).find(|reports| !reports.is_empty());
        chosen.unwrap_or(all)
    }

    fn pass(&mut self, report: Report) {
        if self.passed.len() >= PASSED_MAX {
            self.passed.remove(0);
        }
        self.passed.push(report);
    }
}

/// Whether an answer is likely to let the run go on.
fn goes_on(report: &Report, engine: &Engine) -> bool {
    let unasked = matches!(
        report.input,
        Input::CancelRequested { .. } | Input::ExecutionCrashed { .. } | Input::DeadlineElapsed { .. }
    );
    let fatal = matches!(&report.input, Input::ModelFailed { error, .. } if !error.code().retryable());
    let ends = unasked || fatal || is_draft(&report.input);
    is_in_time(report, engine) && !ends
}

fn is_in_time(report: &Report, engine: &Engine) -> bool {
    let deadline = engine.decider().clock().and_then(|clock| clock.deadline_ms());
    deadline.is_none_or(|deadline| report.at_ms < deadline)
}

const fn is_draft(input: &Input) -> bool {
    matches!(input, Input::ModelResponded { content, .. } if content.calls.is_empty())
}
