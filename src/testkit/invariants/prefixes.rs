//! A history stepped again, record by record, with questions to the state after each.

use super::{Breach, Broken, Invariant, refusals, unreadable, waiting, winners};
use crate::engine::Engine;
use crate::history::{Line, Lines, Next, Replay, Replayed, Stepper};
use crate::testkit::alphabet::Report;
use crate::testkit::world::{HookReply, Menu, Output, World};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::input::{Decision, GateAnswer, Reconciliation, Verdict};
use crate::vocabulary::llm::{self, FinishReason};
use crate::vocabulary::spec::Spec;
use crate::vocabulary::tool::{ToolError, ToolOutput};

/// What takes the inputs of a history again: an [`Engine`], or something that has one inside.
pub trait Subject: Stepper + Clone {
    /// The engine inside.
    fn engine(&self) -> &Engine;
}

impl Subject for Engine {
    fn engine(&self) -> &Engine {
        self
    }
}

/// A state that questions are put to. Whoever asks steps copies of the subject.
pub(super) struct Prefix<'a, S> {
    pub(super) subject: &'a S,
    /// What may be answered here.
    pub(super) world: &'a World,
    /// The report that led here.
    pub(super) last: &'a Report,
}

/// A question to a state: the reason why the answer is no.
type Question<S> = fn(&Prefix<'_, S>) -> Option<String>;

/// Steps `history` again and asks for the invariants in `asked` that need it. Damage is always found.
pub(super) fn check<S: Subject>(history: &[u8], asked: &[Invariant]) -> Vec<Breach> {
    let questions: [(Invariant, Question<S>); 3] = [
        (Invariant::RefusalChangesNothing, refusals::ask),
        (Invariant::OneWinner, winners::ask),
        (Invariant::NeverStuck, waiting::ask),
    ];
    let mut open: Vec<_> = questions.into_iter().filter(|(invariant, _)| asked.contains(invariant)).collect();
    let (mut lines, mut replay, mut world) = (Lines::new(history), Replay::<S>::default(), None);
    let mut found = Vec::new();
    loop {
        let seq = replay.records();
        let last = match next(&mut lines, &mut replay) {
            Ok(Some(last)) => last,
            Ok(None) if seq == 0 => return vec![unreadable(0, "there is no whole record")],
            Ok(None) => return found,
            Err(breach) => {
                found.push(breach);
                return found;
            }
        };
        let subject = replay.stepper();
        let Some(spec) = subject.engine().spec() else { continue };
        let world = world.get_or_insert_with(|| plain(spec));
        let prefix = Prefix { subject, world, last: &last };
        open.retain(|(invariant, ask)| {
            let reason = ask(&prefix);
            let broken = Broken::Invariant(*invariant);
            let breach = reason.map(|reason| Breach { broken, seq, reason });
            let holds = breach.is_none();
            found.extend(breach);
            holds
        });
    }
}

/// Steps the next record: the report that it holds, `None` after the last.
fn next<S: Subject>(lines: &mut Lines<&[u8]>, replay: &mut Replay<S>) -> Result<Option<Report>, Breach> {
    let seq = replay.records();
    let damaged = |fault: crate::history::Fault| unreadable(seq, fault.to_string());
    let line: Line<'_> = match lines.next_line().map_err(damaged)? {
        Next::Line(line) => line,
        Next::End | Next::Tail(_) => return Ok(None),
    };
    match replay.take(line).map_err(damaged)? {
        Replayed::Reproduced(step) => Ok(Some(Report { at_ms: step.at_ms, input: step.input })),
        // Values may be what a model wrote; the field is enough to find them.
        Replayed::Diverged(divergence) => {
            let reason = format!("stepped again, another {} comes out than is recorded", divergence.field);
            Err(Breach { broken: Broken::Invariant(Invariant::FoldIsRecord), seq, reason })
        }
    }
}

/// A plain answer to whatever a run may have outstanding, and what its spec limits.
fn plain(spec: &Spec) -> World {
    let message = || "nothing came".to_owned();
    let menu = Menu {
        unresolved: vec![ResolutionError::Routing { message: message() }],
        drafts: vec![(message(), FinishReason::Stop)],
        model_errors: vec![llm::Error::Timeout { message: message() }],
        outputs: vec![Output::Given(ToolOutput::text("nothing"))],
        tool_errors: vec![ToolError::Execution { message: message() }],
        tool_gates: vec![GateAnswer::Block { reason: None }],
        release_gates: vec![GateAnswer::Block { reason: None }],
        hooks: vec![HookReply::default()],
        decisions: vec![Decision::Deny { note: None }],
        verdicts: vec![Verdict::Unknown],
        reconciliations: vec![Reconciliation::Unknown],
        ..Menu::default()
    };
    World { name: "plain", spec: spec.clone(), menu, recoveries_max: 0 }
}
