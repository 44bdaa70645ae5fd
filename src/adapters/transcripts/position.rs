//! A place in the document, in the three ways a person may look for it.

use std::fmt;

/// A place in the document that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Bytes before the place, from 0; never beyond the document's length.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

impl Position {
    /// The position of a byte offset; an offset beyond the end is taken as the end.
    pub(super) fn of(document: &[u8], offset: usize) -> Self {
        let offset = offset.min(document.len());
        let mut line = 1;
        let mut line_start = 0;
        for (index, byte) in document.iter().take(offset).enumerate() {
            if *byte == b'\n' {
                line += 1;
                line_start = index + 1;
            }
        }
        Self { offset, line, column: offset - line_start + 1 }
    }
}

/// The byte offset, within the text that was parsed, at which the parser stopped.
///
/// The parser counts lines from 1 and bytes of a line from 1, and names the last byte it took.
pub(super) fn stop_offset(text: &str, error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    line_start.saturating_add(error.column().saturating_sub(1)).min(text.len())
}

/// The parser's reason without its own position, which may be relative to a part of the document.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let tail = format!(" at line {} column {}", error.line(), error.column());
    whole.strip_suffix(&tail).unwrap_or(&whole).to_owned()
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {} (byte {})", self.line, self.column, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn a_position_counts_lines_and_columns_from_one_and_offsets_from_zero() {
        let document = b"ab\ncd\n";
        let seen: Vec<_> =
            (0..=7).map(|offset| Position::of(document, offset)).map(|at| (at.offset, at.line, at.column)).collect();
        assert_eq!(seen, [(0, 1, 1), (1, 1, 2), (2, 1, 3), (3, 2, 1), (4, 2, 2), (5, 2, 3), (6, 3, 1), (6, 3, 1)]);
    }
}
