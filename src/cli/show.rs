//! `portcullis show`: what happened in a run, and what it waits for (SPEC 14).

use std::io::{BufRead, BufWriter, IsTerminal, Write};

use serde::Serialize;

use super::ending::{EndingLine, OpenLine, describe};
use super::exit::{Exit, Problem, printable};
use super::moment::{Moment, Privileged};
use super::output::Output;
use super::place::{Place, quoted};
use super::questions::{self, QuestionLine};
use super::source::{Carrier, Source};
use super::stepped::{Stepped, agrees, progress, step_through};
use super::subject::{self, Wanted};
use super::timeline::{Timeline, said};
use crate::engine::Step;
use crate::history::Tail;
use crate::runtime::Question;
use crate::runtime::store::{Listed, Owner, Standing};
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::{Input, Parent};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A history, or a run of the store. A file of that name is taken before a run.
    #[arg(value_name = "RUN|FILE")]
    history: String,
    /// It is a run, even if there is a file of that name.
    #[arg(long)]
    run: bool,
    /// Prints the tool and arguments that this ticket is about, and nothing else. Privileged.
    #[arg(long, conflicts_with = "call")]
    ticket: Option<String>,
    /// The same for a call whose outcome nobody knows, or that waits for a decision.
    #[arg(long)]
    call: Option<ToolCallId>,
    /// Also what a model, a judge or a tool said when it failed. Privileged: it may hold text that was not released.
    #[arg(long, conflicts_with_all = ["ticket", "call"])]
    errors: bool,
    /// This record alone: its input, signals and effects, the whole state after it, and what is outstanding.
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["ticket", "call"])]
    step: Option<u64>,
    /// With --step, also the input as it was written. Privileged: it may hold text that was not released.
    #[arg(long, requires = "step")]
    payloads: bool,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let Source { name, listed, lines, carrier } = Source::named(&arguments.history, arguments.run, &arguments.place)?;
    if let Some(seq) = arguments.step {
        return look_closely(&name, lines, seq, arguments, json);
    }
    let wanted = arguments.ticket.clone().map(Wanted::Ticket).or(arguments.call.map(Wanted::Call));
    let quiet = wanted.is_none() && std::io::stdout().is_terminal();
    let bar = progress(listed.as_ref().map(|listed| listed.records), quiet);
    let mut out = Output::new(BufWriter::new(std::io::stdout().lock()));
    let mut timeline = Timeline::of_a_history(arguments.errors);
    let mut parent = None;
    let stepped = step_through(&name, lines, &bar, |step, engine| {
        if let Input::RunStarted { forked_from, .. } = &step.input {
            parent.clone_from(forked_from);
        }
        match (&wanted, json) {
            (Some(_), _) => {}
            (None, true) => out.json(&StepLine::new(step, arguments.errors))?,
            (None, false) => timeline.step(step, engine, &mut out)?,
        }
        Ok(())
    });
    // What was shown before a fault stands before it.
    out.flush()?;
    let stepped = stepped?;
    if let Some(listed) = &listed {
        let Stepped { run, records, head, .. } = &stepped;
        let damaged = |reason| Problem::new(Exit::Corrupt, format!("{name}: damaged: {reason}"));
        agrees(listed, run, *records, *head).map_err(damaged)?;
    }
    if let Some(wanted) = wanted {
        return subject::show(&stepped, &wanted);
    }
    let open = questions::open(&stepped.engine);
    if json {
        out.json(&Shown::new(&stepped, &open, parent.as_ref()))?;
    } else {
        let kept = Kept { name: &name, listed: listed.as_ref(), carrier, store: arguments.place.again() };
        if let Some(Parent { run, seq, head }) = &parent {
            writeln!(out, "{}", printable(&format!("forked from {run} after record {seq}, head {head}")))?;
        }
        kept.end(&stepped, &open, &mut out)?;
    }
    out.finish()?;
    Ok(exit(&stepped))
}

/// Shows one record of a history, which is stepped to its end all the same: nothing is shown of a damaged one.
fn look_closely(name: &str, lines: impl BufRead, seq: u64, arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let (mut timeline, mut found) = (Timeline::of_a_history(false), None);
    let stepped = step_through(name, lines, &progress(None, true), |step, engine| {
        timeline.step(step, engine, &mut std::io::sink())?;
        if step.seq == seq {
            found = Some(Moment::new(step, engine, timeline.sentence(step, engine)));
        }
        Ok(())
    })?;
    let records = stepped.records;
    let Some(moment) = found else {
        let last = records.saturating_sub(1);
        return Err(Problem::usage(format!("{name}: there is no record {seq}: it has {records}, 0 to {last}")));
    };
    let privileged = Privileged { errors: arguments.errors, payloads: arguments.payloads };
    moment.show(records, privileged, json)
}

fn exit(stepped: &Stepped) -> Exit {
    if stepped.tail.is_some() {
        return Exit::Open;
    }
    match Standing::of(&stepped.engine, 0) {
        Standing::Ended { .. } => Exit::Success,
        Standing::Awaiting { .. } => Exit::Awaiting,
        Standing::Running => Exit::Open,
    }
}

/// Where a history is kept, for what to type next.
struct Kept<'a> {
    name: &'a str,
    listed: Option<&'a Listed>,
    /// What can carry it on.
    carrier: Carrier,
    /// The option that names the store.
    store: String,
}

impl Kept<'_> {
    /// The ending, or what is waited for and what to type next.
    fn end(&self, stepped: &Stepped, open: &[Question], out: &mut impl Write) -> Result<(), Problem> {
        let mut say = |line: &str| writeln!(out, "{}", printable(line));
        match stepped.engine.ending() {
            Some(ending) => say(&describe(ending))?,
            None if open.is_empty() => say("open: the run has not ended")?,
            None => say("open: the run awaits a person")?,
        }
        for question in open {
            say(&format!("  {}", questions::asked(question)))?;
            say(&format!("    {}", questions::see(&self.typed(), question)))?;
            if self.listed.is_some() && self.carrier != Carrier::Elsewhere {
                say(&format!("    {}", questions::answer(&stepped.run, question, &self.options())))?;
            }
        }
        if let Some(Tail { bytes, offset, .. }) = &stepped.tail {
            say(&format!("the last line is cut ({bytes} bytes from byte {offset}): what it held is not known"))?;
        }
        if let Some(line) = self.next(stepped, open) {
            say(&line)?;
        }
        say(&format!("{} records, head {}", stepped.records, stepped.head))?;
        Ok(())
    }

    /// The history as it has to be typed again.
    fn typed(&self) -> String {
        match self.listed {
            Some(listed) => format!("{}{}", listed.run, self.store),
            None => quoted(self.name),
        }
    }

    /// The options of whatever carries it on.
    fn options(&self) -> String {
        format!("{}{}", self.store, self.carrier.option())
    }

    /// What can be done with a run that is not over.
    fn next(&self, stepped: &Stepped, open: &[Question]) -> Option<String> {
        let ended = stepped.engine.ending().is_some();
        let undelivered = ended && !stepped.engine.decider().is_delivered();
        let state = match (undelivered, ended, open.is_empty()) {
            (true, _, _) => "the release has no receipt yet",
            (false, false, true) => "its work was under way",
            (false, false, false) if self.listed.is_none() => "it waits",
            (false, false, false) if self.carrier == Carrier::Elsewhere => "it waits",
            (false, _, _) => return None,
        };
        let Some(listed) = self.listed else {
            return Some(format!("{state}; this is a file, and goes on after `portcullis import {}`", self.typed()));
        };
        Some(match &listed.owner {
            Owner::Living { name } => format!("{state}; {name} drives it"),
            Owner::Nobody | Owner::Dead { .. } if self.carrier == Carrier::Elsewhere => {
                format!("{state}; only the program that has its model and tools can carry it on")
            }
            Owner::Nobody | Owner::Dead { .. } => {
                format!("{state}, and nobody drives it: portcullis resume {}{}", stepped.run, self.options())
            }
        })
    }
}

/// A step as `--json` shows it: no payloads.
#[derive(Serialize)]
struct StepLine {
    seq: u64,
    at_ms: u64,
    input: &'static str,
    signals: Vec<&'static str>,
    effects: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
}

impl StepLine {
    fn new(step: &Step, errors: bool) -> Self {
        Self {
            said: errors.then(|| said(&step.input)).flatten(),
            seq: step.seq,
            at_ms: step.at_ms,
            input: step.input.tag(),
            signals: step.signals.iter().map(crate::vocabulary::signal::Signal::tag).collect(),
            effects: step.effects.iter().map(crate::engine::Request::tag).collect(),
        }
    }
}

/// The last line of `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    ending: Ended<'a>,
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<&'a Parent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    awaiting: Vec<QuestionLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Cut>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Ended<'a> {
    Ended(EndingLine<'a>),
    Open(OpenLine<'a>),
}

/// A last line without its line end.
#[derive(Serialize)]
struct Cut {
    offset: u64,
    bytes: u64,
}

impl<'a> Shown<'a> {
    fn new(stepped: &'a Stepped, open: &'a [Question], forked_from: Option<&'a Parent>) -> Self {
        let Stepped { engine, run, records, head, tail } = stepped;
        let (ledger, delivered) = (engine.ledger(), engine.decider().is_delivered());
        let ending = match engine.ending() {
            Some(ending) => Ended::Ended(EndingLine::new(run, ending, ledger, *records, *head)),
            None => Ended::Open(OpenLine::new(run, ledger, *records, *head)),
        };
        let cut = tail.as_ref().map(|tail| Cut { offset: tail.offset, bytes: tail.bytes });
        Self { ending, delivered, forked_from, awaiting: open.iter().map(QuestionLine::from).collect(), cut }
    }
}
