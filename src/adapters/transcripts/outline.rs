//! What a document looks like from outside: by this its format is told, and nothing is decoded for it.
//!
//! One pass over the first value that keeps nothing but where its fields stand; of a list only the first
//! item is looked at. What breaks off keeps what was seen until then, so that a damaged recording is still
//! told by its beginning, and its reader can say where the damage is.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::node::{Form, Name};

/// The outside of one JSON value.
#[derive(Debug)]
pub(super) enum Outline<'a> {
    /// An object's fields, in order.
    Object(Vec<(Name<'a>, &'a RawValue)>),
    /// A list, and its first item.
    List(Option<&'a RawValue>),
    /// Neither, or nothing.
    Other,
}

impl<'a> Outline<'a> {
    /// The outside of the value that a text begins with.
    pub(super) fn of(text: &'a str) -> Self {
        let mut outline = Self::Other;
        let mut parser = serde_json::Deserializer::from_str(text);
        // Where it stops does not matter: what was seen until then does.
        let _ = match text.trim_start().as_bytes().first() {
            Some(b'{') => parser.deserialize_map(Look(&mut outline)),
            Some(b'[') => parser.deserialize_seq(Look(&mut outline)),
            Some(_) | None => Ok(()),
        };
        outline
    }

    /// A field that is there and not null; of repeated ones the last.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        match self {
            Self::Object(fields) => {
                let found = fields.iter().rev().find(|(name, _)| name.0 == key)?;
                (found.1.get() != "null").then_some(found.1)
            }
            Self::List(_) | Self::Other => None,
        }
    }

    /// Whether the field is there, and of that type.
    pub(super) fn has(&self, key: &str, form: Form) -> bool {
        self.get(key).is_some_and(|raw| Form::of(raw) == form)
    }

    /// The outside of the first item of a list.
    pub(super) fn first(&self) -> Option<Self> {
        match self {
            Self::List(first) => first.map(|raw| Self::of(raw.get())),
            Self::Object(_) | Self::Other => None,
        }
    }

    /// The outside of a field; [`Outline::Other`] where it is absent.
    pub(super) fn field(&self, key: &str) -> Self {
        self.get(key).map_or(Self::Other, |raw| Self::of(raw.get()))
    }
}

struct Look<'a, 'o>(&'o mut Outline<'a>);

impl<'de: 'a, 'a> Visitor<'de> for Look<'a, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        *self.0 = Outline::Object(Vec::new());
        while let Some(entry) = map.next_entry()? {
            if let Outline::Object(fields) = self.0 {
                fields.push(entry);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        *self.0 = Outline::List(None);
        *self.0 = Outline::List(list.next_element()?);
        Ok(())
    }
}
