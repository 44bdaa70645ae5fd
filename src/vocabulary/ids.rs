//! Names of things inside a run. All are ours: an id that a provider gave is only an attribute and may
//! repeat (SPEC 7).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A run's id: `[A-Za-z0-9._-]{1,128}` without a leading dot (SPEC 5).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// The longest id, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is not the id it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct MalformedId {
    /// What stood there.
    pub text: String,
    /// The form it should have.
    pub expected: &'static str,
}

impl FromStr for RunId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let well_formed =
            (1..=Self::BYTES_MAX).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(allowed);
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedId {
                text: text.chars().take(40).collect(),
                expected: "a run id: 1 to 128 of [A-Za-z0-9._-], without a leading dot",
            })
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// One logical model request: `m1`, `m2`, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelCallId(pub u32);

/// One question to the semantic judge: `j1`, `j2`, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JudgeCallId(pub u32);

/// One observed fact: `f1`, `f2`, ... in publication order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId(pub u32);

/// One tool call that the model made: `t1.0` is the first call of round 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolCallId {
    /// The round, from 1.
    pub round: u32,
    /// The position in the model's response, from 0.
    pub index: u32,
}

/// One call that a tool makes while it runs: `n1.0.2` is the third one inside `t1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NestedCallId {
    /// The tool call it belongs to.
    pub parent: ToolCallId,
    /// Its position inside the parent, from 0.
    pub index: u32,
}

impl fmt::Display for ModelCallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "m{}", self.0)
    }
}

impl fmt::Display for JudgeCallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "j{}", self.0)
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "f{}", self.0)
    }
}

impl fmt::Display for ToolCallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "t{}.{}", self.round, self.index)
    }
}

impl fmt::Display for NestedCallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "n{}.{}.{}", self.parent.round, self.parent.index, self.index)
    }
}

/// A decimal number without sign, leading zeros or more than ten digits.
fn ordinal(text: &str) -> Option<u32> {
    let canonical =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

impl FromStr for ModelCallId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let read = || text.strip_prefix('m').and_then(ordinal).map(Self);
        read().ok_or_else(|| malformed(text, "a model call id such as `m1`"))
    }
}

impl FromStr for JudgeCallId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let read = || text.strip_prefix('j').and_then(ordinal).map(Self);
        read().ok_or_else(|| malformed(text, "a judge call id such as `j1`"))
    }
}

impl FromStr for FactId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let read = || text.strip_prefix('f').and_then(ordinal).map(Self);
        read().ok_or_else(|| malformed(text, "a fact id such as `f1`"))
    }
}

impl FromStr for ToolCallId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let read = || {
            let (round, index) = text.strip_prefix('t')?.split_once('.')?;
            Some(Self { round: ordinal(round)?, index: ordinal(index)? })
        };
        read().ok_or_else(|| malformed(text, "a tool call id such as `t1.0`"))
    }
}

impl FromStr for NestedCallId {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let read = || {
            let (round, rest) = text.strip_prefix('n')?.split_once('.')?;
            let (parent, index) = rest.split_once('.')?;
            let parent = ToolCallId { round: ordinal(round)?, index: ordinal(parent)? };
            Some(Self { parent, index: ordinal(index)? })
        };
        read().ok_or_else(|| malformed(text, "a nested call id such as `n1.0.0`"))
    }
}

fn malformed(text: &str, expected: &'static str) -> MalformedId {
    MalformedId { text: text.chars().take(40).collect(), expected }
}

/// An id's text on the stack: ids stand in every record several times.
struct Spelt {
    bytes: [u8; RunId::BYTES_MAX],
    filled: usize,
}

impl Spelt {
    fn of(id: &impl fmt::Display) -> Self {
        let mut spelt = Self { bytes: [0; RunId::BYTES_MAX], filled: 0 };
        // No id is longer than the longest run id, so there is always room.
        let _ = fmt::Write::write_fmt(&mut spelt, format_args!("{id}"));
        spelt
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..self.filled).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl fmt::Write for Spelt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.filled + text.len();
        self.bytes.get_mut(self.filled..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.filled = end;
        Ok(())
    }
}

macro_rules! text_on_the_wire {
    ($($name:ident, $pattern:literal;)*) => { $(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Spelt::of(self).as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    )* };
}

text_on_the_wire! {
    RunId, "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$";
    ModelCallId, "^m(0|[1-9][0-9]*)$";
    JudgeCallId, "^j(0|[1-9][0-9]*)$";
    FactId, "^f(0|[1-9][0-9]*)$";
    ToolCallId, "^t(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$";
    NestedCallId, "^n(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$";
}

/// A question that the engine asked of a gate or a hook: an ordinal, so that an answer names its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Ask(pub u32);

/// A request for a person's decision, bound to run, call and exact arguments. It identifies, it does not
/// authorise: who may answer is the edge's work (SPEC 7.8).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Ticket(pub String);

/// The idempotency key of one tool call, the same across retries and crashes (SPEC 7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct OperationId(pub String);

impl fmt::Display for Ticket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
