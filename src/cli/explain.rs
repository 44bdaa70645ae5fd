//! `portcullis explain`: why a run ended as it did, or what it waits for (SPEC 14).

use std::io::Write;

use super::ending::describe;
use super::exit::{Exit, Problem, printable};
use super::output::Output;
use super::place::Place;
use super::reasons::{
    called, decided_by, joined, layers, left, neighbour, observed, raised, seconds, turned, waiting_for, whereabouts,
};
use super::source::Source;
use super::stepped::{progress, step_through};
use crate::history::explain::{Account, Explanation, Known, Standing, Waiting, Witness};
use crate::vocabulary::input::Parent;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A history, or a run of the store. A file of that name is taken before a run.
    #[arg(value_name = "RUN|FILE")]
    history: String,
    /// It is a run, even if there is a file of that name.
    #[arg(long)]
    run: bool,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit, Problem> {
    let Source { name, lines, listed, .. } = Source::named(&arguments.history, arguments.run, &arguments.place)?;
    let bar = progress(listed.as_ref().map(|listed| listed.records), false);
    let mut witness = Witness::default();
    let stepped = step_through(&name, lines, &bar, |step, engine| {
        witness.see(step, engine);
        Ok(())
    })?;
    let Some(explanation) = witness.explain(&stepped.engine) else {
        return Err(Problem::new(Exit::Unexpected, format!("{name}: nothing began")));
    };
    let mut out = Output::stdout();
    if json {
        out.json(&explanation)?;
    } else {
        tell(&explanation, &mut out)?;
        if let Some(tail) = &stepped.tail {
            writeln!(out, "  The last line is cut ({} bytes): what it held is not known.", tail.bytes)?;
        }
    }
    out.finish()?;
    Ok(match explanation.standing {
        Standing::Ended(_) => Exit::Success,
        Standing::Open(waiting) if waiting.waits_for.iter().any(|wait| wait.by_a_person) => Exit::Awaiting,
        Standing::Open(_) => Exit::Open,
    })
}

/// A question, and the lines of its answer.
struct Answer<'a>(&'a str, Vec<String>);

fn tell(explanation: &Explanation, out: &mut impl Write) -> Result<(), Problem> {
    let (head, mut answers) = match &explanation.standing {
        Standing::Ended(account) => (describe(&account.ending), of_the_end(account)),
        Standing::Open(waiting) => ("open: the run has not ended".to_owned(), of_the_wait(waiting)),
    };
    if !explanation.turns.is_empty() {
        answers.push(Answer("What led to it?", explanation.turns.iter().map(turned).collect()));
    }
    answers.push(Answer("What was observed?", facts(&explanation.facts)));
    if !explanation.observations.is_empty() {
        let told = explanation.observations.iter().map(observed);
        let all = std::iter::once("The model was told of it each time, and the loop went on.".to_owned()).chain(told);
        answers.push(Answer("Which calls did not simply succeed?", all.collect()));
    }
    if let Some(Parent { run, seq, head }) = &explanation.forked_from {
        answers
            .push(Answer("Where did it begin?", vec![format!("It took over run {run} up to record {seq} ({head}).")]));
    }
    writeln!(out, "{}", printable(&format!("run {}, {}", explanation.run, head)))?;
    for Answer(question, lines) in answers {
        writeln!(out, "  {question}")?;
        for line in lines {
            writeln!(out, "    {}", printable(&line))?;
        }
    }
    Ok(())
}

fn of_the_end(account: &Account) -> Vec<Answer<'static>> {
    let decided = &account.decided;
    let record = format!("Record {} at {}, {}: ", decided.seq, seconds(decided.at_ms), decided.input);
    let signals = joined(decided.signals.iter().map(raised), ", ");
    let delivered = if account.delivered { "Its release was delivered." } else { "Its release has no receipt yet." };
    vec![
        Answer("What decided?", vec![decided_by(account).to_owned(), format!("{record}{signals}.")]),
        Answer("Inside the loop?", vec![whereabouts(decided.place).to_owned(), left(account.edge).to_owned()]),
        Answer("What else could have come?", account.not_taken.iter().map(neighbour).collect()),
        Answer("Do the layers agree?", vec![layers(&account.layers), delivered.to_owned()]),
    ]
}

fn of_the_wait(waiting: &Waiting) -> Vec<Answer<'static>> {
    let waits: Vec<String> = waiting.waits_for.iter().map(waiting_for).collect();
    let phase = format!("{} Its phase is {}.", whereabouts(waiting.place), waiting.phase);
    vec![Answer("What does it wait for?", waits), Answer("Inside the loop?", vec![phase])]
}

fn facts(known: &[Known]) -> Vec<String> {
    let published = known.iter().filter(|fact| fact.statement.is_some()).count();
    let count = match (known.len(), published) {
        (0, _) => return vec!["Nothing.".to_owned()],
        (1, 0) => "1 fact; it is not released.".to_owned(),
        (1, _) => "1 fact, and it is released.".to_owned(),
        (all, 0) => format!("{all} facts; none is released."),
        (all, some) if all == some => format!("{all} facts, all of them released."),
        (all, some) => format!("{all} facts, {some} of them released."),
    };
    let told = known.iter().map(|fact| {
        let origin = fact.origin.as_ref().map(|origin| format!(" ({} of {})", origin.fact, origin.run));
        let statement = fact.statement.as_ref().map(|statement| format!(": {}", called(statement)));
        format!("{} by {}{}{}", fact.id, fact.tool, origin.unwrap_or_default(), statement.unwrap_or_default())
    });
    std::iter::once(count).chain(told).collect()
}
