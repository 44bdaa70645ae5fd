//! What a file holds: one scenario, or a recorded transcript with a run a turn. Told by shape alone.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::exit::Problem;
use crate::adapters::recording;
use crate::adapters::scenario::Scenario;
use crate::adapters::transcripts::{Transcript, recognise};
use crate::vocabulary::ids::RunId;

/// The runs of a file, ready to begin.
#[derive(Debug)]
pub(crate) struct Staging {
    pub(crate) runs: Vec<Staged>,
    /// What had to be guessed or left out.
    pub(crate) notes: Vec<String>,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) run: RunId,
    pub(crate) scenario: Scenario,
}

impl Staging {
    /// Reads a file. The error names the file, the place and the reason.
    pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<Self, Problem> {
        let bad = |reason: String| Problem::usage(format!("{}: {reason}", path.display()));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if recognise(bytes).is_none() && is_scenario(bytes) {
            let scenario = Scenario::read(bytes).map_err(|fault| bad(fault.to_string()))?;
            let run = scenario.run_id.clone().map_or_else(|| run_id(&stem, ""), Ok).map_err(bad)?;
            return Ok(Self { runs: vec![Staged { run, scenario }], notes: Vec::new() });
        }
        let transcript = Transcript::read(bytes).map_err(|error| bad(error.to_string()))?;
        let recording = recording::read(&transcript);
        let staged = |(scenario, turn): (Scenario, usize)| {
            let run = run_id(&stem, &format!("-turn-{turn}")).map_err(bad)?;
            Ok(Staged { run, scenario })
        };
        let runs = recording.scenarios.into_iter().zip(1..).map(staged).collect::<Result<_, Problem>>()?;
        Ok(Self { runs, notes: recording.notes })
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
fn run_id(stem: &str, suffix: &str) -> Result<RunId, String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let letters = stem.chars().map(|letter| if allowed(letter) { letter } else { '-' });
    let kept: String = letters.take(RunId::BYTES_MAX.saturating_sub(suffix.len())).collect();
    let kept = kept.trim_start_matches('.');
    let id = if kept.is_empty() { format!("run{suffix}") } else { format!("{kept}{suffix}") };
    id.parse().map_err(|error: crate::vocabulary::ids::MalformedId| error.to_string())
}
