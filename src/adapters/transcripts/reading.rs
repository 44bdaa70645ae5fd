//! From bytes to transcripts.

use super::assemble::assemble;
use super::draft::Draft;
use super::error::TranscriptError;
use super::format::{Format, recognise};
use super::note::{NoteKind, Notes};
use super::position::Position;
use super::transcript::Transcript;
use super::{atif, chat, claude_code, openhands, otlp, react, swe_agent, temporal};

/// How to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format, when it is known; else it is told by the document's shape.
    pub format: Option<Format>,
    /// The largest document in bytes; 64 MiB. Time and memory grow linearly with it; the smallest
    /// possible messages take some fifteen bytes of memory per byte.
    pub bytes_max: usize,
    /// The most messages, spans, steps, events or lines of a document; a million.
    pub entries_max: usize,
    /// Tools whose call, last in a turn and without a result, is the turn's answer;
    /// `Finish` and `submit`. A format may have more of its own.
    pub terminal_tools: Vec<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let terminal_tools = vec!["Finish".to_owned(), "submit".to_owned()];
        Self { format: None, bytes_max: 64 * 1024 * 1024, entries_max: 1_000_000, terminal_tools }
    }
}

/// Reads every conversation of a document, in order; at least one.
///
/// # Errors
/// See [`TranscriptError`]; each says where, why, and the way out.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Result<Vec<Transcript>, TranscriptError> {
    if bytes.len() > options.bytes_max {
        return Err(TranscriptError::TooLarge { bytes: bytes.len(), bytes_max: options.bytes_max });
    }
    let document = std::str::from_utf8(bytes)
        .map_err(|error| TranscriptError::NotUtf8 { at: Position::of(bytes, error.valid_up_to()) })?;
    let format = match options.format.or_else(|| recognise(bytes)) {
        Some(format) => format,
        None => return Err(unrecognised(document)),
    };
    let drafts = drafts(format, document, options)?;
    let own = format.terminal_tools().iter().map(ToString::to_string);
    let terminal_tools: Vec<_> = options.terminal_tools.iter().cloned().chain(own).collect();
    let (mut transcripts, mut silent) = (Vec::new(), Notes::new(format));
    for draft in drafts {
        let (begins, entries) = (draft.entries.first().map(|entry| entry.at), draft.entries.len());
        let transcript = assemble(format, draft, &terminal_tools);
        match begins {
            Some(begins) if transcript.turns.is_empty() => {
                silent.at(begins, NoteKind::NobodyAsked { entries });
            }
            Some(_) => transcripts.push(transcript),
            None => {}
        }
    }
    let first = transcripts.first_mut().ok_or(TranscriptError::NoTurn { format })?;
    first.notes.extend(silent.in_order());
    Ok(transcripts)
}

/// What would be JSON and is not says where; what does not begin as JSON is of no format at all.
fn unrecognised(document: &str) -> TranscriptError {
    let is_json = document.trim_start().chars().next().is_none_or(|first| matches!(first, '{' | '['));
    let malformed = is_json.then(|| super::node::Node::root(document).err()).flatten();
    malformed.unwrap_or(TranscriptError::Unrecognised)
}

fn drafts(format: Format, document: &str, options: &ReadOptions) -> Result<Vec<Draft>, TranscriptError> {
    match format {
        Format::ChatCompletions => chat::read(document, options),
        Format::Otlp => otlp::read(document, options),
        Format::Atif => atif::read(document, options),
        Format::Temporal => temporal::read(document, options),
        Format::OpenHands => openhands::read(document, options),
        Format::SweAgent => swe_agent::read(document, options),
        Format::ClaudeCode => claude_code::read(document, options),
        Format::React => react::read(document, options),
    }
}

impl ReadOptions {
    /// Refuses a list with more items than are read.
    pub(super) fn admit(&self, format: Format, entries: usize) -> Result<(), TranscriptError> {
        let entries_max = self.entries_max;
        if entries <= entries_max { Ok(()) } else { Err(TranscriptError::TooMany { format, entries, entries_max }) }
    }
}

impl Transcript {
    /// Reads the first conversation of a document with the default options.
    ///
    /// # Errors
    /// See [`TranscriptError`]; each says where, why, and the way out.
    pub fn read(bytes: &[u8]) -> Result<Self, TranscriptError> {
        Self::read_with(bytes, &ReadOptions::default())
    }

    /// Reads the first conversation of a document.
    ///
    /// # Errors
    /// See [`TranscriptError`]; each says where, why, and the way out.
    pub fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<Self, TranscriptError> {
        read(bytes, options)?.into_iter().next().ok_or(TranscriptError::Unrecognised)
    }
}
