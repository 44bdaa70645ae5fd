//! What a file holds: one scenario, or a recorded transcript with a run a turn. Told by shape alone.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::exit::{Exit, Problem};
use crate::adapters::recording::Recording;
use crate::adapters::scenario::Scenario;
use crate::adapters::transcripts::{ReadOptions, read, recognise};
use crate::vocabulary::ids::RunId;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// The runs of a file, ready to begin.
#[derive(Debug)]
pub(crate) struct Staging {
    /// Their ids, in order.
    pub(crate) runs: Vec<RunId>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Scenario { scenario: Box<Scenario>, written: String },
    Recordings(Vec<Recording>),
}

impl Staging {
    /// Reads a file. The error names the file, the place and the reason.
    pub(crate) fn read(path: &Path) -> Result<Self, Problem> {
        let bad = |reason: String| Problem::usage(format!("{}: {reason}", path.display()));
        let unreadable = |error: io::Error| Problem::unreadable(Exit::Usage, path, &error);
        let mut bytes = Vec::new();
        let mut file = File::open(path).map_err(unreadable)?.take(BYTES_MAX + 1);
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(bad(format!("larger than {BYTES_MAX} bytes")));
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if recognise(&bytes).is_none() && is_scenario(&bytes) {
            let scenario = Scenario::read(&bytes).map_err(|fault| bad(fault.to_string()))?;
            let run = scenario.run_id.clone().map_or_else(|| run_id(&stem, ""), Ok).map_err(bad)?;
            // What was read as a scenario is UTF-8.
            let written = String::from_utf8_lossy(&bytes).into_owned();
            return Ok(Self { runs: vec![run], source: Source::Scenario { scenario: Box::new(scenario), written } });
        }
        let transcripts = read(&bytes, &ReadOptions::default()).map_err(|error| bad(error.to_string()))?;
        let recordings: Vec<_> = transcripts.into_iter().map(Recording::new).collect();
        let several = recordings.len() > 1;
        let runs = (1_usize..).zip(&recordings).flat_map(|(nth, recording)| {
            let named = if several { format!("-{nth}") } else { String::new() };
            (1..=recording.runs()).map(move |turn| format!("{named}-turn-{turn}"))
        });
        let runs = runs.map(|suffix| run_id(&stem, &suffix)).collect::<Result<_, _>>().map_err(bad)?;
        Ok(Self { runs, source: Source::Recordings(recordings) })
    }

    /// What had to be guessed or left out.
    pub(crate) fn notes(&self) -> Vec<String> {
        match &self.source {
            Source::Scenario { .. } => Vec::new(),
            Source::Recordings(recordings) if recordings.len() == 1 => {
                recordings.iter().flat_map(Recording::notes).cloned().collect()
            }
            Source::Recordings(recordings) => (1_usize..)
                .zip(recordings)
                .flat_map(|(nth, recording)| {
                    recording.notes().iter().map(move |note| format!("recording {nth}: {note}"))
                })
                .collect(),
        }
    }

    /// The run in that place.
    pub(crate) fn scenario(&self, index: usize) -> Option<Scenario> {
        match &self.source {
            Source::Scenario { scenario, .. } => Some(Scenario::clone(scenario)),
            Source::Recordings(recordings) => {
                let turns =
                    recordings.iter().flat_map(|recording| (0..recording.runs()).map(move |turn| (recording, turn)));
                let (recording, turn) = turns.into_iter().nth(index)?;
                recording.scenario(turn)
            }
        }
    }

    /// The scenario as it is written; a recorded transcript has none.
    pub(crate) fn written(&self) -> Option<&str> {
        match &self.source {
            Source::Scenario { written, .. } => Some(written),
            Source::Recordings(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct Outline {
    spec: Option<IgnoredAny>,
}

fn is_scenario(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Outline>(bytes).is_ok_and(|outline| outline.spec.is_some())
}

/// A run id made of a file's name: what an id cannot hold becomes a dash.
pub(crate) fn run_id(stem: &str, suffix: &str) -> Result<RunId, String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let letters = stem.chars().map(|letter| if allowed(letter) { letter } else { '-' });
    let kept: String = letters.take(RunId::BYTES_MAX.saturating_sub(suffix.len())).collect();
    let kept = kept.trim_start_matches('.');
    let id = if kept.is_empty() { format!("run{suffix}") } else { format!("{kept}{suffix}") };
    id.parse().map_err(|error: crate::vocabulary::ids::MalformedId| error.to_string())
}
