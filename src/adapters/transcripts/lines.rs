//! A document of one value a line: a line that cannot be read is skipped with a note, never silently.

use super::draft::Draft;
use super::error::TranscriptError;
use super::note::NoteKind;
use super::position::Position;

/// One line that is not blank.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLine<'a> {
    /// From 1.
    pub(super) number: usize,
    /// Bytes of the document before it.
    pub(super) offset: usize,
    /// Its text, without what ends the line.
    pub(super) text: &'a str,
}

/// The lines of a document that are not blank, in order.
pub(super) fn lines(document: &str) -> impl Iterator<Item = TextLine<'_>> {
    let mut offset = 0;
    document.split_inclusive('\n').zip(1..).filter_map(move |(line, number)| {
        let start = offset;
        offset += line.len();
        let text = line.trim_end_matches(['\n', '\r']);
        (!text.trim().is_empty()).then_some(TextLine { number, offset: start, text })
    })
}

/// Lines in a row that were skipped, and why the first of them was.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Skipped {
    at: Position,
    last: usize,
    count: usize,
    reason: String,
}

/// The lines that were skipped so far. Neighbours are told of together, so that a file of nothing else
/// costs no more than a line.
#[derive(Debug, Default)]
pub(super) struct Skips(Vec<Skipped>);

impl Skips {
    /// A line that was left out; the error's place counts from the line's beginning.
    pub(super) fn add(&mut self, line: TextLine<'_>, error: &TranscriptError) {
        if let Some(before) = self.0.last_mut().filter(|before| before.last + 1 == line.number) {
            before.last = line.number;
            before.count += 1;
            return;
        }
        let (at, reason) = match error {
            TranscriptError::Malformed { at, reason } => (at.offset, format!("not JSON: {reason}")),
            TranscriptError::Unreadable { at, path, reason } => (at.offset, format!("{path}: {reason}")),
            TranscriptError::TooLarge { .. }
            | TranscriptError::TooMany { .. }
            | TranscriptError::NotUtf8 { .. }
            | TranscriptError::Unrecognised
            | TranscriptError::NoTurn { .. } => (0, error.to_string()),
        };
        let at = Position { offset: line.offset + at, line: line.number, column: at + 1 };
        self.0.push(Skipped { at, last: line.number, count: 1, reason });
    }

    /// A line that is readable and not of this format.
    pub(super) fn foreign(&mut self, line: TextLine<'_>, reason: &str) {
        let at = Position { offset: 0, line: 1, column: 1 };
        self.add(line, &TranscriptError::Unreadable { path: "$".to_owned(), at, reason: reason.to_owned() });
    }

    /// Tells of them in the first of the conversations. Where there is none, the document is no file of
    /// lines but a damaged one: the error is that of the whole, else that of the first line.
    pub(super) fn settle(
        self,
        mut drafts: Vec<Draft>,
        whole: Option<TranscriptError>,
    ) -> Result<Vec<Draft>, TranscriptError> {
        drafts.retain(|draft| !draft.entries.is_empty());
        let Some(first) = drafts.first_mut() else {
            let unread = self.0.into_iter().next().map(|Skipped { at, reason, .. }| {
                let path = "$".to_owned();
                TranscriptError::Unreadable { path, at, reason }
            });
            return whole.or(unread).map_or_else(|| Ok(Vec::new()), Err);
        };
        for Skipped { at, count, reason, .. } in self.0 {
            first.notes.file(NoteKind::LinesSkipped { at, count, reason });
        }
        Ok(drafts)
    }
}
