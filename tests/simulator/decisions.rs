//! Everything that is left to chance, drawn from the seed.
//!
//! A decision has a name, and what is drawn for it depends on the seed and that name alone. So one decision can be
//! taken back without any other changing its mind: that is how a failing seed is made small.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::faults::Fault;

/// The decisions of one world.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    seed: u64,
    /// Decisions that are taken back: they come out plain.
    plain: BTreeSet<String>,
    /// From here on nothing goes wrong any more.
    healed: bool,
    /// Decisions that came out otherwise than plain, in order.
    taken: Vec<String>,
    met: BTreeMap<Fault, u64>,
}

impl Decisions {
    pub(crate) fn new(seed: u64, plain: BTreeSet<String>) -> Self {
        Self { seed, plain, ..Self::default() }
    }

    /// Chooses among ways that are all right: the first is the plain one. A weight each.
    pub(crate) fn choose(&mut self, what: &str, of: impl Display, weights: &[u64]) -> usize {
        let name = format!("{what} {of}");
        let mut drawn = self.draw(&name) % weights.iter().sum::<u64>().max(1);
        let mut chosen = 0;
        for (index, weight) in weights.iter().enumerate() {
            if drawn < *weight {
                chosen = index;
                break;
            }
            drawn -= weight;
        }
        if chosen == 0 || self.plain.contains(&name) {
            return 0;
        }
        self.take(name);
        chosen
    }

    /// A number from `low` to `high`, both included; `low` is the plain one.
    pub(crate) fn number(&mut self, what: &str, of: impl Display, low: u64, high: u64) -> u64 {
        let name = format!("{what} {of}");
        let drawn = low + self.draw(&name) % (high - low + 1);
        if drawn == low || self.plain.contains(&name) {
            return low;
        }
        self.take(name);
        drawn
    }

    /// Whether this goes wrong here. A world has about half of all kinds of faults, so that each has room.
    pub(crate) fn goes_wrong(&mut self, fault: Fault, at: impl Display) -> bool {
        let has = self.draw(fault.word()).is_multiple_of(2);
        if self.healed || !has {
            return false;
        }
        let name = format!("{} {at}", fault.word());
        if !self.draw(&name).is_multiple_of(fault.odds()) || self.plain.contains(&name) {
            return false;
        }
        self.take(name);
        *self.met.entry(fault).or_default() += 1;
        true
    }

    /// From here on nothing goes wrong any more.
    pub(crate) fn heal(&mut self) {
        self.healed = true;
    }

    pub(crate) const fn is_healed(&self) -> bool {
        self.healed
    }

    pub(crate) fn taken(&self) -> &[String] {
        &self.taken
    }

    /// How often something came between the runtime and its clock or its store.
    pub(crate) fn held_up(&self) -> u64 {
        self.met.iter().filter(|(fault, _)| fault.holds_up()).map(|(_, times)| times).sum()
    }

    pub(crate) const fn met(&self) -> &BTreeMap<Fault, u64> {
        &self.met
    }

    fn take(&mut self, name: String) {
        if !self.taken.contains(&name) {
            self.taken.push(name);
        }
    }

    fn draw(&self, name: &str) -> u64 {
        let bytes = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        mixed(mixed(self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ bytes)
    }
}

/// A number that nothing can be told from about the one that it was made of.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
