//! One supposed run, told beside the recorded one.

use std::fmt::Write;

use super::super::ending::describe;
use super::super::exit::{Problem, printable};
use super::super::timeline::Timeline;
use super::Subject;
use crate::engine::{Engine, Request, Step};
use crate::history::{Change, OtherRequest, Supposed, Supposition, Unfounded};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::spec::Settings;

/// What there is to tell.
pub(super) struct Told {
    pub(super) supposition: Supposition,
    pub(super) text: String,
}

/// Tells one run. `each` sees every supposed step.
pub(super) fn tell(
    subject: &Subject,
    rules: &Settings,
    other: OtherRequest,
    mut each: impl FnMut(&Step),
) -> Result<Told, Problem> {
    let mut recorded = Lines::default();
    subject
        .history
        .under(&Settings::none(), OtherRequest::Stop, |step, engine| recorded.take(step, engine))
        .map_err(|error| Problem::usage(format!("{}: {error}", subject.name)))?;
    let mut supposed = Lines::default();
    let supposition = subject
        .history
        .under(rules, other, |step, engine| {
            supposed.take(step, engine);
            each(step);
        })
        .map_err(|error| unfounded(&subject.name, &error))?;
    let text = printable(&text(subject, rules, &supposition, &recorded, &supposed));
    Ok(Told { supposition, text })
}

pub(super) fn unfounded(name: &str, error: &Unfounded) -> Problem {
    Problem::usage(format!("{name}: {error}"))
}

/// A timeline, cut into steps.
#[derive(Default)]
struct Lines {
    timeline: Timeline,
    steps: Vec<String>,
}

impl Lines {
    fn take(&mut self, step: &Step, engine: &Engine) {
        let mut lines = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.timeline.step(step, engine, &mut lines);
        self.steps.push(String::from_utf8_lossy(&lines).into_owned());
    }

    fn from(&self, seq: u64) -> impl Iterator<Item = &String> {
        self.steps.iter().skip(usize::try_from(seq).unwrap_or(usize::MAX))
    }
}

fn text(subject: &Subject, rules: &Settings, supposition: &Supposition, recorded: &Lines, supposed: &Lines) -> String {
    let mut text = String::new();
    // Writing to memory cannot fail.
    let _ = writeln!(text, "what if {} had held for {}?", rules.to_text(), subject.name);
    let before = supposition.recorded.as_ref().map_or_else(|| "open: it has not ended".to_owned(), describe);
    let _ = writeln!(text, "recorded: {before}");
    let _ = writeln!(text, "supposed: {}", came_to(supposition));
    let Some(Change { seq, at_ms }) = supposition.change else {
        let _ = writeln!(text, "nothing changes: every step is the recorded one");
        return text;
    };
    let _ = writeln!(text, "the first difference is record {seq}, at {}.{:03} s", at_ms / 1_000, at_ms % 1_000);
    for (name, lines) in [("recorded", recorded), ("supposed", supposed)] {
        let _ = writeln!(text, "{name} from there on:");
        text.extend(lines.from(seq).map(String::as_str));
    }
    if !supposition.assumed.is_empty() {
        let records: Vec<String> = supposition.assumed.iter().map(u64::to_string).collect();
        let _ = writeln!(
            text,
            "assumed: the model would have answered the same, though it was shown something else, after record {}",
            records.join(", ")
        );
    }
    let _ = writeln!(text, "this is a supposition; the history is as it was");
    text
}

/// How a supposed run came out, in one line.
pub(super) fn came_to(supposition: &Supposition) -> String {
    match &supposition.supposed {
        Supposed::Ended(ending) => describe(ending),
        Supposed::Unanswered { seq, question, differs, .. } => {
            let asked = asked(question, *differs);
            let way_out = if *differs { "; --assume-same-answers goes on" } else { "" };
            format!("nobody knows: at record {seq} {asked}{way_out}")
        }
        Supposed::Open { waits } => {
            let waits: Vec<_> = waits.iter().map(Request::tag).collect();
            format!("open: the history ends while it waits for {}", waits.join(", "))
        }
    }
}

/// What was never asked, in words.
fn asked(question: &Request, differs: bool) -> String {
    match question {
        Effect::CallModel { call, attempt, .. } if differs => {
            format!("model {call}, attempt {attempt}, would be shown something else")
        }
        Effect::CallModel { call, attempt, .. } => format!("model {call}, attempt {attempt}, was never asked"),
        Effect::InvokeTool { call, attempt, .. } => format!("tool call {call}, attempt {attempt}, was never made"),
        Effect::JudgeSemantics { call, .. } => format!("the judge was never asked {call}"),
        Effect::ResolveEnvironment
        | Effect::StartTimer { .. }
        | Effect::AskGate { .. }
        | Effect::CallHook { .. }
        | Effect::PerformAction { .. }
        | Effect::DispatchTools { .. }
        | Effect::AdmitNested { .. }
        | Effect::DenyNested { .. }
        | Effect::AwaitDecision { .. }
        | Effect::ReconcileTool { .. }
        | Effect::AbortInFlight
        | Effect::Publish { .. } => format!("`{}` was never asked for", question.tag()),
    }
}
