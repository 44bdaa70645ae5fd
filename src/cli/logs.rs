//! Files of recorded runs, whoever recorded them: which there are, and what is in one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::exit::{Exit, Problem};
use super::staging::run_id;
use crate::adapters::audit::Audit;
use crate::adapters::recording::Recording;
use crate::adapters::transcripts::{Format, ReadOptions, read};
use crate::history::Recorder;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::spec::Settings;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// How deep folders are looked into.
const DEPTH_MAX: usize = 32;

/// What a file holds.
pub(crate) enum Log {
    /// A history of this engine, its bytes.
    History(Vec<u8>),
    /// Conversations that something else recorded.
    Recordings(Vec<Recording>),
}

impl Log {
    /// Reads a file. The error is the reason, for people.
    pub(crate) fn read(path: &Path, format: Option<Format>) -> Result<Self, String> {
        let bytes = contents(path)?;
        if format.is_none() && bytes.starts_with(br#"{"v":"#) {
            return Ok(Self::History(bytes));
        }
        let options = ReadOptions { format, ..ReadOptions::default() };
        let transcripts = read(&bytes, &options).map_err(|error| error.to_string())?;
        Ok(Self::Recordings(transcripts.into_iter().map(Recording::new).collect()))
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let found = fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err("is no file".to_owned());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len().min(BYTES_MAX)).unwrap_or_default());
    let mut file = File::open(path).map_err(unreadable)?.take(BYTES_MAX + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("larger than {BYTES_MAX} bytes; split it"));
    }
    Ok(bytes)
}

/// One run of a recording, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The run's id: the file's name, the conversation where there are several, the turn.
    pub(crate) run: RunId,
    /// Which conversation, from 0.
    pub(crate) conversation: usize,
    /// Which turn of it, from 0.
    pub(crate) turn: usize,
}

/// Every run of a file's recordings, in order.
pub(crate) fn places(path: &Path, recordings: &[Recording]) -> Result<Vec<Place>, String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let several = recordings.len() > 1;
    let places = recordings
        .iter()
        .enumerate()
        .flat_map(|(conversation, recording)| (0..recording.runs()).map(move |turn| (conversation, turn)));
    places
        .map(|(conversation, turn)| {
            let named = if several { format!("-{}", conversation + 1) } else { String::new() };
            let run = run_id(&stem, &format!("{named}-turn-{}", turn + 1))?;
            Ok(Place { run, conversation, turn })
        })
        .collect()
}

/// The history that the audit makes of each turn of a recording, one record a step.
pub(crate) fn histories(recording: &Recording, runs: &[RunId]) -> Result<Vec<Vec<u8>>, String> {
    let rules = Settings::none();
    let mut audit = Audit::new(recording, &rules);
    let history = |run| {
        let (mut recorder, mut history) = (Recorder::new(), Vec::new());
        let audited = audit.turn(run, |step, engine| history.extend_from_slice(recorder.record(engine, step)));
        match audited {
            Some(Err(fault)) => Err(fault.to_string()),
            Some(Ok(_)) | None => Ok(history),
        }
    };
    runs.iter().map(history).collect()
}

/// The files that were named, and those in the folders that were named: sorted, hidden ones and links left out.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut found = Vec::new();
    for path in paths {
        let about = fs::metadata(path).map_err(|error| Problem::unreadable(Exit::Usage, path, &error))?;
        if about.is_dir() {
            look_into(path, 0, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn look_into(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let unreadable = |error: io::Error| Problem::unreadable(Exit::Usage, folder, &error);
    if depth > DEPTH_MAX {
        return Err(Problem::usage(format!("{}: more than {DEPTH_MAX} folders deep", folder.display())));
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            inside.push((entry.path(), entry.file_type().map_err(unreadable)?));
        }
    }
    inside.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (path, kind) in inside {
        if kind.is_dir() {
            look_into(&path, depth + 1, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// A format as it is typed.
pub(crate) fn format(typed: &str) -> Result<Format, String> {
    let known = || Format::ALL.iter().map(|format| format.word()).collect::<Vec<_>>().join(", ");
    Format::ALL.iter().copied().find(|format| format.word() == typed).ok_or_else(|| format!("one of {}", known()))
}
