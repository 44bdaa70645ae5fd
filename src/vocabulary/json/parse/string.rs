//! String literals. Runs without escapes are found eight bytes at a time and copied whole.

use super::super::{JsonError, JsonErrorKind};
use super::Parser;

impl Parser<'_> {
    /// A string, which starts here with its quote.
    pub(super) fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let start = self.at;
            self.at += plain_length(self.text.as_bytes().get(start..).unwrap_or_default());
            string.push_str(self.since(start)?);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                None => return Err(self.error(JsonErrorKind::Unterminated)),
            }
        }
    }

    /// An escape, which starts here with its backslash.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.peek() else {
            return Err(self.error(JsonErrorKind::Unterminated));
        };
        let character = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point(start),
            _ => return Err(JsonErrorKind::InvalidEscape.at(start)),
        };
        self.at += 1;
        Ok(character)
    }

    /// The character of a `\u` escape, or of two that are a surrogate pair. The first backslash
    /// stood at `start`, and the `u` stands here.
    fn code_point(&mut self, start: usize) -> Result<char, JsonError> {
        let lone = JsonErrorKind::LoneSurrogate.at(start);
        let unit = self.code_unit(start)?;
        if let Some(character) = char::from_u32(unit.into()) {
            return Ok(character);
        }
        if !(0xD800..0xDC00).contains(&unit) {
            return Err(lone);
        }
        let second = self.at;
        for expected in [b'\\', b'u'] {
            match self.peek() {
                Some(byte) if byte == expected => self.at += 1,
                Some(_) => return Err(lone),
                None => return Err(self.error(JsonErrorKind::Unterminated)),
            }
        }
        self.at -= 1;
        let units = [unit, self.code_unit(second)?];
        char::decode_utf16(units).next().and_then(Result::ok).ok_or(lone)
    }

    /// The `u` that stands here and its four digits.
    fn code_unit(&mut self, start: usize) -> Result<u16, JsonError> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else {
                return Err(self.error(JsonErrorKind::Unterminated));
            };
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => return Err(JsonErrorKind::InvalidEscape.at(start)),
            };
            unit = unit << 4 | u16::from(digit);
            self.at += 1;
        }
        Ok(unit)
    }
}

/// How many of `bytes` stand in a string as themselves before a quote, a backslash or a control
/// character.
fn plain_length(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut length = 0;
    for chunk in chunks {
        match special_bytes(*chunk) {
            0 => length += 8,
            mask => return length + mask.trailing_zeros() as usize / 8,
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    length + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Marks the quotes, backslashes and control characters among eight bytes: the lowest bit that is
/// set is the top bit of the first of them, and none is set if there are none.
///
/// A subtraction that borrows marks a byte only wrongly above one that is marked rightly, so the
/// lowest mark can be trusted.
fn special_bytes(chunk: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    const TOP_BITS: u64 = ONES * 0x80;
    let bytes = u64::from_le_bytes(chunk);
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes;
    let equal = |byte: u8| below(bytes ^ (ONES * u64::from(byte)), 1);
    (below(bytes, 0x20) | equal(b'"') | equal(b'\\')) & TOP_BITS
}
