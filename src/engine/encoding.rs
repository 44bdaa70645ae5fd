//! A state as bytes: for comparing states, not for reading them. It costs a third of writing JSON (SPEC 13.9).
//!
//! | value | bytes |
//! |---|---|
//! | text, a key, the name of a variant | its UTF-8, then 255, which stands in no UTF-8 |
//! | a number | a mark, then its bytes, lowest first |
//! | a list, a map | a mark of its kind, its parts in order, a mark at the end |
//! | a struct | as a list; a field is known by its place, and one that is left out leaves a mark |
//! | nothing | a mark |
//!
//! Marks are 193 and the bytes from 245 to 255, with which no UTF-8 begins either. So whatever may follow is told by its first
//! byte, and two values of one type come to the same bytes only when they come to the same JSON.

use std::fmt;

use serde::ser::{self, Serialize};

const END_OF_TEXT: u8 = 255;
const BEGIN: u8 = 254;
const END: u8 = 253;
const NOTHING: u8 = 252;
const SOMETHING: u8 = 251;
const FALSE: u8 = 250;
const TRUE: u8 = 249;
const NATURAL: u8 = 248;
const NEGATIVE: u8 = 247;
const REAL: u8 = 246;
const SKIPPED: u8 = 245;
const BEGIN_MAP: u8 = 193;

/// Most states fit; those are also the sizes that an allocator has at hand.
const ROOM: usize = 1_024;

/// The bytes of `state`.
pub(super) fn encode(state: &impl Serialize) -> Vec<u8> {
    let mut encoding = Encoding(Vec::with_capacity(ROOM));
    let written = state.serialize(&mut encoding);
    // A vector takes whatever is written, and nothing in a state refuses to be.
    debug_assert!(written.is_ok(), "a state can be written");
    encoding.0
}

struct Encoding(Vec<u8>);

/// What a value says of itself when it cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unwritable(String);

impl ser::Error for Unwritable {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

type Written = Result<(), Unwritable>;

impl Encoding {
    fn mark(&mut self, mark: u8) -> Written {
        self.0.push(mark);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Written {
        self.0.extend_from_slice(text.as_bytes());
        self.mark(END_OF_TEXT)
    }

    fn number(&mut self, mark: u8, bytes: [u8; 8]) -> Written {
        self.0.push(mark);
        self.0.extend_from_slice(&bytes);
        Ok(())
    }

    /// Its parts follow, and the end.
    fn begin(&mut self) -> Result<&mut Self, Unwritable> {
        self.0.push(BEGIN);
        Ok(self)
    }
}

/// Numbers of every width, as 64 bits.
macro_rules! numbers {
    ($($method:ident: $number:ty),*) => { $(
        fn $method(self, number: $number) -> Written {
            self.serialize_u64(number.into())
        }
    )* };
}

macro_rules! signed_numbers {
    ($($method:ident: $number:ty),*) => { $(
        fn $method(self, number: $number) -> Written {
            self.serialize_i64(number.into())
        }
    )* };
}

impl ser::Serializer for &mut Encoding {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32);
    signed_numbers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32);

    fn serialize_bool(self, value: bool) -> Written {
        self.mark(if value { TRUE } else { FALSE })
    }

    fn serialize_u64(self, number: u64) -> Written {
        self.number(NATURAL, number.to_le_bytes())
    }

    fn serialize_i64(self, number: i64) -> Written {
        match u64::try_from(number) {
            Ok(natural) => self.serialize_u64(natural),
            Err(_) => self.number(NEGATIVE, number.to_le_bytes()),
        }
    }

    fn serialize_f32(self, number: f32) -> Written {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Written {
        self.number(REAL, number.to_le_bytes())
    }

    fn serialize_char(self, letter: char) -> Written {
        self.text(letter.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Written {
        self.text(text)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Written {
        ser::Serializer::collect_seq(self, bytes)
    }

    fn serialize_none(self) -> Written {
        self.mark(NOTHING)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        self.mark(SOMETHING)?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.mark(NOTHING)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        self.mark(NOTHING)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Written {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        self.begin()?.text(variant)?;
        value.serialize(&mut *self)?;
        self.mark(END)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Unwritable> {
        self.begin()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unwritable> {
        self.begin()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unwritable> {
        self.begin()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Unwritable> {
        self.begin()?.text(variant)?;
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Unwritable> {
        self.mark(BEGIN_MAP)?;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unwritable> {
        self.begin()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Unwritable> {
        self.begin()?.text(variant)?;
        Ok(self)
    }
}

/// Parts without a name, one after the other.
macro_rules! parts {
    ($($of:ident: $method:ident),*) => { $(
        impl ser::$of for &mut Encoding {
            type Ok = ();
            type Error = Unwritable;

            fn $method<T: Serialize + ?Sized>(&mut self, part: &T) -> Written {
                part.serialize(&mut **self)
            }

            fn end(self) -> Written {
                self.mark(END)
            }
        }
    )* };
}

/// Fields, each at its place.
macro_rules! fields {
    ($($of:ident),*) => { $(
        impl ser::$of for &mut Encoding {
            type Ok = ();
            type Error = Unwritable;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, field: &T) -> Written {
                field.serialize(&mut **self)
            }

            fn skip_field(&mut self, _: &'static str) -> Written {
                self.mark(SKIPPED)
            }

            fn end(self) -> Written {
                self.mark(END)
            }
        }
    )* };
}

parts!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);
fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for &mut Encoding {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        self.mark(END)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::encode;
    use crate::vocabulary::json::Json;

    fn differ(one: &impl serde::Serialize, other: &impl serde::Serialize) {
        assert_ne!(encode(one), encode(other));
    }

    #[test]
    fn values_that_begin_alike_and_go_on_otherwise_are_told_apart() {
        differ(&["ab", "c"], &["a", "bc"]);
        differ(&(vec![1, 2], vec![3]), &(vec![1], vec![2, 3]));
        differ(&(vec![""], "a"), &(Vec::<&str>::new(), "a"));
        differ(&(Some("a"), None::<&str>), &(None::<&str>, Some("a")));
        differ(&BTreeMap::from([("a", BTreeMap::from([("b", 1)]))]), &BTreeMap::from([("a", 1), ("b", 1)]));
        differ(&(1_u64, 2_u64), &(513_u64, 0_u64));
        differ(&-1_i64, &u64::MAX);
        differ(&true, &false);
        differ(&BTreeMap::from([("a", 1)]), &("a", 1));
    }

    #[test]
    fn a_field_that_is_left_out_moves_none_to_its_place() {
        #[derive(serde::Serialize)]
        struct Pair {
            #[serde(skip_serializing_if = "Option::is_none")]
            first: Option<u8>,
            #[serde(skip_serializing_if = "Option::is_none")]
            second: Option<u8>,
        }
        differ(&Pair { first: Some(1), second: None }, &Pair { first: None, second: Some(1) });
    }

    #[test]
    fn what_is_one_in_json_is_one_here() {
        assert_eq!(encode(&7_u8), encode(&7_i64));
        assert_eq!(encode(&'a'), encode(&"a"));
    }

    #[test]
    fn any_json_is_told_from_its_neighbour() {
        let texts =
            ["null", "[]", "{}", "[[]]", "\"\"", "\"[]\"", "0", "-1", "0.5", "[0]", "[null]", "{\"\":0}", "[\"\",0]"];
        let all: Vec<Vec<u8>> = texts.iter().map(|text| encode(&Json::parse(text).unwrap())).collect();
        for (index, bytes) in all.iter().enumerate() {
            let same = all.iter().position(|other| other == bytes);
            assert_eq!(same, Some(index), "{}", texts[index]);
        }
    }
}
