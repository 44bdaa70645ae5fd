//! The wishes of running tools, and the answers that they wait for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use crate::engine::{Engine, Step};
use crate::machines::nested::{NESTED_MAX, State};
use crate::runtime::clock::Clock;
use crate::runtime::ports::{Denied, Line, Reply, Wish};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::ids::NestedCallId;
use crate::vocabulary::input::{GateAnswer, Input};
use crate::vocabulary::refusal::{Refusal, RefusalKind};
use crate::vocabulary::tool::ObservationCode;

/// Wishes that may wait for the driver; further tools wait.
const WISHES_MAX: usize = 16;

/// Whether a call may be made.
type Answer = Result<NestedCallId, Denied>;

/// The tools of one run that want to make calls of their own.
pub(super) struct Wishes {
    clock: Arc<dyn Clock>,
    counter: mpsc::Sender<Wish>,
    taken: mpsc::Receiver<Wish>,
    /// Who waits for a call to be let through.
    asked: BTreeMap<NestedCallId, Reply<Answer>>,
}

impl Wishes {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (counter, taken) = mpsc::channel(WISHES_MAX);
        Self { clock, counter, taken, asked: BTreeMap::new() }
    }

    /// A line for a tool that is entered.
    pub(super) fn line(&self) -> Line {
        Line::new(self.counter.clone(), Arc::clone(&self.clock))
    }

    /// The next wish.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Wish> {
        match self.taken.poll_recv(context) {
            Poll::Ready(Some(wish)) => Poll::Ready(wish),
            // A sender lives in here, so the last one is never gone.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Whether nobody has said anything.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Somebody waits for the answer to a request that is about to be taken.
    pub(super) fn expect(&mut self, nested: NestedCallId, reply: Reply<Answer>) {
        self.asked.insert(nested, reply);
    }

    /// The engine has refused the request.
    pub(super) fn refuse(&mut self, nested: NestedCallId, refusal: &Refusal) {
        self.answer(nested, Err(denied(nested, refusal)));
    }

    /// A step is durable: those whom it answers hear of it, and those whom nothing will answer any more.
    pub(super) fn tell(&mut self, engine: &Engine, step: &Step) {
        for effect in &step.effects {
            if let Effect::AdmitNested { nested } = effect {
                self.answer(*nested, Ok(*nested));
            }
            if let Effect::DenyNested { nested, code } = effect {
                self.answer(*nested, Err(Denied { code: *code, reason: said(&step.input) }));
            }
        }
        let asks = |nested: &NestedCallId| {
            engine.nested(*nested).is_some_and(|open| matches!(open.phase, State::Asking { .. }))
        };
        let over: Vec<NestedCallId> = self.asked.keys().copied().filter(|nested| !asks(nested)).collect();
        for nested in over {
            let ended = engine.ending().is_some();
            self.answer(nested, Err(if ended { Denied::inactive() } else { closed() }));
        }
    }

    fn answer(&mut self, nested: NestedCallId, answer: Answer) {
        if let Some(reply) = self.asked.remove(&nested) {
            reply.send(answer, self.clock.busy());
        }
    }
}

/// What a gate said that turned a call down.
fn said(input: &Input) -> Option<String> {
    let Input::GateAnswered { answer, .. } = input else { return None };
    match answer {
        GateAnswer::Block { reason } => reason.clone(),
        GateAnswer::SetResult { content } => Some(content.clone()),
        GateAnswer::Allow | GateAnswer::Confirm { .. } => None,
    }
}

/// The tool call that asks is over before it got an answer.
fn closed() -> Denied {
    let reason = Some("the tool call that asks is over".to_owned());
    Denied { code: ObservationCode::NotDispatched, reason }
}

/// A refused request, as its tool sees it.
fn denied(nested: NestedCallId, refusal: &Refusal) -> Denied {
    let reason = Some(refusal.reason.clone().unwrap_or_else(|| refusal.to_string()));
    match refusal.kind {
        RefusalKind::Terminal => Denied::inactive(),
        RefusalKind::Malformed if nested.index < NESTED_MAX => {
            Denied { code: ObservationCode::InvalidArguments, reason }
        }
        RefusalKind::Malformed => Denied { code: ObservationCode::NotDispatched, reason },
        RefusalKind::NotStarted
        | RefusalKind::AlreadyStarted
        | RefusalKind::Duplicate
        | RefusalKind::Conflict
        | RefusalKind::Unexpected
        | RefusalKind::Stale
        | RefusalKind::NotDue => closed(),
    }
}
