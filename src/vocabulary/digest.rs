//! Digests: BLAKE3, domain-separated, written as 64 lower-case hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A BLAKE3 digest of 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest that stands where nothing came before.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest of `parts` under `domain`. Each part is preceded by its length, so that no two different
    /// lists of parts give the same bytes.
    #[must_use]
    pub fn of(domain: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut head = Head::new(domain);
        for part in parts {
            head.push(&mut hasher, &(part.len() as u64).to_le_bytes());
            head.push(&mut hasher, part);
        }
        Self(*head.finish(hasher).as_bytes())
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Some(Self(bytes))
    }

    /// The hexadecimal digits, without an allocation.
    #[must_use]
    pub fn hex(&self) -> Hex {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        Hex(text)
    }

    /// The first eight bytes as a number: for jitter, never for identity.
    #[must_use]
    pub fn leading_u64(&self) -> u64 {
        self.0.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

/// The first bytes of what is hashed. Most digests are of few bytes in several parts: they are gathered here
/// and hashed at once, which costs half of feeding the parts one by one.
struct Head {
    bytes: [u8; HEAD_BYTES],
    filled: usize,
    flushed: bool,
}

const HEAD_BYTES: usize = 256;

impl Head {
    fn new(domain: &str) -> Self {
        let mut head = Self { bytes: [0; HEAD_BYTES], filled: 0, flushed: false };
        let named = domain.bytes().chain([0]);
        for (place, byte) in head.bytes.iter_mut().zip(named) {
            *place = byte;
            head.filled += 1;
        }
        head
    }

    fn push(&mut self, hasher: &mut blake3::Hasher, part: &[u8]) {
        match self.bytes.get_mut(self.filled..self.filled + part.len()) {
            Some(room) if !self.flushed => {
                room.copy_from_slice(part);
                self.filled += part.len();
            }
            Some(_) | None => {
                self.flush(hasher);
                hasher.update(part);
            }
        }
    }

    fn flush(&mut self, hasher: &mut blake3::Hasher) {
        if !self.flushed {
            hasher.update(self.gathered());
            self.flushed = true;
        }
    }

    fn gathered(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    fn finish(self, hasher: blake3::Hasher) -> blake3::Hash {
        if self.flushed { hasher.finalize() } else { blake3::hash(self.gathered()) }
    }
}

/// The hexadecimal form of a [`Digest`], on the stack.
pub struct Hex([u8; 64]);

impl Hex {
    /// The 64 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.hex().as_str())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 lower-case hexadecimal digits"))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}
