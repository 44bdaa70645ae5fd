//! Why a text is no payload, and where it stopped being one.

use std::fmt;

use thiserror::Error;

/// A text that was refused.
///
/// Displayed as `duplicate_key at byte 7: an object names the same key twice`. The code is a
/// contract, the wording after it is a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("{} at byte {offset}: {kind}", .kind.code())]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Where, in bytes from the start of the payload's text; at most its length.
    pub offset: usize,
}

impl JsonError {
    /// The line and the column of the error in the `text` that was parsed, both counted from 1.
    ///
    /// Lines end at `\n`; columns count characters.
    pub fn locate(&self, text: &str) -> (usize, usize) {
        let before = text.as_bytes().get(..self.offset).unwrap_or(text.as_bytes());
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let is_char_start = |byte: &&u8| (**byte & 0b1100_0000) != 0b1000_0000;
        let on_the_line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        (lines + 1, on_the_line.iter().filter(is_char_start).count() + 1)
    }
}

/// The closed list of reasons to refuse a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsonErrorKind {
    /// Nothing but white space.
    Empty,
    /// A byte that cannot stand where it stands.
    Syntax,
    /// The text ended inside a value. Every cut of an array, an object or a string gives this
    /// kind, unless nothing but white space is left (`SPEC 7`, cut arguments).
    Unterminated,
    /// Something follows the value.
    Trailing,
    /// More than [`DEPTH_MAX`](super::DEPTH_MAX) arrays and objects inside one another.
    Depth,
    /// A key that the same object has already; keys are compared after their escapes.
    DuplicateKey,
    /// Half of a surrogate pair, which is no character.
    LoneSurrogate,
    /// A control character that stands bare inside a string.
    ControlCharacter,
    /// A backslash followed by something that JSON does not define.
    InvalidEscape,
    /// An integer outside `i64::MIN..=u64::MAX`, a double beyond the finite ones, or one that is
    /// not zero but too small to differ from it.
    NumberOutOfRange,
    /// Bytes that are not UTF-8. Found first, wherever in the text they stand.
    InvalidUtf8,
}

impl JsonErrorKind {
    /// Every kind, in order of declaration.
    pub const ALL: [JsonErrorKind; 11] = [
        JsonErrorKind::Empty,
        JsonErrorKind::Syntax,
        JsonErrorKind::Unterminated,
        JsonErrorKind::Trailing,
        JsonErrorKind::Depth,
        JsonErrorKind::DuplicateKey,
        JsonErrorKind::LoneSurrogate,
        JsonErrorKind::ControlCharacter,
        JsonErrorKind::InvalidEscape,
        JsonErrorKind::NumberOutOfRange,
        JsonErrorKind::InvalidUtf8,
    ];

    /// The permanent name of the kind.
    pub fn code(self) -> &'static str {
        match self {
            JsonErrorKind::Empty => "empty",
            JsonErrorKind::Syntax => "syntax",
            JsonErrorKind::Unterminated => "unterminated",
            JsonErrorKind::Trailing => "trailing",
            JsonErrorKind::Depth => "depth",
            JsonErrorKind::DuplicateKey => "duplicate_key",
            JsonErrorKind::LoneSurrogate => "lone_surrogate",
            JsonErrorKind::ControlCharacter => "control_character",
            JsonErrorKind::InvalidEscape => "invalid_escape",
            JsonErrorKind::NumberOutOfRange => "number_out_of_range",
            JsonErrorKind::InvalidUtf8 => "invalid_utf8",
        }
    }

    /// The error of this kind at `offset`.
    pub(super) fn at(self, offset: usize) -> JsonError {
        JsonError { kind: self, offset }
    }
}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonErrorKind::Empty => "there is no value",
            JsonErrorKind::Syntax => "this is not JSON",
            JsonErrorKind::Unterminated => "the text ends inside a value",
            JsonErrorKind::Trailing => "something follows the value",
            JsonErrorKind::Depth => "arrays and objects are nested too deeply",
            JsonErrorKind::DuplicateKey => "an object names the same key twice",
            JsonErrorKind::LoneSurrogate => "a surrogate stands without its other half",
            JsonErrorKind::ControlCharacter => "a control character in a string is not escaped",
            JsonErrorKind::InvalidEscape => "a backslash escapes nothing that JSON knows",
            JsonErrorKind::NumberOutOfRange => "the number is too large or too small to be held",
            JsonErrorKind::InvalidUtf8 => "the bytes are not UTF-8",
        })
    }
}
