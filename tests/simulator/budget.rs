//! Many worlds, one after the other: progress, the tally, and a failing world made small.

use std::time::{Duration, Instant};

use crate::life::{Lived, Wanted, live};
use crate::shrink::shrink;
use crate::tally::Tally;

/// Lives through these worlds.
///
/// # Errors
/// The first one that fails, told.
pub(crate) fn through(seeds: impl ExactSizeIterator<Item = u64>) -> Result<Tally, String> {
    let (began, all, mut told) = (Instant::now(), seeds.len(), Instant::now());
    let mut tally = Tally::default();
    for seed in seeds {
        world(seed, &Wanted::default(), &mut tally)?;
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("simulator: {} of {all} worlds, {:.0} a second", tally.worlds, rate(&tally, began));
        }
    }
    eprintln!("simulator: {tally}\nsimulator: {:.0} worlds a second", rate(&tally, began));
    Ok(tally)
}

fn rate(tally: &Tally, began: Instant) -> f64 {
    tally.worlds as f64 / began.elapsed().as_secs_f64()
}

/// Lives through one world.
///
/// # Errors
/// What breaks in it, with the smallest world found that breaks alike, and how to run it again.
pub(crate) fn world(seed: u64, wanted: &Wanted, tally: &mut Tally) -> Result<(), String> {
    let lived = live(seed, wanted);
    tally.count(&lived);
    if lived.breach.is_none() { Ok(()) } else { Err(story(seed, wanted, lived)) }
}

fn story(seed: u64, wanted: &Wanted, lived: Lived) -> String {
    let breach = lived.breach.clone().unwrap_or_default();
    let decisions = lived.taken.len();
    let small = shrink(seed, wanted, lived);
    let trace = small.trace.join("\n  ");
    let left = small.taken.join("\n  ");
    let told = small.breach.unwrap_or_default();
    format!(
        "world {seed} breaks: {breach}\n\nmade small, it breaks: {told}\nwhat is left to chance ({} of {decisions} \
         decisions):\n  {left}\nits trace:\n  {trace}\n\nagain: SEED={seed} cargo test --all-features --test simulator\nremember it: \
         SEED={seed} REMEMBER=what_went_wrong cargo test --all-features --test simulator\n",
        small.taken.len()
    )
}
