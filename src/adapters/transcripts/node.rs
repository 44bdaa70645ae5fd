//! A JSON value in place: its text, its path and its offset in the document.
//!
//! Values are decoded one level at a time from their raw text. So an error knows exactly where it
//! is, a struct is never filled from a list by position, and no depth of nesting costs stack:
//! skipping over a value does not recurse.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
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

    /// The fields of an object whose names are asked for one by one.
    pub(super) fn fields<'s>(&'s self) -> Result<Fields<'a, 's>, TranscriptError> {
        let Entries(entries) = self.decode(Form::Object)?;
        Ok(Fields { object: self, entries })
    }

    /// A string's text, and the JSON text of anything else.
    pub(super) fn loose_text(&self) -> Result<String, TranscriptError> {
        if self.form() == Form::Text { self.text() } else { Ok(self.raw().to_owned()) }
    }

    /// A whole number that is not negative, also one that was written as a string.
    pub(super) fn number(&self) -> Option<u64> {
        self.raw().trim_matches('"').parse().ok()
    }

    /// `true` or `false`, also one that was written as a string.
    pub(super) fn truth(&self) -> Option<bool> {
        self.raw().trim_matches('"').to_ascii_lowercase().parse().ok()
    }

    fn decode<T: Deserialize<'a>>(&self, expected: Form) -> Result<T, TranscriptError> {
        let found = self.form();
        if found != expected {
            return Err(self.unreadable(0, format!("expected {}, found {}", expected.name(), found.name())));
        }
        serde_json::from_str(self.raw())
            .map_err(|error| self.unreadable(stop_offset(self.raw(), &error), reason(&error)))
    }

    /// The error of a value that is not what was expected.
    pub(super) fn expected(&self, what: &str) -> TranscriptError {
        self.unreadable(0, format!("expected {what}"))
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

/// The name of a field.
#[derive(Debug, Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// An object's fields, in order.
struct Entries<'a>(Vec<(Name<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Entries<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Take)
    }
}

/// An object's fields. One that is null counts as absent; of repeated ones the last counts.
#[derive(Debug)]
pub(super) struct Fields<'a, 'n> {
    object: &'n Node<'a, 'n>,
    entries: Vec<(Name<'a>, &'a RawValue)>,
}

impl<'a, 'n> Fields<'a, 'n> {
    /// A field.
    pub(super) fn get(&self, key: &'static str) -> Option<Node<'a, 'n>> {
        let (_, raw) = self.entries.iter().rev().find(|(name, _)| name.0 == key)?;
        (raw.get() != "null").then(|| self.object.key(key, raw))
    }

    /// The first of these fields that is there.
    pub(super) fn any(&self, keys: &[&'static str]) -> Option<Node<'a, 'n>> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// A field that has to be a string where it is there.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>, TranscriptError> {
        self.get(key).map(|node| node.text()).transpose()
    }

    /// The first of these fields that is there: a string's text, the JSON text of anything else.
    pub(super) fn loose(&self, keys: &[&'static str]) -> Result<Option<String>, TranscriptError> {
        self.any(keys).map(|node| node.loose_text()).transpose()
    }

    /// The first of these fields that is there, as a whole number.
    pub(super) fn number(&self, keys: &[&'static str]) -> Option<u64> {
        self.any(keys).and_then(|node| node.number())
    }

    /// A field of this type.
    pub(super) fn of(&self, key: &'static str, form: Form) -> Option<Node<'a, 'n>> {
        self.get(key).filter(|node| node.form() == form)
    }

    /// Every field's name and raw value, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.entries.iter().map(|(name, raw)| (&*name.0, *raw))
    }
}
