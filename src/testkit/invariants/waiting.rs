//! 13.I11: a run that has not ended has an effect outstanding or waits for a named outside answer, and takes it.

use super::Subject;
use super::prefixes::Prefix;
use crate::testkit::alphabet::{Report, answers};
use crate::vocabulary::input::Input;

pub(super) fn ask<S: Subject>(prefix: &Prefix<'_, S>) -> Option<String> {
    let engine = prefix.subject.engine();
    if engine.ending().is_some() {
        return None;
    }
    let outstanding = engine.outstanding();
    if outstanding.is_empty() {
        return Some("nothing is outstanding, and nobody is asked".to_owned());
    }
    let takes = |report: &Report| prefix.subject.clone().step(report.at_ms, report.input.clone()).is_ok();
    // Whatever comes at the deadline is taken as that.
    let deadline_ms = engine.decider().clock().and_then(|clock| clock.deadline_ms());
    let in_time = |report: &Report| deadline_ms.is_none_or(|deadline_ms| report.at_ms < deadline_ms);
    let reports = answers(engine, prefix.world);
    if reports.iter().any(|report| answers_something(&report.input) && in_time(report) && takes(report)) {
        return None;
    }
    let names: Vec<&str> = outstanding.iter().map(|effect| effect.tag()).collect();
    Some(format!("it waits for {}, and takes no answer to it", names.join(", ")))
}

/// Whether it answers an effect. A cancellation, a deadline, a crash, a takeover and a repair come unasked: a run
/// that takes only them is stuck.
const fn answers_something(input: &Input) -> bool {
    !matches!(
        input,
        Input::CancelRequested { .. }
            | Input::DeadlineElapsed { .. }
            | Input::ExecutionCrashed { .. }
            | Input::RunRecovered { .. }
            | Input::TailRepaired { .. }
    )
}
