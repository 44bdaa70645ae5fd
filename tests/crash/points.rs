//! The named points at which a child kills or stops itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rustix::process::{Signal, getpid, kill_process};

use crate::wire::{Act, At, Fuse, Line, Said};

/// Counts how often each point was passed.
pub(crate) struct Points {
    line: Arc<Line>,
    fuse: Option<Fuse>,
    counts: Mutex<(u32, BTreeMap<String, u32>)>,
}

impl Points {
    pub(crate) fn new(line: Arc<Line>, fuse: Option<Fuse>) -> Arc<Self> {
        Arc::new(Self { line, fuse, counts: Mutex::default() })
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    /// How often that point was passed.
    pub(crate) fn passed(&self, name: &str) -> u32 {
        self.counts.lock().unwrap().1.get(name).copied().unwrap_or(0)
    }

    /// Passes a point, or does not.
    pub(crate) fn pass(&self, name: &str) {
        let (overall, nth) = {
            let mut counts = self.counts.lock().unwrap();
            counts.0 += 1;
            let overall = counts.0;
            let nth = counts.1.entry(name.to_owned()).or_default();
            *nth += 1;
            (overall, *nth)
        };
        let name = name.to_owned();
        let burns = self.fuse.as_ref().filter(|fuse| match &fuse.at {
            At::Point { name: wanted, nth: when } => *wanted == name && *when == nth,
            At::Any { nth: when } => *when == overall,
        });
        let Some(fuse) = burns else { return self.line.say(&Said::Point { name, nth }) };
        self.line.say(&Said::Fused { name, nth });
        match fuse.act {
            Act::Stop => kill_process(getpid(), Signal::STOP).unwrap(),
            Act::Kill => {
                kill_process(getpid(), Signal::KILL).unwrap();
                loop {
                    std::thread::park();
                }
            }
        }
    }
}
