//! `portcullis cancel`, `decide` and `reconcile`: what a person says to a run of the store, whoever drives it
//! (SPEC 7.8, 14).

use super::carry_on::{Carrier, Reason};
use super::configuration::Configuration;
use super::exit::{Exit, Problem};
use super::place::Place;
use crate::vocabulary::ids::{RunId, Ticket, ToolCallId};
use crate::vocabulary::input::{CancelOrigin, Decision, Input, Reconciliation};
use crate::vocabulary::json::Json;
use crate::vocabulary::tool::ToolOutput;

/// Who speaks, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Speaker {
    /// Who says it, for the history [default: $USER]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Who sits here.
pub(super) fn user() -> String {
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
    user.unwrap_or_else(|| "somebody at the command line".to_owned())
}

impl Speaker {
    fn name(&self) -> String {
        self.by.clone().unwrap_or_else(user)
    }

    async fn say(&self, run: &RunId, input: Input, live: &Configuration, json: bool) -> Result<Exit, Problem> {
        let carrier = Carrier::new(&self.place, live, json, false)?;
        let exit = carrier.carry(run, Reason::Told(input)).await?;
        carrier.screen.finish()?;
        Ok(exit)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// The run.
    run: RunId,
    #[command(flatten)]
    speaker: Speaker,
}

pub(crate) async fn cancel(arguments: &Cancel, json: bool) -> Result<Exit, Problem> {
    let Cancel { run, speaker } = arguments;
    let input = Input::CancelRequested { by: speaker.name(), origin: CancelOrigin::Caller };
    speaker.say(run, input, &Configuration::default(), json).await
}

#[derive(Debug, clap::Args)]
pub(crate) struct Decide {
    /// The run.
    run: RunId,
    /// The ticket of the call; `portcullis show RUN` names it.
    ticket: String,
    /// Whether the call may run.
    decision: Word,
    /// Let it run with these arguments instead: a JSON object.
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Why not; the model sees it.
    #[arg(long, value_name = "TEXT", conflicts_with = "arguments")]
    note: Option<String>,
    #[command(flatten)]
    speaker: Speaker,
    #[command(flatten)]
    live: Configuration,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Word {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
}

pub(crate) async fn decide(arguments: &Decide, json: bool) -> Result<Exit, Problem> {
    let Decide { run, ticket, decision, arguments: edited, note, speaker, live } = arguments;
    let decision = match (decision, edited, note) {
        (Word::Allow, None, None) => Decision::Allow,
        (Word::Allow, Some(text), None) => {
            let arguments = Json::parse_bytes(text.as_bytes());
            Decision::AllowWith {
                arguments: arguments.map_err(|error| Problem::usage(format!("--arguments: {error}")))?,
            }
        }
        (Word::Deny, None, note) => Decision::Deny { note: note.clone() },
        (Word::Allow, _, Some(_)) => {
            return Err(Problem::usage("--note says why a call may not run: it goes with deny"));
        }
        (Word::Deny, Some(_), _) => {
            return Err(Problem::usage("--arguments says with what a call runs: it goes with allow"));
        }
    };
    let input = Input::DecisionGiven { ticket: Ticket(ticket.clone()), by: speaker.name(), decision };
    speaker.say(run, input, live, json).await
}

#[derive(Debug, clap::Args)]
pub(crate) struct Reconcile {
    /// The run.
    run: RunId,
    /// The call whose outcome is not known; `portcullis show RUN` names it.
    call: ToolCallId,
    /// What it did.
    outcome: Finding,
    /// What it returned: the model sees it. Needed with `applied`.
    #[arg(long, value_name = "TEXT")]
    content: Option<String>,
    /// A fact that it brought; may be given several times.
    #[arg(long, value_name = "STATEMENT", requires = "content", conflicts_with = "failed")]
    fact: Vec<String>,
    /// What it returned is an error of the tool's own.
    #[arg(long, requires = "content")]
    failed: bool,
    #[command(flatten)]
    speaker: Speaker,
    #[command(flatten)]
    live: Configuration,
}

/// What a person found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Finding {
    /// It happened.
    Applied,
    /// Nothing happened.
    NotApplied,
    /// It cannot be found out.
    Unknown,
}

pub(crate) async fn reconcile(arguments: &Reconcile, json: bool) -> Result<Exit, Problem> {
    let Reconcile { run, call, outcome, content, fact, failed, speaker, live } = arguments;
    let outcome = match (outcome, content) {
        (Finding::Applied, Some(content)) if *failed => {
            Reconciliation::Applied { output: ToolOutput::error(content.clone()) }
        }
        (Finding::Applied, Some(content)) => {
            let facts = fact.iter().map(crate::vocabulary::fact::Statement::new);
            Reconciliation::Applied { output: ToolOutput::facts(content.clone(), facts) }
        }
        (Finding::Applied, None) => {
            return Err(Problem::usage("what happened has a result: say with --content what it returned"));
        }
        (Finding::NotApplied, None) => Reconciliation::NotApplied,
        (Finding::Unknown, None) => Reconciliation::Unknown,
        (Finding::NotApplied | Finding::Unknown, Some(_)) => {
            return Err(Problem::usage("--content says what a call returned: it goes with applied"));
        }
    };
    let input = Input::ToolReconciled { call: *call, by: speaker.name(), outcome };
    speaker.say(run, input, live, json).await
}
