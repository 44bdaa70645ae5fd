//! From bytes to transcripts.

use super::assemble::assemble;
use super::chat;
use super::draft::Draft;
use super::error::TranscriptError;
use super::format::{Format, recognise};
use super::position::Position;
use super::transcript::Transcript;

/// How to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format, when it is known; else it is told by the document's shape.
    pub format: Option<Format>,
    /// The largest document in bytes; 64 MiB. Time and memory grow linearly with it; the smallest
    /// possible messages take some fifteen bytes of memory per byte.
    pub bytes_max: usize,
    /// Tools whose call, last in a turn and without a result, is the turn's answer;
    /// `Finish` and `submit`.
    pub terminal_tools: Vec<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let terminal_tools = vec!["Finish".to_owned(), "submit".to_owned()];
        Self { format: None, bytes_max: 64 * 1024 * 1024, terminal_tools }
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
        // What is no JSON at all says where.
        None => return Err(super::node::Node::root(document).err().unwrap_or(TranscriptError::Unrecognised)),
    };
    let drafts = drafts(format, document)?;
    let transcripts: Vec<_> = drafts
        .into_iter()
        .map(|draft| assemble(format, draft, &options.terminal_tools))
        .filter(|transcript| !transcript.turns.is_empty())
        .collect();
    if transcripts.is_empty() { Err(TranscriptError::NoTurn { format }) } else { Ok(transcripts) }
}

fn drafts(format: Format, document: &str) -> Result<Vec<Draft>, TranscriptError> {
    match format {
        Format::ChatCompletions => chat::read(document),
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
