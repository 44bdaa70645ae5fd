//! Random moments: several runs at once on one store, and a process that is killed from outside whenever it
//! pleases the seed. Where the kill lands depends on the machine; what must hold does not.

use std::collections::BTreeMap;

use rustix::process::Signal;

use crate::case::{Case, was_killed};
use crate::claims::hold;
use crate::suite::Test;
use crate::wire::Errand;

pub(crate) const TESTS: &[Test] =
    &[("moments::two_hundred_random_deaths_break_nothing", two_hundred_random_deaths_break_nothing)];

const DEATHS: u32 = 200;
/// Deaths of one case: then its runs may end in peace.
const DEATHS_OF_A_CASE: u32 = 20;
const SEED: &str = "PORTCULLIS_CRASH_SEED";
const SCRIPTS: &[&str] = &["looks", "effects", "waves", "observes", "ends", "people", "troubles", "effects", "waves"];

/// SplitMix64: a few lines, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

fn two_hundred_random_deaths_break_nothing() {
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
    let seed = std::env::var(SEED).map_or_else(|_| now(), |seed| seed.parse().expect("a seed is a number"));
    println!("    {SEED}={seed}");
    let mut dice = Dice(seed);
    let (mut deaths, mut cases, mut ends) = (0, 0, BTreeMap::<u8, u32>::new());
    while deaths < DEATHS {
        let mut case = Case::new(SCRIPTS);
        case.threads = 2;
        let wanted = DEATHS_OF_A_CASE.min(DEATHS - deaths);
        deaths += die(&case, &mut dice, wanted);
        case.finish();
        hold(&case).into_values().for_each(|row| *ends.entry(row).or_default() += 1);
        cases += 1;
        assert!(cases < 500, "processes come to their end before they can be killed");
    }
    println!("    {deaths} deaths in {cases} cases; endings by row: {ends:?}");
}

/// Lets processes die until the runs have ended, or so many have died.
fn die(case: &Case, dice: &mut Dice, wanted: u32) -> u32 {
    let mut deaths = 0;
    while deaths < wanted {
        let process = case.spawn(Errand::Drive, None);
        let number = process.number;
        let progress = usize::try_from(1 + dice.below(60)).unwrap();
        let spin = dice.below(40_000);
        case.book.until("progress", |pages| pages.by(number).count() >= progress || pages.is_over(number));
        for _ in 0..spin {
            std::hint::spin_loop();
        }
        process.signal(Signal::KILL);
        if !was_killed(process.end()) {
            return deaths;
        }
        deaths += 1;
    }
    deaths
}
