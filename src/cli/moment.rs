//! One record of a history, looked at closely: what came in, what it did, and the whole state after it. Names, ids,
//! codes and sizes, unless payloads are asked for (SPEC 3.U4).

use std::io::{BufWriter, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use super::exit::{Exit, Problem, note, printable};
use super::output::Output;
use super::reasons::{joined, raised, seconds, waiting_for};
use super::subject::visible;
use super::timeline::said;
use crate::engine::{Engine, Request, Step};
use crate::history::explain::{Raised, Wait};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;

/// What of a record is privileged and shown all the same.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Privileged {
    /// What others said when they failed.
    pub(crate) errors: bool,
    /// The whole input.
    pub(crate) payloads: bool,
}

/// A step, and the state that it left.
pub(crate) struct Moment {
    step: Step,
    engine: Engine,
    happened: String,
}

/// A moment as `--json` shows it.
#[derive(Serialize)]
struct MomentLine<'a> {
    run: &'a RunId,
    records: u64,
    seq: u64,
    at_ms: u64,
    input: InputLine<'a>,
    signals: Vec<Raised>,
    effects: &'a [Request],
    outstanding: Vec<Wait>,
    expected: Vec<&'static str>,
    state: &'a RawValue,
}

#[derive(Serialize)]
struct InputLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Of its JSON text.
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
}

impl Moment {
    /// The moment after a step. `happened` is how the timeline says it.
    pub(crate) fn new(step: &Step, engine: &Engine, happened: String) -> Self {
        Self { step: step.clone(), engine: engine.clone(), happened }
    }

    /// Shows it; `records` is how many the history has.
    pub(crate) fn show(&self, records: u64, privileged: Privileged, json: bool) -> Result<Exit, Problem> {
        let unwritten = |error: serde_json::Error| Problem::new(Exit::Unexpected, error.to_string());
        let input = serde_json::value::to_raw_value(&self.step.input).map_err(unwritten)?;
        let state = RawValue::from_string(self.engine.decider().state_json()).map_err(unwritten)?;
        if privileged.payloads {
            note!("portcullis: privileged: what models, tools and people wrote, and nothing has released it");
        }
        let mut out = Output::new(BufWriter::new(std::io::stdout().lock()));
        if json {
            out.json(&self.line(records, privileged, &input, &state)?)?;
        } else {
            self.tell(records, privileged, &input, &state, &mut out)?;
        }
        out.finish()?;
        Ok(Exit::Success)
    }

    fn line<'a>(
        &'a self,
        records: u64,
        privileged: Privileged,
        input: &'a RawValue,
        state: &'a RawValue,
    ) -> Result<MomentLine<'a>, Problem> {
        let Self { step, engine, .. } = self;
        let run = engine.run_id().ok_or_else(|| Problem::new(Exit::Unexpected, "nothing began"))?;
        let input = InputLine {
            kind: step.input.tag(),
            bytes: input.get().len() as u64,
            said: privileged.errors.then(|| said(&step.input)).flatten(),
            payload: privileged.payloads.then_some(input),
        };
        Ok(MomentLine {
            run,
            records,
            seq: step.seq,
            at_ms: step.at_ms,
            input,
            signals: step.signals.iter().map(Raised::of).collect(),
            effects: &step.effects,
            outstanding: engine.outstanding().iter().map(Wait::of).collect(),
            expected: engine.expected(),
            state,
        })
    }

    fn tell(
        &self,
        records: u64,
        privileged: Privileged,
        input: &RawValue,
        state: &RawValue,
        out: &mut impl Write,
    ) -> Result<(), Problem> {
        let Self { step, engine, happened } = self;
        writeln!(out, "record {} of {records} (0 to {})", step.seq, records.saturating_sub(1))?;
        writeln!(out, "  at         {}", seconds(step.at_ms))?;
        let bytes = input.get().len();
        writeln!(out, "  input      {}, {bytes} bytes", step.input.tag())?;
        writeln!(out, "             {}", printable(happened))?;
        if let Some(said) = privileged.errors.then(|| said(&step.input)).flatten() {
            writeln!(out, "             it says: {}", printable(&said.replace('\n', " ")))?;
        }
        if privileged.payloads {
            writeln!(out, "             {}", visible(input.get()))?;
        }
        let signals = step.signals.iter().map(|signal| raised(&Raised::of(signal)));
        list(out, "signals", signals)?;
        list(out, "effects", step.effects.iter().map(|effect| waiting_for(&Wait::of(effect))))?;
        list(out, "waits for", engine.outstanding().iter().map(|effect| waiting_for(&Wait::of(effect))))?;
        list(out, "accepts", std::iter::once(joined(engine.expected().into_iter().map(str::to_owned), ", ")))?;
        let state = Json::parse(state.get()).unwrap_or(Json::Null);
        let members = state.as_object().into_iter().flatten();
        list(out, "state", members.map(|(name, value)| format!("{name:<15} {}", visible(&value.to_text()))))
    }
}

/// Lines under one heading.
fn list(out: &mut impl Write, heading: &str, lines: impl Iterator<Item = String>) -> Result<(), Problem> {
    let mut heading = heading;
    for line in lines {
        writeln!(out, "  {heading:<10} {}", printable(&line))?;
        heading = "";
    }
    if !heading.is_empty() {
        writeln!(out, "  {heading:<10} none")?;
    }
    Ok(())
}
