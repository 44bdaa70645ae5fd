//! JSON Pointer, RFC 6901: where in a payload something stands.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::Json;

/// A valid JSON Pointer, such as `/previous/0/name`; the empty one is the root.
///
/// In it `~1` stands for `/` and `~0` for `~`. It is a string on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Pointer {
    /// Keys or indices from the root on, their escapes undone.
    tokens: Vec<String>,
}

/// A text that is no JSON Pointer. Offsets count bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PointerError {
    /// The text is not empty and does not start with a slash.
    #[error("a JSON Pointer is empty or starts with a slash")]
    NoLeadingSlash,
    /// A tilde that is followed by neither `0` nor `1`.
    #[error("the tilde at byte {offset} is followed by neither 0 nor 1")]
    BareTilde {
        /// Where the tilde stands.
        offset: usize,
    },
}

impl Pointer {
    /// Reads the text form of RFC 6901.
    ///
    /// # Errors
    ///
    /// [`PointerError`] if the text has no leading slash or a tilde that escapes nothing.
    pub fn parse(text: &str) -> Result<Pointer, PointerError> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(PointerError::NoLeadingSlash);
        }
        let is_escape = |tail: &str| tail.starts_with("~0") || tail.starts_with("~1");
        let mut tildes = text.match_indices('~').map(|(offset, _)| offset);
        if let Some(offset) = tildes.find(|at| !text.get(*at..).is_some_and(is_escape)) {
            return Err(PointerError::BareTilde { offset });
        }
        // In this order, so that `~01` is `~1` and not a slash.
        let unescape = |token: &str| token.replace("~1", "/").replace("~0", "~");
        Ok(Pointer { tokens: text.split('/').skip(1).map(unescape).collect() })
    }

    /// Keys or indices from the root on, their escapes undone. The root has none.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

impl Json {
    /// The value that stands at `pointer`, if there is one.
    ///
    /// An array takes an index in decimal digits without leading zeros; `-`, which names the
    /// place after the last item, finds nothing.
    pub fn pointer(&self, pointer: &Pointer) -> Option<&Json> {
        pointer.tokens.iter().try_fold(self, |json, token| match json {
            Json::Object(members) => members.get(token),
            Json::Array(items) => items.get(index(token)?),
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => None,
        })
    }
}

fn index(token: &str) -> Option<usize> {
    let has_only_digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = token.len() > 1 && token.starts_with('0');
    if has_only_digits && !has_leading_zero { token.parse().ok() } else { None }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens.iter().try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        Pointer::parse(text)
    }
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        Pointer::parse(&text)
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
