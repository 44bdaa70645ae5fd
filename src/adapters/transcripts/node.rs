//! A JSON value in place: its text, its path and its offset in the document.
//!
//! Values are decoded one level at a time from their raw text. So an error knows exactly where it
//! is, a struct is never filled from a list by position, and no depth of nesting costs stack:
//! skipping over a value does not recurse.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::TranscriptError;
use super::position::{Position, reason, stop_offset};

/// The way from the document's root to a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    /// The document.
    Root,
    /// A field of an object.
    Key(&'p Path<'p>, &'static str),
    /// An item of a list, from 0.
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => out.write_str("$"),
            Self::Key(parent, key) => write!(out, "{parent}.{key}"),
            Self::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// The JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `{..}`
    Object,
    /// `[..]`
    List,
    /// `".."`
    Text,
    /// A number, `true`, `false` or `null`.
    Scalar,
}

impl Form {
    /// The type of a raw value, which starts at its first byte.
    pub(super) fn of(raw: &RawValue) -> Self {
        match raw.get().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::List,
            Some(b'"') => Self::Text,
            Some(_) | None => Self::Scalar,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Text => "a string",
            Self::Scalar => "a number, a boolean or null",
        }
    }
}

/// A value, the document it stands in, and the way to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a, 'p> {
    document: &'a str,
    raw: &'a RawValue,
    path: Path<'p>,
}

impl<'a> Node<'a, 'static> {
    /// The whole document, checked to be one JSON value.
    pub(super) fn root(document: &'a str) -> Result<Self, TranscriptError> {
        let raw = serde_json::from_str(document).map_err(|error| TranscriptError::Malformed {
            at: Position::of(document.as_bytes(), stop_offset(document, &error)),
            reason: reason(&error),
        })?;
        Ok(Self { document, raw, path: Path::Root })
    }
}

impl<'a, 'p> Node<'a, 'p> {
    /// A field of this object, by the raw value that it was decoded to.
    pub(super) fn key<'s>(&'s self, key: &'static str, raw: &'a RawValue) -> Node<'a, 's> {
        Node { document: self.document, raw, path: Path::Key(&self.path, key) }
    }

    /// An item of this list, by the raw value that it was decoded to.
    pub(super) fn index<'s>(&'s self, index: usize, raw: &'a RawValue) -> Node<'a, 's> {
        Node { document: self.document, raw, path: Path::Index(&self.path, index) }
    }

    /// The value's JSON text as it stands in the document.
    pub(super) fn raw(&self) -> &'a str {
        self.raw.get()
    }

    /// The value's JSON type.
    pub(super) fn form(&self) -> Form {
        Form::of(self.raw)
    }

    /// The fields of an object.
    pub(super) fn object<T: Deserialize<'a>>(&self) -> Result<T, TranscriptError> {
        self.decode(Form::Object)
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<&'a RawValue>, TranscriptError> {
        self.decode(Form::List)
    }

    /// A string's text.
    pub(super) fn text(&self) -> Result<String, TranscriptError> {
        self.decode(Form::Text)
    }

    fn decode<T: Deserialize<'a>>(&self, expected: Form) -> Result<T, TranscriptError> {
        let found = self.form();
        if found != expected {
            return Err(self.unreadable(0, format!("expected {}, found {}", expected.name(), found.name())));
        }
        serde_json::from_str(self.raw())
            .map_err(|error| self.unreadable(stop_offset(self.raw(), &error), reason(&error)))
    }

    fn unreadable(&self, offset_within: usize, reason: String) -> TranscriptError {
        // The raw value borrows from the document, so its address says where it stands.
        let start = self.raw().as_ptr().addr().saturating_sub(self.document.as_ptr().addr());
        TranscriptError::Unreadable {
            path: self.path.to_string(),
            at: Position::of(self.document.as_bytes(), start.saturating_add(offset_within)),
            reason,
        }
    }
}
