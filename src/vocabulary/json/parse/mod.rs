//! Text to value: a strict recursive descent over the grammar of RFC 8259.
//!
//! The recursion is bounded by [`DEPTH_MAX`], so the stack is too. Numbers and strings are read
//! in files of their own.
//!
//! Of everything wrong with a text the first in reading order is reported; only invalid UTF-8
//! goes before all else. A byte order mark is no white space and is refused.

mod number;
mod string;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{DEPTH_MAX, Json, JsonError, JsonErrorKind};

impl Json {
    /// Reads a whole text as one payload (`SPEC 4`).
    ///
    /// A literal without fraction and exponent is an integer, and `-0` is the integer 0. Any
    /// other number is the nearest double, and `-0.0` keeps its sign.
    ///
    /// # Errors
    ///
    /// A [`JsonError`] with the first thing that is wrong and its place; nothing is repaired.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        let mut parser = Parser { text, at: 0 };
        parser.skip_white_space();
        if parser.peek().is_none() {
            return Err(parser.error(JsonErrorKind::Empty));
        }
        let json = parser.value(DEPTH_MAX)?;
        parser.skip_white_space();
        match parser.peek() {
            None => Ok(json),
            Some(_) => Err(parser.error(JsonErrorKind::Trailing)),
        }
    }

    /// Reads bytes that ought to be UTF-8, then does what [`Json::parse`] does.
    ///
    /// # Errors
    ///
    /// [`JsonErrorKind::InvalidUtf8`] at the first byte that is not UTF-8; else as `parse`.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Json, JsonError> {
        let text = std::str::from_utf8(bytes).map_err(|error| JsonErrorKind::InvalidUtf8.at(error.valid_up_to()))?;
        Json::parse(text)
    }
}

/// A text and how far it has been read.
struct Parser<'text> {
    text: &'text str,
    at: usize,
}

impl<'text> Parser<'text> {
    /// One value, which starts here and may hold `room` levels of arrays and objects.
    fn value(&mut self, room: usize) -> Result<Json, JsonError> {
        match self.peek() {
            Some(b'"') => self.string().map(Json::String),
            Some(b'{') => self.object(room),
            Some(b'[') => self.array(room),
            Some(b'-' | b'0'..=b'9') => self.number(room < DEPTH_MAX),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) | None => Err(self.unexpected()),
        }
    }

    fn object(&mut self, room: usize) -> Result<Json, JsonError> {
        let room = self.enter(room)?;
        let mut members = BTreeMap::new();
        if self.eat(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            let key_at = self.at;
            let Entry::Vacant(slot) = members.entry(self.key()?) else {
                return Err(JsonErrorKind::DuplicateKey.at(key_at));
            };
            slot.insert(self.value(room)?);
            if self.closed_by(b'}')? {
                return Ok(Json::Object(members));
            }
        }
    }

    fn array(&mut self, room: usize) -> Result<Json, JsonError> {
        let room = self.enter(room)?;
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(room)?);
            if self.closed_by(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    /// A key and its colon, up to the value.
    fn key(&mut self) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = self.string()?;
        self.skip_white_space();
        if !self.eat(b':') {
            return Err(self.unexpected());
        }
        self.skip_white_space();
        Ok(key)
    }

    /// Steps over an opening bracket and says how much room is left inside it.
    fn enter(&mut self, room: usize) -> Result<usize, JsonError> {
        let left = room.checked_sub(1).ok_or_else(|| self.error(JsonErrorKind::Depth))?;
        self.at += 1;
        self.skip_white_space();
        Ok(left)
    }

    /// After an item: true past the closing `bracket`, false at the item after a comma.
    fn closed_by(&mut self, bracket: u8) -> Result<bool, JsonError> {
        self.skip_white_space();
        if self.eat(b',') {
            self.skip_white_space();
            Ok(false)
        } else if self.eat(bracket) {
            Ok(true)
        } else {
            Err(self.unexpected())
        }
    }

    fn word(&mut self, word: &str, json: Json) -> Result<Json, JsonError> {
        for byte in word.bytes() {
            if !self.eat(byte) {
                return Err(self.unexpected());
            }
        }
        Ok(json)
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The text from `start` up to here. Both lie beside ASCII bytes, hence between characters.
    fn since(&self, start: usize) -> Result<&'text str, JsonError> {
        self.text.get(start..self.at).ok_or_else(|| self.error(JsonErrorKind::Syntax))
    }

    /// The error for what stands here, where something else had to.
    fn unexpected(&self) -> JsonError {
        self.error(match self.peek() {
            Some(_) => JsonErrorKind::Syntax,
            None => JsonErrorKind::Unterminated,
        })
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        kind.at(self.at)
    }
}
