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
        let mut head = Head::new(domain);
        for part in parts {
            head.push(&(part.len() as u64).to_le_bytes());
            head.push(part);
        }
        Self(*head.finish().as_bytes())
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
/// and hashed at once, which costs half of feeding the parts one by one to a hasher of two kilobytes.
struct Head {
    bytes: [u8; HEAD_BYTES],
    filled: usize,
    overflow: Option<Box<blake3::Hasher>>,
}

const HEAD_BYTES: usize = 256;

impl Head {
    fn new(domain: &str) -> Self {
        let mut head = Self { bytes: [0; HEAD_BYTES], filled: 0, overflow: None };
        head.push(domain.as_bytes());
        head.push(&[0]);
        head
    }

    fn push(&mut self, part: &[u8]) {
        if let Some(hasher) = &mut self.overflow {
            hasher.update(part);
        } else if let Some(room) = self.bytes.get_mut(self.filled..self.filled + part.len()) {
            room.copy_from_slice(part);
            self.filled += part.len();
        } else {
            let mut hasher = Box::new(blake3::Hasher::new());
            hasher.update(self.gathered()).update(part);
            self.overflow = Some(hasher);
        }
    }

    fn gathered(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    fn finish(self) -> blake3::Hash {
        match &self.overflow {
            Some(hasher) => hasher.finalize(),
            None => blake3::hash(self.gathered()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, without the shortcut.
    fn plain(domain: &str, parts: &[&[u8]]) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(domain.as_bytes()).update(&[0]);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Digest(*hasher.finalize().as_bytes())
    }

    #[test]
    fn gathering_changes_no_digest_around_the_size_of_the_head() {
        for first in (0..40).chain(HEAD_BYTES - 40..HEAD_BYTES + 40) {
            for second in [0, 1, 7, 200, 5_000] {
                let parts: [&[u8]; 2] = [&vec![b'a'; first], &vec![b'b'; second]];
                assert_eq!(Digest::of("domain", &parts), plain("domain", &parts), "{first} and {second} bytes");
            }
        }
    }

    #[test]
    fn parts_are_told_apart_by_their_lengths() {
        assert_ne!(Digest::of("d", &[b"ab", b"c"]), Digest::of("d", &[b"a", b"bc"]));
        assert_ne!(Digest::of("d", &[b"a"]), Digest::of("e", &[b"a"]));
    }

    #[test]
    fn hexadecimal_digits_are_read_back_and_nothing_else_is() {
        let digest = Digest::of("d", &[b"x"]);
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        for text in ["", "00", &digest.to_string().to_uppercase(), &format!("{digest}0"), &"g".repeat(64)] {
            assert_eq!(Digest::from_hex(text), None, "{text}");
        }
    }
}
