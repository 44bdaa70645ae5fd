//! The people who are asked: they allow, deny, edit, and find out what interrupted calls did; late, twice, or not
//! before the faults stop.

use portcullis::runtime::{Question, Waiting};
use portcullis::vocabulary::ids::{RunId, ToolCallId};
use portcullis::vocabulary::input::{Decision, Reconciliation};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::tool::ToolOutput;

use crate::faults::Fault;
use crate::host::Host;
use crate::observed::PRIVATE;

/// Somebody is asked. Comes back when they have done what they do.
pub(crate) async fn asked(host: &Host, run: &RunId, waiting: &Waiting) {
    let Some(question) = waiting.questions.first() else { return };
    let (world, at) = (&host.process.world, format!("{run} {}", name(question)));
    if world.goes_wrong(Fault::PersonSilent, &at) {
        // They may be asked by others meanwhile, and so may the run go on.
        return host.process.pass(3_000).await;
    }
    let late = world.goes_wrong(Fault::PersonLate, &at);
    let wait_ms =
        if late { world.number("late_ms", &at, 4_000, 20_000) } else { world.number("thinks_ms", &at, 0, 900) };
    host.process.pass(wait_ms).await;
    host.process.act(format!("person {at}")).await;
    if world.goes_wrong(Fault::PersonAstray, &at) {
        let nobody = ToolCallId { round: 99, index: 0 };
        let astray = host.runtime.reconcile(run, nobody, "somebody", Reconciliation::NotApplied).await;
        host.told(run, "astray", astray.err());
    }
    answer(host, run, question, &at).await;
    if world.goes_wrong(Fault::PersonTwice, &at) {
        answer(host, run, question, &format!("{at} again")).await;
    }
}

/// What a question is about.
pub(crate) fn name(question: &Question) -> String {
    match question {
        Question::Decision { ticket, .. } => format!("decision {ticket}"),
        Question::Reconciliation { call, .. } => format!("reconciliation {call}"),
    }
}

async fn answer(host: &Host, run: &RunId, question: &Question, at: &str) {
    let world = &host.process.world;
    let answered = match question {
        Question::Decision { ticket, .. } => {
            let decision = match world.choose("decision", at, &[3, 1, 1, 1]) {
                0 => Decision::Allow,
                1 => Decision::Deny { note: Some(format!("{PRIVATE} note")) },
                2 => Decision::AllowWith { arguments: Json::parse(r#"{"of":"something else"}"#).unwrap() },
                _ => Decision::AllowWith { arguments: Json::Null },
            };
            host.runtime.decide(run, ticket.clone(), "a person", decision).await
        }
        Question::Reconciliation { call, .. } => {
            let found = match world.choose("reconciliation", at, &[2, 2, 1]) {
                0 => Reconciliation::NotApplied,
                1 => Reconciliation::Applied { output: ToolOutput::text(format!("{PRIVATE} result")) },
                _ => Reconciliation::Unknown,
            };
            host.runtime.reconcile(run, *call, "a person", found).await
        }
    };
    host.told(run, "answer", answered.err());
}
