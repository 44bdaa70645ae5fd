//! A failing world made small: decisions are taken back, in large parts and then one by one, as long as it fails.

use crate::life::{Lived, Wanted, live};

/// How many worlds are lived through at most.
const TRIES_MAX: usize = 600;

/// The smallest failing world that is found near this one, and what is left to chance in it.
pub(crate) fn shrink(seed: u64, wanted: &Wanted, lived: Lived) -> Lived {
    let (mut wanted, mut smallest) = (wanted.clone(), lived);
    let kind = smallest.breach.as_deref().map(kind).unwrap_or_default();
    let mut tries = 0;
    let mut size = smallest.taken.len().div_ceil(2).max(1);
    loop {
        let mut smaller = false;
        let mut from = 0;
        while from < smallest.taken.len() && tries < TRIES_MAX {
            tries += 1;
            let part = smallest.taken.iter().skip(from).take(size).cloned();
            let mut plainer = wanted.clone();
            plainer.plain.extend(part);
            let lived = live(seed, &plainer);
            if lived.breach.as_deref().map(self::kind).as_ref() == Some(&kind) {
                (wanted, smallest, smaller) = (plainer, lived, true);
            } else {
                from += size;
            }
        }
        if tries >= TRIES_MAX || (size == 1 && !smaller) {
            break;
        }
        size = (size / 2).max(1);
    }
    wanted.traced = true;
    live(seed, &wanted)
}

/// A breach without its numbers, up to where it begins to tell particulars.
fn kind(breach: &str) -> String {
    breach.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect()
}
