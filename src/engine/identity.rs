//! When two states are the same for everything that may still happen: what an explorer needs so that it
//! visits each state once (SPEC 13.9).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::core::{Core, Recoveries};
use super::encoding::encode;
use super::{Decider, Ending};
use crate::machines::batch::{Batch, Closing, Unknowns};
use crate::machines::clock::Clock;
use crate::machines::shared::Identity as Shared;
use crate::machines::{collection, consultation, inference, release, run};
use crate::vocabulary::digest::Digest;

/// A running run. Left out is what no rule reads: the place in the history, the transcript's text, and
/// counters that are only reported.
#[derive(Serialize)]
struct Running<'a, N> {
    clock: &'a Clock,
    run: &'a run::State,
    inference: &'a inference::State,
    model: u32,
    environment: Option<Digest>,
    batch: Option<&'a Batch>,
    nested: N,
    closings: Vec<Option<&'a Closing>>,
    rounds: u32,
    asks: u32,
    unknowns: &'a Unknowns,
    scopes: &'a BTreeSet<Digest>,
    collection: &'a collection::State,
    facts: Digest,
    known: &'a BTreeSet<Digest>,
    release: &'a release::State,
    consultation: &'a consultation::State,
    context: Option<Digest>,
    shared: Shared,
    actions: u32,
    spent: Spent<'a>,
    recoveries: &'a Recoveries,
    transcript_full: bool,
}

/// What the gates read of the ledger, and what ids are made of.
#[derive(Serialize)]
struct Spent<'a> {
    model_calls: u64,
    judge_calls: u64,
    tool_calls: u64,
    tool_calls_by_tool: &'a BTreeMap<Arc<str>, u64>,
    tokens: u64,
    cost_micros: u64,
    marked: bool,
}

/// A run that has ended: nothing but its delivery and its takeovers can still move.
#[derive(Serialize)]
struct Ended<'a> {
    ending: &'a Ending,
    delivered: bool,
    recoveries: &'a Recoveries,
}

impl Decider {
    /// A digest that two states share only when they answer every further report alike, apart from the place
    /// in the history and the text of the transcript.
    #[must_use]
    pub fn identity(&self) -> Digest {
        let bytes = match self.core() {
            None => Vec::new(),
            Some(core) => match &core.ending {
                Some((ending, _)) => {
                    let delivered = matches!(core.release, release::State::Delivered { .. });
                    encode(&Ended { ending, delivered, recoveries: &core.recoveries })
                }
                None => encode(&running(core)),
            },
        };
        Digest::of("portcullis.identity.2", &[&bytes])
    }

    /// The state as a record shows it, as bytes that are the same only where its text is; for comparing. Empty
    /// before the first input.
    #[must_use]
    pub fn state_bytes(&self) -> Vec<u8> {
        self.core().map(|core| encode(&core.view())).unwrap_or_default()
    }
}

fn running(core: &Core) -> Running<'_, impl Serialize> {
    let ledger = &core.ledger;
    let calls = core.tools.batch.iter().flat_map(|batch| &batch.calls);
    Running {
        clock: &core.clock,
        run: &core.run,
        inference: &core.inference,
        model: core.model,
        environment: core.tools.toolbox.as_ref().map(|toolbox| toolbox.digest()),
        batch: core.tools.batch.as_ref(),
        nested: core.tools.nested.identity(),
        closings: calls.map(|call| call.closing.as_ref().map(|staged| &staged.closing)).collect(),
        rounds: core.tools.rounds,
        asks: core.asks,
        unknowns: &core.tools.unknowns,
        scopes: &core.tools.scopes,
        collection: &core.collection,
        facts: core.facts.digest(),
        known: core.facts.known(),
        release: &core.release,
        consultation: &core.consultation,
        context: core.context_digest(),
        shared: core.shared.identity(),
        actions: core.actions,
        spent: Spent {
            model_calls: ledger.model_calls,
            judge_calls: ledger.judge_calls,
            tool_calls: ledger.tool_calls,
            tool_calls_by_tool: &ledger.tool_calls_by_tool,
            tokens: ledger.input_tokens.saturating_add(ledger.output_tokens),
            cost_micros: ledger.cost_micros,
            marked: ledger.marked,
        },
        recoveries: &core.recoveries,
        transcript_full: core.transcript.bytes > core.spec().limits.transcript_bytes_max,
    }
}
