//! Whether states that count as one are one: a sample of those that were met again is expanded as well, and must
//! come to the same states by the same answers.

use super::search::{Identity, branches};
use crate::engine::Engine;
use crate::testkit::world::World;
use crate::vocabulary::digest::Digest;

/// So many meetings are looked into at first, where a world is small enough to have few,
const FIRST: u64 = 64;

/// and then one in so many.
const SAMPLED: u64 = 256;

/// Sampled states, and the future of every state that was expanded.
#[derive(Default)]
pub(super) struct Twins {
    meetings: u64,
    sample: Vec<(Engine, u32)>,
    futures: Vec<Digest>,
}

impl Twins {
    /// A state that counts as the one at `place`.
    pub(super) fn meet(&mut self, engine: &Engine, place: u32) {
        self.meetings = self.meetings.saturating_add(1);
        if self.meetings <= FIRST || self.meetings.is_multiple_of(SAMPLED) {
            self.sample.push((engine.clone(), place));
        }
    }

    /// The states to which the answers of the next place lead, in their order. Places are expanded in theirs.
    pub(super) fn expanded(&mut self, future: &[Digest]) {
        self.futures.push(digest(future));
    }

    /// The place of the first sampled state that has another future than the state it counts as.
    pub(super) fn first_unlike(&mut self, world: &World, identity: Identity) -> Option<u32> {
        let (ripe, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.sample).into_iter().partition(|(_, place)| (*place as usize) < self.futures.len());
        self.sample = waiting;
        let unlike = |(engine, place): &(Engine, u32)| {
            let future = futures_of(engine, world, identity);
            self.futures.get(*place as usize) != Some(&digest(&future))
        };
        ripe.iter().find(|twin| unlike(twin)).map(|(_, place)| *place)
    }
}

/// The states to which the answers of a state lead; a refused answer leads to none.
fn futures_of(engine: &Engine, world: &World, identity: Identity) -> Vec<Digest> {
    let ahead = branches(engine, world).map(|branch| {
        let mut engine = engine.clone();
        let step = engine.step(branch.report.at_ms, branch.report.input);
        step.map_or(Digest::ZERO, |_| identity(engine.decider()))
    });
    ahead.collect()
}

fn digest(future: &[Digest]) -> Digest {
    let parts: Vec<&[u8]> = future.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    Digest::of("portcullis.future.1", &parts)
}
