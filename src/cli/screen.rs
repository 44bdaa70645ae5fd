//! What a person sees of a run while it is driven, and what they get at its end.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::exit::printable;
use super::output::Output;
use super::timeline::{Timeline, waited_for};
use crate::adapters::scenario::{Audience, Scene};
use crate::engine::{Engine, Step};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Standard output, shared by what happens and what is said about it.
pub(crate) struct Screen {
    /// Whether only endings are shown.
    json: bool,
    /// What is under way, on a terminal, while it takes its time.
    spinner: ProgressBar,
    shown: Mutex<Shown>,
}

struct Shown {
    timeline: Timeline,
    out: Output<BufWriter<Stdout>>,
}

impl Screen {
    pub(crate) fn new(json: bool) -> Self {
        let out = Output::new(BufWriter::new(io::stdout()));
        let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(
            // The template is a constant, and a spinner without it is one all the same.
            ProgressStyle::with_template("{spinner} {elapsed}  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { json, spinner, shown: Mutex::new(Shown { timeline: Timeline::default(), out }) }
    }

    /// From now on what happens takes as long as it takes.
    pub(crate) fn spin(&self) {
        self.spinner.set_draw_target(ProgressDrawTarget::stderr());
        self.spinner.reset();
        self.spinner.enable_steady_tick(TICK);
    }

    /// Nothing is under way any more.
    pub(crate) fn still(&self) {
        self.spinner.disable_steady_tick();
        self.spinner.finish_and_clear();
    }

    /// Whether only endings are shown.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// A run begins: nothing that was shown of another one counts.
    pub(crate) fn begin(&self) {
        self.shown().timeline = Timeline::default();
    }

    /// Takes note of a step that was taken earlier.
    pub(crate) fn remember(&self, step: &Step, engine: &Engine) {
        // Nothing can fail that nobody reads.
        let _ = self.shown().timeline.step(step, engine, &mut io::sink());
    }

    /// Writes, and hands out what was written.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut shown = self.shown();
        write(&mut shown.out)?;
        shown.out.flush()
    }

    /// Hands out what is left.
    ///
    /// # Errors
    /// The first error of any write, but for a reader that went away.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut shown = self.shown();
        std::mem::replace(&mut shown.out, Output::new(BufWriter::new(io::stdout()))).finish()
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience for Screen {
    fn see(&self, scene: Scene<'_>) {
        if self.json {
            return;
        }
        // Only where somebody sees it: what takes no time is waited for by nobody.
        if let (Scene::Stepped { engine, .. }, false) = (&scene, self.spinner.is_hidden()) {
            self.spinner.reset_elapsed();
            self.spinner.set_message(printable(&waited_for(engine)));
        }
        let mut shown = self.shown();
        let Shown { timeline, out } = &mut *shown;
        // The output keeps its first error for the end.
        let _ = self.spinner.suspend(|| timeline.show(&scene, out).and_then(|()| out.flush()));
    }
}
