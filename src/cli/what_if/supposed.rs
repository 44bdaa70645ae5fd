//! A supposed run as `--json` and `--out` show it: marked in every line, so that it never passes for a history.

use serde::Serialize;

use crate::engine::{Ending, Request, Step};
use crate::history::{Change, Supposed, Supposition};
use crate::vocabulary::json::Json;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Settings;

/// What came of supposing, one line.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    what_if: u8,
    run: &'a str,
    settings: Json,
    recorded: Option<&'a Ending>,
    supposed: End<'a>,
    change: Option<Place>,
    steps: u64,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    assumed: &'a [u64],
}

#[derive(Serialize)]
struct Place {
    seq: u64,
    at_ms: u64,
}

#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum End<'a> {
    Ended { ending: &'a Ending },
    Unanswered { seq: u64, at_ms: u64, question: &'static str, differs: bool },
    Open { waits: Vec<&'static str> },
}

impl<'a> Line<'a> {
    pub(super) fn new(run: &'a str, rules: &Settings, supposition: &'a Supposition) -> Self {
        let Supposition { recorded, supposed, change, steps, assumed, .. } = supposition;
        let supposed = match supposed {
            Supposed::Ended(ending) => End::Ended { ending },
            Supposed::Unanswered { seq, at_ms, question, differs } => {
                End::Unanswered { seq: *seq, at_ms: *at_ms, question: question.tag(), differs: *differs }
            }
            Supposed::Open { waits } => End::Open { waits: waits.iter().map(Request::tag).collect() },
        };
        Self {
            what_if: 1,
            run,
            settings: Json::parse(&rules.to_text()).unwrap_or(Json::Null),
            recorded: recorded.as_ref(),
            supposed,
            change: change.map(|Change { seq, at_ms }| Place { seq, at_ms }),
            steps: *steps,
            assumed,
        }
    }
}

/// A supposed step: what `show --json` shows of a step, no payloads.
#[derive(Serialize)]
pub(super) struct StepLine<'a> {
    what_if: u8,
    of: &'a str,
    seq: u64,
    at_ms: u64,
    input: &'static str,
    signals: Vec<&'static str>,
    effects: Vec<&'static str>,
}

impl<'a> StepLine<'a> {
    /// As a line with its end.
    pub(super) fn json(of: &'a str, step: &Step) -> String {
        let line = Self {
            what_if: 1,
            of,
            seq: step.seq,
            at_ms: step.at_ms,
            input: step.input.tag(),
            signals: step.signals.iter().map(Signal::tag).collect(),
            effects: step.effects.iter().map(Request::tag).collect(),
        };
        // A struct of numbers and words always has a JSON text.
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        text
    }
}
