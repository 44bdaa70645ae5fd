//! The machines side by side, and the state that a record shows of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::outbox::Outbox;
use super::table::Ending;
use crate::machines::batch::{Batch, Unknowns};
use crate::machines::clock::Clock;
use crate::machines::collection::{self, Facts};
use crate::machines::consultation;
use crate::machines::inference;
use crate::machines::ledger::Ledger;
use crate::machines::nested::{self, NestedCalls};
use crate::machines::release::{self, Release};
use crate::machines::run;
use crate::machines::schema::Schema;
use crate::machines::shared::{Shared, SharedView};
use crate::machines::toolbox::Toolbox;
use crate::machines::{self, Label, Machine};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::ids::{Ask, RunId};
use crate::vocabulary::message::Message;
use crate::vocabulary::spec::Spec;

/// What a run was started with.
#[derive(Debug)]
pub(crate) struct Charter {
    pub(crate) run: RunId,
    pub(crate) nonce: String,
    pub(crate) spec: Arc<Spec>,
    pub(crate) data_schema: Option<Schema>,
}

/// Tools: what may be called, what is being called, and what is known of earlier calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    pub(crate) toolbox: Option<Arc<Toolbox>>,
    pub(crate) batch: Option<Batch>,
    pub(crate) nested: NestedCalls,
    pub(crate) rounds: u32,
    pub(crate) unknowns: Unknowns,
    pub(crate) scopes: BTreeSet<Digest>,
    pub(crate) scopes_digest: Option<Digest>,
}

/// How often the run was taken over.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Recoveries {
    pub(crate) epoch: u64,
    /// Recoveries in a row that found work under way and saw no report since.
    pub(crate) crashes: u32,
}

/// The transcript's size and running digest; its text is kept by those who need it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Tally {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
}

/// One run: every machine, side by side.
#[derive(Debug, Clone)]
pub(crate) struct Core {
    /// Never changes: copies of a run share it.
    pub(crate) charter: Arc<Charter>,
    pub(crate) seq: u64,
    pub(crate) clock: Clock,
    pub(crate) run: run::State,
    pub(crate) inference: inference::State,
    /// Which model of the spec is asked: a replaced one is not gone back to.
    pub(crate) model: u32,
    pub(crate) tools: Tools,
    pub(crate) asks: u32,
    pub(crate) consultation: consultation::State,
    /// What plugins add to the next model request.
    pub(crate) context: Vec<Arc<Message>>,
    pub(crate) shared: Shared,
    /// How many actions the open commit batch has scheduled.
    pub(crate) actions: u32,
    pub(crate) collection: collection::State,
    pub(crate) facts: Facts,
    pub(crate) release: release::State,
    pub(crate) ledger: Ledger,
    pub(crate) recoveries: Recoveries,
    pub(crate) transcript: Tally,
    pub(crate) ending: Option<(Ending, Arc<Release>)>,
}

impl Core {
    pub(crate) fn new(charter: Charter) -> Self {
        Self {
            seq: 0,
            clock: Clock::new(charter.spec.deadline_ms),
            run: run::State::Created,
            inference: inference::State::Idle,
            model: 0,
            tools: Tools::default(),
            asks: 0,
            consultation: consultation::State::Silent,
            context: Vec::new(),
            shared: Shared::new(&charter.spec.prior_state),
            actions: 0,
            collection: collection::State::START,
            facts: Facts::default(),
            release: release::State::Waiting,
            ledger: Ledger::default(),
            recoveries: Recoveries::default(),
            transcript: Tally { messages: 0, bytes: 0, digest: Digest::ZERO },
            ending: None,
            charter: Arc::new(charter),
        }
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.charter.spec
    }

    /// The next question to a gate.
    pub(crate) fn next_ask(&mut self) -> Ask {
        self.asks = self.asks.saturating_add(1);
        Ask(self.asks)
    }

    /// Of what plugins add to the next model request; none when they add nothing.
    pub(crate) fn context_digest(&self) -> Option<Digest> {
        (!self.context.is_empty()).then(|| {
            let bytes = serde_json::to_vec(&self.context).unwrap_or_default();
            Digest::of("portcullis.context.1", &[&bytes])
        })
    }

    /// How much that is.
    pub(crate) fn context_bytes(&self) -> u64 {
        self.context.iter().map(|message| serde_json::to_vec(message).map_or(0, |bytes| bytes.len() as u64)).sum()
    }

    /// Adds to the transcript.
    pub(crate) fn say(&mut self, message: Message, out: &mut Outbox) {
        let bytes = serde_json::to_vec(&message).unwrap_or_default();
        self.transcript = Tally {
            messages: self.transcript.messages.saturating_add(1),
            bytes: self.transcript.bytes.saturating_add(bytes.len() as u64),
            digest: Digest::of("portcullis.transcript.1", &[self.transcript.digest.as_bytes(), &bytes]),
        };
        out.messages.push(Arc::new(message));
    }
}

/// Offers `event` to one machine, and says whether it accepted it.
pub(crate) fn offer<M: Machine>(state: &mut M::State, event: &M::Event, out: &mut Outbox) -> bool {
    let taken = machines::offer::<M>(state, event);
    out.transitions.extend(taken);
    taken.is_some()
}

/// Moves one machine. Inputs were admitted before, so a refusal here is a bug; it fails closed, as
/// `internal`, and never silently.
pub(crate) fn drive<M: Machine>(state: &mut M::State, event: &M::Event, out: &mut Outbox) {
    if !offer::<M>(state, event, out) {
        debug_assert!(false, "{} in {} refuses {}", M::CHART.machine, state.label(), event.label());
        out.raise(super::outbox::Raised::ExecutionFailed(Failure::Internal));
    }
}

/// The state in a record: bounded, whatever the run has grown to (SPEC 13).
#[derive(Serialize)]
pub(crate) struct StateView<'a> {
    run: &'a run::State,
    inference: &'a inference::State,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<&'a Batch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nested: Option<nested::View<'a>>,
    collection: &'a collection::State,
    release: &'a release::State,
    clock: &'a Clock,
    ledger: &'a Ledger,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Digest>,
    model: u32,
    rounds: u32,
    asks: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    consultation: Option<&'a consultation::State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<SharedView>,
    #[serde(skip_serializing_if = "is_zero")]
    actions: u32,
    facts: Sum,
    scopes: Sum,
    unknown_effects: u64,
    transcript: &'a Tally,
    recoveries: &'a Recoveries,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<&'a Ending>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct Sum {
    count: u64,
    digest: Digest,
}

impl Core {
    pub(crate) fn view(&self) -> StateView<'_> {
        StateView {
            run: &self.run,
            inference: &self.inference,
            batch: self.tools.batch.as_ref(),
            nested: self.tools.nested.view(),
            collection: &self.collection,
            release: &self.release,
            clock: &self.clock,
            ledger: &self.ledger,
            environment: self.tools.toolbox.as_ref().map(|toolbox| toolbox.digest()),
            model: self.model,
            rounds: self.tools.rounds,
            asks: self.asks,
            consultation: Some(&self.consultation).filter(|state| **state != consultation::State::Silent),
            context: self.context_digest().map(|digest| Sum { count: self.context.len() as u64, digest }),
            shared: self.shared.view(),
            actions: self.actions,
            facts: Sum { count: u64::from(self.facts.count()), digest: self.facts.digest() },
            scopes: Sum {
                count: self.tools.scopes.len() as u64,
                digest: self.tools.scopes_digest.unwrap_or(Digest::ZERO),
            },
            unknown_effects: self.tools.unknowns.count(),
            transcript: &self.transcript,
            recoveries: &self.recoveries,
            ending: self.ending.as_ref().map(|(ending, _)| ending),
        }
    }
}
