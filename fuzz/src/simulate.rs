//! Sequences of inputs to the engine, and everything that watches them (SPEC 4, 13).

use std::sync::LazyLock;

use portcullis::engine::{Decider, Ending, Engine, Step};
use portcullis::history::{Envelope, Policy, Recorder, replay};
use portcullis::testkit::alphabet::{Report, answers, foreign};
use portcullis::testkit::audit::Audit;
use portcullis::testkit::explorer::worlds;
use portcullis::testkit::world::World;
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::refusal::Refusal;
use serde::Deserialize;

/// What must hold, at every step:
///
/// - no invariant is broken, every ending stands in the closed table by either hand, and the first one stays;
/// - a refusal changes nothing, and is the same when the input comes again;
/// - the record keeps every rule of the audit, and a fresh engine that takes it is in the same state.
///
/// Bytes that begin with `{` are a script as `portcullis simulate` reads it: one `{"at_ms":..,"input":{..}}` a
/// line. Other bytes are choices: the first names one of the explorer's worlds, and each further pair one report
/// there, an answer to what is outstanding (which must be accepted) or one that fits nothing (which must not).
pub fn check(bytes: &[u8]) {
    if bytes.starts_with(b"{") { check_script(bytes) } else { check_choices(bytes) }
}

/// One line of a script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at_ms: u64,
    input: Input,
}

fn check_script(bytes: &[u8]) {
    let mut watched = Watched::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(Line { at_ms, input }) = serde_json::from_slice(line) {
            drop(watched.take(at_ms, input));
        }
    }
    watched.replays();
}

/// Choices that are taken: the worlds' budgets end a run before that, and what follows an end is seen soon.
const CHOICES_MAX: usize = 48;

static WORLDS: LazyLock<Vec<World>> = LazyLock::new(worlds);

fn check_choices(bytes: &[u8]) {
    let Some((world, choices)) = bytes.split_first() else { return };
    let world = &WORLDS[usize::from(*world) % WORLDS.len()];
    let mut watched = Watched::default();
    let mut last = None;
    for choice in choices.as_chunks::<2>().0.iter().take(CHOICES_MAX) {
        let [pick, kind] = choice.map(usize::from);
        let fits = kind % 4 != 0;
        let reports = match fits {
            true => answers(&watched.engine, world),
            false => foreign(&watched.engine, world, last.as_ref()),
        };
        let count = reports.len().max(1);
        let Some(report) = reports.into_iter().nth(pick % count) else { continue };
        // A timer that is a millisecond early must stay early; an answer may come a little late.
        let at_ms = report.at_ms + if fits && kind >= 128 { kind as u64 - 127 } else { 0 };
        match (watched.take(at_ms, report.input.clone()), fits) {
            (Ok(()), true) => last = Some(Report { at_ms, input: report.input }),
            (Err(_), false) => {}
            (Ok(()), false) => panic!("accepted, though it fits nothing: {report:?}"),
            // What comes after the deadline, or after its ticket expired, may be refused.
            (Err(refusal), true) => assert!(at_ms > report.at_ms, "{refusal}: {report:?}"),
        }
    }
    watched.replays();
}

/// An engine, and everything that watches it.
#[derive(Default)]
struct Watched {
    engine: Engine,
    /// Takes what was recorded, as a replay would.
    fold: Decider,
    recorder: Recorder,
    audit: Audit,
    history: Vec<u8>,
    ending: Option<Ending>,
}

impl Watched {
    fn take(&mut self, at_ms: u64, input: Input) -> Result<(), Refusal> {
        match self.engine.step(at_ms, input.clone()) {
            Ok(step) => {
                self.accepted(&step);
                Ok(())
            }
            Err(refusal) => {
                self.refused(at_ms, input, &refusal);
                Err(refusal)
            }
        }
    }

    fn accepted(&mut self, step: &Step) {
        assert_eq!(self.engine.decider().violations(), Vec::new());
        if let Some(ending) = &self.ending {
            assert_eq!(self.engine.ending(), Some(ending), "the first ending stays");
        } else if let Some(ending) = self.engine.ending() {
            super::check_ending(ending);
            self.ending = Some(ending.clone());
        }
        let line = self.recorder.record(&self.engine, step);
        self.history.extend_from_slice(line);
        self.audit.take(std::str::from_utf8(line).expect("JSON")).unwrap_or_else(|breach| panic!("{breach}"));
        let envelope: Envelope<'_> = serde_json::from_slice(line).expect("a record is read");
        let again = self.fold.step(envelope.at_ms, envelope.input);
        assert_eq!(again.as_ref(), Ok(step), "another step");
    }

    /// The engine is as it was: its copy, which was told of nothing but what was accepted, is in the same state.
    fn refused(&mut self, at_ms: u64, input: Input, refusal: &Refusal) {
        assert_eq!(self.engine.decider().identity(), self.fold.identity(), "{refusal}");
        assert_eq!(self.engine.decider().state_json(), self.fold.state_json(), "{refusal}");
        assert_eq!(self.engine.step(at_ms, input).as_ref(), Err(refusal), "another refusal");
    }

    fn replays(&self) {
        if self.history.is_empty() {
            return;
        }
        let summary = replay(&*self.history, Policy::Stop).expect("what was just written is whole");
        assert_eq!((summary.divergences, summary.tail), (Vec::new(), None));
        assert_eq!((summary.records, summary.ending.as_ref()), (self.engine.decider().records(), self.ending.as_ref()));
    }
}
